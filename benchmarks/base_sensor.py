# SPDX-License-Identifier: Apache-2.0
"""Bodies of five arms from one 6-axis sensor under the base, draw by draw, against the truth.

    python benchmarks/base_sensor.py [--draws 20] [--record base_sensor.jsonl] [--table benchmarks/base_sensor.md]

Every result is a line of the record, and a run continues where the last one ended.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from measuring import append_row, read_rows, tabulate_draws
from separable import ARMS, load_arm

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.chain import CENTROIDAL, find_centroidal_frames, find_joint_frames, simulate_chain
from robot_dyn_id.loads.chain_recording import UNDER_BASE, RecordedSensor, identify_recorded_chain
from robot_dyn_id.loads.payload import transform_parameters
from robot_dyn_id.model.urdf import RobotDescription, find_root_link
from robot_dyn_id.simulation.sensors import sample_times

RATE, SECONDS = 200.0, 30.0
"""Samples per second [Hz] and length [s] of a recording, three periods of a random Fourier series."""

NOISE, LEAST_NOISE, POSITION_NOISE = 1e-3, 0.01, 1e-5
"""Noise of a channel of the sensor, as a share of its RMS, and at least [N, N m]; noise of the angles [rad]."""

SIGMAS = 1.959964
"""Half width of a 95 % interval in standard deviations."""


def draw(arm, seed):
    """Recording of an arm on a sensor, without efforts, and the truth: m and principal moments of its bodies."""
    model, rng = load_arm(arm), np.random.default_rng(seed)
    motion, t = draw_random_fourier(model, seed, 10.0), sample_times(SECONDS, RATE)
    states = Motion(*motion.evaluate(t)[:3])
    first = simulate_chain(model, states, find_joint_frames(model))[0]
    moment = first.wrench[:3] + np.cross(first.hinge, first.wrench[3:], axis=0)
    exact = -np.concatenate([moment, first.wrench[3:]])
    sigma = np.maximum(NOISE * np.std(exact, axis=1, keepdims=True), LEAST_NOISE)
    shown = exact + rng.uniform(-10.0, 10.0, (6, 1)) + sigma * rng.normal(size=exact.shape)
    q = (states.q + POSITION_NOISE * rng.normal(size=states.q.shape)).T
    recording = ArrayRecording(arm, model.joint_names, Chunk(t, q, None, None))
    base = find_root_link(RobotDescription(model.urdf).root())
    sensor = RecordedSensor.in_link_frame(model, UNDER_BASE, WrenchRecording(arm, t, shown, base))
    return recording, sensor, model, find_true_inertias(model)


def find_true_inertias(model):
    """m, Ixx, Iyy, Izz of the bodies in the frames of their centers, shape (n, 4)."""
    every = zip(find_centroidal_frames(model), model.inertial_parameters.reshape(-1, 10), strict=True)
    return np.array([np.linalg.solve(transform_parameters(frame), one)[list(CENTROIDAL)] for frame, one in every])


def run(record, draws):
    """Append the draws that the record lacks."""
    known = {(line["arm"], line["seed"]) for line in read_rows(record)}
    for arm in ARMS:
        for seed in range(draws):
            if (arm, seed) in known:
                continue
            recording, sensor, model, truth = draw(arm, seed)
            found = identify_recorded_chain(recording, [sensor], model, Settings(), principal=True).estimate
            shown = np.isfinite(found.values)
            errors = (found.values - truth)[shown] / found.standard_deviations[shown]
            line = {"arm": arm, "seed": seed, "of": truth.size, "independent": found.rank, "errors": errors.tolist()}
            shares = np.where(shown, found.standard_deviations, np.nan) / truth
            line |= {"masses": list(shares[:, 0]), "moments": list(shares[:, 1:].ravel())}
            append_row(record, line)
            print(arm, seed, found.rank, shown.sum(), np.mean(np.abs(errors) < SIGMAS), file=sys.stderr)


HEAD = f"""# Every body from one sensor under the base

Written by `benchmarks/base_sensor.py`. Five arms stand on a 6-axis sensor ([how to](../docs/howto/base_sensor.md)) in
{SECONDS:g} s of five random harmonics at {RATE:g} Hz. Angles have {POSITION_NOISE:g} rad of noise, there are neither
velocities nor efforts, and the sensor has unknown zeros and {NOISE:.1%} of noise, of the standard deviation of each
channel, and at least {LEAST_NOISE:g} N or N m. Centers of mass and principal axes are those of the URDF: m, Ixx, Iyy,
Izz of every body are sought, by the default options of `robot-dyn-id chain --wrench base --principal`.

Independent: combinations that are identifiable, of all. Alone: parameters that are identifiable one by one. Inside:
share of the 95% intervals of these, of all draws, that contain the truth. Sigma: median over draws and bodies, relative
to the truth.

| arm | draws | independent | alone | inside | sigma of masses | sigma of moments |
|---|---|---|---|---|---|---|
"""


def write_table(lines):
    """The page."""
    rows = []
    for arm in ARMS:
        own = [line for line in lines if line["arm"] == arm]
        if not own:
            continue
        count, alone = {line["independent"] for line in own}, {len(line["errors"]) for line in own}
        errors = np.concatenate([line["errors"] for line in own])
        masses, moments = (np.nanmedian([line[key] for line in own]) for key in ("masses", "moments"))
        rows.append(
            f"| {arm} | {len(own)} | {_range(count)} of {own[0]['of']} | {_range(alone)} | "
            f"{np.mean(np.abs(errors) < SIGMAS):.1%} | {_share(masses)} | {_share(moments)} |\n"
        )
    return HEAD + "".join(rows)


def _share(value):
    """A share in percent; - if there is none."""
    return "-" if np.isnan(value) else f"{value:.2%}"


def _range(values):
    """One number, or the smallest and the largest."""
    return f"{min(values)}" if len(values) == 1 else f"{min(values)} to {max(values)}"


if __name__ == "__main__":
    tabulate_draws(__doc__, "base_sensor", run, write_table)
