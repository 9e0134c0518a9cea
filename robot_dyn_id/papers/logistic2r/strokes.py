# SPDX-License-Identifier: Apache-2.0
"""Strokes of a 2-joint arm, one joint moving and the other held by its brake, and their equations (Qian et al.).

Parameters theta are the arm's six base parameters (mx1, my1, Izz1, mx2, my2, Izz2), joint 2's mass in those of link 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording, Recording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.stepwise import Equations, Group, StepwisePlan, plan_steps, solve_steps
from robot_dyn_id.excitation.forms.logistic import Logistic
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.signals.strokes import compute_rates_at_angle
from robot_dyn_id.simulation.controllers import Gains, ScaledNominalInertia
from robot_dyn_id.simulation.sensors import Sensors
from robot_dyn_id.workflow.iteration import SimulatedTrials, Trial, scale_inertia_for_motion

GRAVITY = (0.0, 0.0, -9.8)
"""Not printed; the paper's torques fit it [m/s^2]."""

JOINTS = ("joint2", "joint1")
"""In the order of their turns."""

SAMPLE = 0.01
"""Between two samples that are identified from [s]."""

PAPER = np.array([2, 0, 1, 5, 3, 4])
"""The paper's order of them: Izz1, mx1, my1, Izz2, mx2, my2."""

GROUPS = (Group("link 1", np.arange(3)), Group("link 2", np.arange(3, 6)))


def _times(count: int) -> Array:
    """Sample time [s]."""
    return np.arange(count, dtype=np.float64) * SAMPLE


@dataclass(frozen=True)
class Stroke:
    """Motion of one joint there and back.

    Attributes:
        motion: motion of that joint alone.
        half: half the window around the middle of every stroke whose samples count [s].
        gains: feedback gains.
    """

    motion: Logistic
    half: float
    gains: Gains

    def samples(self, t: Array) -> tuple[Array, Array]:
        """Mask of the times within the windows, shape (N,), and the commanded directions there, shape (M,)."""
        kept = np.zeros(len(t), dtype=bool)
        for middle in self.motion.middles:
            kept |= (t >= middle - self.half - 1e-9) & (t < middle + self.half - 1e-9)
        return kept, self.motion.clock(t[kept])[1]

    def rates(self, q: Array, direction: Array) -> tuple[Array, Array]:
        """Velocity and acceleration at the measured angles of those samples, each of shape (M,)."""
        span = self.motion.span
        return compute_rates_at_angle(q, self.motion.center - span / 2.0, span, self.motion.steepness, direction)


@dataclass(frozen=True)
class ControlModel:
    """Parameters that may move the arm.

    Attributes:
        values: theta, shape (6,).
        held: whether they are held near the URDF, as those by least squares may not move the arm.
    """

    values: Array
    held: bool


class LockableArm:
    """Arm, and its dynamics while one of its joints is locked at 0."""

    def __init__(self) -> None:
        """Read the URDF."""
        self.model = model_of("logistic2r", GRAVITY)
        self.regressor = Regressor(self.model)
        self.base: BaseParameters = compute_base_parameters(self.regressor)
        self.held = {joint: self._held(joint) for joint in JOINTS}

    @cached_property
    def nominal(self) -> Array:
        """The parameters of the URDF, shape (6,)."""
        return self.base.mapping @ self.model.inertial_parameters

    def _held(self, joint: str) -> tuple[Regressor, BaseParameters, Array]:
        """Regressor and base parameters of one joint, and their map from theta, shape (3, 6).

        The torque of a joint is the same whether the other is locked or at rest; the map is fitted to this identity in
        random motions.
        """
        model = model_of("logistic2r", GRAVITY, {name: 0.0 for name in JOINTS if name != joint})
        regressor = Regressor(model)
        base, motion = compute_base_parameters(regressor), draw_random_motion(model, 30)
        own = regressor.dense(motion)[base.independent, 0].T
        return regressor, base, np.linalg.lstsq(own, self.rows(joint, motion.q[0], motion.dq[0], motion.ddq[0]))[0]

    def rows(self, joint: str, q: Array, dq: Array, ddq: Array) -> Array:
        """Torque of a moving joint over theta while the other one rests at 0, shape (N, 6); arguments (N,)."""
        number = self.model.joint_names.index(joint)
        motion = Motion(*np.zeros((3, 2, len(q))))
        motion.q[number], motion.dq[number], motion.ddq[number] = q, dq, ddq
        return np.asarray(self.regressor.dense(motion)[self.base.independent, number].T)

    def make_model(
        self, values: Array, covariance: Array, deviation: float, joints: Sequence[str | None]
    ) -> ControlModel:
        """Make a model that may move the arm from the result of least squares.

        Feedback through an inertia that is not positive drives a joint away. Where it is not, as the data do not
        determine it, theta is the most likely one by these data and a normal distribution about the URDF's parameters.

        Args:
            values: theta by least squares, shape (6,).
            covariance: its covariance, shape (6, 6).
            deviation: standard deviation of the true parameters from those of the URDF, relative.
            joints: joints that move alone, while the other is locked; None for both at once.

        Raises:
            InputError: no inertia is positive.
        """
        for held in (False, True):
            theta = self._held_near_urdf(values, covariance, deviation) if held else values
            if all(self._may_move(theta, joint) for joint in joints):
                return ControlModel(theta, held)
        raise InputError("the identified inertia is not positive")

    def _may_move(self, theta: Array, joint: str | None) -> bool:
        """Whether the inertia of a moving joint is positive, or that of both in any configuration."""
        second = np.linspace(-np.pi, np.pi, 37)
        q = np.zeros((1, 1)) if joint else np.column_stack([np.zeros_like(second), second])
        return bool(self.dynamics(theta, joint).is_positive_definite(q).all())

    def _held_near_urdf(self, values: Array, covariance: Array, deviation: float) -> Array:
        sizes = [[np.hypot(x, y)] * 2 + [abs(inertia)] for x, y, inertia in self.nominal.reshape(2, 3)]
        prior = np.diag((deviation * np.ravel(sizes)) ** 2)
        gain = np.linalg.solve(prior + covariance, prior).T
        return np.asarray(self.nominal + gain @ (values - self.nominal))

    def dynamics(self, theta: Array, joint: str | None = None) -> Dynamics:
        """Dynamics with these parameters: of one joint while the other is locked, or of both."""
        if joint is None:
            return Dynamics(self.regressor, self.base.independent, theta)
        regressor, base, lumped = self.held[joint]
        return Dynamics(regressor, base.independent, lumped @ theta)


