# SPDX-License-Identifier: Apache-2.0
"""Drives of a simulated robot that is commanded by positions, one command after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.rollout import LONGEST_STEP_S, Limb, split_into_limbs
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.kernels.actuators import KINDS, OFFSET, HeldCommands
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.plant import SMALLEST


class CommandedDrives:
    """Drives of one robot, with the commands that their delays reach back to and the states of presliding friction.

    The motion is that of the simulations of `identify_actuators`.

    Attributes:
        actuators: the actuators, n in number.
        limited: mask of the drives that were at their limit in the last step, shape (n,).
    """

    def __init__(self, actuators: ActuatorModel, limbs: Sequence[Limb], q: Array) -> None:
        """Drive a robot whose commands have been its positions.

        Args:
            actuators: actuators of the joints.
            limbs: its limbs, see `split_into_limbs`.
            q: positions [rad or m], shape (n,).
        """
        self.actuators, self._time = actuators, 0.0
        self._reach = float(actuators.delay.max(initial=0.0))
        self._use(limbs)
        self.restart(q)

    def _use(self, limbs: Sequence[Limb]) -> None:
        names = self.actuators.joint_names
        self._limbs = [
            (limb, [names.index(name) for name in limb.joint_names], self.actuators.select(limb.joint_names))
            for limb in limbs
        ]

    def use(self, model: RobotModel) -> None:
        """Drive other links from now on, as a payload is taken up or dropped.

        Args:
            model: the robot with the inertial parameters of its links.
        """
        self._use(split_into_limbs(model))

    def restart(self, q: Array) -> None:
        """Replace the commands before by positions [rad or m], shape (n,), and relax presliding friction."""
        self._at, self._commands = np.array([self._time - 1.0]), np.array(q, dtype=np.float64)[None]
        self._earlier: Array | None = None
        self._slip = np.zeros(len(q))
        self.limited: Mask = np.zeros(len(q), dtype=bool)

    def advance(self, q: Array, dq: Array, reference: Array, duration: float, external: Array | None = None) -> Array:
        """Advance a state under commanded positions, which are held.

        Args:
            q: positions [rad or m], shape (n,), changed in place.
            dq: velocities [rad/s or m/s], shape (n,), changed in place.
            reference: commanded positions [rad or m], shape (n,).
            duration: duration [s].
            external: torques of the environment on the joints [N m or N], shape (n,); None: none.

        Returns:
            Mean efforts of the drives [N m or N], shape (n,).

        Raises:
            InputError: the simulation has diverged; the state is that before.
        """
        t = np.array([self._time, self._time + duration])
        at, commands = np.append(self._at, self._time), np.vstack([self._commands, reference])
        count = max(1, int(np.ceil(duration / LONGEST_STEP_S - 1e-9)))
        earlier, after = dq if self._earlier is None else self._earlier, np.empty((5, len(q)))
        for limb, columns, actuators in self._limbs:
            own = actuators if external is None else _load(actuators, external[columns])
            held = HeldCommands(t, at, np.ascontiguousarray(commands[:, columns]))
            state = q[columns], dq[columns], earlier[columns], self._slip[columns]
            positions, rollout = limb.roll_out(own, held, count, state, limb.model.name)
            efforts = np.clip(rollout.efforts, -own.limit, own.limit).mean(axis=0)
            after[:, columns] = positions[-1], *rollout.last, rollout.slip, efforts
            self.limited[columns] = rollout.limited > 0.0
        q[:], dq[:], self._earlier, self._slip = after[:4]
        self._time += duration
        first = max(0, int(np.searchsorted(at, self._time - self._reach, side="right")) - 2)
        self._at, self._commands = at[first:], commands[first:]
        return np.asarray(after[4])


def _load(actuators: ActuatorModel, external: Array) -> ActuatorModel:
    """Actuators that torques of the environment help, which a smaller offset has the effect of."""
    values = actuators.values
    values[OFFSET] -= external
    return ActuatorModel.from_values(actuators.joint_names, values)


def warm_up() -> None:
    """Compile the kernels of drives with a minimal robot, so that later calls use the cached machine code."""
    model, rest = RobotModel.from_urdf(SMALLEST), np.zeros(1)
    values = np.zeros((len(KINDS), 1))
    CommandedDrives(ActuatorModel.from_values(model.joint_names, values), split_into_limbs(model), rest).advance(
        rest, np.zeros(1), rest, LONGEST_STEP_S
    )
