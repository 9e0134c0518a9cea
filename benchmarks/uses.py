# SPDX-License-Identifier: Apache-2.0
"""Verdict and answers about uses on clean recordings of simulated arms, against errors that only a simulation knows.

Every arm is identified by the plain command from two recordings. A third motion shows the true errors: of the gravity
torque, of the torque without noise, and of the diagonal of the mass matrix. An answer is `safe` if a use that is
answered with yes has true errors within the thresholds, and `strict` if a use that is refused would have had them. An
answer of `limited` counts as right from `LIMITED` of the threshold on: it warns of errors about as large as that.

    python uses.py ARM... [--seeds N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from mutation.clean import ARMS, Bench

from robot_dyn_id import Settings
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.prediction.prediction import predict_recording
from robot_dyn_id.identification.stages.identification import Identification

COMPARED = {
    "gravity_compensation": "gravity_error_high",
    "feed_forward": "torque_error_high",
    "computed_torque": "inertia_uncertain",
}
"""Uses that are judged, and the criterion whose thresholds the true errors are compared with."""


LIMITED = (0.5, 2.0)
"""Least and largest true error for which `limited` counts as right, relative to the threshold."""


def true_errors(bench: Bench, result: Identification) -> dict[str, Array]:
    """True errors of each joint by use, along a motion that was not used.

    Args:
        bench: the simulated arm.
        result: its identified model.
    """
    trial = bench.record(9, duration=30.0)
    dynamics = result.model.dynamics
    rows = np.linspace(0, len(trial.t) - 1, 200).astype(int)
    poses = trial.motion.q[:, rows]
    gravity = np.array([dynamics.gravity(q) for q in poses.T]).T - trial.gravity[:, rows]
    _, tau, _ = predict_recording(trial.recording(bench.robot), result.parameters)
    error = tau.T - trial.effort
    moving = np.isfinite(error).all(axis=0)
    true = np.array([np.diag(_mass_matrix(bench, q)) for q in poses.T]).T
    found = np.array([np.diag(dynamics.mass_matrix(q)) for q in poses.T]).T
    return {
        "gravity_compensation": np.sqrt((gravity**2).mean(axis=1)),
        "feed_forward": np.sqrt((error[:, moving] ** 2).mean(axis=1)),
        "computed_torque": np.sqrt(((found / true - 1.0) ** 2).mean(axis=1)),
    }


def _mass_matrix(bench: Bench, q: Array) -> Array:
    """True mass matrix, rotors included, from torques of unit accelerations, shape (n, n)."""
    n = len(q)
    poses, zero = np.tile(q[:, None], (1, n + 1)), np.zeros((n, n + 1))
    accelerations = np.column_stack([np.zeros(n), np.eye(n)])
    torque = bench.regressor.torque(Motion(poses, zero, accelerations), bench.parameters)
    return torque[:, 1:] - torque[:, :1] + np.diag(bench.drives.rotor)


def judge(bench: Bench, result: Identification) -> Iterator[str]:
    """Lines of text about each use."""
    errors = true_errors(bench, result)
    for use, code in COMPARED.items():
        fit = next(one.fit for one in result.evaluation.uses if one.fit.use == use)
        limits = {one.joint: one.threshold for one in result.evaluation.criteria if (one.use, one.code) == (use, code)}
        threshold = np.array([limits[joint] for joint in bench.robot.joint_names])
        ratio = float((errors[use] / threshold).max())
        word = "right" if (fit.answer == "yes") == (ratio <= 1.0) else "STRICT" if ratio <= 1.0 else "UNSAFE"
        if fit.answer == "limited":
            word = "right" if LIMITED[0] < ratio <= LIMITED[1] else "STRICT" if ratio <= 1.0 else "UNSAFE"
        yield f"  {use:22} {fit.answer:8} true error {ratio:5.2f} of the threshold: {word} {' '.join(fit.because)}"


def main() -> None:
    """Print the verdict and the answers of each arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="+", choices=ARMS)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.arms:
        for seed in range(arguments.seeds):
            bench = Bench.draw(name, seed)
            recordings = [bench.record(number).recording(bench.robot) for number in (0, 1)]
            result = identify(recordings, [], bench.robot, Settings(), "benchmark")
            warnings = [f"{one.code}: {one.message}" for one in result.evaluation.findings if one.severity != "info"]
            print(f"{name}, seed {seed}: {result.evaluation.verdict.word} {warnings}", flush=True)
            for line in judge(bench, result):
                print(line, flush=True)


if __name__ == "__main__":
    main()
