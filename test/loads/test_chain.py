# SPDX-License-Identifier: Apache-2.0
"""Inertias of the bodies of a chain from the wrenches of its hinges: against Pinocchio, exact, and with noise."""

from dataclasses import fields, replace

import numpy as np
import pinocchio
import pytest
from scipy.spatial.transform import Rotation
from support.robots import OBLIQUE, joint, panda_arm, urdf

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.loads.chain import (
    ALL,
    CENTROIDAL,
    ChainBody,
    find_centroidal_frames,
    find_joint_motion,
    simulate_chain,
)
from robot_dyn_id.loads.chain_estimate import bound_deviations, identify_chain
from robot_dyn_id.loads.chain_likelihood import Reading, identify_moving_chain
from robot_dyn_id.loads.payload import transform_parameters
from robot_dyn_id.loads.wrench import wrench_regressor
from robot_dyn_id.model.kinematics import Placement
from robot_dyn_id.model.quaternions import compute_quaternion_rates, rate_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.quaternion6r.arm import NOISE, SpaceArm, add_noise, make_accelerated_motion, make_swinging

ROBOT = SpaceArm.from_urdf()
GRAVITY = tuple(ROBOT.model.gravity)


def moving(samples, seed=1, rate=100.0):
    """All hinges move, three harmonics each."""
    rng, t = np.random.default_rng(seed), np.arange(samples) / rate
    w = 2 * np.pi * 0.2 * np.arange(1, 4)[:, None, None]
    size, phase = 0.5 / np.arange(1, 4)[:, None, None], rng.uniform(0, 2 * np.pi, (3, 6, 1))
    return Motion(*((size * w**d * np.sin(w * t + phase + d * np.pi / 2)).sum(axis=0) for d in range(3)))


def chain(motion):
    return simulate_chain(ROBOT.model, motion, ROBOT.frames)


def noisy(bodies, noise, seed):
    """The same with noise on every moment and every force, as a share of their root mean squares."""
    rng, made = np.random.default_rng(seed), []
    for body in bodies:
        wrench = body.wrench.reshape(2, 3, -1)
        size = np.sqrt((wrench**2).mean(axis=(1, 2), keepdims=True))
        shaken = wrench + noise * size * rng.normal(size=wrench.shape)
        made.append(replace(body, wrench=shaken.reshape(6, -1)))
    return made


def test_what_hinges_show_is_what_pinocchio_says():
    motion = moving(20)
    model = pinocchio.buildModelFromXML(ROBOT.model.urdf)
    model.gravity.linear = np.array(GRAVITY)
    data = model.createData()
    for k in range(20):
        state = (motion.q[:, k], motion.dq[:, k], motion.ddq[:, k])
        q = np.concatenate([[np.cos(a), np.sin(a)] for a in state[0]])  # continuous joints
        pinocchio.rnea(model, data, q, *state[1:])
        forces = [force.copy() for force in data.f]
        pinocchio.forwardKinematics(model, data, q, *state[1:])
        for number, body in enumerate(chain(motion.take(slice(k, k + 1)))):
            place = data.oMi[number + 1]
            center = pinocchio.SE3(np.eye(3), ROBOT.frames[number].position)
            spatial, rate = (center.actInv(x[number + 1]) for x in (data.a, data.v))
            classical = spatial.linear + np.cross(rate.angular, rate.linear)
            wrench = [*place.rotation @ forces[number + 1].angular, *place.rotation @ forces[number + 1].linear]
            expected = {
                "rotation": place.rotation,
                "position": place.act(center.translation),
                "acceleration": place.rotation @ classical,
                "rate": rate.angular,
                "rate_change": spatial.angular,
                "hinge": place.translation,
                "wrench": np.array(wrench),
            }
            for name, values in expected.items():
                size = max(1.0, np.abs(values).max())
                np.testing.assert_allclose(getattr(body, name)[..., 0], values, rtol=0, atol=1e-12 * size)


