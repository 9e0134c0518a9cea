"""Inertias from wrenches: the regressor against Pinocchio, and the six bodies of a simulated industrial robot."""

from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from robots import panda_arm
from scipy.spatial.transform import Rotation

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.excitation.kinematics import placement_of
from robot_dyn_id.regressor import Motion
from robot_dyn_id.wrench import ALL, ChainBody, frame_motion, identify_chain, quaternion_rates, wrench_regressor

GRAVITY = (0.0, 0.0, -9.80665)
LENGTHS = (1.045, 1.245, 1.21, 0.315, 0.29, 0.3)
RADII = (0.5, 0.3, 0.2, 0.2, 0.2, 0.3)
MASSES = np.array((6402.6012, 2746.0726, 1186.1661, 308.7953, 284.2877, 661.7042))
LONG = np.array((800.3251, 123.5733, 23.7233, 6.1759, 5.6858, 29.7767))
ACROSS = np.array((982.8126, 416.4934, 156.5838, 5.6413, 4.8353, 19.8511))
TRUTH = np.column_stack([MASSES, LONG, ACROSS, ACROSS])
POSTURE = (0.0, 0.0, np.pi / 2, 0.0, np.pi / 2, 0.0)
"""Pitch of each hinge: the first body stands, the second hinge is horizontal."""


def arm():
    """Cylinders along their x axes, hinges at both ends; the first hinge is vertical, and so is the first body."""
    model = pinocchio.Model()
    model.gravity.linear = np.array(GRAVITY)
    parent = 0
    for number, length in enumerate(LENGTHS):
        upright = pinocchio.SE3(pinocchio.utils.rpyToMatrix(0.0, -np.pi / 2, 0.0), np.zeros(3))
        placement = upright if number == 0 else pinocchio.SE3(np.eye(3), np.array([LENGTHS[number - 1], 0.0, 0.0]))
        joint = pinocchio.JointModelRX() if number in (0, 3, 5) else pinocchio.JointModelRY()
        parent = model.addJoint(parent, joint, placement, f"hinge{number}")
        inertia = np.diag([LONG[number], ACROSS[number], ACROSS[number]])
        body = pinocchio.Inertia(MASSES[number], np.array([length / 2, 0.0, 0.0]), inertia)
        model.appendBodyToJoint(parent, body, pinocchio.SE3.Identity())
    return model


def chain(q, dq, ddq, digits=None):
    """What an ideal simulation would have recorded of the arm, by Pinocchio's recursions; shape (6, N) each."""
    model = arm()
    data, samples = model.createData(), q.shape[1]
    bodies = [{} for _ in LENGTHS]
    signals = {"quaternion": 4, "first": 4, "second": 4, "position": 3, "acceleration": 3, "hinge": 3, "wrench": 6}
    for body in bodies:
        body.update({name: np.empty((size, samples)) for name, size in signals.items()})
    for k in range(samples):
        pinocchio.rnea(model, data, q[:, k], dq[:, k], ddq[:, k])
        forces = [data.f[j].copy() for j in range(1, model.njoints)]
        pinocchio.forwardKinematics(model, data, q[:, k], dq[:, k], ddq[:, k])
        for number, body in enumerate(bodies):
            joint = number + 1
            place, rate = data.oMi[joint], data.v[joint].angular
            x, y, z, w = Rotation.from_matrix(place.rotation).as_quat(canonical=True)
            unit, inner = np.array([w, x, y, z]), np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
            centre = pinocchio.SE3(np.eye(3), np.array([LENGTHS[number] / 2, 0.0, 0.0]))
            spatial = centre.actInv(data.a[joint]), centre.actInv(data.v[joint])
            classical = spatial[0].linear + np.cross(spatial[1].angular, spatial[1].linear)
            body["quaternion"][:, k], body["first"][:, k] = unit, 0.5 * inner.T @ rate
            change = data.a[joint].angular
            body["second"][:, k] = 0.5 * inner.T @ change - 0.25 * rate @ rate * unit
            body["position"][:, k] = place.act(centre.translation)
            body["acceleration"][:, k] = place.rotation @ classical
            body["hinge"][:, k] = place.translation
            body["wrench"][:3, k] = place.rotation @ forces[number].angular
            body["wrench"][3:, k] = place.rotation @ forces[number].linear
    made = []
    for body in bodies:
        if digits is not None:
            body = {name: rounded(values, digits) for name, values in body.items()}
        rotation, rate, change = quaternion_rates(body["quaternion"], body["first"], body["second"])
        others = (body[name] for name in ("position", "acceleration"))
        made.append(ChainBody(rotation, *others, rate, change, body["hinge"], body["wrench"]))
    return made


def noisy(bodies, noise, seed):
    """The same with noise on every moment and every force, as a share of their root mean squares."""
    rng, made = np.random.default_rng(seed), []
    for body in bodies:
        wrench = body.wrench.reshape(2, 3, -1)
        size = np.sqrt((wrench**2).mean(axis=(1, 2), keepdims=True))
        shaken = wrench + noise * size * rng.normal(size=wrench.shape)
        made.append(replace(body, wrench=shaken.reshape(6, -1)))
    return made


