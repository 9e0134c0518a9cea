# SPDX-License-Identifier: Apache-2.0
"""Simulated arm of `flexible2r`: parameters, experiments, the paper's order of identification and ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.estimators.stepwise import (
    Equations,
    Observability,
    StepwiseSolution,
    make_prescribed_plan,
    solve_steps,
)
from robot_dyn_id.excitation.forms.polynomial import Polynomial
from robot_dyn_id.flexible import (
    Experiment,
    FlexibleJoint,
    FlexibleModel,
    FlexiblePlant,
    Noise,
    identify_flexible,
    make_pseudo_observations,
)
from robot_dyn_id.flexible.experiment import make_equations
from robot_dyn_id.flexible.identification import draw_random_states
from robot_dyn_id.flexible.rows import JointRows, list_rows_of
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.papers.inputs import model_of, read_settings_of
from robot_dyn_id.signals.filtering import LowPass

RATIO, PERIOD, RATE = 101.0, 5.0, 500.0
"""Gear ratio, period of the motion [s], sample rate of the recording [Hz]."""

START = np.deg2rad(30.0)
"""Start position of both joints [rad]."""

PEAK_SPEED = 3.8082
"""Peak speed of c t^4 (T - t)^4, over its amplitude divided by the period."""

WIDTH = 0.002
"""Velocity within which the friction of the simulated joints goes through zero [rad/s]; the paper has a hard sign."""

TRUTH = {
    **{"fv1": 6.0, "fv2": 4.0, "fc1": 5.0, "fc2": 3.0, "off1": 0.8, "off2": -0.6, "K1": 1.2e4, "K2": 0.8e4},
    **{"Jm1": 2e-4, "fvm1": 1e-3, "fcm1": 0.05, "Jm2": 1.5e-4, "fvm2": 8e-4, "fcm2": 0.04},
    **{"offm1": -0.8 / RATIO, "offm2": 0.6 / RATIO},  # the motors' torques have no offset of their own
}
"""Parameters other than those of the links (which are in the URDF): chosen here, since the paper prints none."""

NOISE = Noise(q=2e-5, motor_q=1e-4, tau=0.3, motor_tau=3e-3)
"""Noise of one sample."""

PERIODS = 10
"""Number of periods that are averaged."""

POSE_TORQUE = 0.03
"""Noise of a torque sensor's mean over a pose [N m]."""

LOW_PASS = LowPass(8.0)

MOTIONS = (("joint1",), ("joint2",), ("joint1", "joint2"))
"""Each joint alone, then both."""

BOTH = "joint1 and joint2"


def make_arm(width: float = WIDTH, torque_sensor: bool = True) -> FlexibleModel:
    """The arm with a smoothing width of its joints' friction [rad/s]."""
    model = model_of("flexible2r")
    joints = tuple(FlexibleJoint(name, RATIO, torque_sensor) for name in model.joint_names)
    return FlexibleModel(model, joints, width)


def list_true_values(model: FlexibleModel) -> Array:
    """True parameters of the arm, shape (p,); springs have no preload."""
    links = np.zeros(len(model.regressor.names))
    links[: len(model.model.inertial_parameters)] = model.model.inertial_parameters
    values = np.zeros(len(model.names))
    values[: len(model.base.names)] = model.base.mapping @ links
    for name, value in TRUTH.items():
        if name in model.names:
            values[model.names.index(name)] = value
    return values


def make_motion_of(moving: Sequence[str], period: float = PERIOD, share: float = 1.0) -> Polynomial:
    """Polynomials a + c t^4 (T - t)^4 of the joints that move, as far as their limits allow.

    Its amplitude A is the value at T / 2, where the acceleration has its peak, 32 A / T^2; the peak speed is
    3.808 A / T.

    Args:
        moving: joints that move.
        period: period T [s].
        share: amplitude as a share of the largest one within the limits.
    """
    limits, acceleration = model_of("flexible2r").limits, read_settings_of("flexible2r").acceleration
    coefficients = np.zeros((len(acceleration), 9))
    for joint, (name, limit) in enumerate(acceleration.items()):
        fastest = float(limits.velocity[joint]) * period / PEAK_SPEED
        amplitude = min(limit * period**2 / 32.0, fastest, float(limits.upper[joint]) - START)
        coefficients[joint, 4] = share * amplitude * 256.0 / math.comb(8, 4) if name in moving else 0.0
    return Polynomial(np.full(len(acceleration), START), coefficients, period)


