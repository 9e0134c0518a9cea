# SPDX-License-Identifier: Apache-2.0
"""Table 6 of logistic2r next to our Fourier series and strokes within the same limits, without and with noise.

    python benchmarks/logistic2r_fourier.py [--draws 20] [--record FILE] [--table FILE]

Every result is a line of the record, and a run continues where the last one ended.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from measuring import append_row, read_rows, tabulate_draws

from robot_dyn_id.papers.logistic2r.reproduction import (
    PRINTED,
    PUBLISHED,
    optimize_feasible_strokes,
    read_fourier_series,
)
from robot_dyn_id.papers.logistic2r.strokes import PAPER, LockableArm, StrokeTrials
from robot_dyn_id.papers.logistic2r.studies import ITERATIONS, NOISES, START, FourierTrials, repeat_trials
from robot_dyn_id.simulation.sensors import Sensors

LEVELS = ((0.0, 0.0), *NOISES)
"""Noise of angles [rad] and torques [N m]."""

WAYS = {
    "once": "Fourier series, once",
    "series": f"Fourier series, best of {ITERATIONS}",
    "strokes": f"strokes, best of {ITERATIONS}",
}
"""Sources of the parameters, by their keys in the record."""


def run(record, draws):
    """Append the draws that the record lacks; there is one without noise."""
    known = {(line["angle"], line["seed"]) for line in read_rows(record)}
    wanted = [(level, seed) for level in LEVELS for seed in range(draws if any(level) else 1)]
    lacking = [one for one in wanted if (one[0][0], one[1]) not in known]
    if not lacking:
        return
    arm = LockableArm()
    strokes = optimize_feasible_strokes(arm)
    fourier = FourierTrials(strokes, *read_fourier_series())
    for (angle, torque), seed in lacking:
        sensors = Sensors(np.full(1, torque), angle, 10.0 * angle)
        found = fourier.repeated(arm.model.inertial_parameters, sensors, seed)
        models = found.iterations[0].parameters if found.iterations else None, found.parameters
        line = {"angle": angle, "torque": torque, "seed": seed, "truth": list(arm.nominal[PAPER])}
        for key, model in zip(("once", "series"), models, strict=True):
            line[key] = None if model is None else list(model.values[PAPER])
        best = repeat_trials(StrokeTrials(strokes, arm.nominal, START, sensors, seed=seed)).best
        line["strokes"] = None if np.isnan(best).any() else list(best)
        append_row(record, line)
        print(angle, seed, {key: line[key] and np.round(line[key], 4).tolist() for key in WAYS}, file=sys.stderr)


HEAD = """# Table 6 of logistic2r

Written by `benchmarks/logistic2r_fourier.py`. The paper compares its strokes with a Fourier series that it does not
print ([logistic2r](../docs/papers/logistic2r.md)). Here both are moved by the arm of the paper, under the same
controller, start, limits (eq. 18), sensors and number of rows: the stored series by the usual pipeline without a prior,
once and repeated with the identified model, and the strokes of the best condition number, repeated. Noise of the
velocities is ten times that of the angles per second; printed values have none that is stated.

Medians of {draws} draws; error: median of the largest error of the six parameters, and its quartiles.

| noise | identified from | theta 1 | theta 2 | theta 3 | theta 4 | theta 5 | theta 6 | error | without a model |
|---|---|---|---|---|---|---|---|---|---|
"""


def write_table(lines):
    """The page."""
    truth = np.array(lines[0]["truth"])
    rows = [_row("", "truth", [truth], truth, 0)]
    rows.append(_row("not stated", "printed, Table 6 (Fourier series)", [np.array(PUBLISHED["fourier"])], truth, 0))
    rows.append(_row("not stated", "printed, Tables 4 and 5 (strokes, iteration 3)", [PRINTED], truth, 0))
    for angle, torque in LEVELS:
        own = [line for line in lines if line["angle"] == angle]
        noise = f"{angle:g} rad, {torque:g} N m" if angle else "none"
        for key, words in WAYS.items():
            found = [np.array(line[key]) for line in own if line[key] is not None]
            rows.append(_row(noise, f"ours, {words}", found, truth, len(own) - len(found)))
    draws = max(sum(line["angle"] == angle for line in lines) for angle, _ in NOISES)
    return HEAD.format(draws=draws) + "".join(rows)


def _row(noise, words, found, truth, failed):
    """A row; draws without a model count with an infinite error."""
    values = np.median(found, axis=0) if found else np.full(len(truth), np.nan)
    errors = np.array([*(np.abs(one - truth).max() for one in found), *[np.inf] * failed])
    low, middle, high = np.quantile(errors, (0.25, 0.5, 0.75), method="inverted_cdf")
    spread = f" ({low:.2g} to {high:.2g})" if len(errors) > 1 else ""
    return f"| {noise} | {words} | {' | '.join(f'{x:.4g}' for x in values)} | {middle:.2g}{spread} | {failed or ''} |\n"


if __name__ == "__main__":
    tabulate_draws(__doc__, "logistic2r_fourier", run, write_table)
