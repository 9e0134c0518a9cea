# SPDX-License-Identifier: Apache-2.0
"""Every method of docs/papers/space6r.md on the same draws, with a table of medians, spreads and failures.

    python benchmarks/space6r_draws.py [--draws 20] [--record draws.jsonl] [--table benchmarks/space6r_draws.md]

Every result is a line of the record, and a run continues where the last one ended. Needs pymoo and scikit-learn.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from robot_dyn_id.papers.space6r.reproduction import FAST_RATE, list_conditions, slow_methods
from robot_dyn_id.papers.space6r.trials import HYBRID, LEVELS, OURS, PAPER, TABLE_1, Conditions, Method, NoisyTrial


@dataclass(frozen=True)
class Case:
    """Conditions of a comparison with its methods.

    Attributes:
        title: name in the record and the table.
        given: motions, rate and nominal Stribeck velocities.
        methods: methods by name.
    """

    title: str
    given: Conditions
    methods: dict[str, Method]


def cases() -> tuple[Case, ...]:
    """Widened Stribeck velocities at 100 Hz with all methods, and those of Table 1 at 1 kHz without the slow ones."""
    slow, missing = slow_methods(full=True)
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    return (
        Case("vb of 0.04 to 0.08 rad/s, 100 Hz", list_conditions(), {**PAPER, **slow, **OURS}),
        Case("vb of Table 1, 1 kHz", list_conditions(FAST_RATE, TABLE_1["vb"]), {**PAPER, **OURS}),
    )


def draw(given, count, record):
    """Append the results that the record lacks, draw by draw."""
    known = {(line["case"], line["level"], line["draw"], line["method"]) for line in read(record)}
    for seed in range(count):
        for case in given:
            for level in LEVELS:
                lacking = [name for name in case.methods if (case.title, level, seed, name) not in known]
                trial = NoisyTrial.from_seed(seed, level, case.given) if lacking else None
                for name in lacking:
                    found = case.methods[name](trial)
                    line = {"case": case.title, "level": level, "draw": seed, "method": name, "error": found.error}
                    line |= {"cost": found.cost, "seconds": found.seconds, "failed": found.failed}
                    with record.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(line, file=sys.stderr)


def read(record):
    """Results so far."""
    return [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []


def table(given, lines):
    """Medians and quartiles over the draws, and the ratios to PSO-LM, draw by draw."""
    rows = [
        "# Methods of space6r, draw by draw\n",
        "Written by `benchmarks/space6r_draws.py`; conditions and verdicts are in "
        "[the page](../docs/papers/space6r.md).\nError: RMS of the noise-free torque along another motion [N m]; "
        "failed: ended without convergence, and\ncounted with the last point; time: of the CPU; ratios: of the method "
        "over PSO-LM, draw by draw, medians (quartiles).",
    ]
    for case in given:
        for level in LEVELS:
            here = [line for line in lines if (line["case"], line["level"]) == (case.title, level)]
            rows += [
                f"\n## {case.title}, noise x {level:g}\n",
                "| method | draws | failed | error | worst | cost | time [s] | error ratio | time ratio |",
                "|---|---|---|---|---|---|---|---|---|",
            ]
            mixed = {line["draw"]: line for line in here if line["method"] == HYBRID}
            rows += [_row(name, [line for line in here if line["method"] == name], mixed) for name in case.methods]
    return "\n".join(rows) + "\n"


def _row(name, own, mixed):
    """Row of one method; `mixed` has the lines of PSO-LM by draw."""
    error, cost, seconds = (np.array([line[key] for line in own]) for key in ("error", "cost", "seconds"))
    errors, times = (
        np.array([line[key] / mixed[line["draw"]][key] for line in own if line["draw"] in mixed])
        for key in ("error", "seconds")
    )
    cells = (
        *(name, len(own), sum(line["failed"] for line in own), _spread(error), f"{error.max():.3g}"),
        *(f"{np.median(cost):.6g}", f"{np.median(seconds):.2g}", _spread(errors), f"{np.median(times):.2g}"),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _spread(values):
    low, high = np.quantile(values, (0.25, 0.75), method="inverted_cdf")
    return f"{np.median(values):.3g} ({low:.3g} to {high:.3g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--record", type=Path, default=Path("space6r_draws.jsonl"))
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    given = cases()
    draw(given, options.draws, options.record)
    options.table.write_text(table(given, read(options.record)))


if __name__ == "__main__":
    main()