def make_experiments(
    model: FlexibleModel, motions: Sequence[Sequence[str]] = MOTIONS, period: float = PERIOD, share: float = 1.0
) -> list[Experiment]:
    """25 poses over the whole range, then motions, without noise; arguments: see `make_motion_of`."""
    plant, limits = FlexiblePlant(model, list_true_values(model)), model.model.limits
    grid = np.meshgrid(*(np.linspace(*ends, 5) for ends in zip(limits.lower, limits.upper, strict=True)))
    moved = [
        plant.run(" and ".join(one), make_motion_of(one, period, share), period, RATE, tuple(one)) for one in motions
    ]
    return [plant.poses("static", np.reshape(grid, (2, -1))), *moved]


def thin_experiments(recorded: Sequence[Experiment], rate: float) -> list[Experiment]:
    """The same experiments with every k-th sample of the motions, so that their sample rate is `rate` [Hz]."""
    found = []
    for one in recorded:
        step = round(one.rate / rate) if one.rate else 1
        channels = [None if x is None else x[:, ::step] for x in (one.q, one.tau, one.motor_q, one.motor_tau)]
        q, tau, motor_q, motor_tau = channels
        assert q is not None and tau is not None
        found.append(replace(one, rate=one.rate / step, q=q, tau=tau, motor_q=motor_q, motor_tau=motor_tau))
    return found


def add_noise(clean: Sequence[Experiment], seed: int) -> list[Experiment]:
    """Add sensor noise: to poses, and to means over periods."""
    at_rest, root = replace(NOISE, tau=POSE_TORQUE), math.sqrt(PERIODS)
    moving = Noise(NOISE.q / root, NOISE.motor_q / root, NOISE.tau / root, NOISE.motor_tau / root)
    seeds = np.random.SeedSequence(seed).generate_state(len(clean))
    return [(moving if one.rate else at_rest).added(one, int(s)) for one, s in zip(clean, seeds, strict=True)]


# --- orders of identification ------------------------------------------------------------------------------------

ORDER = (
    (("friction of joint1",), ("joint1: odd part",)),
    (("friction of joint2",), ("joint2: odd part",)),
    (("gravity of joint2", "inertia of joint2", "offset of joint2"), ("joint2: link of joint2",)),
    (("gravity of joint1", "inertia of joint1", "offset of joint1"), (f"{BOTH}: link of joint1",)),
    *(((f"motor of joint{j}",), (f"{BOTH}: motor of joint{j}",)) for j in (1, 2)),
    *(((f"spring of joint{j}",), (f"{BOTH}: spring of joint{j}",)) for j in (1, 2)),
)
"""Order of the paper: friction from each link alone, link 2, both links, motors, springs."""


def identify_in_paper_order(model: FlexibleModel, recorded: Sequence[Experiment]) -> StepwiseSolution:
    """Identify as in the paper: angles and torques are low-passed, columns are computed from the angles."""
    return _ordered(model, recorded, _columns_of_filtered_angles)


def identify_in_paper_order_filtered(model: FlexibleModel, recorded: Sequence[Experiment]) -> StepwiseSolution:
    """Identify in the paper's order with columns filtered like the torques, which isolates the effect of the filter."""
    return _ordered(model, recorded, _filtered_columns)


def _ordered(
    model: FlexibleModel, recorded: Sequence[Experiment], rows: Callable[[FlexibleModel, Experiment], list[JointRows]]
) -> StepwiseSolution:
    """Identify in the paper's order; poses at rest are not used.

    The motion is the same forwards and backwards in time: in the odd part in time of a joint's torque, gravity, inertia
    and offset cancel, and only friction remains.
    """
    friction = np.isin(model.names, ("fv1", "fv2", "fc1", "fc2"))
    found = []
    for one in recorded:
        for row in rows(model, one) if one.rate else ():
            if row.joint in one.moving:
                name = f"{one.name}: {row.kind} of {row.joint}"
                found.append(Equations.from_rows(name, one.name, row.rows, row.target))
                if row.kind == "link" and len(one.moving) == 1:
                    odd = _odd(np.where(friction, row.rows, 0.0)), _odd(row.target)
                    found.append(Equations.from_rows(f"{one.name}: odd part", one.name, *odd))
    plan = make_prescribed_plan(model.groups, found, len(model.names), ORDER)
    return solve_steps(plan, model.groups, found, len(model.names))


def _columns_of_filtered_angles(model: FlexibleModel, recorded: Experiment) -> list[JointRows]:
    """Rows as in the paper."""
    motor_q, motor_tau = (
        None if values is None else recorded.low_passed(values, LOW_PASS)
        for values in (recorded.motor_q, recorded.motor_tau)
    )
    q, tau = (recorded.low_passed(values, LOW_PASS) for values in (recorded.q, recorded.tau))
    smooth = replace(recorded, q=q, tau=tau, motor_q=motor_q, motor_tau=motor_tau)
    return list(list_rows_of(model, smooth.states(LOW_PASS)))


