"""Make docs/generated: every number and figure of the documentation, from scripts of this repository.

python docs/generate.py               all, in about fifteen minutes; what needs a package that is missing stays as it is
python docs/generate.py which softmax only these
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
import scipy.optimize
from numpy.typing import NDArray

import fewdim

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs" / "generated"
Array = NDArray[np.float64]
EXAMPLES: dict[str, tuple[str, list[str], list[str]]] = {  # name: script, arguments of its runs, what it needs
    "quickstart": ("quickstart.py", [""], []),
    "demo": ("demo.py", [""], ["mlxtend"]),
    "water_ky4": ("water_network.py", ["", "--seed 1", "--seed 2"], ["epanet", "wntr", "cma"]),
    "water_Net6": ("water_network.py", ["--network Net6"], ["epanet", "wntr", "cma"]),
    "softmax": ("softmax.py", [""], ["mlxtend"]),
    "tanh_network": ("tanh_network.py", [""], ["mlxtend"]),
    "ngspice_ladder": ("ngspice_ladder.py", ["--journal run.db --figure out/ladder.png"], ["ngspice"]),
    "mujoco_policy": ("mujoco_policy.py", [""], ["mujoco", "gymnasium", "cma"]),
}
Seen = Callable[[Array, np.random.Generator], float]


def example(name: str) -> None:
    """Run an example in a folder of its own; keep what it prints, and what it draws the first time."""
    script, runs, needs = EXAMPLES[name]
    missing = [need for need in needs if find_spec(need) is None and shutil.which(need) is None]
    if missing:
        print(f"  left as it is: {', '.join(missing)} is not installed")
        return
    printed = []
    for n, arguments in enumerate(runs):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(ROOT / "examples" / script), *arguments.split()]
            env = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True)
            printed.append("".join(f"{line}\n" for line in done.stdout.splitlines() if not line.startswith("Figure:")))
            for picture in Path(folder).glob("out/*.png") if n == 0 else ():
                shutil.copy(picture, HERE / f"{name}.png")
    (HERE / f"{name}.txt").write_text("\n".join(printed))


def dimension() -> None:
    """The report of the page on effective dimension."""
    weights = 1 / np.arange(1, 1001) ** 2
    ed = fewdim.effective_dimension(lambda x: float(weights @ x**2), np.ones(1000), maxfev=2000, rng=0)
    (HERE / "dimension.txt").write_text(f"{ed}\n{ed.forecast(0.01)}\n")


# ---------------------------------------------------------------------------------------------------- which method when
def quadratic(decay: float, d: int) -> tuple[Callable[[Array], float], Array]:
    """A quadratic of eigenvalues i^-decay and where it starts, at 1 or -1 along each eigenvector.

    The eigenvectors are cosines with random signs: no axis is near one, so that a diagonal does not help.
    """
    eigenvalues = np.arange(1.0, d + 1) ** -decay
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, d))

    def f(x: Array) -> float:
        return 0.5 * float(eigenvalues @ scipy.fft.dct(signs[0] * x, norm="ortho") ** 2)

    return f, np.asarray(signs[0] * scipy.fft.idct(signs[1], norm="ortho"))


def logistic(d: int) -> tuple[Callable[[Array], float], Array]:
    """Logistic regression of 200 rows whose features decay like 1/i."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, d)) / np.arange(1, d + 1)
    y = np.sign(X @ rng.standard_normal(d))
    return lambda w: float(np.logaddexp(0, -y * (X @ w)).mean() + 1e-4 * w @ w), np.zeros(d)


def added(made: tuple[Callable[[Array], float], Array], level: float) -> Seen:
    """The function with noise of this level, relative to where it starts."""
    exact, start = made
    size = level * exact(start)
    return lambda x, dice: exact(x) + size * float(dice.standard_normal())


