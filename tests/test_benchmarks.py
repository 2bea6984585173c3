"""The benchmark: who counts and who judges, minima that are minima, and arithmetic that is right on records by hand."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, least_squares, minimize

from benchmarks import ablations, limits, report, run, scores
from benchmarks.fits import FITS
from benchmarks.harness import TARGETS, Counted, Enough
from benchmarks.harness import run as one_run
from benchmarks.peers import PEERS
from benchmarks.problem import MINIMA, Problem, budget, noisy
from benchmarks.problems import NOISY, PROBLEMS, SINGLE, problem
from benchmarks.quadratics import quadratic
from benchmarks.simulations import SIMULATIONS

USED = [*FITS, *SIMULATIONS]
# those that need no extra and are quickly made
EXACT = [name for name in PROBLEMS if "/" not in name and not name.startswith(("mnist", "water"))]


def bowl(**changes: Any) -> Problem:
    made = Problem("bowl", lambda x: float(x @ x) + 5.0, np.array([3.0, 4.0]), 5.0, "classic")
    return dataclasses.replace(made, **changes)


# --- the harness -----------------------------------------------------------------------------------------------------


def test_every_evaluation_is_counted_and_the_budget_ends_the_run() -> None:
    asked = 0

    def solver(fun: Any, x0: Any, budget: int, seed: int) -> None:
        nonlocal asked
        while True:
            try:
                fun(x0)
                asked += 1
            except Exception:  # a solver that swallows errors cannot swallow the end
                pass

    record = one_run(bowl(), solver, 0, budget=37)
    assert asked == record["nfev"] == 37
    assert record["status"] == "budget"


def test_targets_are_met_by_true_values_at_any_evaluation() -> None:
    def solver(fun: Any, x0: Any, budget: int, seed: int) -> None:
        for scale in (1.0, 0.3, 2.0, 0.009, 0.5):  # gaps 1, 0.09, 4, 8.1e-5, 0.25
            fun(scale * x0)

    for law in ("exact", "gaussian"):
        record = one_run(bowl(law=law, level=100.0), solver, 0)
        assert record["reached"] == [2, 4, 4, 4, None, None]
        assert record["gap"] == pytest.approx(8.1e-5)
        assert (record["nfev"], record["status"]) == (5, "stopped")


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
def test_what_a_solver_is_told_has_noise_of_the_level(law: Any) -> None:
    fun = Counted(bowl(law=law, level=1e-2), seed=0, budget=4001)
    told = np.array([fun([3.0, 4.0]) for _ in range(4000)])
    # 25 is the drop; the standard deviation of a sample of 4000 is within 5 % with room (4.5 times its error or more)
    assert told.std() == pytest.approx(0.25, rel=0.05)
    assert abs(told.mean() - 30) < 5 * 0.25 / 4000**0.5
    assert fun.gap == 1.0
    again = Counted(bowl(law=law, level=1e-2), seed=0)
    assert again([3.0, 4.0]) == told[0]


def test_float32_is_seen_and_not_judged() -> None:
    x = np.array([1.0, 1 / 3])
    rounded = Counted(bowl(law="rounded"), 0)
    assert rounded(x) == float(np.float32(x @ x + 5))
    assert rounded.gap == (x @ x + 5.0 - 5.0) / 25
    single = Counted(problem("power-1-100-rotated/single"), 0)
    p = problem("power-1-100-rotated")
    told = single(p.x0)
    assert told == float(np.float32(told))
    assert told != p.fun(p.x0)
    assert told == pytest.approx(p.fun(p.x0), rel=1e-5)


def test_the_last_target_the_time_and_errors_end_a_run() -> None:
    assert one_run(bowl(), lambda fun, x0, *_: fun(0 * x0), 0)["status"] == "solved"
    fun = Counted(bowl(), 0, seconds=-1.0)
    with pytest.raises(Enough, match="time"):
        fun([1.0, 1.0])
    record = one_run(bowl(), lambda fun, x0, *_: fun(np.ones(3)), 0)
    assert record["status"].startswith("ValueError: a point must have 2")
    assert (record["nfev"], record["gap"]) == (0, None)
    record = one_run(bowl(fun=lambda x: math.nan if x[0] < 3 else float(x @ x) + 5.0), lambda f, x, *_: f(0 * x), 0)
    assert (record["nfev"], record["reached"]) == (1, [None] * 6)


# --- the problems ----------------------------------------------------------------------------------------------------


def test_there_are_problems_enough_of_every_kind() -> None:
    assert len(PROBLEMS) >= 40
    families = {family for name in EXACT for family in problem(name).families}
    expected = {"smooth large", "convex and real data", "medium", "small classics", "non-convex", "applications"}
    assert families == expected
    assert all(problem(name).families for name in EXACT)
    assert {problem(f"{name}/{law}-{level:.0e}").families for name, law, level in NOISY} == {("noise",)}
    assert {problem(f"{name}/{law}").families for name, law in SINGLE} == {("float32",)}
    assert {budget(2), budget(1000), budget(10_000), budget(100_000)} == {1500, 50_000, 30_000, 10_000}


@pytest.mark.parametrize("name", USED)
def test_applications_are_named_by_their_dimension_and_do_not_change(name: str) -> None:
    p, again = problem(name), {**FITS, **SIMULATIONS}[name]()
    assert int(name.rsplit("-", 1)[1]) == p.d == again[1].size
    assert p.fun(p.x0) == again[0](again[1])
    assert p.families == ("applications",)
    assert PEERS["nlopt SBPLX"].takes(p) == (p.d <= 500)
    assert not PEERS["SPSA"].takes(p)


@pytest.mark.parametrize("name", EXACT)
def test_minima_are_minima(name: str) -> None:
    """Known solutions have the minimum's value, and gradients, which find the other minima, are right."""
    p = problem(name)
    assert math.isfinite(p.minimum)
    assert p.drop > 0
    if p.solution is not None:
        assert p.fun(p.solution) == pytest.approx(p.minimum, abs=1e-13 * p.drop)
    if p.gradient is not None and p.d <= 1000:
        u = np.random.default_rng(0).standard_normal(p.d)
        u /= np.linalg.norm(u)
        x, h = p.x0 + 0.1 * u, 1e-5
        slope = (p.fun(x + h * u) - p.fun(x - h * u)) / (2 * h)
        # differences err by h^2 f''' / 6 and by the round-off of f over h
        assert p.gradient(x) @ u == pytest.approx(slope, rel=1e-5, abs=1e-7 * max(1.0, abs(p.fun(x))))