def _filtered_columns(model: FlexibleModel, recorded: Experiment) -> list[JointRows]:
    """Columns of angles that are hardly filtered, then filtered together with the torques."""
    found = []
    for row in list_rows_of(model, recorded.states(LOW_PASS)):
        both = recorded.low_passed(np.column_stack([row.rows, row.target]).T, LOW_PASS).T
        found.append(replace(row, rows=both[:, :-1], target=both[:, -1]))
    return found


def _odd(values: Array) -> Array:
    """Odd part in time of a period, along the first axis."""
    return (values - np.roll(values[::-1], 1, axis=0)) / 2.0


def identify_improved(model: FlexibleModel, recorded: Sequence[Experiment]) -> StepwiseSolution:
    """Identify in the order given by rank and condition of the recorded data."""
    return identify_flexible(model, recorded, LOW_PASS).solution


def identify_by_raw_condition(model: FlexibleModel, recorded: Sequence[Experiment]) -> StepwiseSolution:
    """Identify in the order given by the paper's own criterion, rank and condition number of raw columns."""
    return identify_flexible(model, recorded, LOW_PASS, scaling="none").solution


def identify_at_once(model: FlexibleModel, recorded: Sequence[Experiment]) -> StepwiseSolution:
    """Identify in one step, weighted by residuals."""
    return identify_flexible(model, recorded, LOW_PASS, math.inf).solution


ORDERS: dict[str, Callable[[FlexibleModel, Sequence[Experiment]], StepwiseSolution]] = {
    "paper's order": identify_in_paper_order,
    "paper's order, filtered columns": identify_in_paper_order_filtered,
    "paper's criterion": identify_by_raw_condition,
    "improved order": identify_improved,
    "at once": identify_at_once,
}
"""Orders of identification by their names in the tables."""

# --- observability before identification ---


def compute_ranks(model: FlexibleModel, seeds: int = 3) -> dict[str, tuple[int, int]]:
    """Largest rank over seeds, and number of columns, of pseudo-observations at random states (section 4.2)."""
    link, gravity = np.arange(12), ["mx1", "my1", "mx2", "my2", "off1", "off2"]
    at_rest = np.array([model.names.index(name) for name in gravity])
    motors = np.concatenate([model.columns(("Jm", "fvm", "fcm"), joint.name) for joint in model.joints])
    joints, found = model.model.joint_names, {}

    def add(name: str, draws: Sequence[Array]) -> None:
        best = Observability.from_draws(draws)
        found[name] = (best.rank, best.columns)

    def drawn(moving: Sequence[str] | None, kind: str, columns: Integers) -> list[Array]:
        every = [[e for e in make_pseudo_observations(model, moving, s) if kind in e.name] for s in range(seeds)]
        return [np.concatenate([e.expand(len(model.names))[:, columns] for e in some]) for some in every]

    add("link side without offsets, friction included", drawn(joints, "link", link[:10]))
    add("link side with offsets", drawn(joints, "link", link))
    one_way = [_states(model, seed, joints) for seed in range(seeds)]
    one_way = [Motion(one.q, 0.5 + np.abs(one.dq), one.ddq) for one in one_way]
    add("link side with offsets, one direction of motion", [_columns(model, one)[:, link] for one in one_way])
    add("motors", drawn(joints, "motor", motors))
    add("[Yg, E] at rest, base parameters", drawn(None, "link", at_rest))
    poses = [_states(model, seed, None) for seed in range(seeds)]
    every = [model.regressor.dense(one).reshape(len(model.regressor.names), -1).T for one in poses]
    shown = np.any([np.abs(rows).max(axis=0) > 0.0 for rows in every], axis=0)
    add("[Yg, E] at rest, standard parameters", [rows[:, shown] for rows in every])
    for still, name in ((1, "joint 1"), (0, "joint 2")):
        held = [one.q.copy() for one in poses]
        for q in held:
            q[still] = START
        rest = [Motion(q, np.zeros_like(q), np.zeros_like(q)) for q in held]
        add(f"[Yg, E] at rest, {name} moves alone", [_columns(model, one)[:, at_rest] for one in rest])
    return found


def _states(model: FlexibleModel, seed: int, moving: Sequence[str] | None) -> Motion:
    return draw_random_states(model, moving, np.random.default_rng(seed), 40)


def _columns(model: FlexibleModel, motion: Motion) -> Array:
    """Base columns of the link side, shape (2 N, 12)."""
    dense = model.regressor.dense(motion)[model.base.independent]
    return np.asarray(dense.reshape(len(dense), -1).T)


