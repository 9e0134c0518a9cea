# SPDX-License-Identifier: Apache-2.0
"""Goal 11: the figure that a design of excitation minimizes, and its gradient.

The peer is what everybody writes: a loop over Pinocchio, the base columns stacked, the condition number by singular
values. Ours is the information matrix, joint by joint, and its eigenvalues. A period needs few samples: sums over
equally spaced ones converge like those of any smooth periodic function.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, interleaved, one_thread, script

if __name__ == "__main__":
    one_thread()

from collections.abc import Callable

import arms
import numpy as np

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Motion, Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.excitation.design.information import Information
from robot_dyn_id.excitation.design.objectives import condition, d_optimal

ARM, SAMPLES, FEWER, REPEATS = "panda", 1000, 200, 41
EQUAL_SAMPLES, SUBSAMPLED, EQUAL, GRADIENT = 9.0, 25.0, 1e-6, 4.0


def measure() -> list[Goal]:
    """One period of five harmonics, 10 s at 100 Hz."""
    model, theirs = arms.model(ARM), arms.peer(ARM)
    regressor = Regressor(model)
    base = compute_base_parameters(regressor)
    motion = arms.motion(model, SAMPLES)
    few = motion.take(slice(None, None, SAMPLES // FEWER))
    states, n = arms.by_sample(motion), len(model.joint_names)
    rows, ours = np.zeros((SAMPLES, n, 10 * n)), Information(regressor, base, np.ones(n))

    def peer() -> float:
        arms.pinocchio_loop(theirs, states, rows)
        stack = rows.reshape(SAMPLES * n, -1)[:, base.independent]
        return float(np.linalg.cond(stack / np.linalg.norm(stack, axis=0)))

    contenders: dict[str, Callable[[], object]] = {
        "peer": peer,
        "ours": lambda: condition(ours.matrix(motion)),
        "few": lambda: condition(ours.matrix(few)),
    }
    ms = {name: 1e3 * value for name, value in interleaved(contenders, REPEATS).items()}
    reference = peer()
    title = f"excitation objective {ARM} ({len(base.names)} columns)"
    return [
        at_least(
            f"{title}: loop and SVD, {SAMPLES} samples each",
            ms["peer"] / ms["ours"],
            EQUAL_SAMPLES,
            ours_ms=ms["ours"],
            peer_ms=ms["peer"],
        ),
        at_least(
            f"{title}: loop and SVD, {FEWER} samples of ours",
            ms["peer"] / ms["few"],
            SUBSAMPLED,
            ours_ms=ms["few"],
            peer_ms=ms["peer"],
        ),
        *(
            at_most(
                f"{title}: difference of the condition number, {len(x)} samples",
                abs(np.exp(condition(ours.matrix(x)).value) / reference - 1.0),
                EQUAL,
            )
            for x in (motion, few)
        ),
        *_gradient(title, ours, motion),
        *_gradient(*_with_friction(), motion),
    ]


def _with_friction() -> tuple[str, Information]:
    robot = arms.model(ARM)
    regressor = Regressor(robot, place_terms_on_joints(robot, [Viscous(), Coulomb(0.03)]))
    base = compute_base_parameters(regressor)
    return f"excitation objective {ARM} with friction ({len(base.names)})", Information(regressor, base, arms.NOISE)


def _gradient(title: str, ours: Information, motion: Motion) -> list[Goal]:
    """Cost of the gradient relative to the objective, the default one."""
    gradient = d_optimal(ours.matrix(motion)).gradient()
    ms = {
        name: 1e3 * value
        for name, value in interleaved(
            {"value": lambda: d_optimal(ours.matrix(motion)), "gradient": lambda: ours.pull_back(motion, gradient)},
            REPEATS,
        ).items()
    }
    return [
        at_most(
            f"{title}: gradient over D-optimal objective, {len(motion)} samples",
            ms["gradient"] / ms["value"],
            GRADIENT,
            gradient_ms=ms["gradient"],
            value_ms=ms["value"],
        )
    ]


if __name__ == "__main__":
    script(measure)
