"""Slopes and curvatures along lines, radii, and the noise level: against functions where the answer is known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewdim import Steps, signs
from fewdim.gradients import central
from fewdim.lines import Reach, Resolution, central_radius, differences, forward_radius, parabola, scale_of
from fewdim.noise import difference_level, noise_level
from fewdim.scales import curvature, measure

Fun = Callable[[Any], float]
SPECTRUM = np.arange(1, 21.0) ** -1


def answer(steps: Steps[Any], fun: Fun) -> tuple[Any, int]:
    """Drive a `Steps` with a function; what it returns, and how many values it took."""
    count = 0
    try:
        query = next(steps)
        while True:
            count += len(query)
            query = steps.send(np.array([fun(query.point(i)) for i in range(len(query))]))
    except StopIteration as stop:
        return stop.value, count


def bowl(x: Any) -> float:
    return 1.0 + 0.5 * float(x**2 @ SPECTRUM)


def test_forward_slopes_lose_their_expected_curvature() -> None:
    x, r = np.ones(20), 1e-3
    plain, count = answer(differences(x, "signs", (1,), 3, r), bowl)
    better, _ = answer(differences(x, "signs", (1,), 3, r, correction=SPECTRUM.sum()), bowl)
    exact = [float(signs((1, j)).array(20) @ SPECTRUM) for j in range(3)]
    assert count == 4  # f(x) and three probes
    assert plain.f_x == bowl(x)
    assert np.allclose(plain.slopes - exact, r * SPECTRUM.sum() / 2, rtol=1e-6)  # for signs u'Au = tr A here
    assert np.allclose(better.slopes, exact, atol=2 * np.finfo(float).eps * bowl(x) / r * 4)  # round-off of two values


def test_central_slopes_and_curvatures() -> None:
    x = np.ones(20)
    found, count = answer(differences(x, "gaussian", (1,), 2, 1e-3, central=True, f_x=bowl(x)), bowl)
    assert count == 4
    for u, s, c in zip(found.directions, found.slopes, found.curvatures, strict=True):
        v = u.array(20)
        assert s == pytest.approx(v @ (SPECTRUM * x), abs=1e-11)  # 4 eps |f| / r
        assert c == pytest.approx(v @ (SPECTRUM * v), rel=1e-7)  # 8 eps |f| / (r^2 c)


def test_missing_values_are_asked_once_more_along_fresh_directions() -> None:
    x = np.ones(20)
    lost = signs((1, 1)).array(20)
    found, count = answer(
        differences(x, "signs", (1,), 3, 0.1), lambda p: math.nan if np.allclose(p - x, 0.1 * lost) else bowl(p)
    )
    assert count == 5
    assert [u.key for u in found.directions] == [(1, 0), (1, 3), (1, 2)]
    nothing, count = answer(differences(x, "signs", (1,), 3, 0.1), lambda p: math.nan)
    assert nothing.directions == ()
    assert count == 4  # not even f(x): no second try


def test_a_parabola_with_a_side_missing_looks_half_as_far() -> None:
    x, u = np.ones(20), signs((2,))
    v = u.array(20)
    full, three = answer(parabola(x, bowl(x), u, 0.1), bowl)
    half, four = answer(parabola(x, bowl(x), u, 0.1), lambda p: math.nan if (p - x) @ v > 1.5 else bowl(p))
    assert (three, four) == (2, 3)
    assert half.slope == pytest.approx(full.slope, rel=1e-9)
    assert half.curvature == pytest.approx(full.curvature, rel=1e-9)
    assert full.f_t == min(bowl(x + 0.1 * v), bowl(x - 0.1 * v))
    assert answer(parabola(x, bowl(x), u, 0.1), lambda p: math.nan)[0] is None


def test_radii_balance_what_they_neglect() -> None:
    """At the forward radius the error delta/r of a value and the spread r tr/2 of curvature are about as large."""
    delta, trace = 1e-10, 4.0
    r = forward_radius(delta, trace)
    assert delta / r == pytest.approx(0.77 * math.sqrt(delta * trace), rel=1e-2)
    assert r * trace / 2 == pytest.approx(0.65 * math.sqrt(delta * trace), rel=1e-2)
    assert central_radius(delta, trace) ** 2 * trace / 2 == pytest.approx(30 * delta)


@given(st.floats(1e-300, 1e300), st.floats(1e-6, 1e6), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=100, deadline=None)
def test_a_clipped_radius_moves_x_and_stays_in_its_scale(radius: float, scale: float, dtype: type[np.floating]) -> None:
    x = np.full(3, scale, dtype=dtype)
    clipped = Reach.of(x).clip(radius)
    assert np.all(x + dtype(clipped) != x)
    assert clipped <= max(1.0, 2 * scale)


def test_scale_is_a_power_of_two_near_the_rms() -> None:
    for rms in (1e-9, 0.3, 1.0, 77.0):
        scale = scale_of(np.full(9, rms))
        assert math.frexp(scale)[0] == 0.5
        assert rms / 2 < scale <= rms * (1 + 1e-15)
    assert scale_of(np.zeros(4)) == 1.0


def test_curvature_of_a_quadratic() -> None:
    """16 pairs: standard deviation of the trace sqrt(2 sum l^2 / 16); the mean over 50 keys within 4 of its own."""
    x, runs = np.ones(20), 50
    found = [answer(curvature(x, bowl(x), Resolution(), (k,), pairs=16), bowl) for k in range(runs)]
    frobenius = math.sqrt(float(SPECTRUM @ SPECTRUM))
    traces = [f.trace for f, _ in found]
    assert abs(np.mean(traces) - SPECTRUM.sum()) < 4 * frobenius * math.sqrt(2 / 16 / runs)
    assert 0.8 * frobenius < np.mean([f.smoothness for f, _ in found]) < 1.1 * frobenius  # a root of a variance is low
    assert all(count in (32, 36, 40) for _, count in found)


def test_curvature_finds_a_visible_radius_far_from_the_first() -> None:
    """With f* = 1e6 second differences at radius 1e-3 drown: the radius must grow, and the trace still be right."""
    x = np.ones(20)
    found, _ = answer(curvature(x, 1e6 + bowl(x), Resolution(), (3,), pairs=64), lambda p: 1e6 + bowl(p))
    assert found.trace == pytest.approx(
        SPECTRUM.sum(), rel=4 * math.sqrt(2 * float(SPECTRUM @ SPECTRUM) / 64) / SPECTRUM.sum()
    )


def test_difference_level_of_pure_noise() -> None:
    """Every order of the table estimates the same level; the factor 4 of the rule bounds what is returned."""
    rng = np.random.default_rng(0)
    levels = [difference_level(rng.standard_normal(9)) for _ in range(200)]
    assert np.mean([ok for _, ok in levels]) > 0.9
    assert 0.7 < np.median([level for level, _ in levels]) < 1.3


@pytest.mark.parametrize("level", [1e-8, 1e-4, 1e-2])
def test_noise_level_is_found(level: float) -> None:
    """Within a factor 3 of the truth, 40 starts for each level: three orders of the table must agree within 4."""
    rng = np.random.default_rng(1)
    for k in range(40):
        found, count = answer(
            noise_level(np.ones(20), bowl(np.ones(20)), (k,)), lambda p: bowl(p) + level * rng.standard_normal()
        )
        assert 0.3 < found.noise / level < 3
        assert count <= 24


def test_exact_functions_have_no_noise() -> None:
    for fun in (bowl, lambda x: float(np.cos(x).sum()), lambda x: 1e6 + bowl(x)):
        found, count = answer(noise_level(np.ones(20), fun(np.ones(20)), (4,)), fun)
        assert found.noise == 0
        assert found.relative < 1e-13
        assert count <= 24


@pytest.mark.parametrize("level", [0.0, 1e-6])
def test_units_worlds_apart_are_no_noise_and_hide_none(level: float) -> None:
    """What is 1e-7 of the largest coordinate is many times the smallest one."""
    rng = np.random.default_rng(1)
    units = 10.0 ** np.linspace(-6, 6, 20)

    def fun(x: Any) -> float:
        z = x / units
        return float(np.sin(z).sum() + z @ z + level * rng.standard_normal())

    for k in range(10):
        found, count = answer(noise_level(units.copy(), fun(units), (k,)), fun)
        assert found.noise == 0 if level == 0 else 0.3 < found.noise / level < 3
        assert count <= 32


SINES = np.sin(np.pi * np.arange(40))  # 0 to rounding; alone they may be numbers in a small unit


@pytest.mark.parametrize(
    ("x", "first"), [(0.0, 0.0), (0.0, 1.0), (1e-120, 0.0), (1e-120, 1.0), (5e-324, 0.0), (SINES, 1.0)]
)
def test_rounded_zeros_have_no_unit(x: Any, first: float) -> None:
    """Next to a coordinate of size 1, or alone, they are looked at as zeros are."""

    def fun(x: Any) -> float:
        return round(float(np.sum((x - 0.3) ** 2)), 4)

    start = np.array(x) * np.ones(40)
    start[0] = first
    found, _ = answer(noise_level(start, fun(start), (0,)), fun)
    assert 1e-5 < found.noise < 1e-4


def test_single_precision_is_noise_of_its_size() -> None:
    def rounded(x: Any) -> float:
        return float(np.float32(bowl(x)))

    for k in range(20):
        found, _ = answer(noise_level(np.ones(20), rounded(np.ones(20)), (k,)), rounded)
        unit = float(np.spacing(np.float32(bowl(np.ones(20)))))
        assert 0.1 * unit < found.noise < 2 * unit  # rounding errors are uniform: 0.29 of a unit


def test_a_constant_0_far_from_the_origin_is_measured_without_harm() -> None:
    """The error of a value, 1e-300, by the square of a radius of 1e14, is 0."""
    scales, _ = answer(measure(np.full(5, 1e14), (1,), noise="auto"), lambda x: 0.0)
    assert 0 < scales.smoothness <= scales.trace < 1e-200


def test_a_constant_function_is_measured_without_harm() -> None:
    scales, count = answer(measure(np.ones(5), (1,), noise="auto"), lambda x: 3.0)
    assert scales.resolution.noise == 0
    assert 0 < scales.trace < 1e-6
    assert count < 200


def test_known_scales_ask_for_the_value_only() -> None:
    scales, count = answer(measure(np.ones(20), (1,), noise=0, trace=2.0, smoothness=1.0), bowl)
    assert count == 1
    assert (scales.f_x, scales.trace, scales.smoothness) == (bowl(np.ones(20)), 2.0, 1.0)


def test_a_gradient_with_a_side_missing_and_radii_without_a_square() -> None:
    """No warning, whatever comes of it: it is for the caller to find that nothing can be seen so close."""
    (g, c), count = answer(central(np.zeros(3), 0.0, np.full(3, 1e-170), None), lambda p: math.nan if p[0] > 0 else 1.0)
    assert count == 6 + 2 + 1  # two tries more for what is missing, and one value farther off on the other side
    assert np.isfinite(g).all()
    assert (c == 0).all()


@pytest.mark.parametrize("d", [20, 2000])
def test_seven_values_do_where_f_is_smooth(d: int) -> None:
    """The value, two pairs, and two values that show that second differences fade as those of a smooth f do."""
    weights = 1 / np.arange(1, d + 1)
    smooth: list[Any] = [
        lambda x: float(weights @ x**2),
        lambda x: float(np.cos(x).sum()),
        lambda x: -float(weights @ x**2),  # negative curvature is smooth as well
        lambda x: float(np.logaddexp(0, x).mean()),
    ]
    for fun in smooth:
        for k in range(20):
            scales, count = answer(measure(np.full(d, 0.7), (k,), noise="auto", pairs=2), fun)
            assert (count, scales.resolution) == (7, Resolution())


def test_a_glance_sees_the_trace() -> None:
    """Two pairs: standard deviation sqrt(2 sum l^2 / 2); the mean over 200 keys within 4 of its own."""
    found = [answer(measure(np.full(20, 0.7), (k,), noise="auto", pairs=2), bowl)[0].trace for k in range(200)]
    assert abs(np.mean(found) - SPECTRUM.sum()) < 4 * math.sqrt(float(SPECTRUM @ SPECTRUM) / 200)


@pytest.mark.parametrize("level", [1e-11, 1e-9, 1e-6, 1e-2])
def test_a_glance_does_not_miss_noise(level: float) -> None:
    """All but one of 100 starts, at levels that are 1e-11 of f and more; less is round-off.

    The second difference is let be off by 160 round-offs, 4e-14 of f; that of noise has a standard deviation of sqrt(6)
    levels, so that 1e-11 is missed with probability 0.8 * 4e-14 / 2.4e-11, about 1e-3.
    """
    rng, x = np.random.default_rng(0), np.full(20, 0.7)
    level *= bowl(x)
    noisy = [
        answer(measure(x, (k,), noise="auto", pairs=2), lambda p: bowl(p) + level * rng.standard_normal())[0]
        for k in range(100)
    ]
    assert np.sum([0.2 < scales.resolution.noise / level < 5 for scales in noisy]) >= 99


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: float(np.float32(bowl(x))),
        lambda x: round(bowl(x), 9),
        lambda x: float(np.float32(bowl(x))) / 7,  # digits that no number of single precision has
        lambda x: math.pi * 1e-7 * round(bowl(x) / (math.pi * 1e-7)),  # nor any decimal
        lambda x: bowl(np.round(x, 6)),  # x itself is rounded
    ],
)
def test_a_glance_does_not_miss_rounding(fun: Any) -> None:
    """Values that coincide have a second difference of 0, where there should be one: what counts is the table."""
    x = np.random.default_rng(0).uniform(0.3, 0.9, 20)
    for k in range(40):
        scales, count = answer(measure(x, (k,), noise="auto", pairs=2), fun)
        assert count >= 7 + 8
        assert scales.resolution == answer(noise_level(x, fun(x), (k, 0)), fun)[0]


def test_a_glance_is_not_taken_where_curvature_is_given() -> None:
    x = np.full(20, 0.7)
    assert answer(measure(x, (1,), noise="auto", pairs=2, trace=99.0), bowl)[0].trace == 99
    assert answer(measure(x, (1,), noise="auto", pairs=2, smoothness=7.0), bowl)[0].smoothness == 7


def test_no_value_is_asked_twice_where_a_glance_is_not_enough() -> None:
    seen = []

    def noisy(p: Any) -> float:
        seen.append(p.tobytes())
        return bowl(p) + 1e-6 * float(np.sin(1e9 * p.sum()))

    _, count = answer(measure(np.full(20, 0.7), (1,), noise="auto", pairs=2), noisy)
    assert count == len(set(seen)) > 7