def link_side(model: FlexibleModel) -> Observability:
    """Observability of the link side without offsets, on the motion of both joints at the paper's rate."""
    motion = Motion(*make_motion_of(model.model.joint_names).evaluate(np.arange(251) / 50.0)[:3])
    return Observability.from_rows(_columns(model, motion)[:, :10])


def compute_gravity_by_cross_products(model: FlexibleModel, q: Array, rotor_mass: float = 0.0) -> Array:
    """Gravity torques of the joints as in equations 4 and 5: weights and their arms about the joint axes.

    Args:
        model: the arm.
        q: poses [rad], shape (2, N).
        rotor_mass: mass of the rotor of joint 2, on its axis, in addition to those of the links [kg].

    Returns:
        Torques that hold the arm [N m], shape (2, N).
    """
    robot = model.model
    poses, gravity = Kinematics(robot).poses(q), np.array(robot.gravity)
    weights = []
    for body, inertia in enumerate(robot.inertial_parameters.reshape(-1, 10)):
        center = poses.position[:, body] + poses.rotation[:, body] @ (inertia[1:4] / inertia[0])
        weights.append((body, center, inertia[0]))
    weights.append((0, poses.position[:, 1], rotor_mass))  # the stator of joint 2 is fixed to link 1
    torques = np.zeros_like(q)
    for joint, torque in enumerate(torques):
        axis = poses.rotation[:, joint] @ robot.axis[joint]
        for body, center, mass in weights:
            if body >= joint:
                arm_of_force = center - poses.position[:, joint]
                torque -= (np.cross(arm_of_force, mass * gravity) * axis).sum(axis=1)
    return torques


def compute_infinity_norms(recorded: Experiment) -> dict[str, float]:
    """Infinity norm of Y_k = m / N - q of each joint (eq. 16) [rad]: one column, so its largest entry."""
    model = make_arm()
    rows = [row for row in list_rows_of(model, recorded.states(LOW_PASS)) if row.kind == "spring"]
    return {row.joint: float(np.abs(row.rows[:, model.columns(("K",), row.joint)]).max()) for row in rows}


def compare_factorization(recorded: Experiment) -> tuple[float, dict[str, float]]:
    """Columns of motor and stiffness in one equation, against those of each side built on its own.

    With the spring's torque K (m / N - q) in the motor's equation, a joint's columns are [Y_m, N^-1 Y_k], Y_m =
    [m'', m', sgn m'] of equation 9 and Y_k = m / N - q of equation 10.

    Returns:
        Largest difference relative to the largest entry, and for each joint the norm of the longest column of Y_m over
        that of N^-1 Y_k, which is what makes the raw condition number large.
    """
    model, blind = make_arm(), make_arm(torque_sensor=False)
    both = {row.joint: row for row in list_rows_of(blind, recorded.states(LOW_PASS)) if row.kind == "motor"}
    difference, lengths = 0.0, {}
    for joint in model.joints:
        own = {row.kind: row for row in list_rows_of(model, recorded.states(LOW_PASS)) if row.joint == joint.name}
        motor = own["motor"].rows[:, model.columns(("Jm", "fvm", "fcm"), joint.name)]
        spring = own["spring"].rows[:, model.columns(("K",), joint.name)] / joint.ratio
        combined = both[joint.name].rows[:, blind.columns(("Jm", "fvm", "fcm", "K"), joint.name)]
        expected = np.column_stack([motor, spring])
        difference = max(difference, float(np.abs(combined - expected).max() / np.abs(expected).max()))
        lengths[joint.name] = float(np.linalg.norm(motor, axis=0).max() / np.linalg.norm(spring))
    return difference, lengths


def compare_stiffness_with_motor(model: FlexibleModel, recorded: Experiment) -> dict[str, tuple[Observability, float]]:
    """Observability of motor and stiffness in one equation, and the resulting K, for each joint.

    The paper rejects this equation because of its condition number.
    """
    blind = make_arm(model.smoothing_width, torque_sensor=False)
    found = [one for one in make_equations(blind, recorded, LOW_PASS) if "motor of" in one.name]
    answer = {}
    for one, joint in zip(found, blind.model.joint_names, strict=True):
        columns = blind.columns(("Jm", "fvm", "fcm", "K"), joint)
        order = [((f"motor of {joint}", f"spring of {joint}"), (one.name,))]
        values = solve_steps(
            make_prescribed_plan(blind.groups, [one], len(blind.names), order), blind.groups, [one], len(blind.names)
        ).values
        observability = Observability.from_rows(one.expand(len(blind.names))[:, columns])
        answer[joint] = observability, float(values[columns[-1]])
    return answer