@pytest.mark.parametrize(
    "name", [name for name in json.loads(MINIMA.read_text()) if name in {*EXACT} - {*USED} and problem(name).d <= 100]
)
def test_stored_minima_are_found_again(name: str) -> None:
    p = problem(name)
    if p.residuals is not None:
        found = least_squares(p.residuals, p.x0, jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=10_000)
        x, slope = found.x, 2 * np.linalg.norm(found.grad)
        first = np.linalg.norm(approx_fprime(p.x0, p.fun))
    else:
        assert p.gradient is not None
        settings = {"maxcor": 50, "maxiter": 50_000, "maxfun": 50_000, "ftol": 0, "gtol": 1e-9}
        x = minimize(p.fun, p.x0, jac=p.gradient, method="L-BFGS-B", options=settings).x
        slope, first = np.linalg.norm(p.gradient(x)), np.linalg.norm(p.gradient(p.x0))
    if p.kind == "non-convex":  # there another start may have found a lower one
        assert p.fun(x) >= p.minimum - 1e-9 * p.drop
    else:
        assert p.fun(x) == pytest.approx(p.minimum, abs=1e-8 * p.drop)
    assert slope < 1e-6 * first


def test_classics_with_a_minimum_of_zero_have_a_root() -> None:
    for name in EXACT:
        p = problem(name)
        if p.residuals is not None and p.minimum == 0 and p.d <= 20 and not name.startswith("trigonometric"):
            x = p.x0
            for _ in range(3):
                kept = least_squares(p.residuals, x, jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)
                x = kept.x
            assert p.fun(x) < 1e-9 * p.drop, name
    for d in (10, 50):
        assert problem(f"trigonometric-{d}").fun(np.zeros(d)) == 0


