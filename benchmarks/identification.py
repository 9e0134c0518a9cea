# SPDX-License-Identifier: Apache-2.0
"""Goals 3 and 6: from samples to parameters, how fast and how exactly, compared with textbook least squares.

Speed: samples of an arm with friction to its base parameters, streamed by QR and by Gram matrices, against a Python
loop over Pinocchio whose rows `numpy.linalg.lstsq` solves, and against FIGAROH from end to end.

Accuracy: torques without noise along motions that shrink, so that the problem gets worse and worse conditioned. The
error of one motion is rounding and luck: that of either contender scatters by more than a factor of ten. So geometric
means over several motions are compared, and the worst ratio of a single one is given too.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, interleaved, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import arms
import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.problem import LinearProblem, UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Layout, Motion, Regressor
from robot_dyn_id.dynamics.terms import Coulomb
from robot_dyn_id.estimators import Estimate, OrdinaryLeastSquares
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.identification.validation.verdict import judge_training

ARM, SAMPLES = "panda", 100_000
LOOP, FIGAROH, EQUAL = {"qr": 15.0, "gram": 30.0}, {"qr": 100.0, "gram": 200.0}, 1e-9

EXACT_SAMPLES, SEEDS = 20_000, range(10)
AMPLITUDES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.005, 0.003)
WORSE, UP_TO = {"qr": 4.0, "gram": 10.0}, {"qr": 3e6, "gram": 1e5}


def measure() -> list[Goal]:
    """Both goals."""
    return [*_speed(), *_accuracy()]


@dataclass(frozen=True)
class Line:
    """Base parameters of an arm with friction, their true values, and the problem of samples of a motion.

    Attributes:
        regressor, layout: the columns.
        motion, torque: samples, and the torque of the true parameters.
        truth: base parameters.
    """

    regressor: Regressor
    layout: Layout
    motion: Motion
    torque: Array
    truth: Array

    @staticmethod
    def of(regressor: Regressor, independent: Array, motion: Motion, seed: int = 0) -> Line:
        """Random true parameters."""
        full = np.zeros(len(regressor.names))
        full[independent] = np.random.default_rng(seed).normal(size=len(independent))
        torque = regressor.torque(motion, full)
        return Line(regressor, Layout.from_columns(regressor, independent), motion, torque, full[independent])

    @property
    def problem(self) -> LinearProblem:
        """As a stream of tiles."""
        return UnfilteredProblem.from_samples(self.regressor, self.layout.columns, self.motion, self.torque)

    def off(self, values: Array) -> float:
        """Relative error of parameters."""
        return float(np.linalg.norm(values - self.truth) / np.linalg.norm(self.truth))


def _speed() -> list[Goal]:
    regressor = arms.with_friction(ARM)
    independent = compute_base_parameters(regressor).independent
    line = Line.of(regressor, independent, arms.motion(regressor.model, SAMPLES))
    found: dict[str, Array] = {}
    ones = np.ones(len(regressor.model.joint_names))

    def streamed(method: str) -> Callable[[], object]:
        return lambda: found.update({method: Factors.from_problem(line.problem, method=method).solve(ones).values})

    def estimated(method: str) -> Callable[[], object]:
        return lambda: found.update(
            {f"{method}, estimator": OrdinaryLeastSquares(method=method).fit(line.problem).values}
        )

    contenders = {"lstsq": _loop_and_lstsq(line, independent, found)}
    contenders |= {method: streamed(method) for method in LOOP}
    contenders |= {f"{method}, estimator": estimated(method) for method in LOOP}
    figaroh = _figaroh(line)
    if not isinstance(figaroh, str):
        contenders["FIGAROH"] = figaroh
    seconds = interleaved(contenders)
    us = {name: 1e6 * value / SAMPLES for name, value in seconds.items()}
    title = f"samples to parameters {ARM} p={len(independent)} N={SAMPLES:.0e}".replace("e+0", "e")
    goals = []
    for method, goal in LOOP.items():
        details = {"ours_us": us[method], "with_uncertainty_us": us[f"{method}, estimator"]}
        goals.append(
            at_least(
                f"{title}, {method}: Pinocchio loop and lstsq",
                us["lstsq"] / us[method],
                goal,
                peer_us=us["lstsq"],
                **details,
            )
        )
        name = f"{title}, {method}: FIGAROH end to end"
        goals.append(
            skipped(name, FIGAROH[method], figaroh)
            if isinstance(figaroh, str)
            else at_least(name, us["FIGAROH"] / us[method], FIGAROH[method], peer_us=us["FIGAROH"], **details)
        )
    return [*goals, at_most(f"{title}: largest error", max(line.off(values) for values in found.values()), EQUAL)]


def _loop_and_lstsq(line: Line, independent: Array, found: dict[str, Array]) -> Callable[[], object]:
    """The peer that everybody writes; what it writes to is allocated before."""
    regressor, motion = line.regressor, line.motion
    theirs, states, torque = arms.peer(ARM), arms.by_sample(motion), line.torque.T.ravel()
    n, bodies = len(regressor.model.joint_names), len(regressor.model.body_names)
    rows, stack = np.zeros((len(motion), n, 10 * bodies)), np.zeros((len(motion), n, len(independent)))
    inertial = independent[independent < 10 * bodies]
    friction = [
        (number, regressor.term_columns[column - 10 * bodies])
        for number, column in enumerate(independent)
        if column >= 10 * bodies
    ]
    width = Coulomb().smoothing_width
    curves = {
        "fv": lambda dq: dq,
        "fc": lambda dq: np.tanh(dq / width),
        "off": np.ones_like,
    }

    def run() -> None:
        arms.pinocchio_loop(theirs, states, rows)
        stack[:, :, : len(inertial)] = rows[:, :, inertial]
        for number, column in friction:
            joint = int(np.flatnonzero(column.coordinate.weights)[0])
            stack[:, joint, number] = curves[column.term.symbols[column.index]](states[1][:, joint])
        found["lstsq"] = np.linalg.lstsq(stack.reshape(-1, len(independent)), torque, rcond=None)[0]

    return run


def _figaroh(line: Line) -> Callable[[], object] | str:
    """FIGAROH from samples to base parameters, or why there is none; its Coulomb friction is a hard sign."""
    try:
        from figaroh.tools.qrdecomposition import double_QR
        from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate
    except ImportError as error:
        return f"FIGAROH does not import: {error}"
    n, states, torque = len(line.regressor.model.joint_names), arms.by_sample(line.motion), line.torque.ravel()
    robot = SimpleNamespace(model=arms.peer(ARM))  # all that it needs; its own Robot wants the meshes
    robot.data = robot.model.createData()
    wanted = {"is_joint_torques": True, "has_friction": True, "has_joint_offset": True, "act_idxv": list(range(n))}
    standard = dict.fromkeys((f"p{number}" for number in range(13 * n)), 0.0)

    def run() -> None:
        whole = build_regressor_basic(robot, *states, wanted)
        gone, left = get_index_eliminate(whole, standard, 1e-6)
        double_QR(torque, build_regressor_reduced(whole, gone), left, standard)

    return run


def _accuracy() -> list[Goal]:
    regressor = arms.with_friction(ARM)
    independent = compute_base_parameters(regressor).independent
    goals = []
    for amplitude in AMPLITUDES:
        lines = [Line.of(regressor, independent, _shrunk(regressor, amplitude, seed), seed) for seed in SEEDS]
        goals += _compared(amplitude, lines, independent)
    return goals


def _shrunk(regressor: Regressor, amplitude: float, seed: int) -> Motion:
    whole = arms.motion(regressor.model, EXACT_SAMPLES, seed)
    return Motion(amplitude * whole.q, amplitude * whole.dq, amplitude * whole.ddq)


def _compared(amplitude: float, lines: list[Line], independent: Array) -> list[Goal]:
    """Both modes against lstsq on the same matrix: where they must be as good, or say that they are not."""
    conditions, theirs = (
        np.array(values) for values in zip(*(_lstsq(line, independent) for line in lines), strict=True)
    )
    goals = []
    for method, limit in UP_TO.items():
        estimates = [OrdinaryLeastSquares(method=method).fit(line.problem) for line in lines]
        ours = np.array([line.off(estimate.values) for line, estimate in zip(lines, estimates, strict=True)])
        warned = np.array([bool(_codes(estimate)) for estimate in estimates])
        for inside in (True, False):
            some = (conditions <= limit) == inside
            if not some.any():
                continue
            error, peer = _typical(ours[some]), _typical(theirs[some])
            title = f"accuracy {ARM}, {method}, scaled cond {_typical(conditions[some]):.1e}"
            details: dict[str, Any] = {"motions": int(some.sum()), "amplitude": amplitude, "ours_error": error}
            details |= {"lstsq_error": peer, "worst_motion": float((ours / theirs)[some].max())}
            goals.append(
                at_most(f"{title}: error against lstsq's", error / peer, WORSE[method], **details)
                if inside
                else at_least(f"{title}: warned of", warned[some].mean(), 1.0, times_lstsq=error / peer, **details)
            )
    return goals


def _lstsq(line: Line, independent: Array) -> tuple[float, float]:
    """Condition number of the unit-norm columns, and the error of `numpy.linalg.lstsq`."""
    stack = line.regressor.dense(line.motion)[independent].transpose(2, 1, 0).reshape(-1, len(independent))
    values = np.linalg.lstsq(stack, line.torque.T.ravel(), rcond=None)[0]
    return float(np.linalg.cond(stack / np.linalg.norm(stack, axis=0))), line.off(values)


def _typical(errors: Array) -> float:
    return float(np.exp(np.mean(np.log(errors))))


def _codes(estimate: Estimate) -> tuple[str, ...]:
    """Codes of the findings about an estimate: its own, and those of its condition number."""
    findings = (*estimate.findings, *judge_training(estimate.condition_number, 0.0, Thresholds()))
    return (*(one.code for one in findings), *(["not_excited"] if estimate.unexcited else []))


if __name__ == "__main__":
    script(measure)