@dataclass(frozen=True)
class Strokes:
    """Strokes of joint 2, then of joint 1, and the parameters that they identify.

    Attributes:
        arm: the arm.
        of: strokes by joint.
        deviation: largest relative deviation of the true parameters from those of the URDF, by which parameters that
            may not move the arm are held near them.
    """

    arm: LockableArm
    of: Mapping[str, Stroke]
    deviation: float

    def identified(self, recording: Recording) -> ControlModel:
        """Identify theta from a recording: link 2 first, then link 1; velocities and accelerations from the angles.

        Raises:
            InputError: a row that is not finite, theta is not identifiable from the strokes, or no inertia is positive.
        """
        equations = self.equations(recording)
        plan = plan_steps(GROUPS, [equations], 6)
        if plan.unidentifiable:
            raise InputError(f"{', '.join(plan.unidentifiable)}: not identifiable from the strokes")
        solution = solve_steps(plan, GROUPS, equations, 6)
        return self.arm.make_model(solution.values, solution.covariance, self.deviation, JOINTS)

    def plan(self) -> StepwisePlan:
        """Order of the steps, from the designed motion."""
        return plan_steps(GROUPS, [self.equations(self._designed())], 6)

    def equations(self, recording: Recording) -> list[Equations]:
        """Equations of each joint's turn."""
        names = self.arm.model.joint_names
        chunk = Chunk.join(list(recording.chunks(names)))
        if chunk.tau is None:
            raise InputError(f"{recording.source}: no efforts were recorded")
        found = []
        for joint in JOINTS:
            stroke, number = self.of[joint], names.index(joint)
            begin, stop = self.turn(joint)
            turn = (chunk.t >= begin - 1e-9) & (chunk.t < stop - 1e-9)
            t, q, tau = (x[turn] for x in (chunk.t - begin, chunk.q[:, number], chunk.tau[:, number]))
            kept, direction = stroke.samples(t)
            angle = q[kept]
            rows = self.arm.rows(joint, angle, *stroke.rates(angle, direction))
            found.append(Equations.from_rows(f"{joint} moves", "strokes", rows, tau[kept]))
        return found

    def turn(self, joint: str) -> tuple[float, float]:
        """Start and end of a joint's turn [s], whole samples."""
        lengths = [SAMPLE * round(self.of[name].motion.duration / SAMPLE) for name in JOINTS]
        place = JOINTS.index(joint)
        return sum(lengths[:place]), sum(lengths[: place + 1])

    def recording(self, parts: Mapping[str, tuple[Array, Array]]) -> ArrayRecording:
        """Join angles and torques of the turns into one recording; the joint held by its brake is not measured: 0."""
        q, tau = (np.zeros((sum(len(part[0]) for part in parts.values()), 2)) for _ in range(2))
        begin = 0
        for joint in JOINTS:
            angle, torque = parts[joint]
            own = slice(begin, begin + len(angle)), self.arm.model.joint_names.index(joint)
            q[own], tau[own], begin = angle, torque, begin + len(angle)
        return ArrayRecording("strokes", self.arm.model.joint_names, Chunk(_times(len(q)), q, None, tau))

    def _designed(self) -> ArrayRecording:
        """Designed motion with the torques of the URDF."""
        parts = {}
        for joint, stroke in self.of.items():
            t = _times(round(stroke.motion.duration / SAMPLE))
            q, dq, ddq = (x[0] for x in stroke.motion.evaluate(t)[:3])
            parts[joint] = q, self.arm.rows(joint, q, dq, ddq) @ self.arm.nominal
        return self.recording(parts)