@pytest.mark.parametrize("name", [name for name in EXACT if name.endswith("rotated") and problem(name).d >= 40])
def test_no_coordinate_is_special_in_a_rotated_quadratic(name: str) -> None:
    """A search along one axis must not do: neither the error at the start nor the gradient is concentrated."""
    p = problem(name)
    assert p.solution is not None
    assert p.gradient is not None
    for v in (p.x0 - p.solution, p.gradient(p.x0)):
        # of d numbers alike the largest square is about 2 log d / d of the sum; of a few cosines alike, 2 / d each
        assert (v * v).max() / (v @ v) < 10 * math.log(p.d) / p.d


def test_a_noisy_problem_has_a_name_and_the_same_truth() -> None:
    p, q = problem("power-1-100-rotated"), noisy(problem("power-1-100-rotated"), "uniform", 1e-4)
    assert q.name == "power-1-100-rotated/uniform-1e-04"
    assert q.fun(p.x0) == p.fun(p.x0)
    with pytest.raises(ValueError, match="nonesuch"):
        problem("nonesuch")


# --- peers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name, peer in PEERS.items() if peer.package in ("scipy", "literature", "cma")]
)
def test_peers_of_the_development_extra_make_progress(name: str) -> None:
    record = one_run(problem("power-2-10-rotated"), PEERS[name].solve, 0)
    assert record["status"] in ("budget", "solved", "stopped")
    assert record["gap"] < 0.2


def test_peers_take_part_by_the_rules() -> None:
    large, small = problem("power-2-100000-rotated"), problem("beale-2")
    assert not PEERS["scipy L-BFGS-B"].takes(large)  # its budget is less than a gradient
    assert not PEERS["scipy L-BFGS-B told noise"].takes(small)
    assert PEERS["scipy Nelder-Mead"].takes(small)
    assert list(PEERS["scipy BFGS"].seeds(small, 3)) == [0]
    assert list(PEERS["scipy BFGS"].seeds(problem("logistic-100/uniform-1e-02"), 3)) == [0, 1, 2]


# --- results ---------------------------------------------------------------------------------------------------------


def test_results_are_kept_and_not_run_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--problems", "beale-2", "--workers", "2", "--seeds", "2"]
    command += ["--solvers", "fewdim,scipy L-BFGS-B", "--results", str(tmp_path)]
    root = Path(__file__).parents[1]
    first = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert len(first.splitlines()) == 3  # two seeds of ours, one of a deterministic peer
    again = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert again == ""
    records = run.load(tmp_path.glob("*.jsonl"))
    assert set(records) == {("beale-2", "fewdim", 0), ("beale-2", "fewdim", 1), ("beale-2", "scipy L-BFGS-B", 0)}
    assert records["beale-2", "fewdim", 0]["version"] == run.our_version()


def test_another_version_problem_or_budget_is_run_again() -> None:
    def todo(**changes: Any) -> list[Any]:
        p = problem("beale-2")
        record = {"version": run.our_version(), "budget": p.budget, "digest": p.digest, **changes}
        return list(run.tasks(["beale-2"], ["fewdim"], 1, {("beale-2", "fewdim", 0): record}))

    assert todo() == []
    assert todo(version="older") == todo(budget=7) == todo(digest="another") == [("beale-2", "fewdim", 0)]


