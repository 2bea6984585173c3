"""Tune a ladder of resistors and capacitors with ngspice, an external program that knows nothing of fewdim.

Each section's R and C are scaled by exp(x); the response at the end of the ladder is to follow that of a reference
ladder whose parts grow along the line.  The objective is the mean squared error in decibels.  Kill the run whenever you
like, and start the same line again: it goes on where it was.

    python examples/ngspice_ladder.py --sections 50 --maxfev 1500 --workers 2
"""

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np

import fewdim


def deck(sections: int) -> str:
    """The circuit, with {x[i]} where the logarithms of the parts go."""
    lines = ["ladder", "V1 in 0 DC 0 AC 1", "Rin in a0 1m", "Rref in b0 1m"]
    for i in range(sections):
        taper = np.exp(np.sin(3 * i / sections))
        lines += [
            f"Ra{i} a{i} a{i + 1} {{100*exp({{x[{2 * i}]}})}}",
            f"Ca{i} a{i + 1} 0 {{1n*exp({{x[{2 * i + 1}]}})}}",
            f"Rb{i} b{i} b{i + 1} {100 * taper:.6g}",
            f"Cb{i} b{i + 1} 0 {taper:.6g}n",
        ]
    lines += [
        ".control",
        "set numdgt=16",
        "ac dec 8 1 100k",
        f"let error = mean((vdb(a{sections}) - vdb(b{sections}))^2)",
        "print error",
        "quit 0",
        ".endc",
        ".end",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sections", type=int, default=50)
    parser.add_argument("--maxfev", type=int, default=1500)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--journal", type=Path, default=Path("out/ladder.db"))
    parser.add_argument("--figure", type=Path, default=None, help="draw the history here; needs fewdim[plot]")
    arguments = parser.parse_args()
    if shutil.which("ngspice") is None:
        sys.exit("ngspice is not installed (Debian: apt install ngspice)")
    folder = arguments.journal.absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    template = folder / f"ladder{arguments.sections}.cir"
    template.write_text(deck(arguments.sections))
    simulate = fewdim.command("ngspice -b {point}", template=template, pattern=r"error = (\S+)", timeout=60)
    journal = fewdim.Journal(arguments.journal, label=f"ladder of {arguments.sections}")
    before = journal.nfev if arguments.journal.exists() else 0
    result = fewdim.minimize(
        simulate,
        np.zeros(2 * arguments.sections),
        rng=0,
        maxfev=arguments.maxfev,
        workers=arguments.workers,
        journal=journal,
        progress=sys.stderr.isatty(),
    )
    if arguments.figure is not None:
        arguments.figure.parent.mkdir(parents=True, exist_ok=True)
        result.plot().figure.savefig(arguments.figure, dpi=80)
    print(f"{before} evaluations were there, {result.nfev} are now, {np.nansum(journal.seconds):.1f} s of ngspice")
    print(f"mean squared error {journal.values[0]:.6g} dB^2 at the start, {result.fun!r} now")
    print(f"{len(journal.failures)} evaluations failed")
    for failure in journal.failures[-3:]:
        print(f"  evaluation {failure.nfev}: {' '.join(failure.message.split())}")


if __name__ == "__main__":
    main()
