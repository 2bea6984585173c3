"""What `Auto` makes of a quadratic model: what its long looks hand over to short steps, and how far to trust it."""

from __future__ import annotations

import math

import numpy as np

from fewdim.core import Query, Steps, counted, evolve, value
from fewdim.directions import Key, Vector
from fewdim.gradients import Floats, alike, fit_to_divide_by
from fewdim.lines import scale_of
from fewdim.methods.conjugate_steps import ConjugateSketchState
from fewdim.methods.looks import QuadraticModelState
from fewdim.methods.projected import ProjectedNewton
from fewdim.methods.quadratic_model import QuadraticModel
from fewdim.methods.quasi_newton import QuasiNewton
from fewdim.methods.story import AutoState, taken_over
from fewdim.noise import noise_level

FAR = 10  # scales of x0 for each coordinate: a minimum farther off may not be the nearest
BETWEEN = (0.2, 0.4, 0.6, 0.8)  # of the way from the start to a minimum: where a ridge is looked for
THIRDS = (1 / 3, 2 / 3)  # of the way from the start to where the opening ends: where a lower value is looked for
CHEAP = 8  # dimensions from which on two values more are few
DOWN = 1e-8  # of the largest curvature along an axis: a negative one below this is round-off
SEEN = 10  # noise levels that a second difference stands out by
NEAR = 1e-6  # of the decrease so far: values of points that differ by less are those of one minimum
LUCK = 5  # noise levels that the lowest of many values may be too low by
LOUDER = 2  # times the noise known: noise that has grown
LONG = 12  # values for each coordinate, after which a model that is not near a minimum is given up


def curvatures_seen(opening: QuadraticModelState) -> Floats | None:
    """The curvatures along the axes, middling where values are missing or noise hides them, fit to divide by.

    None if none is positive, or most are hidden.
    """
    c = np.array(opening.bends)
    c[np.abs(c) < hidden(opening)] = 0.0
    if opening.noise > 0 and 2 * np.count_nonzero(c) < c.size:
        return None
    c[c == 0] = np.median(np.abs(c[c != 0])) if c.any() else 0.0
    return fit_to_divide_by(c) if max(c) > 0 else None


def hidden(opening: QuadraticModelState) -> Floats:
    """Curvatures along the axes below this are lost in the noise of the looks."""
    noise = opening.noise if opening.noise > 0 else 0.0
    return SEEN * noise / np.array(opening.lengths) ** 2


def handed_over(
    s: AutoState, model: QuadraticModelState, method: QuasiNewton, at: tuple[Vector, float], why: str, sure: bool = True
) -> AutoState:
    """Quasi-Newton in charge, from a point with its value, with what the model knows of scales and curvatures."""
    boxed, (x, f_x) = isinstance(method, ProjectedNewton), at
    bends = None if boxed else curvatures_seen(model)  # they are in the variables that know no bounds
    newton = evolve(method.start(x, (*s.key, 3)), f_x=f_x, scales=model.scales, diagonal=bends, sure=sure)
    newton = evolve(newton, central=bends is None or why == "quiet")
    return taken_over(evolve(s, newton=newton), "newton", why)


def fitted(s: AutoState, method: QuadraticModel, why: str) -> AutoState:
    """The model in charge, with the points that it had, from where the run has come to."""
    if isinstance(s.last, QuadraticModelState):
        model = s.last.joined([s.x], [s.inner.f_x])
    else:
        model = evolve(method.start(s.x, (*s.key, 5)), f_x=s.inner.f_x)
    model = evolve(model, scales=s.inner.scales)
    return taken_over(evolve(s, last=model, noise=model.noise), "model", why)


def passed_over(s: AutoState, sketch: ConjugateSketchState, method: QuasiNewton) -> Steps[AutoState]:
    """Quasi-Newton in charge, if curvature is the same along all axes, so that looks along them are no better."""
    assert sketch.scales is not None
    c, asked = yield from counted(alike(s.x, sketch.f_x, sketch.scales))
    s = evolve(s, nfev=s.nfev + asked)
    if math.isnan(c):
        return s
    newton = evolve(method.start(s.x, (*s.key, 3)), f_x=sketch.f_x, scales=sketch.scales, central=False)
    return taken_over(evolve(s, newton=evolve(newton, diagonal=np.full(s.x.size, c))), "newton", "alike axes")