def test_a_later_record_replaces_an_earlier_one(tmp_path: Path) -> None:
    for version in ("old", "new"):
        run.append({"problem": "a", "solver": "fewdim", "seed": 0, "version": version}, tmp_path)
    path = run.store("fewdim", tmp_path)
    run.compact(path)
    assert len(path.read_text().splitlines()) == 1
    assert run.load([path])["a", "fewdim", 0]["version"] == "new"


def by_hand(solver: str, seed: int, reached: list[int | None], name: str = "p", d: int = 10) -> dict[str, Any]:
    padded = [*reached, *[None] * (len(TARGETS) - len(reached))]
    return {"problem": name, "solver": solver, "seed": seed, "d": d, "budget": 100, "reached": padded}


RECORDS = [
    by_hand("fewdim", 0, [10, 20, 90, None]),
    by_hand("fewdim", 1, [30, 60, None, None]),
    by_hand("fewdim", 2, [20, 40, 80, None]),
    by_hand("A", 0, [40, 50, None]),
    by_hand("B", 0, [80, 10, None]),
    by_hand("B", 1, [90, None, None]),
    by_hand("B", 2, [85, None, None]),
]


def test_medians_ratios_and_shares_by_hand() -> None:
    table = scores.medians(RECORDS)
    assert table["p", "fewdim"] == [20, 40, 90, 200, 200, 200]
    assert table["p", "B"] == [85, 200, 200, 200, 200, 200]
    one, two, three, four, *_ = scores.cells(RECORDS)
    assert (one.best, one.ratio) == ("A", 0.5)
    assert (two.best, two.ratio) == ("A", 0.8)
    assert (three.best, three.reached, three.ratio) == (None, True, 90 / 200)
    assert not four.anybody
    s = scores.summary(scores.cells(RECORDS))
    assert s.ratio == pytest.approx((0.5 * 0.8) ** 0.5)
    assert s.censored == pytest.approx((0.5 * 0.8 * 0.45) ** (1 / 3))
    assert (s.problems, s.cells, s.first, s.beyond, s.alone, s.missed) == (1, 3, 1.0, 4, 1, 0)


def test_standings_by_hand() -> None:
    """Of two solvers that took part in both problems: 10 and 20, then 10 and a miss; the third solver in one only."""
    sparse = [[None] * 5 for _ in range(5)]
    ran = [("a", "x", 10), ("a", "y", 20), ("a", "z", 1), ("b", "x", 10), ("b", "y", None)]
    records = [
        {"problem": p, "solver": s, "seed": 0, "d": 2, "budget": 80, "reached": [first, *rest]}
        for (p, s, first), rest in zip(ran, sparse, strict=True)
    ]
    assert scores.standings(records) == pytest.approx({"x": 1, "y": math.sqrt(2 * 16)})


def test_losses_and_misses_by_hand() -> None:
    records = [by_hand("fewdim", 0, [50, None]), by_hand("A", 0, [10, 90]), by_hand("B", 0, [20, 8])]
    found = scores.cells(records)
    assert [cell.ratio for cell in found[:2]] == [5.0, 200 / 8]
    assert [(cell.target, cell.best) for cell in scores.losses(found)] == [(TARGETS[1], "B")]
    assert scores.losses(found, factor=30) == []
    assert scores.summary(found).missed == 1
    assert scores.summary(found).first == 0


def test_a_large_loss_is_explained_or_said_to_be_unexplained() -> None:
    ours = {"helical-valley-3": 51, "beale-2": 60, "box-3": 50}  # 10 by the peer: above, above and at five times
    records = [by_hand("fewdim", 0, [n], name=name) for name, n in ours.items()]
    records += [by_hand("A", 0, [10], name=name) for name in ours]
    known, unknown = report.REASONS["helical-valley-3"], "no explanation yet."
    assert report.reasons(scores.cells(records)) == f"- beale-2: {unknown}\n- helical-valley-3: {known}\n"
    assert report.reasons(scores.cells(by_hand(who, 0, [10]) for who in ("fewdim", "A"))) == ""
    assert set(report.REASONS) <= set(PROBLEMS)


