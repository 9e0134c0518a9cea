# SPDX-License-Identifier: Apache-2.0
"""Spread of the figures of docs/papers/ over processors, and of the designed motions over the seeds of their searches.

    python benchmarks/paper_processors.py [NAME ...]

`robot-dyn-id reproduce NAME --json` runs once as it is, and once with the instructions of each other processor: the
kernels of OpenBLAS (OPENBLAS_CORETYPE), the loops of NumPy and the compiled loops of this package. Printed are the
figures that differ in one of the digits that the command shows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from math import exp

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from robot_dyn_id.papers import PAPERS
from robot_dyn_id.papers.flexible2r import excitation as flexible2r
from robot_dyn_id.papers.inputs import optimize_design, plan_of, read_settings_of
from robot_dyn_id.papers.logistic2r import reproduction as logistic2r
from robot_dyn_id.papers.logistic2r.strokes import LockableArm
from robot_dyn_id.papers.planar3r import reproduction as planar3r

AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"

PROCESSORS: Mapping[str, Mapping[str, str]] = {
    "AVX2": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": AVX512, "NUMBA_CPU_NAME": "haswell"},
    "SSE4": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": f"{AVX512} AVX2 FMA3",
        "NUMBA_CPU_NAME": "generic",
    },
    "two threads": {"OPENBLAS_NUM_THREADS": "2"},
}
"""Environment variables that choose the instructions of another processor, or another order of sums."""

SEEDS = (1, 2, 3)
"""Seeds of the searches for motions."""

DIGITS = 5
"""Significant digits that the command shows."""


def figures_on(paper: str, variables: Mapping[str, str]) -> dict[str, float | None]:
    """Run the command with environment variables; returns our value of every figure by its name."""
    command = [sys.executable, "-m", "robot_dyn_id", "reproduce", paper, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    return {figure["name"]: figure["ours"] for figure in json.loads(done.stdout)["figures"]}


def differing(runs: Mapping[str, Mapping[str, float | None]]) -> dict[str, list[str]]:
    """Figures that are not the same in all runs to the digits shown, with their values in the order of the runs.

    Args:
        runs: value of each figure by its name, by processor. Differences of exact identities, which are rounding, and
            computing times are left out.
    """
    first, *others = runs.values()
    found = {}
    for name in first:
        values = [run.get(name) for run in (first, *others)]
        texts = ["" if value is None else f"{value:.{DIGITS}g}" for value in values]
        rounding = all(value is not None and abs(value) < 1e-9 for value in values)
        if len(set(texts)) > 1 and not rounding and "computing time" not in name:
            found[name] = texts
    return found


def searches() -> dict[str, Callable[[int], float]]:
    """Designed motions by name: functions of the seed that return the figure of the best motion."""
    arm = LockableArm()
    motion = read_settings_of("logistic2r", form="fourier", period=logistic2r.read_fourier_series()[1], window=0.0)
    found: dict[str, Callable[[int], float]] = {
        f"planar3r, {joint}: condition number": lambda seed, joint=joint: exp(
            optimize_design("planar3r", planar3r.plan(joint), seed=seed).objective_value
        )
        for joint in planar3r.TURNS
    }
    found["logistic2r, strokes: sum of condition numbers"] = lambda seed: sum(
        logistic2r.compute_condition(stroke) for stroke in strokes(seed).of.values()
    )
    found["logistic2r, Fourier series: condition number"] = lambda seed: exp(
        optimize_design("logistic2r", plan_of(motion, arm.model, ()), seed=seed).objective_value
    )
    for case in flexible2r.JOINTS:
        found[f"flexible2r, {case}, degree 8: condition number, raw"] = lambda seed, case=case: (
            flexible2r.compute_friction_condition(flexible2r.search_motion(case, True, 8, seed=seed).excitation)
        )
    return found


def strokes(seed: int) -> logistic2r.Strokes:
    """Strokes of the arm within the limits, searched from a seed."""
    return logistic2r.optimize_feasible_strokes(LockableArm(), seed=seed)


def main() -> None:
    """Run the papers on all processors, then the searches from all seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", metavar="NAME", default=[name for name in PAPERS if name != "space6r"])
    for paper in parser.parse_args().papers:
        runs = {"this one": figures_on(paper, {})}
        runs |= {name: figures_on(paper, variables) for name, variables in PROCESSORS.items()}
        found = differing(runs)
        print(f"{paper}: {len(found)} of {len(runs['this one'])} figures differ", flush=True)
        if found:
            print(f"\n| figure | {' | '.join(runs)} |\n|---|{'---|' * len(runs)}")
            for name, texts in found.items():
                print(f"| {name} | {' | '.join(texts)} |")
            print(flush=True)
    print(f"| search | {' | '.join(f'seed {seed}' for seed in SEEDS)} |\n|---|{'---|' * len(SEEDS)}")
    for name, search in searches().items():
        print(f"| {name} | {' | '.join(f'{search(seed):.6g}' for seed in SEEDS)} |", flush=True)


if __name__ == "__main__":
    main()