def bends_down(opening: QuadraticModelState) -> bool:
    """Whether curvature was seen to be negative along an axis."""
    c = np.array(opening.bends)
    return bool((c < -np.maximum(DOWN * np.abs(c).max(), hidden(opening))).any())


def stays(opening: QuadraticModelState, asked: int) -> bool:
    """Whether a model that follows negative curvature goes on after so many values: a trust region makes use of it.

    Not once it has come near a minimum, nor where a step of it ended without a value, nor for ever.
    """
    assert opening.first is not None
    near = float(np.median(opening.values)) - opening.f_x < NEAR * (opening.first[1] - opening.f_x)
    return not near and opening.missing == 0 and asked < LONG * opening.x.size


def gone_back(opening: QuadraticModelState, cheap: bool) -> Steps[tuple[Vector, float]]:
    """Where to go on from, and f there: x, or a lower point on the way to it, if two values more are cheap.

    Where there is one the looks have gone too far, maybe into the valley of a minimum that is not the nearest.
    """
    x, f_x = opening.x, opening.f_x
    if opening.first is None or not (cheap or x.size >= CHEAP) or np.array_equal(x, opening.first[0]):
        return x, f_x
    query = _on_the_way(opening.first[0], x, THIRDS)
    values = yield query
    i = int(np.argmin(np.where(np.isnan(values), math.inf, values)))
    return (query.point(i), float(values[i])) if values[i] < f_x else (x, f_x)


def doubtful(opening: QuadraticModelState, x: Vector, f_x: float) -> Steps[bool]:
    """Whether a minimum found after looks as long as the opening's may not be the nearest to the start.

    So it is where an axis was seen to bend downwards, where the way was long, and where f rises on it.
    """
    assert opening.first is not None
    start, f_start = opening.first
    if bends_down(opening) or float(np.linalg.norm(x - start)) > FAR * scale_of(start) * math.sqrt(x.size):
        return True
    values = yield _on_the_way(start, x, BETWEEN)
    return bool((np.diff([f_start, *values[~np.isnan(values)], f_x]) > 0).any())


def settled(s: AutoState, opening: QuadraticModelState, newton: QuasiNewton) -> Steps[tuple[AutoState, bool]]:
    """At a minimum: once more from the start if it may not be the nearest one, then from the lower of the two."""
    if s.found is not None:
        if s.story[-1].why != "doubt" or s.found.f_x >= s.inner.f_x:
            return s, False
        return taken_over(evolve(s, newton=s.found), "newton", "lower"), True
    doubt, asked = yield from counted(doubtful(opening, s.x, s.inner.f_x))
    doubt = doubt or "bent" in (change.why for change in s.story)
    s = evolve(s, nfev=s.nfev + asked, found=s.newton)
    if not doubt or opening.first is None:
        return s, False
    again = evolve(newton.start(opening.first[0], (*s.key, 6)), f_x=opening.first[1], sure=s.inner.sure)
    return taken_over(evolve(s, newton=evolve(again, scales=s.inner.scales)), "newton", "doubt"), True


def heard_again(model: QuadraticModelState, key: Key) -> Steps[QuadraticModelState]:
    """The model with the noise it is in, which may have grown, or not have been seen: 1 value, 8 more if it has."""
    f_x = yield from value(model.x)
    if model.scales is None or not abs(f_x - model.f_x) > LUCK * model.noise:
        return model
    found = yield from noise_level(model.x, f_x, key)
    louder = found.noise > LOUDER * model.noise
    return evolve(model, scales=model.scales._replace(resolution=found)) if louder else model


def _on_the_way(start: Vector, end: Vector, parts: tuple[float, ...]) -> Query:
    return Query(start, tuple(np.multiply(end - start, t, dtype=end.dtype) for t in parts))
