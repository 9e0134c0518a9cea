# SPDX-License-Identifier: Apache-2.0
"""Errors of an arm with flexible joints identified step by step, over draws of sensor noise; and the plans."""

from __future__ import annotations

import time

import numpy as np
from measuring import Goal, at_most, script

from robot_dyn_id.arrays import Array
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.flexible import (
    CUTOFF,
    FlexibleJoint,
    FlexibleModel,
    FlexiblePlant,
    Noise,
    compute_agreements,
    identify_flexible,
    make_equations,
    make_pseudo_plan,
)
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.flexible2r.arm import ORDERS, add_noise, list_true_values, make_arm, make_experiments
from robot_dyn_id.papers.flexible2r.reproduction import NAMES, SIDE_BY_SIDE, TARGETS
from robot_dyn_id.signals.filtering import LowPass

DRAWS = 10
WIDTHS = (0.02, 0.002)
"""Velocity within which friction goes through zero [rad/s]."""

OURS = ("improved order", "at once")

CHOSEN = {"fv": 2.0, "fc": 1.5, "off": 0.3, "Jm": 1e-4, "fvm": 5e-4, "fcm": 0.03, "K": 1e4, "preload": 0.1}
"""Parameters of the seven axes by symbol [SI], times 0.5 to 1.5; links are the URDF's."""


def measure() -> list[Goal]:
    print(make_pseudo_plan(make_arm()), "\n")
    return [*seven_axes(), *(goal for width in WIDTHS for goal in of_width(width))]


def draw_truth(model: FlexibleModel) -> Array:
    """Parameters of an arm: the links of its URDF, all others at random around `CHOSEN`, shape (p,)."""
    robot = model.model
    links = np.zeros(len(model.regressor.names))
    links[: len(robot.inertial_parameters)] = robot.inertial_parameters
    symbols = [name.rstrip("0123456789") for name in model.names]
    truth = np.random.default_rng(0).uniform(0.5, 1.5, len(symbols)) * [CHOSEN.get(symbol, 0.0) for symbol in symbols]
    inertial = [number for number, symbol in enumerate(symbols) if symbol not in (*CHOSEN, "offm")]
    truth[inertial] = (model.base.mapping @ links)[inertial]
    for joint in model.joints:  # the motors' torques have no offset of their own
        truth[model.columns(("offm",), joint.name)] = -truth[model.columns(("off",), joint.name)] / joint.ratio
    return truth


def seven_axes() -> list[Goal]:
    """Seven flexible joints from 40 poses and 20 s of motion at 500 Hz; another motion is held out."""
    robot, ratio = RobotModel.from_file(find_shared_file("urdf/arm7.urdf")), 100.0
    model = FlexibleModel(robot, tuple(FlexibleJoint(name, ratio) for name in robot.joint_names))
    truth = draw_truth(model)
    plant, rng = FlexiblePlant(model, truth), np.random.default_rng(1)
    motions = [plant.along(f"seed {seed}", draw_random_fourier(robot, seed, 20.0, 8), 20.0, 500.0) for seed in (1, 5)]
    clean = [plant.poses("poses", rng.uniform(-1.2, 1.2, (7, 40))), motions[0]]
    noise, scores, began = Noise(q=1e-5, motor_q=3e-5, tau=0.1, motor_tau=1e-3), [], time.process_time()
    for draw in range(DRAWS):
        found = identify_flexible(model, [noise.added(one, 2 * draw + k) for k, one in enumerate(clean)])
        scores.append((found.solution.values - truth) / found.solution.standard_deviations)
    seconds = (time.process_time() - began) / DRAWS
    held_out = compute_agreements(
        model, make_equations(model, noise.added(motions[1], 99), LowPass(CUTOFF)), found.solution.values
    )
    print(
        f"seven axes: {len(model.names)} parameters, {len(found.unidentified)} groups not identified, {seconds:.1f} s"
    )
    return [
        at_most("seven axes: rms of error / sigma", float(np.sqrt(np.mean(np.square(scores)))), 1.3),
        at_most("seven axes: worst held-out NRMSE", max(one.nrmse for one in held_out), 0.05),
    ]


def of_width(width: float) -> list[Goal]:
    """Errors of every order with one width of the friction's smoothing."""
    model = make_arm(width)
    truth, clean, goals = list_true_values(model), make_experiments(model), []
    real = np.flatnonzero(truth)
    recorded = [add_noise(clean, seed) for seed in range(DRAWS)]
    rms: dict[str, dict[str, float]] = {}
    for order, find in ORDERS.items():
        exact = find(model, clean).values
        worst = 100 * np.max(np.abs(exact[real] / truth[real] - 1.0))
        found = [find(model, draw) for draw in recorded]
        squared = np.sqrt(np.mean([(one.values - truth) ** 2 for one in found], axis=0))
        rms[order] = {model.names[i]: 100 * squared[i] / abs(truth[i]) for i in real}
        print(
            f"{width:g} rad/s, {order}: worst without noise {worst:.3g} %; rms errors [%] "
            + ", ".join(f"{name} {rms[order][own]:.3g}" for name, own in NAMES.items())
        )
        if order not in OURS:
            continue
        scores = [(one.values - truth) / one.standard_deviations for one in found]
        what = f"{width:g} rad/s, {order}"
        goals += [
            at_most(f"{what}: worst parameter without noise [%]", worst, TARGETS["no noise"]),
            *(
                at_most(f"{what}: {name}, rms error [%]", rms[order][own], TARGETS[name])
                for name, own in NAMES.items()
                if name in TARGETS
            ),
            *(
                at_most(
                    f"{what}: {name} against the paper's order [%]",
                    rms[order][NAMES[name]],
                    rms["paper's order"][NAMES[name]],
                )
                for name in SIDE_BY_SIDE
            ),
            at_most(f"{what}: rms of error / sigma", float(np.sqrt(np.mean(np.square(scores)))), 1.3),
        ]
        print(f"{found[-1].plan}\n")
    return goals


if __name__ == "__main__":
    script(measure)
