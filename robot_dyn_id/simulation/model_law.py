# SPDX-License-Identifier: Apache-2.0
"""Law of a controller whose model may change: the inertia of the URDF first, then identified models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.compensation import DriverCompensation, check_compensations
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import StateGuard
from robot_dyn_id.model.joint_values import make_joint_array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import COMPENSATED_PARTS, UNKNOWN, ParameterSet
from robot_dyn_id.simulation.controllers import (
    ComputedTorque,
    Gains,
    ScaledNominalInertia,
    find_rated_efforts,
    make_usable_dynamics,
    refuse_unsafe,
)
from robot_dyn_id.simulation.effort_control import CommandedEfforts, EffortControl, LawEffort, slew_rates
from robot_dyn_id.simulation.trajectory_tracking import STOPPING, TrajectoryTracker
from robot_dyn_id.uses import ANSWERS

GRAVITY, COMPUTED_TORQUE = "gravity_compensation", "computed_torque"
"""Laws: compensation of gravity, or computed torque along trajectories."""


class EffortTiming(NamedTuple):
    """Times of the control of efforts.

    Attributes:
        timeout: age at which joint states are stale [s].
        start_time: blend time from zero effort to that of a law, and ramp time of a release [s].
        blend_time: blend time from one model to the next [s].
    """

    timeout: float
    start_time: float
    blend_time: float


class ModelLaw:
    """Gravity compensation or computed torque as the law of an `EffortControl`; see `EffortLaw`.

    Attributes:
        dynamics: identified dynamics in use; None before the first model.
        start: inertia of the URDF that is used until there are dynamics; None without one.
        tracker: setpoints of computed torque; None until a trusted joint state begins them.
        control: control of the efforts by this law; None before there is something that can be moved.
    """

    def __init__(
        self,
        law: str,
        gains: Gains,
        effort_limit: Sequence[float],
        robot_compensates: Sequence[str],
        timing: EffortTiming,
    ) -> None:
        """Begin without a model.

        Args:
            law: `GRAVITY` or `COMPUTED_TORQUE`.
            gains: feedback gains.
            effort_limit: rated efforts given by the user, see `find_rated_efforts`.
            robot_compensates: torques that the driver adds to a command, as the user states.
            timing: times of the control of the efforts.

        Raises:
            UsageError: robot_compensates contradicts itself.
        """
        check_compensations(UNKNOWN, robot_compensates)
        self._follows = law == COMPUTED_TORQUE
        self._name, self._gains = law, gains
        self._effort_limit, self._compensates, self._timing = effort_limit, robot_compensates, timing
        self.drop()

    def drop(self) -> None:
        """Begin again without a model."""
        self.dynamics: Dynamics | None = None
        self.start: ScaledNominalInertia | None = None
        self.tracker: TrajectoryTracker | None = None
        self.control: EffortControl | None = None
        self._law: ComputedTorque | None = None
        self._compensation: DriverCompensation | None = None

    @property
    def model(self) -> RobotModel | None:
        """The robot that can be moved; None if none can."""
        if self.dynamics is not None:
            return self.dynamics.regressor.model
        return None if self.start is None else self.start.prior.regressor.model

    # --- models

    def make_dynamics(self, parameters: ParameterSet, urdf: str, joint_names: Collection[str]) -> Dynamics:
        """Dynamics of a parameter set for the law; see `make_usable_dynamics`."""
        return make_usable_dynamics(parameters, urdf, joint_names, needs_mass_matrix=self._follows)

    def check(self, model: RobotModel) -> None:
        """Check that a model has the joints of the one in use, and that gains and limits fit them.

        Raises:
            InputError: other joints.
            UsageError: another number of gains or limits.
        """
        used = self.model
        if used is not None and used.joint_names != model.joint_names:
            raise InputError(
                f"its joints are {', '.join(model.joint_names)}, those of the model in use "
                f"{', '.join(used.joint_names)}: restart the node to use it"
            )
        self._gains.per_joint(model.joint_names)
        make_joint_array(self._effort_limit, model.joint_names, "parameter effort_limit")

    def use(self, parameters: ParameterSet, dynamics: Dynamics) -> None:
        """Go over to an identified model of checked joints.

        Raises:
            RobotDynIdError: it may not move this robot; the model in use stays.
        """
        compensation = DriverCompensation.from_parameters(parameters, dynamics, self._compensates)
        rated = find_rated_efforts(dynamics.regressor.model, self._effort_limit)
        position = None if self.tracker is None or self.control is None else self.control.guard.position
        refuse_unsafe(parameters, dynamics, rated, q=position)
        if self.dynamics is None:  # an arm without a model hangs away from its setpoint: it is held where it is
            self.tracker = None
        self.dynamics, self._compensation = dynamics, compensation
        self._law = ComputedTorque(dynamics, self._gains, compensation)
        self._begin(dynamics.regressor.model, rated)

    def use_urdf(self, model: RobotModel, sag: float) -> None:
        """Move by the inertia of the URDF until there is a model.

        Args:
            model: robot model.
            sag: largest deviation from a setpoint, see `ScaledNominalInertia` [rad or m].

        Raises:
            RobotDynIdError: a URDF or gains that are not suitable.
        """
        rated = find_rated_efforts(model, self._effort_limit)
        start = ScaledNominalInertia.from_robot(sag, model, self._gains)
        parts = tuple(part for part in self._compensates if part in COMPENSATED_PARTS)
        self.start, self._compensation = start, DriverCompensation(start.prior, parts)
        self._begin(model, rated)

    def _begin(self, model: RobotModel, rated: Array) -> None:
        """Begin the control of the efforts, or blend to those of another model."""
        if self.control is not None:
            self.control.efforts.change()
            return
        timeout, start_time, blend_time = self._timing
        feedback = self._gains.bandwidths(model.joint_names) if self._follows else 0.0
        efforts = CommandedEfforts(rated, start_time, blend_time, slew_rates(model, rated, feedback))
        self.control = EffortControl(self, StateGuard(model, timeout), efforts, start_time, STOPPING)

    def limited_uses(self, parameters: ParameterSet) -> list[str]:
        """Limits of the use of a parameter set by the law, one line each."""
        return [
            f"{fit.use}: {fit.answer}" + (f" ({', '.join(fit.joints)})" if fit.joints else "")
            for fit in parameters.judgment.fit_for
            if fit.use == self._name and fit.answer != ANSWERS[0]
        ]

    # --- efforts

    def effort(self, guard: StateGuard, state: Sequence[Array] | None, time: float) -> LawEffort | None:
        """Effort at a trusted joint state, positions and velocities; None at another one."""
        if state is None:
            return None
        assert self._compensation is not None
        q, dq = state
        if self.tracker is None:
            self.tracker = TrajectoryTracker(q)
            if self._law is not None:
                self._law.restart()
        setpoint = self.tracker.setpoint(time)
        if self.dynamics is None or self._law is None:
            assert self.start is not None
            return LawEffort(self.start.effort(setpoint, q, dq, self._gains), self._compensation.torque(q, dq))
        with np.errstate(all="ignore"):  # what is not finite is not commanded
            if self._follows:
                return self._law.effort(setpoint, q, dq, guard.step)
            wanted = self.dynamics.gravity(q) - self._compensation.torque(q, np.zeros_like(q))
            return LawEffort(np.asarray(wanted), self._compensation.torque(q, dq))

    def idle_effort(self, guard: StateGuard) -> LawEffort:
        """No effort, and what the driver adds at rest at the latest trusted positions."""
        assert self._compensation is not None and guard.position is not None
        zero = np.zeros_like(guard.position)
        return LawEffort(zero, self._compensation.torque(guard.position, zero))

    def check_follows(self) -> RobotModel:
        """The robot that follows trajectories.

        Raises:
            InputError: none does.
        """
        if self.model is None or self.tracker is None or not self._follows:
            raise InputError(f"needs a model, joint states, and the law {COMPUTED_TORQUE}")
        return self.model

    def follow(self, points: TrajectoryPoints | None, start: float, now: float) -> None:
        """Follow a trajectory, or hold.

        Args:
            points: the trajectory; None: hold.
            start: its start time [s]; 0: now.
            now: present time [s].

        Raises:
            InputError: nothing can be followed, or the trajectory cannot.
        """
        model = self.check_follows()
        assert self.tracker is not None
        if points is None:
            self.tracker.hold(now)
            return
        points.check_limits(model.joint_names, model.limits.lower, model.limits.upper, model.limits.velocity)
        self.tracker.follow(points, start or now, now)

    def brake(self, time: float) -> None:
        """Hold from a time on [s]."""
        if self.tracker is not None:
            self.tracker.hold(time)

    def restart(self) -> None:
        """Begin the setpoints at the next trusted positions."""
        self.tracker = None
