"""The loop of `minimize`: evaluate what a session asks until a rule ends it, and say why."""

from __future__ import annotations

import logging
import math
import sys
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult
from tqdm import tqdm

from fewdim.box import Box
from fewdim.core import Query
from fewdim.evaluate import Evaluator, Value
from fewdim.result import Result
from fewdim.session import Point, Session

log = logging.getLogger("fewdim")

WINDOW = 200  # evaluations over which more than half failing ends a run
DEAD = 50  # failures in a row that end it
LOOKS = 3  # values for each coordinate: by then the default has had its 2d without a gradient, and one
ENDLESS = 1e150  # times the size of the first value, or 1: a value so far below zero has no minimum beneath it
REASONS = {  # reason: status, success, sentence
    "target": (0, True, "The target f_target was reached."),
    "converged": (0, True, "The second half of the evaluations gained less than tol of the total decrease."),
    "finished": (0, True, "The method found nothing left to improve."),
    "maxfev": (1, False, "The budget of maxfev evaluations is spent."),
    "maxtime": (2, False, "The time limit maxtime was reached."),
    "callback": (3, False, "The callback stopped the run."),
    "interrupted": (4, False, "The run was interrupted from the keyboard."),
    "failures": (5, False, "More than half of the last evaluations gave no value."),
    "unbounded": (8, False, "Values fall without end: fun seems to have no minimum."),
    "raised": (6, False, "An exception ended the run."),
    "running": (7, False, "The run goes on."),
}


class History(NamedTuple):
    """The best value against evaluations, thinned so that successive counts differ by at least 1 %."""

    nfev: NDArray[np.int64]
    fun: NDArray[np.float64]


class Bookmark(NamedTuple):
    """What the rule of convergence remembers: the lowest value since an evaluation, and when it looks next."""

    latest: float
    latest_from: int
    judge_at: int


class EvaluationError(RuntimeError):
    """An evaluation gave no value and `on_failure="raise"` was asked; `result` holds the best so far."""

    result: OptimizeResult


