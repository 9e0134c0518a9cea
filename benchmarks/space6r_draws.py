# SPDX-License-Identifier: Apache-2.0
"""Slow methods of docs/papers/space6r.md on as many draws as the fast ones, with a table.

    python benchmarks/space6r_draws.py [--draws 20] [--record draws.jsonl] [--table benchmarks/space6r_draws.md]

Every result is a line of the record, and a run continues where the last one ended. Needs pymoo and scikit-learn.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from robot_dyn_id.papers.space6r.reproduction import conditions, slow_methods
from robot_dyn_id.papers.space6r.trials import HYBRID, LEVELS, OURS, PAPER, SWARM, NoisyTrial

FAST = {**{name: PAPER[name] for name in (SWARM, HYBRID)}, "map_constants": OURS["map_constants"]}
"""Methods that the slow ones are compared with, draw by draw."""


def draw(given, methods, count, record):
    """Append the results of the draws that the record lacks."""
    known = {(line["level"], line["draw"], line["method"]) for line in read(record)}
    for seed in range(count):
        for level in LEVELS:
            lacking = [name for name in methods if (level, seed, name) not in known]
            trial = NoisyTrial.from_seed(seed, level, given) if lacking else None
            for name in lacking:
                found = methods[name](trial)
                line = {"level": level, "draw": seed, "method": name, "error": found.error, "cost": found.cost}
                line |= {"seconds": found.seconds, "failed": found.failed}
                with record.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, file=sys.stderr)


def read(record):
    """Results so far."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []


def table(lines):
    """Medians and quartiles over the draws, and the ratios to PSO-LM, draw by draw."""
    rows = [
        "# Slow methods of space6r, draw by draw\n",
        "Written by `benchmarks/space6r_draws.py`; the fast methods are in [the page](../docs/papers/space6r.md).\n"
        "Error: RMS of the noise-free torque along another motion [N m]; ratios: of pso_lm over the method.\n",
        "| noise | method | draws | failed | error, median (quartiles) | cost | time [s] | error ratio | time ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for level in LEVELS:
        here = [line for line in lines if line["level"] == level]
        mixed = {line["draw"]: line for line in here if line["method"] == HYBRID}
        for name in dict.fromkeys(line["method"] for line in here):
            own = [line for line in here if line["method"] == name]
            error, cost, seconds = (np.array([line[key] for line in own]) for key in ("error", "cost", "seconds"))
            low, high = np.quantile(error, (0.25, 0.75), method="inverted_cdf")
            pairs = [(mixed[line["draw"]], line) for line in own if line["draw"] in mixed]
            ratios = [np.median([a[key] / b[key] for a, b in pairs]) for key in ("error", "seconds")]
            cells = (
                *(f"x {level:g}", name, len(own), sum(line["failed"] for line in own)),
                f"{np.median(error):.3g} ({low:.3g} to {high:.3g})",
                *(f"{np.median(cost):.6g}", f"{np.median(seconds):.2g}", *(f"{ratio:.3g}" for ratio in ratios)),
            )
            rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--record", type=Path, default=Path("space6r_draws.jsonl"))
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    methods, _ = slow_methods(full=True)
    draw(conditions(), {**FAST, **methods}, given.draws, given.record)
    given.table.write_text(table(read(given.record)))


if __name__ == "__main__":
    main()