def sampled(d: int) -> tuple[Callable[[Array], float], Array, Seen]:
    """Logistic regression of 2000 rows, seen through 64 of them: exact at 0, and noisier the farther from there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, d))
    y = np.sign(X @ rng.standard_normal(d) + 0.3 * np.sqrt(d) * rng.standard_normal(2000))

    def loss(w: Array, at: Any = slice(None)) -> float:
        return float(np.logaddexp(0, -y[at] * (X[at] @ w)).mean())

    return loss, np.zeros(d), lambda w, dice: loss(w, dice.integers(0, 2000, 64))


class Case:
    """A row of the table: a function, its minimum, and the share of the gap at which a method is done.

    In noise, `seen` is what a method is told at x.
    """

    def __init__(
        self, title: str, made: tuple[Callable[[Array], float], Array], share: float = 0, seen: Seen | None = None
    ) -> None:
        self.title, (self.exact, self.start), self.share, self.seen = title, made, share, seen
        self.first = self.exact(self.start)
        least = (
            scipy.optimize.minimize(self.exact, self.start, method="L-BFGS-B", options=LONG).fun
            if "log" in title
            else 0
        )
        self.target = least + share * (self.first - least)

    def cell(self, method: str, seed: int) -> float:
        """Evaluations to the target; in noise, the true value at the end as a share of the first."""
        d, dice = self.start.size, np.random.default_rng(seed)
        if method == "quadratic-model" and d > 150:
            return np.nan  # not what it is for, and it would take hours
        if seen := self.seen:
            result = fewdim.minimize(lambda x: seen(x, dice), self.start, method=method, maxfev=4000, rng=seed)
            return self.exact(result.x) / self.first
        result = fewdim.minimize(
            self.exact, self.start, method=method, maxfev=60 * d, f_target=self.target, tol=0, rng=seed
        )
        return float(result.nfev) if result.reason == "target" else np.inf

    def lbfgs(self) -> float:
        """The same for L-BFGS-B by forward differences."""
        values: list[float] = []
        dice = np.random.default_rng(0)

        def counted(x: Array) -> float:
            value = self.exact(x)
            values.append(value)
            if len(values) >= (4000 if self.seen else 60 * x.size) or (not self.seen and value <= self.target):
                raise StopIteration
            return self.seen(x, dice) if self.seen else value

        end = self.start
        with contextlib.suppress(StopIteration):
            end = scipy.optimize.minimize(counted, self.start, method="L-BFGS-B", options={"maxfun": 10**9}).x
        if self.seen:
            return self.exact(end) / self.first
        return float(len(values)) if values[-1] <= self.target else np.inf


LONG: dict[str, Any] = {"maxiter": 5000, "maxfun": 10**7, "ftol": 1e-14, "gtol": 1e-10}


def which() -> None:
    """The table of methods and problems."""
    cases = [
        Case("eigenvalues i^-2, d = 1,000, to 1e-2", quadratic(2, 1000), 1e-2),
        Case("eigenvalues 1/i, d = 300, to 1e-4", quadratic(1, 300), 1e-4),
        Case("eigenvalues i^-1/2, d = 300, to 1e-4", quadratic(0.5, 300), 1e-4),
        Case("logistic regression, d = 1,000, to 1e-2", logistic(1000), 1e-2),
    ]
    for title, made, level in (
        ("eigenvalues i^-2, d = 300, noise 1e-3 of f(x0)", quadratic(2, 300), 1e-3),
        ("eigenvalues 1/i, d = 50, noise 1e-3 of f(x0)", quadratic(1, 50), 1e-3),
        ("eigenvalues 1/i, d = 300, noise 1e-1 of f(x0)", quadratic(1, 300), 1e-1),
    ):
        cases.append(Case(title, made, seen=added(made, level)))
    loss, start, seen = sampled(60)
    cases.append(Case("loss of 64 random rows of 2,000, d = 60", (loss, start), seen=seen))
    names = [*fewdim.METHODS]
    lines = [
        "| problem | " + " | ".join(f"`{name}`" for name in names) + " | L-BFGS-B |",
        "|---" * (len(names) + 2) + "|",
    ]
    for case in cases:
        cells = [statistics.median(case.cell(name, seed) for seed in range(3)) for name in names] + [case.lbfgs()]
        shown = [_cell(cell, case.seen is not None) for cell in cells]
        best = int(np.nanargmin(cells))
        shown[best] = f"**{shown[best]}**"
        lines.append(f"| {case.title} | " + " | ".join(shown) + " |")
        print(f"  {lines[-1]}", flush=True)
    (HERE / "which.md").write_text("\n".join(lines) + "\n")


def _cell(number: float, share: bool) -> str:
    if np.isnan(number):
        return ""
    if not np.isfinite(number):
        return "-"
    return f"{number:.1e} left" if share else f"{number:,.0f}"


# -------------------------------------------------------------------------------------------------------- the report
def report() -> None:
    """A picture of a report, taken in Chromium."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if find_spec("selenium") is None or chromium is None or driver is None:
        print("  left as it is: selenium, chromium or chromedriver is not installed")
        return
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as folder:
        problem = "import numpy as np\n\n\ndef loss(x):\n    return float((x - 1) ** 2 @ np.arange(1, 301) ** -1.5)\n"
        Path(folder, "problem.py").write_text(problem)
        words = "minimize problem:loss --x0 zeros:300 --maxfev 3000 --seed 0 --dimension 1000 --report run.html"
        command = [sys.executable, "-m", "fewdim", *words.split(), "--journal", "run.db"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "window-size=1100,1250"):
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={folder}/profile")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        browser.get(Path(folder, "run.html").as_uri())
        picture = io.BytesIO(browser.get_screenshot_as_png())
        browser.quit()
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(64).save(HERE / "report.png", optimize=True)


JOBS: dict[str, Callable[[], None]] = {
    "dimension": dimension,
    "which": which,
    "report": report,
    **{name: (lambda name=name: example(name)) for name in EXAMPLES},  # type: ignore[misc]
}


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name in sys.argv[1:] or JOBS:
        print(name, flush=True)
        JOBS[name]()


if __name__ == "__main__":
    main()