def test_quaternions_have_no_singular_posture():
    """Round trips, where the pitch of roll, pitch and yaw is 90 degrees too, and the unit length in all derivatives."""
    rng = np.random.default_rng(2)
    turns = Rotation.concatenate([Rotation.random(50, rng), Rotation.from_euler("ZYX", [[0.3, np.pi / 2, 1.0]])])
    rotation = np.moveaxis(turns.as_matrix(), 0, -1)
    rate, change = rng.normal(size=(2, 3, len(turns)))
    unit, first, second = rate_quaternions(rotation, rate, change)
    for back, given in zip(compute_quaternion_rates(unit, first, second), (rotation, rate, change), strict=True):
        np.testing.assert_allclose(back, given, rtol=0, atol=1e-14)
    np.testing.assert_allclose((unit**2).sum(axis=0), 1.0, atol=1e-14)
    np.testing.assert_allclose((unit * first).sum(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose((unit * second + first**2).sum(axis=0), 0.0, atol=1e-13)
    for back, given in zip(compute_quaternion_rates(-unit, -first, -second), (rotation, rate, change), strict=True):
        np.testing.assert_allclose(back, given, rtol=0, atol=1e-14)


def test_derivatives_of_quaternions_are_those_along_a_motion():
    t, h = np.linspace(0.0, 2.0, 9), 1e-4
    series = [
        [rate_quaternions(b.rotation, b.rate, b.rate_change) for b in chain(make_accelerated_motion(t + k * h))]
        for k in (-1, 0, 1)
    ]
    for before, here, after in zip(*series, strict=True):
        same = (before[0] * after[0]).sum(axis=0) > 0.9  # both signs stand for one posture
        for order in (0, 1):
            slope = (after[order] - before[order]) / (2 * h)
            np.testing.assert_allclose(slope[:, same], here[order + 1][:, same], atol=1e-7)
        assert same.sum() > 5


def test_the_printed_euler_matrix_is_the_regressors():
    body = chain(moving(30))[3]
    (w1, w2, w3), (d1, d2, d3) = body.rate, body.rate_change
    printed = np.array([[d1, -w2 * w3, w2 * w3], [w1 * w3, d2, -w1 * w3], [-w1 * w2, w1 * w2, d3]])
    ours = wrench_regressor(body.motion(GRAVITY))[:3, CENTROIDAL[1:]]
    np.testing.assert_allclose(ours, printed, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_noisy_wrenches_give_inertias_within_their_uncertainty():
    errors, bodies = [], chain(moving(500))
    for seed in range(8):
        found = identify_chain(noisy(bodies, 1e-3, seed), 100.0, GRAVITY)
        assert found.not_excited == ("Iyy1", "Izz1")
        errors.append((found.values - ROBOT.truth) / found.standard_deviations)
    relative = found.standard_deviations / ROBOT.truth
    assert relative[np.isfinite(relative)].max() < 0.05
    assert np.sqrt(np.nanmean(np.square(errors))) == pytest.approx(1.0, abs=0.2)


def test_the_least_deviations_are_those_of_slopes_by_the_inertias():
    """Bound from 36 wrench channels, by differences of readings of robots with other inertias; the model is linear."""
    motion, noise = moving(60), np.random.default_rng(5).uniform(0.5, 2.0, (6, 2))
    inertias = np.zeros((6, 10))
    inertias[:, CENTROIDAL] = ROBOT.truth

    def shown(values):
        bodies = simulate_chain(ROBOT.model, motion, ROBOT.frames, values)
        return np.concatenate([b.wrench / np.repeat(sigma, 3)[:, None] for b, sigma in zip(bodies, noise, strict=True)])

    exact = np.concatenate([b.wrench / np.repeat(s, 3)[:, None] for b, s in zip(chain(motion), noise, strict=True)])
    np.testing.assert_allclose(shown(inertias), exact, rtol=0, atol=1e-12 * np.abs(exact).max())
    identifiable = [(body, column) for body in range(6) for column in CENTROIDAL if body or column in (0, 4)]
    slopes = []
    for entry in identifiable:
        other = inertias.copy()
        other[entry] += 1.0
        slopes.append((shown(other) - shown(inertias)).ravel())
    expected = np.sqrt(np.diag(np.linalg.inv(np.array(slopes) @ np.array(slopes).T)))
    found = bound_deviations(chain(motion), noise, GRAVITY)
    assert np.isinf(found[0, 2:]).all()
    np.testing.assert_allclose(found[np.isfinite(found)], expected, rtol=1e-6)


def test_joints_move_as_their_bodies_turn():
    motion = moving(40)
    found = find_joint_motion(ROBOT.model, chain(motion), ROBOT.frames)
    for mine, given in zip((found.q, found.dq, found.ddq), (motion.q, motion.dq, motion.ddq), strict=True):
        np.testing.assert_allclose(mine, given, rtol=0, atol=1e-12)
    slide = RobotModel.from_urdf(urdf(joint("slide", "base", "l1", kind="prismatic"), links=1))
    with pytest.raises(InputError, match="slide is prismatic"):
        find_joint_motion(slide, chain(motion)[:1], ROBOT.frames)


@pytest.mark.slow
def test_the_motion_of_a_chain_is_found_with_its_inertias():
    """Exact signals are met; with noise on all of them errors are what is reported, and smaller than with the motion
    taken as it is measured."""
    signals = ROBOT.recorded(make_swinging(np.arange(1, 101) / 10.0))
    exact = ROBOT.fitted_with_motion(signals)
    assert exact.not_excited == ("Iyy1", "Izz1")
    assert np.nanmax(np.abs(exact.values / ROBOT.truth - 1.0)) < 1e-9
    errors, others, ratios = [], [], []
    for seed in range(5):
        change = add_noise(np.random.default_rng(seed))
        read = [signal.changed(change) for signal in signals]
        found = ROBOT.fitted_with_motion(read)
        errors.append(found.values / ROBOT.truth - 1.0)
        others.append(ROBOT.fitted(read, 10.0, NOISE).values / ROBOT.truth - 1.0)
        ratios.append((found.values - ROBOT.truth) / found.standard_deviations)
    assert np.sqrt(np.nanmean(np.square(ratios))) == pytest.approx(1.0, abs=0.2)
    assert np.nanmean(np.square(errors)) < 0.7 * np.nanmean(np.square(others))
    with pytest.raises(UsageError, match="must be positive"):
        Reading(ROBOT.frames[0], np.zeros((3, 5)), np.zeros(3), np.zeros((6, 5)), np.ones(2))


def test_a_motion_that_no_signal_determines_is_refused():
    rest = Motion(*np.zeros((3, 6, 5)))
    signals = zip(ROBOT.frames, chain(rest), strict=True)
    readings = [Reading(frame, body.rate, np.full(3, np.inf), body.wrench, np.ones(2)) for frame, body in signals]
    with pytest.raises(InputError, match="do not determine the motion of all joints"):
        identify_moving_chain(ROBOT.model, readings, lambda number, body: body.rate, rest)


def test_all_ten_parameters_of_every_body():
    found = identify_chain(chain(moving(100)), 100.0, GRAVITY, ALL)
    expected = np.zeros((6, 10))
    expected[:, [0, 4, 6, 9]] = ROBOT.truth
    # A body that turns about its own vertical axis, x, never feels its moments across it, nor its height.
    assert found.not_excited == ("mx1", "Iyy1", "Iyz1", "Izz1")
    error = np.abs(found.values - expected) / ROBOT.truth[:, :1]
    assert np.nanmax(error) < 1e-9


def test_all_ten_parameters_in_the_frames_of_the_joints():
    """A real arm, whose bodies have their centers of mass anywhere."""
    model = panda_arm()
    rng, t = np.random.default_rng(4), np.linspace(0.0, 3.0, 40)
    n, w = len(model.joint_names), rng.uniform(1.0, 4.0, (7, 1))
    motion = Motion(np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
    frames = [Placement(body, np.eye(3), np.zeros(3)) for body in range(n)]
    found = identify_chain(simulate_chain(model, motion, frames), 40 / 3.0, tuple(model.gravity), ALL)
    expected = model.inertial_parameters.reshape(n, 10)
    identifiable = np.isfinite(found.values)
    assert identifiable[1:].all() and not identifiable[0].all()
    np.testing.assert_allclose(
        found.values[identifiable], expected[identifiable], rtol=0, atol=1e-9 * np.abs(expected).max()
    )


@pytest.fixture(scope="module")
def panda_chain():
    """Bodies of an arm with products of inertia, in a frame function of the caller's choice."""
    model = panda_arm()
    rng, t = np.random.default_rng(4), np.linspace(0.0, 3.0, 60)
    w = rng.uniform(1.0, 4.0, (7, 1))
    motion = Motion(np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
    return model, lambda frames: simulate_chain(model, motion, frames)


def test_centroidal_frames_are_along_principal_axes(panda_chain):
    """The default columns of `identify_chain` are exact in them, and the truth is the inertia turned by hand."""
    model, moved = panda_chain
    frames = find_centroidal_frames(model)
    found = identify_chain(moved(frames), 20.0, tuple(model.gravity))
    for number, (frame, given) in enumerate(zip(frames, model.inertial_parameters.reshape(-1, 10), strict=True)):
        turned = np.linalg.solve(transform_parameters(frame), given)
        np.testing.assert_allclose(turned[[1, 2, 3, 5, 7, 8]], 0.0, atol=1e-12)
        assert np.linalg.det(frame.rotation) == pytest.approx(1.0) and np.diag(frame.rotation).min() > 0.0
        shown = np.isfinite(found.values[number])
        np.testing.assert_allclose(found.values[number, shown], turned[list(CENTROIDAL)][shown], rtol=1e-9)
    assert all(np.array_equal(frame.rotation, np.eye(3)) for frame in ROBOT.frames), "already principal: left as it is"


@pytest.mark.parametrize("wrong", ["axes", "center"])
def test_frames_that_are_not_principal_are_refused(panda_chain, wrong):
    model, moved = panda_chain
    shift = np.zeros(3) if wrong == "axes" else np.array([0.02, 0.0, 0.0])
    turn = np.eye(3) if wrong == "axes" else None
    frames = [
        Placement(one.body, one.rotation if turn is None else turn, one.position + shift)
        for one in find_centroidal_frames(model)
    ]
    with pytest.raises(InputError, match="contradict the frames"):
        identify_chain(noisy(moved(frames), 1e-4, 0), 20.0, tuple(model.gravity))
    identify_chain(noisy(moved(frames), 1e-4, 0), 20.0, tuple(model.gravity), ALL)


def test_bad_chains_are_named():
    bodies = chain(make_accelerated_motion(np.linspace(0.3, 1.5, 5)))
    silent, forces = np.zeros((6, 5)), np.repeat([[0.0], [1.0]], 3, axis=0) * np.ones(5)
    for words, wrong in {
        "hinge 3: its wrench is 0 throughout": [*bodies[:2], replace(bodies[2], wrench=silent), *bodies[3:]],
        "every moment is 0 throughout": [replace(body, wrench=forces) for body in bodies],
        "hinge 2: 3 samples, but 5 of hinge 1": [
            bodies[0],
            *chain(make_accelerated_motion(np.linspace(0.3, 1.5, 3)))[1:],
        ],
        "without bodies": [],
    }.items():
        with pytest.raises(InputError, match=words):
            identify_chain(wrong, 1.0, GRAVITY)
    with pytest.raises(UsageError, match="noise must be positive"):
        identify_chain(bodies, 1.0, GRAVITY, noise=np.zeros((6, 2)))


@pytest.mark.parametrize("field", [item.name for item in fields(ChainBody)])
def test_bad_samples_are_named_when_a_body_is_made(field):
    body = chain(make_accelerated_motion(np.linspace(0.3, 1.5, 5)))[2]
    values = getattr(body, field).copy()
    values[..., 3] = np.nan
    with pytest.raises(InputError, match=f"{field} of a body: not finite at sample 4 of 5"):
        replace(body, **{field: values})
    with pytest.raises(InputError, match="of a body: its shape is"):
        replace(body, **{field: values[..., :2]})


def test_robots_that_are_no_chain_are_named():
    tree = RobotModel.from_urdf(OBLIQUE)
    with pytest.raises(InputError, match="small: not a chain"):
        simulate_chain(tree, Motion(*np.zeros((3, 4, 1))), find_centroidal_frames(tree))
    weightless = '<link name="l1"/>'
    text = urdf(joint("turn", "base", "l1"), links=0).replace("</robot>", f"{weightless}</robot>")
    with pytest.raises(InputError, match="the body of turn has no mass"):
        find_centroidal_frames(RobotModel.from_urdf(text))
