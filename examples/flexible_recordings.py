# SPDX-License-Identifier: Apache-2.0
"""Recordings of a simulated arm with flexible joints, as files for `robot-dyn-id flexible`.

    python examples/flexible_recordings.py FOLDER

writes what sensors with noise show of the arm of Chen et al. 2021: `poses.npz` (at rest), `joint1.npz` and `joint2.npz`
(one joint moves), `both.npz`, and `other.npz`, a motion to validate on. The true parameters are printed.
"""

import sys
from pathlib import Path

import numpy as np

from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.flexible import Experiment, FlexiblePlant
from robot_dyn_id.papers.flexible2r.arm import (
    MOTIONS,
    PERIOD,
    RATE,
    add_noise,
    list_true_values,
    make_arm,
    make_motion_of,
)

WIDTH = 0.02
"""Velocity within which the joints' friction goes through zero [rad/s]."""


def recordings(seed: int = 0) -> list[Experiment]:
    """Poses, motions of each joint and of both, and another motion; the noise is that of `reproduce flexible2r`."""
    model = make_arm(WIDTH)
    plant, limits = FlexiblePlant(model, list_true_values(model)), model.model.limits
    grid = np.meshgrid(*(np.linspace(*ends, 5) for ends in zip(limits.lower, limits.upper, strict=True)))
    names = ("joint1", "joint2", "both")
    moved = [
        plant.along(name, make_motion_of(moving), PERIOD, RATE, moving)
        for name, moving in zip(names, MOTIONS, strict=True)
    ]
    other = plant.along("other", draw_random_fourier(model.model, seed=7, period=10.0), 10.0, RATE)
    return add_noise([plant.poses("poses", np.reshape(grid, (2, -1))), *moved, other], seed)


def write(folder: Path, experiment: Experiment) -> None:
    """One file: rows are samples. Without `t` they are poses at rest."""
    channels = {name: getattr(experiment, name).T for name in ("q", "tau", "motor_q", "motor_tau")}
    if experiment.rate > 0.0:
        channels["t"] = np.arange(experiment.q.shape[1]) / experiment.rate
        channels["periodic"] = np.array(experiment.periodic)
    if experiment.moving:
        channels["moving"] = np.array(experiment.moving)
    np.savez(folder / f"{experiment.name}.npz", joint_names=np.array(["joint1", "joint2"]), **channels)


def main() -> None:
    """Write into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in recordings():
        write(folder, experiment)
    model = make_arm(WIDTH)
    for name, value, unit in zip(model.names, list_true_values(model), model.units, strict=True):
        print(f"{name:<12} {value:>12.6g} {unit}")


if __name__ == "__main__":
    main()