class Run:
    """One call of `minimize`."""

    def __init__(
        self,
        session: Session[Any],
        source: Evaluator,
        *,
        maxfev: int,
        f_target: float,
        deadline: float,
        tol: float,
        report: Callable[[OptimizeResult], None] | None,
        raising: bool,
        bar: bool,
        together: bool = False,
        keep: Callable[[Session[Any], Bookmark], None] | None = None,
        box: Box | None = None,
    ) -> None:
        self.session, self.source, self.maxfev, self.f_target = session, source, maxfev, f_target
        self.deadline, self.tol, self.report, self.raising = deadline, tol, report, raising
        self.together = together  # the values of a query come at once: those after a target are there and count, too
        self.endless = f_target == -math.inf and (box is None or not np.isfinite(box).all())  # nothing ends the fall
        self.keep = keep  # called at each step boundary
        self.inside = None if box is None else box.inside  # from the variables of the method to those of the user
        wait = 0.2 if sys.stderr.isatty() else 30.0  # a log file is not to fill up with lines
        self.bar = tqdm(total=maxfev, unit="f", desc="fewdim", mininterval=wait, dynamic_ncols=True) if bar else None
        self.counts: list[int] = []
        self.lows: list[float] = []
        self.recent: deque[bool] = deque(maxlen=WINDOW)
        self.failure, self.failures, self.dead = "", 0, 0
        self.answer: tuple[Any, float] | None = None
        self.confirmed = 0  # evaluations spent on the answer
        self.judge_at = min(10 * (session.state.x.size + 10), 1000)
        self.latest, self.latest_from = math.inf, 0  # lowest value since an evaluation

    def drive(self) -> str:
        """Evaluate what the session asks until a rule ends it; the reason."""
        try:
            reason = self._loop()
            if reason not in ("target", "failures", "unbounded"):
                self._confirm()
            return reason
        except BaseException as error:
            if not self.session.nfev:
                raise
            if isinstance(error, KeyboardInterrupt):
                return "interrupted"
            error.partial_result = self.result("raised")  # type: ignore[attr-defined]
            raise
        finally:
            if self.bar is not None:
                self.bar.close()

    def recall(self, told: Sequence[float], failure: str, bookmark: Bookmark) -> None:
        """Take up the record of the evaluations that the session has behind it."""
        low = math.inf
        for n, fun in enumerate(told, start=1):
            low = fun if fun < low else low  # false for nan
            self._track(n, low)
        self.recent.extend(math.isnan(fun) for fun in told[-WINDOW:])
        self.failure, self.failures = failure, sum(map(math.isnan, told))
        self.dead = next((n for n, missing in enumerate(reversed(self.recent)) if not missing), len(self.recent))
        self.latest, self.latest_from, self.judge_at = bookmark
        if self.bar is not None:
            self.bar.update(len(told))

    def _loop(self) -> str:
        session = self.session
        while not session.done:
            reserve = 1 if self._noise() > 0 and not self._steady() else 0  # for the answer
            room = self.maxfev - reserve - session.nfev
            if room <= 0:
                return "maxfev"
            points, steps, reason = session.ask(room), session.nit, ""
            for point, value in zip(points, self.source(points), strict=True):
                session.tell(point.id, self._noted(value))
                reason = reason or self._ended()
                if reason and not self.together:
                    break
            if reason:
                return reason
            if session.nit > steps:
                if self.report is not None:
                    try:
                        self.report(self.result("running"))
                    except StopIteration:
                        return "callback"
                if self._converged():
                    return "converged"
                if self.keep is not None:
                    self.keep(session, Bookmark(self.latest, self.latest_from, self.judge_at))
        return "finished"

    def _noted(self, value: Value) -> float:
        """Keep count of failures; the value to tell."""
        missing = math.isnan(value.fun)
        if missing:
            self.failure = value.failure
            self.failures += 1
            self.dead += 1
            log.debug("evaluation %d failed: %s", self.session.nfev, value.failure)
            if self.session.nfev == 0:
                raise ValueError(f"fun(x0) must give a finite value; {value.failure}.") from value.error
            if self.raising:
                message = f"evaluation {self.session.nfev} failed: {value.failure}"
                error = EvaluationError(message)
                error.result = self.result("raised")
                raise error from value.error
        else:
            self.dead = 0
            self.latest = min(self.latest, value.fun)
        self.recent.append(missing)
        return value.fun

    def _ended(self) -> str:
        """The rules that are looked at after each evaluation; empty when none holds."""
        session = self.session
        n, low = session.nfev, session.lowest
        self._track(n, low)
        if self.bar is not None:
            self.bar.update(1)
            if n % 100 == 0 or n < 100:
                self.bar.set_postfix_str(f"best {low:.6g}", refresh=False)
        if low <= self.f_target:
            return "target"
        if self.recent[-1] and (2 * sum(self.recent) > WINDOW or self.dead >= DEAD):
            return "failures"
        if self.endless and low < -ENDLESS * max(1.0, abs(session.first)):
            return "unbounded"
        return "maxtime" if time.monotonic() > self.deadline else ""

    def _track(self, n: int, low: float) -> None:
        """Note the best value after n evaluations."""
        if not self.lows or low < self.lows[-1]:
            if len(self.counts) > 1 and n < 1.01 * self.counts[-2]:  # thin: replace the last entry
                self.counts[-1], self.lows[-1] = n, low
            else:
                self.counts.append(n)
                self.lows.append(low)

    def _converged(self) -> bool:
        """Whether doubling the evaluations gained less than tol of the total decrease, and values stand at the best.

        Looked at each time the evaluations have grown by an eighth.  The second condition is for methods with momentum:
        their values leave the best one for a while and come back below it.  A method that tells `since` when it moves
        all coordinates, after an easier descent, gets the time to see each of them.
        """
        n, best = self.session.nfev, self.session.lowest
        begun = getattr(self.session.state, "since", 0)
        if n < self.judge_at or (begun and n < begun + LOOKS * self.session.state.x.size):
            return False
        half = self.lows[max(bisect_right(self.counts, n / 2) - 1, 0)]
        latest = self.latest if self.latest_from >= n / 2 else math.inf
        self.latest, self.latest_from, self.judge_at = math.inf, n, n + max(1, n // 8)
        return max(half, latest) - best <= self.tol * (self.session.first - best)

    @property
    def nfev(self) -> int:
        return self.session.nfev + self.confirmed

    def _noise(self) -> float:
        """The noise level that the method measured or was given; nan when its states do not tell."""
        return float(getattr(self.session.state, "noise", math.nan))

    def _steady(self) -> bool | None:
        """Whether values were seen to repeat; None when states do not tell."""
        return getattr(self.session.state, "steady", None)

    def _confirm(self) -> None:
        """In noise the lowest value is a lucky one: answer with the last iterate unless it measures clearly worse.

        Of n values with Gaussian errors the lowest lies about sqrt(2 log n) levels too low, 5.3 for a million.  Where
        values repeat none is luck.  Where a method averages it has measured more than the lowest value can tell, and
        is given up only where it ends clearly above its start.
        """
        level, session, steady = self._noise(), self.session, self._steady()
        if not level > 0 or session.nfev >= self.maxfev or steady:
            return
        # not one of the session's evaluations, whose numbers go on from nfev if the run is extended: numbered below 0
        (value,) = self.source(
            [Point(-1 - session.nfev, Query(session.state.x), 0, session.shape, (*session.state.key, session.nfev))]
        )
        self.confirmed = 1
        fun = self._noted(value)
        if fun <= (session.lowest if steady is None else session.first) + 8 * level:
            self.answer = session.state.x.reshape(session.shape).copy(), fun

    def _history(self) -> History:
        counts, lows = self.counts, self.lows
        if counts and counts[-1] < self.session.nfev:
            counts, lows = [*counts, self.session.nfev], [*lows, self.session.lowest]
        return History(np.array(counts), np.array(lows))

    def result(self, reason: str) -> Result:
        """The result as of now."""
        session = self.session
        status, success, sentence = REASONS[reason]
        best = session.best
        x, fun = (best.x, best.fun) if self.answer is None else self.answer
        x = x if self.inside is None else self.inside(x)
        explain = getattr(session.method, "explain", None)
        if explain is not None:
            sentence += f" It was {explain(session.state, session.nfev)}."
        if self.failure:
            sentence += f" {self.failures} of {self.nfev} evaluations gave no value; the last: {self.failure}."
        return Result(
            x=x,
            fun=fun,
            success=success,
            status=status,
            reason=reason,
            message=sentence,
            nfev=self.nfev,
            nit=session.nit,
            nfail=self.failures,
            noise=self._noise(),
            bound=float(getattr(session.state, "bound", math.nan)),
            history=self._history(),
        )
