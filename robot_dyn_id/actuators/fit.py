# SPDX-License-Identifier: Apache-2.0
"""Output-error fit of actuators: positions that are simulated under position commands against measured ones.

Gauss-Newton with the derivatives of the simulation. Each window of a recording is simulated as a whole from an initial
state that is estimated too (multiple shooting without the condition that windows join). Joints are weighted by the
errors that remain; the only bounds are those of physics. The steps of these simulations are long: what shorter ones
change is subtracted from the measured positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robot_dyn_id.actuators.equations import RIDGE, NormalEquations, eliminate_initial
from robot_dyn_id.actuators.layout import ParameterLayout
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.motion import LONGEST_WINDOW_S, CommandedMotion
from robot_dyn_id.actuators.rollout import Limb, Rollout
from robot_dyn_id.actuators.spread import EstimateSpread
from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.cores import map_in_order
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators.non_negative import solve_bounded

MAX_STEPS = 40
"""Largest number of Gauss-Newton steps; 5 to 10 are usual."""

CONVERGED = 1e-5
"""Relative decrease of the mean square errors that ends the iteration."""

SMALL_STEP = 0.1
"""Step of all parameters that ends it too, as a share of their standard errors: the data do not determine more."""

DAMPINGS = (0.0, 1e-2, 1.0)
"""Additions to the diagonal of the normal matrix, relative to it, that are tried until a step reduces the errors."""

SHARES = (1.0, 0.3, 0.1, 0.03)
"""Shares of each step that are tried: joints that begin to slip elsewhere are not in the derivatives."""

STEP_S = 2.5e-3
"""Longest step of the simulations that are fitted [s]."""

FINER = 4
"""Steps of the simulation that gives the errors of these steps, for each of them."""

START_SAMPLES = 7
"""Number of samples from which the initial velocity of a window is computed first, by a parabola."""

START_S = 0.25
"""Time from which the initial state of a simulation with known actuators is estimated [s]."""

START_STEPS = 4
"""Most Gauss-Newton steps for the initial state."""


@dataclass(frozen=True)
class InitialState:
    """State at the beginning of a window.

    Attributes:
        q: positions [rad or m], shape (n,).
        v: velocities [rad/s or m/s], shape (n,).
        slip: states of presliding friction in [-1, 1], shape (n,).
    """

    q: Array
    v: Array
    slip: Array

    @classmethod
    def from_motion(cls, motion: CommandedMotion) -> InitialState:
        """Position and velocity of a parabola through the first samples of a motion."""
        count = min(START_SAMPLES, len(motion.t))
        slope = np.polyfit(motion.t[:count] - motion.t[0], motion.q[:count], min(2, count - 1))[-2]
        return cls(motion.q[0].copy(), slope, np.zeros_like(slope))

    @classmethod
    def from_simulation(cls, limb: Limb, actuators: ActuatorModel, motion: CommandedMotion) -> InitialState:
        """The state from which a simulation fits the first `START_S` of a motion best.

        Args:
            limb: the links.
            actuators: actuators of its joints.
            motion: motion of its joints.
        """
        samples = max(START_SAMPLES, int(np.searchsorted(motion.t, motion.t[0] + START_S)))
        first = motion.part(0, min(samples, len(motion.t)))
        state, none = cls.from_motion(first), np.empty(0, dtype=np.int64)
        positions, rollout = state.simulate(limb, actuators, first)
        error = first.q - positions
        for _ in range(START_STEPS):
            rows = rollout.differentiate(none).reshape(error.size, -1)
            normal = rows.T @ rows
            ridge = RIDGE * np.diag(normal).max() * np.eye(len(normal))
            moved = state.moved(np.linalg.solve(normal + ridge, rows.T @ error.reshape(-1)))
            positions, rollout = moved.simulate(limb, actuators, first)
            if not np.sum((first.q - positions) ** 2) < np.sum(error**2):
                break
            state, error = moved, first.q - positions
        return state

    def moved(self, change: Array) -> InitialState:
        """The state after a change of positions, velocities, and states of presliding, shape (2 n,) or (3 n,)."""
        n = len(self.q)
        slip = np.clip(self.slip + change[2 * n :], -1.0, 1.0) if len(change) > 2 * n else self.slip
        return InitialState(self.q + change[:n], self.v + change[n : 2 * n], slip)

    def simulate(
        self, limb: Limb, actuators: ActuatorModel, motion: CommandedMotion, longest: float = STEP_S
    ) -> tuple[Array, Rollout]:
        """Simulate a motion that begins with this state; see `Limb.simulate`."""
        return limb.simulate(actuators, motion, self.q, self.v, self.slip, longest)


@dataclass(frozen=True)
class LimbMotion:
    """A window of the motion of one limb.

    Attributes:
        limb: the links.
        joints: numbers of its joints among all, shape (n,).
        motion: the window.
        recording: number of the recording.
    """

    limb: Limb
    joints: Integers
    motion: CommandedMotion
    recording: int


@dataclass(frozen=True)
class ActuatorFit:
    """Fitted actuators.

    Attributes:
        actuators: the actuators.
        layout: parameters.
        errors: RMS of the position errors of the joints [rad or m], shape (n,).
        initial: initial states of the stretches.
        equations: Gauss-Newton equations of the result; errors of joints are weighted by the inverse of their squares.
        steps: number of Gauss-Newton steps.
    """

    actuators: ActuatorModel
    layout: ParameterLayout
    errors: Array
    initial: Sequence[InitialState] = field(repr=False)
    equations: NormalEquations = field(repr=False)
    steps: int

    @property
    def parameters(self) -> Array:
        """Values of the parameters, shape (p,)."""
        return self.layout.read(self.actuators.values)

    def without(self, kind: int, joints: Mask) -> ActuatorFit:
        """The same without parameters of a kind of some joints, whose values have no effect, mask of shape (n,)."""
        layout = self.layout.without(kind, joints)
        left = layout.index >= 0
        parameters = np.zeros(layout.count, dtype=np.int64)
        parameters[layout.index[left]] = self.layout.index[left]
        return replace(self, layout=layout, equations=self.equations.select(parameters))


def divide(
    limbs: Sequence[Limb],
    motions: Sequence[CommandedMotion],
    joints: Sequence[str],
    length: float = LONGEST_WINDOW_S,
) -> list[LimbMotion]:
    """Windows of the motions of all limbs; motions with the same source are of the same recording.

    Args:
        limbs: the limbs.
        motions: motions of the joints.
        joints: names of all joints.
        length: longest window [s].
    """
    sources = list(dict.fromkeys(motion.source for motion in motions))
    numbers = {name: number for number, name in enumerate(joints)}
    return [
        LimbMotion(
            limb,
            np.array([numbers[name] for name in limb.joint_names]),
            window.joints(limb.joint_names),
            sources.index(motion.source),
        )
        for motion in motions
        for window in motion.windows(length)
        for limb in limbs
    ]


def add_step_errors(
    stretches: Sequence[LimbMotion], actuators: ActuatorModel, initial: Sequence[InitialState]
) -> list[LimbMotion]:
    """Windows with the errors of simulations with long steps, of the second order in the step, in their positions.

    Fitted to these, such simulations have the parameters that exact ones have.

    Args:
        stretches: windows of motions.
        actuators: actuators that are close to the result.
        initial: initial states of the simulations.

    Raises:
        InputError: a simulation diverges.
    """

    def add(number: int) -> Array:
        stretch, state = stretches[number], initial[number]
        own = actuators.select(stretch.limb.joint_names)
        coarse, fine = (state.simulate(stretch.limb, own, stretch.motion, STEP_S / finer)[0] for finer in (1, FINER))
        return stretch.motion.q + (coarse - fine) / (1.0 - FINER**-2)

    with closing(map_in_order(add, range(len(stretches)))) as results:
        return [
            replace(stretch, motion=replace(stretch.motion, q=q)) for stretch, q in zip(stretches, results, strict=True)
        ]


def fit_actuators(
    stretches: Sequence[LimbMotion],
    start: ActuatorModel,
    layout: ParameterLayout,
    block: float,
    initial: Sequence[InitialState] | None = None,
    max_steps: int = MAX_STEPS,
) -> ActuatorFit:
    """Fit actuators.

    Args:
        stretches: windows of motions.
        start: actuators to start from.
        layout: parameters.
        block: length of the blocks of the normal equations [s].
        initial: initial states to start from; None: those measured.
        max_steps: largest number of Gauss-Newton steps; 0: the equations of the start.

    Raises:
        InputError: the simulation diverges from the start.
    """
    task = _Task(stretches, start.joint_names, layout, block)
    values = start.values
    initial = [InitialState.from_motion(one.motion) for one in stretches] if initial is None else initial
    squares = task.compare(values, initial)
    steps = 0
    while True:
        equations = task.differentiate(values, initial, 1.0 / squares)
        if steps == max_steps or _has_converged(equations, layout.read(values), layout.bounded):
            break
        found = _search(task, equations, values, initial, squares)
        if found is None:
            break
        steps += 1
        gain = -float(np.log(found[2] / squares).mean())
        values, initial, squares = found
        if gain < CONVERGED:
            equations = task.differentiate(values, initial, 1.0 / squares)
            break
    actuators = ActuatorModel.from_values(start.joint_names, values)
    return ActuatorFit(actuators, layout, np.sqrt(squares), initial, equations, steps)


def correct_steps(
    measured: Sequence[LimbMotion], fit: ActuatorFit, passes: int, block: float
) -> tuple[Sequence[LimbMotion], ActuatorFit]:
    """Windows with the errors of the time steps, and the fit to them, after one or more passes.

    Args:
        measured: windows of motions.
        fit: fit to start from.
        passes: number of passes.
        block: length of the blocks of the normal equations [s].

    Raises:
        InputError: a simulation diverges.
    """
    stretches = measured
    for _ in range(passes):
        stretches = add_step_errors(measured, fit.actuators, fit.initial)
        fit = fit_actuators(stretches, fit.actuators, fit.layout, block, fit.initial)
    return stretches, fit


def compute_errors(stretches: Sequence[LimbMotion], actuators: ActuatorModel, fit: ActuatorFit) -> Array:
    """RMS of the position errors of other actuators with the initial states of a fit [rad or m], shape (n,).

    Raises:
        InputError: a simulation diverges.
    """
    task = _Task(stretches, actuators.joint_names, fit.layout, np.inf)
    return np.sqrt(task.compare(actuators.values, fit.initial))


def weigh_equations(stretches: Sequence[LimbMotion], fit: ActuatorFit, block: float, weights: Array) -> NormalEquations:
    """Equations of a fit with other weights of the joints, shape (n,), which make fits comparable."""
    task = _Task(stretches, fit.actuators.joint_names, fit.layout, block)
    return task.differentiate(fit.actuators.values, fit.initial, weights)


def _has_converged(equations: NormalEquations, now: Array, bounded: Mask) -> bool:
    """Whether the next step is small against the standard errors that it leads to."""
    if len(equations.matrices) < 2:
        return False
    step = solve_step(equations, now, bounded)
    after = replace(equations, scores=equations.scores - equations.matrices @ step)
    deviations = np.sqrt(np.diag(EstimateSpread.from_equations(after).covariance))
    return bool(np.all(np.abs(step) <= SMALL_STEP * deviations))


def _search(
    task: _Task, equations: NormalEquations, values: Array, initial: Sequence[InitialState], squares: Array
) -> tuple[Array, list[InitialState], Array] | None:
    """Values, initial states and mean square errors after the first step that reduces them; None if none does."""
    layout = task.layout
    now = layout.read(values)
    for damping in DAMPINGS:
        step = solve_step(equations, now, layout.bounded, damping)
        changes = task.back(equations, step)
        for share in SHARES:
            after = now + share * step
            candidate = layout.write(values, np.where(layout.bounded, np.maximum(after, 0.0), after))
            try:
                moved, errors = task.move(candidate, initial, [share * change for change in changes], 1.0 / squares)
            except InputError:
                continue
            if np.log(errors / squares).sum() < 0.0:
                return candidate, moved, errors
    return None


def solve_step(equations: NormalEquations, now: Array, bounded: Mask, damping: float = 0.0) -> Array:
    """Gauss-Newton step of the parameters within their bounds, shape (p,).

    Args:
        equations: equations at the present parameters.
        now: the present parameters, shape (p,).
        bounded: parameters that are not negative, shape (p,).
        damping: addition to the diagonal of the normal matrix, relative to it.
    """
    normal = equations.matrix
    normal = normal + np.diag(damping * np.diag(normal))
    return np.asarray(solve_bounded(normal, equations.gradient + normal @ now, bounded) - now)


@dataclass(frozen=True)
class _Task:
    """Simulation of all stretches, on all cores.

    Attributes:
        stretches: the stretches.
        joint_names: names of all joints.
        layout: parameters.
        block: length of the blocks [s].
    """

    stretches: Sequence[LimbMotion]
    joint_names: tuple[str, ...]
    layout: ParameterLayout
    block: float

    def compare(self, values: Array, initial: Sequence[InitialState]) -> Array:
        """Mean square errors of all joints, shape (n,).

        Raises:
            InputError: a simulation has diverged.
        """
        return self._average(self._map(lambda number: self._sum_squares(number, values, initial[number])))

    def move(
        self, values: Array, initial: Sequence[InitialState], changes: Sequence[Array], weights: Array
    ) -> tuple[list[InitialState], Array]:
        """Initial states after a change, each only where it reduces the errors, and mean square errors of all joints.

        A state that is hardly determined, such as the velocity of a joint that sticks, changes by more than the
        derivatives hold for; it must not prevent the step of all others.

        Args:
            values: values of the actuators, shape (14, n).
            initial: initial states.
            changes: their changes, see `InitialState.moved`.
            weights: weights of the joints, shape (n,).

        Raises:
            InputError: a simulation has diverged.
        """

        def move_one(number: int) -> tuple[InitialState, Array]:
            own = weights[self.stretches[number].joints]
            kept = self._sum_squares(number, values, initial[number])
            moved = initial[number].moved(changes[number])
            try:
                found = self._sum_squares(number, values, moved)
            except InputError:
                return initial[number], kept
            return (moved, found) if own @ found < own @ kept else (initial[number], kept)

        states, squares = zip(*self._map(move_one), strict=True)
        return list(states), self._average(squares)

    def _map(self, function: Callable[[int], Any]) -> list[Any]:
        """Results of a function of the number of a stretch."""
        with closing(map_in_order(function, range(len(self.stretches)))) as results:
            return list(results)

    def _sum_squares(self, number: int, values: Array, state: InitialState) -> Array:
        """Sums of the square errors of the joints of a stretch."""
        stretch = self.stretches[number]
        actuators = self._actuators(stretch, values)
        positions, _ = state.simulate(stretch.limb, actuators, stretch.motion)
        return np.asarray(np.sum((stretch.motion.q - positions) ** 2, axis=0))

    def _average(self, sums: Sequence[Array]) -> Array:
        """Mean square errors of all joints from the sums of the stretches."""
        squares, counts = np.zeros(len(self.joint_names)), np.zeros(len(self.joint_names))
        for stretch, found in zip(self.stretches, sums, strict=True):
            squares[stretch.joints] += found
            counts[stretch.joints] += len(stretch.motion.t)
        return np.maximum(squares / counts, np.finfo(float).tiny)

    def differentiate(self, values: Array, initial: Sequence[InitialState], weights: Array) -> NormalEquations:
        """Gauss-Newton equations.

        Args:
            values: values of the actuators, shape (14, n).
            initial: initial states.
            weights: weights of the joints, shape (n,).
        """

        def differentiate_one(number: int) -> tuple[tuple[Array, ...], Array, Array, Array, Array]:
            stretch, state = self.stretches[number], initial[number]
            actuators = self._actuators(stretch, values)
            positions, rollout = state.simulate(stretch.limb, actuators, stretch.motion)
            columns = np.flatnonzero(self.layout.index[:, stretch.joints] >= 0)
            slopes = rollout.differentiate(columns)
            error = stretch.motion.q - positions
            blocks = cut_into_blocks(stretch.motion, self.block)
            found = eliminate_initial(slopes, len(columns), error, weights[stretch.joints], blocks)
            largest, load = np.abs(rollout.efforts).max(axis=0), np.abs(rollout.steps.load)
            return found, rollout.limited, rollout.ended, largest, np.array([load.min(axis=0), load.max(axis=0)])

        p, n = self.layout.count, len(self.joint_names)
        matrices, scores, squares, initials, shares = [], [], [], [], []
        numbers: dict[tuple[int, str, float, int], int] = {}
        recordings: list[int] = []
        limited, ended, lengths, largest = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((len(self.stretches), n))
        loads = np.full((len(self.stretches), 2, n), np.nan)
        with closing(map_in_order(differentiate_one, range(len(self.stretches)))) as results:
            for number, (stretch, result) in enumerate(zip(self.stretches, results, strict=True)):
                (matrix, score, square, start, share), at_limit, at_end, effort, load = result
                largest[number, stretch.joints] = effort
                loads[number][:, stretch.joints] = load
                index = self.layout.index[:, stretch.joints]
                places = index[index >= 0]
                limited[stretch.joints] += at_limit * len(stretch.motion.t)
                ended[stretch.joints] += at_end * len(stretch.motion.t)
                lengths[stretch.joints] += len(stretch.motion.t)
                spread = np.zeros((len(start), p))
                np.add.at(spread.T, places, share.T)
                initials.append(start)
                shares.append(spread)
                for block, (one, other, rest) in enumerate(zip(matrix, score, square.tolist(), strict=True)):
                    key = (stretch.recording, stretch.motion.source, float(stretch.motion.t[0]), block)
                    if key not in numbers:  # blocks of all limbs at the same time are one
                        numbers[key] = len(numbers)
                        recordings.append(stretch.recording)
                        matrices.append(np.zeros((p, p)))
                        scores.append(np.zeros(p))
                        squares.append(0.0)
                    np.add.at(matrices[numbers[key]], (places[:, None], places), one)
                    np.add.at(scores[numbers[key]], places, other)
                    squares[numbers[key]] += rest
        return NormalEquations(
            *(np.array(matrices), np.array(scores), np.array(squares), np.array(recordings)),
            tuple(initials),
            tuple(shares),
            limited / lengths,
            ended / lengths,
            largest,
            np.array([np.nanmin(loads[:, 0], axis=0), np.nanmax(loads[:, 1], axis=0)]),
        )

    def back(self, equations: NormalEquations, step: Array) -> list[Array]:
        """Changes of the initial states with a step of the parameters, see `InitialState.moved`."""
        pairs = zip(equations.initial, equations.shares, strict=True)
        return [initial - share @ step for initial, share in pairs]

    def _actuators(self, stretch: LimbMotion, values: Array) -> ActuatorModel:
        return ActuatorModel.from_values(stretch.limb.joint_names, values[:, stretch.joints])


def cut_into_blocks(motion: CommandedMotion, length: float) -> Integers:
    """First samples of blocks of about a length [s]; at least one."""
    count = max(1, round((motion.t[-1] - motion.t[0]) / length))
    return np.linspace(0, len(motion.t), count + 1).astype(np.int64)[:-1]
