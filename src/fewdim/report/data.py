"""The numbers of a report, as plain data: what a journal holds, and what its values tell when they are replayed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewdim.dimension import EffectiveDimension
from fewdim.journal import Journal
from fewdim.loop import History
from fewdim.methods import METHODS
from fewdim.report.diagnostics import Diagnostics, diagnose

CITATION = """\
@software{fewdim,
  title = {fewdim: black boxes of very many parameters, minimised from function values alone},
  author = {{the fewdim authors}},
  year = {2026},
  version = {0.1.0},
  license = {BSD-3-Clause}
}
@inproceedings{yue2023zeroth,
  title = {Zeroth-order Optimization with Weak Dimension Dependency},
  author = {Yue, Pengyun and Yang, Long and Fang, Cong and Lin, Zhouchen},
  booktitle = {Proceedings of Thirty Sixth Conference on Learning Theory},
  series = {Proceedings of Machine Learning Research},
  volume = {195},
  pages = {4429--4472},
  year = {2023}
}"""
GAPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of which a report shows the forecast
POINTS = 500  # of a curve
Data = dict[str, Any]


def run_data(journal: Journal) -> Data:
    """All that a report shows of a run."""
    about, notes, values, seconds = journal.description, journal.notes, journal.values, journal.seconds
    history, lowest = journal.history, int(np.nanargmin(values))
    picked = thinned(history.nfev)
    clock = np.cumsum(np.nan_to_num(seconds)) / max(1, about["width"])
    found = diagnose(journal)
    dimension = notes.get("dimension")
    return {
        "problem": about["problem"],
        "method": about["method"],
        "settings": {**about["settings"], **_bounds(about.get("bounds"))},
        "shape": about["shape"],
        "d": math.prod(about["shape"]),
        "dtype": about["dtype"],
        "seed": about["key"][0],
        "width": about["width"],
        "version": about["version"],
        "created": about["created"],
        "environment": notes.get("environment", {}),
        "command": notes.get("command"),
        "first": float(values[0]),
        "best": float(values[lowest]),
        "best_at": lowest + 1,
        "nfev": int(values.size),
        "seconds": float(clock[-1]),
        "failures": _failures(journal),
        "nfail": int(np.isnan(values).sum()),
        "history": {
            "nfev": history.nfev[picked].tolist(),
            "fun": history.fun[picked].tolist(),
            "seconds": clock[history.nfev[picked] - 1].tolist(),
        },
        "diagnostics": _curves(found),
        "dimension": dimension,
        "band": None if dimension is None else band(dimension, about["method"], history),
    }


def _bounds(data: list[Any] | None) -> Data:
    if data is None:
        return {}
    same = all(isinstance(side, float) for side in data)
    return {"bounds": f"{data[0]:g} to {data[1]:g}" if same else "one pair for each parameter"}


def _curves(found: Diagnostics | str) -> Data:
    if isinstance(found, str):
        return {"missing": found}
    series = {}
    for name, (counts, numbers) in found.curves.items():
        picked = thinned(np.array(counts))
        series[name] = {"nfev": [counts[i] for i in picked], "value": [numbers[i] for i in picked]}
    return {"series": series, "nit": found.nit, "noise": found.noise, "ritz": found.ritz}


def _failures(journal: Journal) -> list[Data]:
    """What went wrong, how often, and when first and last."""
    groups: dict[str, list[int]] = defaultdict(list)
    for failure in journal.failures:
        groups[failure.message].append(failure.nfev)
    often = sorted(groups.items(), key=lambda item: -len(item[1]))[:20]
    return [{"message": text, "count": len(at), "first": at[0], "last": at[-1]} for text, at in often]


def thinned(counts: NDArray[np.int64]) -> list[int]:
    """At most POINTS positions of a curve, both ends among them, as dense as their logarithms allow."""
    n = len(counts)
    if n <= POINTS:
        return list(range(n))
    wanted = np.geomspace(max(1, counts[0]), counts[-1], POINTS - 2)
    positions = {0, n - 1, *np.searchsorted(counts, wanted).clip(0, n - 1).tolist()}
    return sorted(positions)


def dimension_data(found: EffectiveDimension, gaps: Sequence[float] = GAPS) -> Data:
    """What was measured about the effective dimension, as JSON."""
    spectrum = found.spectrum
    forecasts = [found.forecast(gap) for gap in gaps] if found.scenarios else []
    return {
        "nfev": found.nfev,
        "estimator": found.estimator,
        "smoothness": found.smoothness,
        "trace": found.trace,
        "trace_error": found.trace_error,
        "estimates": [
            {"alpha": e.alpha, "estimate": e.estimate, "low": e.low, "high": e.high, "replaces": e.replaces}
            for _, e in sorted(found.estimates.items())
        ],
        "spectrum": {
            "eigenvalues": spectrum.eigenvalues.tolist(),
            "counts": spectrum.counts.tolist(),
            "unseen": spectrum.unseen,
            "floor": spectrum.floor,
        },
        "sentence": found.sentence,
        "forecasts": [
            {"gap": f.gap, "method": p.method, "evaluations": _plain(p.evaluations), "low": _plain(p.low),
             "high": _plain(p.high)}
            for f in forecasts for p in f.predictions
        ],
        "verdict": forecasts[-1].verdict if forecasts else None,
    }  # fmt: skip


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None


def band(dimension: Data, method: str, history: History) -> Data | None:
    """The forecast as a band in the plane of evaluations and values, with the best value found for the minimum.

    The method itself if it is among those that can be forecast, else random gradient, whose theory is exact.
    """
    rows = dimension["forecasts"]
    names = {row["method"] for row in rows}
    mine = {kind.__name__: title for title, kind in METHODS.items()}.get(method)
    name = mine if mine in names else "random-gradient"
    chosen = [row for row in rows if row["method"] == name and row["high"] is not None]
    if not chosen:
        return None
    first, least = float(history.fun[0]), float(history.fun[-1])
    return {
        "method": name,
        "rows": [
            {"gap": row["gap"], "fun": least + row["gap"] * (first - least), "low": row["low"], "high": row["high"]}
            for row in chosen
        ],
    }
