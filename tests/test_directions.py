"""Directions: named by keys, the same everywhere, with the moments they promise; one pass, no matrix."""

import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fewdim import Along, Direction, accumulate, axis, coordinate, gaussian, perturb, signs, sphere

RANDOM = {"signs": signs, "gaussian": gaussian, "sphere": sphere, "coordinate": coordinate}
keys = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


@given(keys, st.integers(1, 300), st.sampled_from(sorted(RANDOM)))
@settings(max_examples=60, deadline=None)
def test_a_direction_is_a_function_of_its_key_and_coordinate(key: tuple[int, int], d: int, law: str) -> None:
    u = RANDOM[law](key).array(d)
    assert np.array_equal(u, RANDOM[law](key).array(d))
    if law in ("signs", "gaussian"):  # coordinates do not depend on how many there are
        assert np.array_equal(u, RANDOM[law](key).array(d + 77)[:d])


def test_known_words() -> None:
    """Fixed for ever: a change here changes every trajectory."""
    assert "".join("+" if s > 0 else "-" for s in signs((1, 2)).array(32)) == "+-+++-+++-+---++--++++++-+-+---+"
    assert gaussian((1, 2)).array(3).tolist() == [-1.496432737841164, -0.19956297629285308, 0.11681995739727635]


def test_moments_of_signs_and_gaussians() -> None:
    n, d = 2000, 64
    for law, fourth in ((signs, 1.0), (gaussian, 3.0)):
        u = np.array([law((5, i)).array(d) for i in range(n)])
        error = 1 / np.sqrt(n * d)
        assert abs(u.mean()) < 4 * error
        assert abs((u**2).mean() - 1) < 4 * error * np.sqrt(fourth - 1 + 1e-30)
        assert abs((u**4).mean() - fourth) < 4 * error * np.sqrt(105 - 9)  # E u^8 = 105 for normals
        second = (
            u.T @ u / n
        )  # off the diagonal: standard deviation 1/sqrt(n); the largest of 2016 stays below 4.5 of them
        assert np.abs(second - np.diag(np.diag(second))).max() < 4.5 / np.sqrt(n)


def test_gaussians_are_normal() -> None:
    assert stats.kstest(gaussian((11,)).array(200_000), "norm").pvalue > 1e-3
    far = np.abs(gaussian((12,)).array(1_000_000)).max()
    assert 4.3 < far < 6.5  # of a million normals the largest is below 4.3 with probability 4e-8, above 6.5 with 8e-5


def test_neighbouring_keys_are_independent() -> None:
    """Correlations of 128 neighbouring keys over 4096 coordinates: standard deviation 1/64, 8128 pairs, 4.7 of them."""
    u = np.array([signs((3, i)).array(4096) for i in range(128)])
    corr = u @ u.T / 4096 - np.eye(128)
    assert np.abs(corr).max() < 4.7 / 64


@pytest.mark.parametrize("law", ["sphere", "coordinate"])
def test_length_is_sqrt_d(law: str) -> None:
    for d in (1, 7, 100):
        assert np.linalg.norm(RANDOM[law]((4, d)).array(d)) == pytest.approx(np.sqrt(d), rel=1e-12)


def test_axis_is_a_unit_vector() -> None:
    assert axis(3).array(5).tolist() == [0, 0, 0, 1, 0]
    with pytest.raises(ValueError, match=r"axis\(i=...\) must be below the dimension 5; got 5"):
        axis(5).array(5)
    with pytest.raises(ValueError, match=r"axis\(i=...\) must be at least 0; got -1"):
        axis(-1)


def test_keys_must_fit() -> None:
    with pytest.raises(ValueError, match=r"signs\(key=...\) must hold integers in \[0, 2\*\*64\); got \(-1,\)"):
        signs((-1,)).array(3)


@given(
    st.integers(1, 200),
    st.lists(st.sampled_from(sorted(RANDOM)), max_size=6),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=60, deadline=None)
def test_accumulate_is_the_sum(d: int, laws: list[str], dtype: type[np.floating]) -> None:
    x = gaussian((1,)).array(d).astype(dtype)
    directions: list[Direction | np.ndarray] = [RANDOM[law]((i,)) for i, law in enumerate(laws)]
    directions.append(np.linspace(0, 1, d).astype(dtype))
    c = np.linspace(-1, 2, len(directions))
    expected = x.astype(np.float64)
    for c_j, u in zip(c, directions, strict=True):
        expected = expected + c_j * (u.array(d) if isinstance(u, Direction) else u)
    got = accumulate(x, c, directions)
    assert got.dtype == dtype
    # each addition rounds once to half a unit in the last place of a sum that stays below |x| + 2 sum |u|
    size = np.abs(x) + 2 * sum(np.abs(u.array(d) if isinstance(u, Direction) else u) for u in directions)
    assert np.all(np.abs(got - expected) <= 2 * len(directions) * np.finfo(dtype).eps * size)
    in_place = x.copy()
    assert accumulate(in_place, c, directions, out=in_place) is in_place
    assert np.array_equal(in_place, got)


def test_perturb_writes_where_told() -> None:
    x, out = np.ones(70), np.empty(70)
    assert perturb(x, 0.5, signs((1,)), out=out) is out
    assert set(out) == {0.5, 1.5}
    assert np.all(x == 1)


def test_lazy_offsets() -> None:
    u = signs((1,))
    for offset in (2.0 * u, u * 2.0, np.float64(2.0) * u, -(-2.0 * u)):
        assert isinstance(offset, Along)
        assert offset.scale == 2.0
        assert offset.direction is u


def test_the_same_in_every_thread() -> None:
    expected = signs((9,)).array(100_003)
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(signs((9,)).array(100_003))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(u, expected) for u in found)


def test_the_same_in_another_process() -> None:
    code = "from fewdim import gaussian; print(gaussian((1, 2)).array(1000).tobytes().hex())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == gaussian((1, 2)).array(1000).tobytes().hex()


def test_a_batch_is_never_a_matrix() -> None:
    d, m = 100_000, 50
    x, out = np.zeros(d), np.zeros(d)
    directions = [signs((i,)) for i in range(m)]
    accumulate(x, np.ones(m), directions, out)
    tracemalloc.start()
    accumulate(x, np.ones(m), directions, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < d * 8 / 10
