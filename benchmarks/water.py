"""Calibration of a water network by EPANET: pipe roughness from pressures.  A real simulator, values only."""

from __future__ import annotations

import os
from importlib import resources, util
from typing import Any

import numpy as np

from benchmarks.problem import Problem, Vector

NEEDED = ("epanet", "wntr")


def installed() -> bool:
    """Whether EPANET and the networks that come with wntr are there."""
    return all(util.find_spec(name) is not None for name in NEEDED)


class Network:
    """Heads at the junctions as a function of the logarithms of the roughness of the pipes."""

    def __init__(self, file: str) -> None:
        from epanet import toolkit

        self.en: Any = toolkit
        self.project = toolkit.createproject()
        path = resources.files("wntr") / "library" / "networks" / f"{file}.inp"
        toolkit.open(self.project, str(path), os.devnull, "")
        toolkit.setstatusreport(self.project, toolkit.NO_REPORT)
        toolkit.setoption(self.project, toolkit.ACCURACY, 1e-5)
        links = range(1, toolkit.getcount(self.project, toolkit.LINKCOUNT) + 1)
        nodes = range(1, toolkit.getcount(self.project, toolkit.NODECOUNT) + 1)
        self.pipes = [i for i in links if toolkit.getlinktype(self.project, i) == toolkit.PIPE]
        self.junctions = [i for i in nodes if toolkit.getnodetype(self.project, i) == toolkit.JUNCTION]
        self.rough = np.array([toolkit.getlinkvalue(self.project, i, toolkit.ROUGHNESS) for i in self.pipes])
        toolkit.openH(self.project)

    def heads(self, x: Vector) -> Vector:
        en, project = self.en, self.project
        for pipe, value in zip(self.pipes, self.rough * np.exp(np.clip(x, -3, 3)), strict=True):
            en.setlinkvalue(project, pipe, en.ROUGHNESS, float(value))
        en.initH(project, en.INITFLOW)
        en.runH(project)
        return np.array([en.getnodevalue(project, i, en.HEAD) for i in self.junctions])


def calibration(name: str, file: str, most: int) -> Problem:
    """The mean squared error of the heads that a hidden roughness gives, from the one in the file."""
    network = Network(file)
    hidden = 0.3 * np.random.default_rng(9).standard_normal(len(network.pipes))
    seen = network.heads(hidden)

    def fun(x: Vector) -> float:
        return float(((network.heads(x) - seen) ** 2).mean())

    return Problem(name, fun, np.zeros(len(network.pipes)), 0.0, "real data", solution=hidden, most=most)
