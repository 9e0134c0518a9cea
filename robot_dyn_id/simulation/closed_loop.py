# SPDX-License-Identifier: Apache-2.0
"""Closed-loop simulation of a recorded motion under the controller of the real robot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.cache import Cache
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import ConvergenceError, UsageError
from robot_dyn_id.kernels.following import Loop, LoopState, follow
from robot_dyn_id.kernels.stepping import State
from robot_dyn_id.model.joint_values import JointValues, make_joint_array
from robot_dyn_id.signals.windows import FilteredWindow
from robot_dyn_id.simulation.plant import STEP, CompiledDynamics

LAWS = ("pd", "computed_torque")

OF_JOINTS = ("proportional", "derivative", "resolution")
"""Values of a controller that each joint has."""


@dataclass(frozen=True)
class ControllerModel:
    """Model of the controller of a robot for its simulation.

    `pd`: torque = proportional (q_d - q) + derivative (dq_d - dq). `computed_torque`: the acceleration
    ddq_d + proportional (q_d - q) + derivative (dq_d - dq) through the inverse dynamics of the simulated robot,
    including the friction of the desired velocity.

    Attributes:
        law: one of `LAWS`; empty: no controller is specified.
        proportional: gains of positions [N m/rad or N/m; 1/s^2 with computed torque].
        derivative: gains of velocities [N m s/rad or N s/m; 1/s].
        rate: rate of the controller [Hz], rounded to a multiple of the rate of the recording.
        resolution: step of the encoders that it reads [rad or m]; 0: it reads the positions themselves.
        delay: age of what it reads [s].
        velocity_cutoff: velocities are differences of its readings behind a first-order low-pass of this frequency
            [Hz]; 0: they are measured without error.
    """

    law: str = ""
    proportional: JointValues = ()
    derivative: JointValues = ()
    rate: float = 1000.0
    resolution: JointValues = ()
    delay: float = 0.0
    velocity_cutoff: float = 0.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: unknown law, law or gains missing, or a value out of range.
        """
        if self.law and self.law not in LAWS:
            raise UsageError(f"controller: law {self.law!r} is not known; use one of {', '.join(LAWS)}")
        if bool(self.law) != bool(self.proportional):
            raise UsageError("controller: give both the law and the proportional gains")
        if not (math.isfinite(self.rate) and self.rate > 0.0):
            raise UsageError(f"controller: rate must be positive, not {self.rate:g}")
        for name in OF_JOINTS:
            for joint, value in getattr(self, name):
                if not 0.0 <= value < math.inf:
                    raise UsageError(f"controller: {name} of {joint} must be 0 or more, not {value:g}")
        for name in ("delay", "velocity_cutoff"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise UsageError(f"controller: {name} must be 0 or more, not {getattr(self, name):g}")

    def check_joints(self, joints: Sequence[str]) -> None:
        """Check that gains and resolutions are given for joints of a robot only.

        Args:
            joints: names of the robot's joints.

        Raises:
            UsageError: a joint that the robot does not have.
        """
        for name in OF_JOINTS:
            make_joint_array(getattr(self, name), joints, f"controller: {name}")


def quantize(q: Array, resolution: Array | float) -> Array:
    """Quantize positions by the resolution of encoders [rad or m]; 0: not quantized. Shapes broadcast."""
    step = np.asarray(resolution)
    return np.where(step > 0.0, step * np.round(q / np.where(step > 0.0, step, 1.0)), q)


UNKNOWN_CONTROLLER = ControllerModel()
"""No controller is specified."""


@dataclass
class _State:
    """State of robot and controller between two samples of the reference."""

    segment: int
    number: int  # index of the next sample on the grid
    loop: LoopState

    @staticmethod
    def at(piece: FilteredWindow, first: int, compiled: CompiledDynamics, delay: int) -> _State:
        """State of the recorded motion at a sample of a window."""
        q, dq = piece.motion.q[:, first], piece.motion.dq[:, first]
        loop = LoopState(
            State(q.copy(), dq.copy(), np.zeros(compiled.coordinates), compiled.slip()),
            compiled.slip(),
            np.repeat(np.stack([q, dq])[None], delay + 1, axis=0),
            q.copy(),
            dq.copy(),
            np.zeros(len(q)),
            dq.copy(),
            (piece.reference or piece.motion).q[:, first].copy(),
        )
        return _State(piece.segment, int(piece.number[first]), loop)


@dataclass(frozen=True)
class Replay:
    """Filtered windows of a recording as those of a simulated robot that follows the same reference.

    Iterating starts a pass. The reference is the recorded one, low-passed, where the recording has one, else the
    low-passed motion. Motion and torque are as simulated, not low-passed. The simulated windows are kept for later
    passes, if they are not too large.

    Attributes:
        controller: controller of the robot.
        dynamics: dynamics of the robot.
        windows: the recorded windows; iterating again must start a new pass.
    """

    controller: ControllerModel
    dynamics: Dynamics
    windows: Iterable[FilteredWindow]
    _cache: Cache[FilteredWindow] = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __iter__(self) -> Iterator[FilteredWindow]:
        """Start a pass.

        Raises:
            UsageError: no controller is specified, or gains of joints that the robot does not have.
            InputError: a term that cannot be simulated, or a mass matrix that is not positive definite.
            ConvergenceError: the simulated robot does not follow.
        """
        return self._cache.stream("windows", self._simulate, lambda window: 4 * window.motion.q.nbytes)

    def _simulate(self) -> Iterator[FilteredWindow]:
        compiled = CompiledDynamics(self.dynamics)
        model = compiled.model
        state: _State | None = None
        tail = np.empty((4, len(model.joint_names), 0))
        for piece in self.windows:
            first, stop = piece.settled.start, piece.settled.stop - 1
            rate = 1.0 / float(piece.t[1] - piece.t[0])
            if state is None or state.segment != piece.segment:
                q = piece.motion.q[:, first]
                self.dynamics.forward_dynamics(q, np.zeros_like(q), np.zeros_like(q))  # names a joint without inertia
                ticks = max(1, round(self.controller.rate / rate))
                state = _State.at(piece, first, compiled, round(self.controller.delay * rate * ticks))
                tail = tail[:, :, :0]
            begin = state.number - int(piece.number[0])
            aim = piece.reference or piece.motion
            wanted = [np.ascontiguousarray(x[:, begin : stop + 1]) for x in (aim.q, aim.dq, aim.ddq)]
            new = self._follow(compiled, wanted, state, rate, f"{float(piece.t[begin]):.2f} s")
            tail = np.concatenate([tail, new], axis=2)[:, :, first - stop :]
            shown, warmth = slice(first, stop), piece.motion.temperature
            self._require_following(piece, tail[0], shown)
            yield replace(
                piece,
                t=piece.t[shown],
                motion=Motion(tail[0], tail[1], tail[2], None if warmth is None else warmth[:, shown]),
                tau=tail[3],
                number=piece.number[shown],
                own=piece.own[shown],
                valid=piece.valid[:, shown],
                reference=None,
                settled=slice(0, stop - first),
            )

    def _follow(
        self, compiled: CompiledDynamics, wanted: Sequence[Array], state: _State, rate: float, where: str
    ) -> Array:
        """Simulate up to the last sample of a reference, shape (4, n, K)."""
        names = compiled.model.joint_names
        controller = self.controller
        ticks = max(1, round(controller.rate / rate))
        period = 1.0 / (rate * ticks)
        count = wanted[0].shape[1] - 1
        share = 1.0 - math.exp(-2.0 * math.pi * controller.velocity_cutoff * period)
        out = np.empty((4, len(names), count))
        proportional, derivative, resolution = (
            make_joint_array(getattr(controller, name), names, f"controller: {name}") for name in OF_JOINTS
        )
        steps = math.ceil(period / STEP - 1e-9)
        loop = Loop(
            controller.law == "computed_torque", proportional, derivative, resolution, share, period, ticks, steps
        )
        q, dq, ddq = wanted
        done = follow(compiled.robot, loop, q, dq, ddq, state.loop, out)
        if done < count:
            raise ConvergenceError(
                f"{compiled.model.name}: the simulation broke down {done / rate:.2f} s behind {where}, near q = "
                f"{np.round(state.loop.robot.q, 3).tolist()}: its mass matrix is not positive definite there, or the "
                "gains of the controller are too high for its rate"
            )
        state.number += count
        return out

    def _require_following(self, piece: FilteredWindow, q: Array, shown: slice) -> None:
        """Check that the simulation follows the recorded motion."""
        recorded = piece.motion.q[:, shown]
        missed = np.sqrt(np.mean((q - recorded) ** 2, axis=1))
        size = np.sqrt(np.mean((recorded - recorded.mean(axis=1, keepdims=True)) ** 2))
        if not np.sqrt(np.mean(missed**2)) <= size:
            joint = int(np.argmax(missed))
            raise ConvergenceError(
                f"joint {self.dynamics.regressor.model.joint_names[joint]} of the simulated robot does not follow: "
                f"it is {missed[joint]:.3g} (rad or m) from the recorded motion at {piece.t[shown.start]:.2f} s; check "
                f"the gains of the controller, and give the recording its reference"
            )
