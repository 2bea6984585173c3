"""A linear policy for a running robot (HalfCheetah of gymnasium, simulated by mujoco): noisy and not smooth.

Actions are W times the observation, 102 weights; the objective is minus the reward of one rollout of 150 steps from a
random start, so that no two values at a point agree, and contacts make it jump.  The theory of fewdim is for smooth
functions: this shows what happens without one.  CMA-ES gets the same number of rollouts; each method has three seeds.

    python examples/mujoco_policy.py
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import cma
import gymnasium
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fewdim

STEPS, FRESH, SEEDS = 150, 20, 3
Array = NDArray[np.float64]


class Robot:
    """Rollouts of a linear policy; each is another start."""

    def __init__(self) -> None:
        self.world = gymnasium.make("HalfCheetah-v5", max_episode_steps=STEPS)
        self.d = 17 * 6
        self.world.reset(seed=0)

    def cost(self, w: Array) -> float:
        """Minus the reward of a rollout."""
        observation, _ = self.world.reset()
        total, ended = 0.0, False
        while not ended:
            action = np.clip(w.reshape(6, 17) @ observation, -1, 1)
            observation, reward, terminated, truncated, _ = self.world.step(action)
            total, ended = total + float(reward), terminated or truncated
        return -total

    def reward(self, w: Array) -> tuple[float, float]:
        """Mean reward of fresh rollouts and its standard error."""
        rewards = [-self.cost(w) for _ in range(FRESH)]
        return float(np.mean(rewards)), float(np.std(rewards) / np.sqrt(FRESH))


def run_fewdim(fun: Callable[[Array], float], d: int, maxfev: int, seed: int, method: str = "auto") -> Array:
    x: Array = fewdim.minimize(fun, np.zeros(d), maxfev=maxfev, rng=seed, method=method).x
    return x


def run_cma(fun: Callable[[Array], float], d: int, maxfev: int, seed: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy = cma.fmin2(fun, np.zeros(d), 0.1, {"verbose": -9, "seed": seed + 1, "maxfevals": maxfev})[1]
    return np.asarray(strategy.result.xfavorite)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--maxfev", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("out"))
    arguments = parser.parse_args()
    robot = Robot()
    axes = (picture := Figure(figsize=(6, 4), layout="constrained")).subplots()
    mean, error = robot.reward(np.zeros(robot.d))
    told = f"reward of {FRESH} fresh rollouts, {SEEDS} seeds"
    print(f"{robot.d} weights, {arguments.maxfev:,} rollouts of {STEPS} steps; {told}:")
    print(f"{'at the start':28}{mean:8.1f} +- {error:4.1f}")
    ways: dict[str, Callable[..., Array]] = {
        "fewdim, default": run_fewdim,
        "fewdim, noisy-gradient": functools.partial(run_fewdim, method="noisy-gradient"),
        "fewdim, random-gradient": functools.partial(run_fewdim, method="random-gradient"),
        "CMA-ES": run_cma,
    }
    for colour, (name, solve) in enumerate(ways.items()):
        began, rewards = time.perf_counter(), []
        for seed in range(SEEDS):
            seen: list[float] = []

            def noted(w: Array, seen: list[float] = seen) -> float:
                seen.append(robot.cost(np.asarray(w)))
                return seen[-1]

            rewards.append(robot.reward(solve(noted, robot.d, arguments.maxfev, seed)))
            smooth = np.convolve(-np.array(seen), np.ones(50) / 50, "valid")
            axes.plot(smooth, color=f"C{colour}", label=name if seed == 0 else None)
        shown = "".join(f"{mean:8.1f} +- {error:4.1f}" for mean, error in rewards)
        print(f"{name:28}{shown}   {time.perf_counter() - began:.0f} s", flush=True)
    axes.set(xlabel="rollouts", ylabel="reward, mean of 50 rollouts as they came")
    axes.set_title(f"linear policy for HalfCheetah, {robot.d} weights", fontsize=11)
    axes.legend(frameon=False)
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture.savefig(arguments.out / "mujoco_policy.png", dpi=80)
    print(f"Figure: {arguments.out / 'mujoco_policy.png'}")


if __name__ == "__main__":
    main()