def test_starts_that_are_alike_are_known() -> None:
    assert report.moves_together("rosenbrock-60")
    assert not report.moves_together("power-2-50-rotated")  # equal, but not alike
    assert not report.moves_together("penalty-50")


def test_slopes_and_profiles_by_hand() -> None:
    assert scores.slope({10: 5.0, 1000: 500.0}) == pytest.approx(1.0)
    assert scores.slope({10: 7.0, 100: 7.0, 1000: 7.0}) == pytest.approx(0.0)
    assert math.isnan(scores.slope({10: 7.0}))
    table = scores.medians([*RECORDS, by_hand("fewdim", 0, [70], name="q", d=6)])
    sizes = {"p": (10, 100), "q": (6, 100)}
    shares = [scores.profile(table, sizes, "fewdim", 0, alpha) for alpha in (1, 2, 10)]
    assert shares == [0, 0.5, 1.0]  # 20 <= 2 * 11; 70 <= 10 * 7
    assert scores.profile(table, sizes, "A", 0, 10) == 0.5


def test_ideal_bfgs_needs_a_gradient_for_each_different_curvature() -> None:
    """With exact line searches it is conjugate gradients: three eigenvalues, three steps."""
    p = quadratic("three", np.repeat([1.0, 0.3, 0.05], 20), rotated=True)
    assert limits.bfgs(p)[-1] == 3 * p.d


def test_an_ideal_sketch_of_all_directions_is_ideal_bfgs_and_pays_for_its_memory() -> None:
    """0, 1 and 2 vectors are remembered in the three steps."""
    p = quadratic("three", np.repeat([1.0, 0.3, 0.05], 20), rotated=True)
    assert limits.sketch(p, 0, p.d, 100)[-1] == 3 * p.d + 3


def test_an_ideal_sketch_ends_after_as_many_steps_as_there_are_dimensions() -> None:
    """Conjugacy: each step of 4 slopes takes a dimension away, whatever the spectrum."""
    p = quadratic("many", np.geomspace(1, 1e-3, 20), rotated=True)
    assert limits.sketch(p, 0, 4, 100)[-1] <= sum(4 + n for n in range(20))


# --- ablations -------------------------------------------------------------------------------------------------------


PLACES = ("SKETCH", "STEPS", "NEWTON", "GRADIENTS", "OPENING", "LOOKS", "FOLDED", "AUTO", "STORY")


@pytest.mark.parametrize("label", ablations.VARIANTS)
def test_variants_can_be_applied_and_leave_no_trace(label: str) -> None:
    variant = ablations.VARIANTS[label]
    names = [getattr(ablations, name) for name in PLACES]
    modules = [sys.modules[name] for name in names]
    before = [dict(vars(module)) for module in modules]
    with ablations.applied(variant):
        changed = {
            f"{module.__name__}:{name}"
            for module, kept in zip(modules, before, strict=True)
            for name, value in vars(module).items()
            if kept.get(name) is not value
        }
        assert changed == set(variant.names)
    assert [dict(vars(module)) for module in modules] == before


def test_a_variant_is_measured_against_the_default_by_hand() -> None:
    miss = 2.0 * problem("beale-2").budget
    found = {
        ("default", "beale-2", 0): [10.0, 20.0, 40.0, miss, miss, miss],
        ("no guard", "beale-2", 0): [20.0, 40.0, 20.0, miss, miss, miss],
    }
    row = ablations.line("no guard", found)
    assert row[:5] == ["guard", "no guard", "2.00", "2.00", "0.50"]
    assert row[5:8] == ["", "", ""]
    assert row[8] == f"{2 ** (1 / 3):.2f}"
