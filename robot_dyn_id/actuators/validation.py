# SPDX-License-Identifier: Apache-2.0
"""Simulation of actuators under position commands against recordings that they were not identified from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.actuators.fit import STEP_S, InitialState, LimbMotion, divide
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import LONGEST_STEP_S, Limb, split_into_limbs
from robot_dyn_id.actuators.start import EffortRows
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.actuators import DELAY
from robot_dyn_id.model.robot import RobotModel

HORIZONS_S = (1.0, 5.0, np.inf)
"""Lengths of the simulations [s]; inf: the whole motion."""


@dataclass(frozen=True)
class RolloutErrors:
    """Errors of simulations of n joints under recorded position commands.

    Attributes:
        horizons: RMS of the position errors by the length of the simulations [rad or m], shape (n,) each; the initial
            state of each is estimated from its first quarter of a second.
        tracking: RMS of the distance of the measured from the commanded positions [rad or m], shape (n,).
        rigid: RMS of the errors of the whole motion with the drives and links alone, without armature, friction, offset
            and delay [rad or m], shape (n,).
        efforts: RMS of the error of the effort that the model computes from the measured motion, as a share of the RMS
            of the effort of the drive, shape (n,); without the time in which a joint is simulated at a stop, which
            carries what the drive pushes.
        all_efforts: the same of all joints together.
    """

    horizons: dict[float, Array]
    tracking: Array
    rigid: Array
    efforts: Array
    all_efforts: float

    @property
    def shares(self) -> Array:
        """Errors of the whole motion as a share of the tracking error, shape (n,)."""
        return np.asarray(self.horizons[np.inf] / np.maximum(self.tracking, np.finfo(float).tiny))

    def rms(self, horizon: float) -> float:
        """RMS of the position errors over all joints [rad or m]."""
        return float(np.sqrt(np.mean(self.horizons[horizon] ** 2)))

    @property
    def share(self) -> float:
        """Errors of the whole motion of all joints as a share of their tracking error."""
        return float(np.linalg.norm(self.horizons[np.inf]) / np.linalg.norm(self.tracking))


def validate(model: RobotModel, actuators: ActuatorModel, motions: Sequence[CommandedMotion]) -> RolloutErrors:
    """Simulate motions under their position commands.

    Args:
        model: robot model.
        actuators: actuators of its joints.
        motions: motions of its joints.

    Raises:
        InputError: a simulation diverges.
    """
    limbs = split_into_limbs(model)
    whole = _mean([_simulate(limbs, actuators, motion) for motion in motions])
    horizons = {
        horizon: whole
        if np.isinf(horizon)
        else _mean([_simulate(limbs, actuators, part) for motion in motions for part in motion.windows(horizon)])
        for horizon in HORIZONS_S
    }
    values = actuators.values
    values[: DELAY + 1] = 0.0
    rigid = ActuatorModel.from_values(actuators.joint_names, values)
    tracking = _mean([(motion.q - motion.reference) ** 2 for motion in motions])
    missed, commanded = _compare_efforts(limbs, actuators, motions)
    return RolloutErrors(
        horizons,
        tracking,
        _mean([_simulate(limbs, rigid, motion) for motion in motions]),
        np.sqrt(missed / np.maximum(commanded, np.finfo(float).tiny)),
        float(np.sqrt(missed.sum() / max(commanded.sum(), np.finfo(float).tiny))),
    )


def simulate(
    limbs: Sequence[Limb], actuators: ActuatorModel, motion: CommandedMotion, longest: float = LONGEST_STEP_S
) -> tuple[Array, Mask]:
    """Simulate all limbs under the commands of a motion, from its own beginning.

    Args:
        limbs: the limbs.
        actuators: actuators of all joints.
        motion: motion of all joints.
        longest: longest step [s].

    Returns:
        Positions [rad or m], and whether joints are at a stop, shape (N, n) each.

    Raises:
        InputError: the simulation diverges.
    """
    simulated, stopped = np.empty_like(motion.q), np.zeros(motion.q.shape, dtype=bool)
    for limb in limbs:
        columns = [motion.joint_names.index(name) for name in limb.joint_names]
        part, own = motion.joints(limb.joint_names), actuators.select(limb.joint_names)
        initial = InitialState.from_simulation(limb, own, part)
        simulated[:, columns], rollout = initial.simulate(limb, own, part, longest)
        stopped[:, columns] = rollout.stopped
    return simulated, stopped


def _simulate(limbs: Sequence[Limb], actuators: ActuatorModel, motion: CommandedMotion) -> Array:
    """Square errors of the positions, shape (N, n)."""
    return np.asarray((motion.q - simulate(limbs, actuators, motion)[0]) ** 2)


def _mean(squares: Sequence[Array]) -> Array:
    return np.asarray(np.sqrt(np.concatenate(squares).mean(axis=0)))


def _compare_efforts(
    limbs: Sequence[Limb], actuators: ActuatorModel, motions: Sequence[CommandedMotion]
) -> tuple[Array, Array]:
    """Squares of the effort that the model misses, and of that of the drives, sums over time, shape (n,) each."""
    missed, commanded = np.zeros((2, len(actuators.joint_names)))
    for stretch in divide(limbs, motions, actuators.joint_names):
        own = actuators.select(stretch.limb.joint_names)
        rows, given, free = find_free_rows(stretch, own)
        _, taken = rows.effort(own)
        missed[stretch.joints] += np.sum((given - taken) ** 2, axis=1, where=free)
        commanded[stretch.joints] += np.sum(given**2, axis=1, where=free)
    return missed, commanded


def find_free_rows(stretch: LimbMotion, actuators: ActuatorModel) -> tuple[EffortRows, Array, Mask]:
    """Equations of the effort along a measured motion, and where no stop carries a part of it.

    Args:
        stretch: window of the motion of a limb.
        actuators: actuators of its joints.

    Returns:
        The equations, the effort of the drives [N m or N], and the mask of its free samples, shape (n, N) each.

    Raises:
        InputError: the simulation, which finds what is at a stop, diverges.
    """
    motion = stretch.motion.within(actuators.lower_reference, actuators.upper_reference)
    rows = EffortRows.from_motion(stretch.limb, motion, actuators.values)
    given, _ = rows.effort(actuators)
    if not np.isfinite([actuators.lower_stop, actuators.upper_stop]).any():
        return rows, given, np.ones(given.shape, dtype=bool)
    _, stopped = simulate([stretch.limb], actuators, motion, STEP_S)
    return rows, given, ~rows.sample(motion, stopped)
