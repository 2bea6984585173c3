"""`minimize`: a session, an evaluator, stop rules and a result, with scipy's names."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from fewdim import evaluate, pools
from fewdim.box import MARGIN, Box, boxed
from fewdim.certify import attach
from fewdim.journal import Journal, describe
from fewdim.loop import Run
from fewdim.methods import METHODS, bounded, fitted
from fewdim.methods.settings import changed, is_method
from fewdim.session import Session

TOLERANCE = 1e-8


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: Any = "auto",
    maxfev: int | None = None,
    f_target: float | None = None,
    maxtime: float | None = None,
    tol: float | None = None,
    noise: float | Literal["auto"] = "auto",
    bounds: Any = None,
    rng: int | np.random.Generator | None = None,
    vectorized: bool = False,
    workers: Any = None,
    timeout: float | None = None,
    journal: Any = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    on_failure: Literal["missing", "raise"] = "missing",
    certify: bool = False,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """Minimise fun(x, *args) from its values alone.

    Parameters
    ----------
    fun : callable
        Gets an array of the shape and kind of x0, its own to keep, and returns a number.  If it has a parameter named
        `key`, it gets a tuple of integers there, the same for all points of a query and another for the next: seed your
        simulation with it (`np.random.default_rng(key)`) and differences do not see the noise they have in common.
    x0 : array_like
        The starting point, any shape; float32 stays float32, integers become float64.  f(x0) must be finite.
    args : tuple
        Further arguments of fun.
    method : str or method
        A name from `fewdim.METHODS`, or an object such as `RandomGradient(step="paper")`.
    maxfev : int, optional
        Most evaluations; default 100 (d + 100), d the coordinates that move.  The default method goes by it: with less
        than some 2d left it does not turn to what costs as much.
    f_target : float, optional
        Stop as soon as a value is at most this (in noise, a lucky value may be).
    maxtime : float, optional
        Most seconds; looked at between evaluations.
    tol : float, optional
        Stop when the second half of all evaluations so far gained at most `tol` of the total decrease f(x0) - best and
        the latest values lie within as much of the best; default 1e-8.  Not looked at in the first 10 (d + 10)
        evaluations (1000 at most), nor, where the default has moved coordinates together first, in the 3 d after that.
        In noise values do not stand still and `maxfev` ends the run.
    noise : float or "auto"
        "auto" looks for noise of fun (2 evaluations) and estimates its level (8 more), 0 means exact up to round-off, a
        number is the level.  In noise the answer is the last iterate, measured once more, not the luckiest value
        (the lowest where values were seen to repeat).
        Values rounded to single precision are noise of that size.
    rng : None, int or numpy.random.Generator
        The same seed gives the same run.
    vectorized : bool
        fun takes rows of points, (n, *x0.shape), and returns n values.
    callback : callable, optional
        Called after each iteration as callback(intermediate_result=...) if that is the name of its parameter, else with
        the best x; raising StopIteration ends the run.
    progress : bool
        Show a progress bar on standard error.
    on_failure : "missing" or "raise"
        An exception, a NaN or an infinity is a missing value and counted in `nfail`; "raise" stops at the first one
        with an `EvaluationError`.  More than half of the last 200 evaluations missing, or 50 in a
        row, end the run.
    options : dict, optional
        Settings of a method given by name, and `reuse_buffer=True`: fun gets the same array each time.
    workers : int, Executor or map-like, optional
        Evaluate the points of a query at once: n processes of one's own (-1: as many as there are processors), any
        `concurrent.futures.Executor`, or a callable like `map`.  A method that leaves its batch or
        its sketch to the pool gets one of its width.  The values decide the run, not who computed them.
    timeout : float, optional
        Seconds after which an evaluation counts as failed; needs `workers`.
    journal : path or Journal, optional
        Record every value in this file; running the same line again goes on where the file ends, exactly.  `maxfev`,
        `f_target`, `tol`, `maxtime` and `workers` may change, what is asked may not: the default method goes on as the
        first `maxfev` had it.
    certify : bool
        Add a `certificate` (see `fewdim.certify`) of the answer to the result: why the run may stop there.  Its
        evaluations come on top of `maxfev` and are counted in `nfev`.
    bounds : Bounds or sequence of pairs, optional
        As in scipy; fun never sees a point outside, and a coordinate whose bounds are equal stays there at no cost,
        whatever x0 has for it.  "quasi-newton", and the default as soon as a coordinate comes near a bound, take steps
        that end in the box.  Others work on variables y with x = x(y) smooth and inside (`fewdim.box`), so all methods
        can; where they do, a start on a bound is moved inside by 1e-3 of the width (of 1 where there is one bound).

    Returns
    -------
    scipy.optimize.OptimizeResult
        x, fun, success, status, message, nfev (all evaluations: f(x0) and those spent on estimates too), nit, and
        reason ("target", "converged", "finished", "maxfev", "maxtime", "callback", "interrupted", "failures" or
        "unbounded"), nfail, noise (the level the method used, nan if it has none), bound (of fun - f*, where a method
        gives one, else nan), history (best value against evaluations; `result.plot()` draws it).
        Ctrl-C returns the best so far; any other exception that ends the run carries it as `partial_result`.

    >>> import numpy as np
    >>> result = minimize(lambda x: (x - 1) @ (x - 1), np.zeros(100), f_target=1e-6, rng=0)
    >>> result.success, bool(np.abs(result.x - 1).max() < 1e-3)
    (True, True)
    """
    _check(fun, maxfev, f_target, maxtime, tol, on_failure, bounds if certify else None)
    box = None if bounds is None else Box.of(bounds, x0)
    settings = dict(options or {})
    reuse_buffer = bool(settings.pop("reuse_buffer", False))
    arguments = args if isinstance(args, tuple) else (args,)
    limits = {
        "maxfev": maxfev if maxfev is None else int(maxfev),
        "f_target": -math.inf if f_target is None else f_target,
        "deadline": math.inf if maxtime is None else time.monotonic() + maxtime,
        "tol": TOLERANCE if tol is None else tol,
        "report": _reporter(callback),
        "raising": on_failure == "raise",
        "bar": progress,
        "together": vectorized,
        "box": box,
    }
    book = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
    with ExitStack() as stack:
        recording = None if book is None else stack.enter_context(book.recording())
        seen = boxed(fun, box, vectorized)
        pool = stack.enter_context(pools.pool(seen, arguments, workers, timeout, vectorized, reuse_buffer))
        held = None if recording is None else recording.description
        width = pool.width if held is None else held["width"]
        key = held["key"][0] if held is not None and rng is None else rng
        solver = fitted(_method(method, settings, noise), width, _budget(maxfev, held))
        session = _session(solver, x0, box, key)
        if book is None or recording is None:
            run = _run(session, pool, limits)
        else:
            recording.begin(describe(book, fun, arguments, session, solver, width, box), session.state.x)
            session, bookmark = recording.resume(session)
            source = recording.around(pool, raising=on_failure == "raise")
            run = _run(session, source, {**limits, "keep": recording.keep})
            if bookmark is not None:
                run.recall(*recording.values(session.nfev), bookmark)
        result = run.result(run.drive())
        return attach(result, run.source, session.state.key, noise) if certify else result


def _budget(maxfev: int | None, held: dict[str, Any] | None) -> int | None:
    """What the method may count on: the evaluations of this run, or of its first part where a journal goes on."""
    if held is not None:
        return held["settings"].get("budget")  # type: ignore[no-any-return]
    return None if maxfev is None else int(maxfev)


def _session(solver: Any, x0: ArrayLike, box: Box | None, key: Any) -> Session[Any]:
    """The session from x0, or from where that is in the variables of a method within bounds."""
    method = bounded(solver, box)
    margin = MARGIN if method is solver else 0.0  # a method that knows the bounds can start on one
    return Session(method, x0 if box is None else box.free(x0, margin), rng=key)


def _run(session: Session[Any], source: evaluate.Arrivals, limits: dict[str, Any]) -> Run:
    if limits["maxfev"] is None:
        limits = {**limits, "maxfev": 100 * (session.state.x.size + 100)}
    return Run(session, evaluate.in_order(source), **limits)


def scipy_method(method: Any = "auto", **settings: Any) -> Callable[..., OptimizeResult]:
    """A fewdim method for `scipy.optimize.minimize(fun, x0, method=scipy_method("random-pursuit"), options={...})`.

    `options` are the arguments of `fewdim.minimize` (maxfev, f_target, rng, ...); `settings` those of the method.
    """

    def solve(
        fun: Callable[..., Any],
        x0: ArrayLike,
        args: tuple[Any, ...] = (),
        *,
        callback: Callable[..., Any] | None = None,
        bounds: Any = None,
        constraints: Any = (),
        jac: Any = None,
        hess: Any = None,
        hessp: Any = None,
        **options: Any,
    ) -> OptimizeResult:
        unused = [name for name, given in (("jac", jac), ("hess", hess), ("hessp", hessp)) if given]
        if constraints or unused:
            name = "constraints" if constraints else unused[0]
            raise ValueError(f"fewdim uses function values only; {name}= must not be given.")
        known = inspect.signature(minimize).parameters
        for name in options:
            if name not in known:
                raise ValueError(f"scipy_method: options must be arguments of fewdim.minimize; got {name!r}.")
        own = {**settings, **options.pop("options", {})}
        return minimize(fun, x0, args, method=method, bounds=bounds, callback=callback, options=own, **options)

    return solve


def _method(method: Any, settings: dict[str, Any], noise: float | str) -> Any:
    """The method to run: looked up by name and built from its settings, or as given."""
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"minimize(method=...) must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
        kind = METHODS[method]
        known = inspect.signature(kind).parameters
        for name in settings:
            if name not in known:
                raise ValueError(
                    f"minimize(options=...): {method!r} has no setting {name!r}; it has {', '.join(known)}, and "
                    "'reuse_buffer' is for any method."
                )
        if "noise" in known:
            settings.setdefault("noise", noise)
        return kind(**settings)
    if settings:
        raise ValueError(
            f"minimize(options=...) must not hold settings of a method given as an object; got {settings}."
        )
    if not is_method(method):
        raise TypeError(f"minimize(method=...) must be a name or have start, step and done; got {method!r}.")
    if noise == "auto":
        return method
    if not hasattr(method, "noise"):
        raise ValueError(
            f"minimize(noise=...) must be left to the method: {method!r} has no such setting; got {noise!r}."
        )
    return changed(method, noise=noise)


def _check(
    fun: Any,
    maxfev: int | None,
    f_target: float | None,
    maxtime: float | None,
    tol: float | None,
    on_failure: str,
    certified_bounds: Any,
) -> None:
    if not callable(fun):
        raise TypeError(f"minimize(fun=...) must be callable; got {fun!r}.")
    if maxfev is not None and not (1 <= maxfev < math.inf and maxfev == int(maxfev)):
        raise ValueError(f"minimize(maxfev=...) must be an integer of at least 1; got {maxfev!r}.")
    if f_target is not None and math.isnan(f_target):
        raise ValueError("minimize(f_target=...) must be a number; got nan.")
    if maxtime is not None and not maxtime > 0:
        raise ValueError(f"minimize(maxtime=...) must be positive; got {maxtime!r}.")
    if tol is not None and not tol >= 0:
        raise ValueError(f"minimize(tol=...) must be at least 0; got {tol!r}.")
    if on_failure not in ("missing", "raise"):
        raise ValueError(f"minimize(on_failure=...) must be 'missing' or 'raise'; got {on_failure!r}.")
    if certified_bounds is not None:
        raise ValueError("minimize(certify=True) judges points without bounds; got bounds too.")


def _reporter(callback: Callable[..., Any] | None) -> Callable[[OptimizeResult], None] | None:
    """The callback in one form: called with the intermediate result."""
    if callback is None:
        return None
    try:
        by_name = "intermediate_result" in inspect.signature(callback).parameters
    except ValueError:  # a built-in without a signature
        by_name = False
    if by_name:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)