def rounded(values, digits):
    """To so many significant digits, as a table of a simulation prints them."""
    return np.vectorize(lambda value: float(f"{value:.{digits - 1}e}"))(values)


ACCELERATION = np.radians(30.0)


def accelerated(times):
    """From rest, hinges 1 and 2 at a constant angular acceleration, the others locked."""
    moves = np.array([1.0, 1.0, 0, 0, 0, 0])[:, None]
    still = np.array(POSTURE)[:, None]
    return (still + moves * ACCELERATION * times**2 / 2, moves * ACCELERATION * times,
            moves * ACCELERATION * np.ones_like(times))  # fmt: skip


PRINTED = np.array([0.3, 0.6, 0.9, 1.2, 1.5])


def test_regressor_and_frame_motion_are_pinocchios():
    """A link in the middle of the chain: the wrench that Pinocchio gives the same body there."""
    robot = panda_arm()
    q, dq, ddq, _ = random_fourier(robot, 3).evaluate(np.linspace(0.0, 5.0, 20))
    motion = frame_motion(robot, Motion(q, dq, ddq), at := placement_of(robot, "panda_hand"))
    body = pinocchio.Inertia.Random()
    full = pinocchio.buildModelFromXML(robot.urdf)
    full.gravity.linear = robot.gravity
    model = pinocchio.buildReducedModel(full, [8, 9], pinocchio.neutral(full))
    data = model.createData()
    ours = np.einsum("icn,c->in", wrench_regressor(motion), body.toDynamicParameters())
    placement = pinocchio.SE3(at.rotation, at.position)
    for k in range(q.shape[1]):
        pinocchio.forwardKinematics(model, data, q[:, k], dq[:, k], ddq[:, k])
        acceleration, velocity = (placement.actInv(x[at.body + 1]) for x in (data.a, data.v))
        turned = (data.oMi[at.body + 1] * placement).rotation
        acceleration.linear -= turned.T @ robot.gravity
        wrench = body * acceleration + velocity.cross(body * velocity)
        np.testing.assert_allclose(ours[:, k], [*wrench.angular, *wrench.linear], rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def exact():
    return identify_chain(chain(*accelerated(PRINTED)), 1.0 / 0.3, GRAVITY)


def test_bodies_of_the_industrial_robot(exact):
    seen = np.isfinite(exact.values)
    assert np.abs(exact.values / TRUTH - 1.0)[seen].max() < 1e-9
    # The first body turns about its own vertical axis: nothing tells its inertia across it.
    assert exact.not_excited == ("Iyy1", "Izz1")
    assert np.isinf(exact.standard_deviations[0, 2:]).all()


def test_seven_printed_digits():
    found = identify_chain(chain(*accelerated(PRINTED), digits=7), 1.0 / 0.3, GRAVITY, precision=1e-7)
    assert found.not_excited == ("Iyy1", "Izz1")
    wrong = np.abs(found.values - TRUTH)
    assert np.nanmax(wrong[:, 0]) < 0.0032
    assert np.nanmax(wrong[:, 1:]) < 0.0264
    assert np.nanmax(wrong[:, 1:] / TRUTH[:, 1:]) < 0.00031


def moving(samples, seed=1, rate=100.0):
    """All hinges move, three harmonics each."""
    rng, t = np.random.default_rng(seed), np.arange(samples) / rate
    w = 2 * np.pi * 0.2 * np.arange(1, 4)[:, None, None]
    size, phase = 0.5 / np.arange(1, 4)[:, None, None], rng.uniform(0, 2 * np.pi, (3, 6, 1))
    return tuple((size * w**d * np.sin(w * t + phase + d * np.pi / 2)).sum(axis=0) for d in range(3))


def test_noisy_wrenches_give_inertias_within_their_uncertainty():
    errors, bodies = [], chain(*moving(500))
    for seed in range(8):
        found = identify_chain(noisy(bodies, 1e-3, seed), 100.0, GRAVITY)
        assert found.not_excited == ("Iyy1", "Izz1")
        errors.append((found.values - TRUTH) / found.standard_deviations)
    relative = found.standard_deviations / TRUTH
    assert relative[np.isfinite(relative)].max() < 0.05
    assert np.sqrt(np.nanmean(np.square(errors))) == pytest.approx(1.0, abs=0.2)


def test_all_ten_parameters_of_every_body():
    found = identify_chain(chain(*moving(100)), 100.0, GRAVITY, ALL)
    expected = np.zeros((6, 10))
    expected[:, [0, 4, 6, 9]] = TRUTH
    # A body that turns about its own vertical axis, x, never feels its moments across it, nor its height.
    assert found.not_excited == ("mx1", "Iyy1", "Iyz1", "Izz1")
    error = np.abs(found.values - expected) / MASSES[:, None]
    assert np.nanmax(error) < 1e-9


def test_bad_chains_are_named():
    bodies = chain(*accelerated(PRINTED))
    bodies[2].wrench[0, 0] = np.nan
    with pytest.raises(InputError, match="hinge 3"):
        identify_chain(bodies, 1.0, GRAVITY)
    with pytest.raises(InputError, match="without bodies"):
        identify_chain([], 1.0)
