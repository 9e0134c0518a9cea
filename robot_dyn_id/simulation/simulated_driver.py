# SPDX-License-Identifier: Apache-2.0
"""A simulated robot as its driver shows it: drive units, sensors, forces of the environment, and late commands."""

from __future__ import annotations

import math
import time

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.kinematics import link_placements
from robot_dyn_id.simulation.base_sensor import BaseSensor
from robot_dyn_id.simulation.drives import Drives
from robot_dyn_id.simulation.simulated_robot import SensorStream, SimulatedRobot

PAUSE_TIMEOUT_S = 10.0
"""Maximum duration of a pause of simulated time for the next effort command, by the computer's clock [s]."""


class SimulatedDriver:
    """Driver of a simulated robot.

    Attributes:
        robot: the robot.
    """

    def __init__(
        self,
        robot: SimulatedRobot,
        drives: Drives,
        sensors: SensorStream,
        wait: float = math.inf,
        base: BaseSensor | None = None,
    ) -> None:
        """Begin without a command.

        Args:
            robot: the robot.
            drives: its drives.
            sensors: its sensors.
            wait: age of an effort command at which simulated time pauses [s]; inf: never.
            base: 6-axis sensor under its base; None: it has none.
        """
        self.robot, self._drives, self._sensors, self._wait, self._base = robot, drives, sensors, wait, base
        self._placements = link_placements(robot.plant.dynamics.model)
        self._commanded = -math.inf  # by the computer's clock [s]

    def tick(self) -> tuple[Array, Array, Array]:
        """Advance the robot by one period; see `SimulatedRobot.tick`."""
        if self._base is None:
            return self.robot.tick()
        external = self.robot.external_wrench
        state = self.robot.tick()
        self._base.follow(external)
        return state

    def measure_wrench(self) -> Array | None:
        """Measured force and moment under the base at the latest state [N, N m], shape (6,); None without a sensor."""
        return None if self._base is None else self._base.measure()

    def measure(self, state: tuple[Array, Array, Array]) -> Array:
        """Measured positions, velocities and efforts of a state, in the units of the drives, shape (3, n)."""
        if not self._drives.direct:
            q, dq, torque = state
            q, effort = self._drives.measured(q, torque, self.robot.weight)
            state = q, dq, effort
        return self._sensors.measure(*state)

    def command(self, efforts: Array) -> None:
        """Command efforts in the units of the drives, shape (n,).

        Raises:
            InputError: another number of efforts, or one that is not finite.
        """
        fits = efforts.size == len(self._drives.gains)
        self.robot.command_effort(self._drives.torque(efforts) if fits else efforts)
        self._commanded = time.monotonic()

    def apply_wrench(self, link: str, wrench: Array, duration: float) -> None:
        """Apply a wrench of the environment to a link.

        Args:
            link: name of the link.
            wrench: force and moment at its origin and along its axes [N, N m], shape (6,).
            duration: time for which it acts [s].

        Raises:
            InputError: an unknown link, or a wrench that is not finite.
        """
        if link not in self._placements:
            raise InputError(f"no link is called {link or 'empty'}; the links are {', '.join(self._placements)}")
        self.robot.apply_wrench(self._placements[link], wrench, duration)

    @property
    def waits(self) -> bool:
        """Whether simulated time pauses until the next effort command."""
        if not self._wait < self.robot.command_age < math.inf:
            return False
        return time.monotonic() - self._commanded < PAUSE_TIMEOUT_S