@dataclass(frozen=True)
class StrokeTrials:
    """Trials for `iteration.iterate`: strokes of a simulated arm with the start inertia or the identified model.

    Attributes:
        strokes: designed strokes.
        theta: true parameters, shape (6,).
        droop: largest gravity sag of a joint at the start, as a fraction of its stroke.
        sensors: sensor errors of both joints.
        start_inertia: inertia of joint 2 at the start instead of that by the droop, and in the same ratio that of
            joint 1 [kg m^2]; 0: by the droop.
        rate: controller rate [Hz].
        seed: seed of the noise.
    """

    strokes: Strokes
    theta: Array
    droop: float
    sensors: Sensors
    start_inertia: float = 0.0
    rate: float = 1000.0
    seed: int = 0

    def start(self, joint: str) -> ScaledNominalInertia:
        """Scaled nominal inertia with which a joint is first moved."""
        by_droop = {name: self._start_by_droop(name) for name in JOINTS}
        if not self.start_inertia:
            return by_droop[joint]
        ratio = self.start_inertia / (by_droop["joint2"].scale * self._inertia("joint2"))
        return replace(by_droop[joint], scale=ratio * by_droop[joint].scale)

    def _inertia(self, joint: str) -> float:
        """Inertia of a joint by the URDF [kg m^2]."""
        return float(self.strokes.arm.dynamics(self.strokes.arm.nominal, joint).mass_matrix(np.zeros(1))[0, 0])

    def _start_by_droop(self, joint: str) -> ScaledNominalInertia:
        stroke, prior = self.strokes.of[joint], self.strokes.arm.dynamics(self.strokes.arm.nominal, joint)
        droop, margin = self.droop * float(stroke.motion.span[0]), 1.0 + self.strokes.deviation
        return scale_inertia_for_motion(stroke.motion, stroke.motion.duration, prior, stroke.gains, droop, margin)

    def trial(self, joint: str, known: Array | None, number: int = 1) -> Trial:
        """Simulate the turn of one joint; it is stopped where the joint is farther from its stroke than that is long.

        Raises:
            InputError: the turn was stopped.
        """
        arm, stroke = self.strokes.arm, self.strokes.of[joint]
        run = SimulatedTrials(
            arm.dynamics(self.theta, joint),
            stroke.motion,
            stroke.motion.duration,
            self.rate,
            self.sensors,
            stroke.gains,
            self.start(joint),
            limit_effort=False,
            max_deviation=float(stroke.motion.span[0]),
            seed=self.seed,
        )
        return run.follow(None if known is None else arm.dynamics(known, joint), number)

    def __call__(self, known: ControlModel | None, number: int = 1) -> Trial:
        """Simulate both turns; the error is that of both joints.

        Raises:
            InputError: a turn was stopped.
        """
        trials = {joint: self.trial(joint, None if known is None else known.values, number) for joint in JOINTS}
        every, parts = round(self.rate * SAMPLE), {}
        for joint, trial in trials.items():
            chunk = Chunk.join(list(trial.recording.chunks([joint])))
            assert chunk.tau is not None
            begin, stop = self.strokes.turn(joint)
            own = slice(0, every * round((stop - begin) / SAMPLE), every)
            parts[joint] = chunk.q[own, 0], chunk.tau[own, 0]
        size = [self.strokes.of[joint].motion.span[0] for joint in JOINTS]
        error = np.linalg.norm([s * trials[j].error for s, j in zip(size, JOINTS, strict=True)]) / np.linalg.norm(size)
        return Trial(self.strokes.recording(parts), float(error))

    def deviation(self, trial: Trial, joint: str) -> float:
        """Largest deviation of a joint from its stroke in a trial [rad]."""
        chunk = Chunk.join(list(trial.recording.chunks([joint])))
        begin, stop = self.strokes.turn(joint)
        own = slice(round(begin / SAMPLE), round(stop / SAMPLE))
        designed = self.strokes.of[joint].motion.evaluate(chunk.t[own] - begin)[0][0]
        return float(np.abs(chunk.q[own, 0] - designed).max())
