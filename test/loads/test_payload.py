# SPDX-License-Identifier: Apache-2.0
"""Payloads on identified arms, tools behind force sensors, gains of drives: simulated with known truth."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.robots import URDFS, brick, panda_arm
from support.simulated import Simulated, changed

from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.dynamics.consistency import convert_to_central, is_consistent
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import InputError
from robot_dyn_id.estimators import GeneralizedLeastSquares
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.loads.declared import DeclaredPayload, compare_declared
from robot_dyn_id.loads.identification import (
    PayloadOptions,
    add_payload,
    estimate_payload,
    estimate_tool,
    identify_gains,
    identify_payload,
)
from robot_dyn_id.loads.payload import (
    Payload,
    PayloadEstimate,
    compute_central_slopes,
    make_consistent_payload,
    transform_parameters,
)
from robot_dyn_id.loads.payload_accuracy import report_uncertainty
from robot_dyn_id.loads.wrench import compute_frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.parameters import INERTIAL_SYMBOLS

LINK = "panda_hand"
NOISE = 0.2
SETTINGS = Settings(estimator=GeneralizedLeastSquares())


BRICK = brick(2.0, (0.03, -0.02, 0.12), (0.1, 0.15, 0.2))


@cache
def panda():
    return Simulated(URDFS["panda"].read_text(), joints=panda_arm().joint_names)


@cache
def loaded_panda(mass=2.0):
    """The same arm with the brick on its hand."""
    robot = Simulated(URDFS["panda"].read_text(), joints=panda_arm().joint_names)
    at = find_placement_of(robot.model, LINK)
    robot.parameters[10 * at.body : 10 * at.body + 10] += transform_parameters(at) @ (BRICK * mass / 2.0)
    return robot


@cache
def bare_arm(seed=1, correlation_time=0.0):
    robot = panda()
    recording = robot.record(seed=seed, duration=30.0, noise=NOISE, correlation_time=correlation_time)
    training, _ = split([recording], robot.joints, [recording])
    return identify(training, [recording], robot.model, SETTINGS, "test").parameters


def found(seed, correlation_time=0.0):
    recording = loaded_panda().record(seed=100 + seed, duration=20.0, noise=NOISE, correlation_time=correlation_time)
    return identify_payload([recording], bare_arm(seed, correlation_time), LINK, SETTINGS)[0]


@pytest.mark.slow
def test_payload_with_its_uncertainty():
    """White and colored noise: the truth lies within the reported errors, of which the arm's own are a part."""
    scores = []
    for seed in range(2):
        payload = found(seed, 0.1 * seed)
        assert payload.not_excited == ()
        error = payload.unconstrained - BRICK
        scores.append(error @ np.linalg.solve(payload.covariance, error))
        assert abs(payload.mass - 2.0) < 4.0 * payload.central_standard_deviations[0]
        assert is_consistent(payload.parameters)
    assert 1.5 < np.mean(scores) < 30.0  # chi-square of 10, mean of 2: 99.99 % lie within


@pytest.mark.slow
def test_arm_with_payload_predicts_the_loaded_arm():
    arm, payload = bare_arm(0), found(0)
    both, truth = add_payload(arm, payload), loaded_panda()
    q, dq, ddq, _ = draw_random_fourier(truth.model, 77).evaluate(np.linspace(0, 10, 300))
    expected = truth.regressor.torque(Motion(q, dq, ddq), truth.parameters).T
    errors = [
        np.linalg.norm(Dynamics.from_parameters(p).inverse_dynamics(q.T, dq.T, ddq.T) - expected)
        / np.linalg.norm(expected)
        for p in (arm, both)
    ]
    assert errors[1] < 0.01 < errors[0]
    wrong = both.estimate.values - truth.base.mapping @ truth.parameters
    score = wrong @ np.linalg.solve(both.estimate.covariance, wrong)
    assert 30.0 < score < 110.0  # chi-square of 64
    np.testing.assert_allclose(
        both.base.mapping @ np.append(both.bodies.standard_parameters, both.terms.values),
        both.estimate.values,
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.slow
def test_joints_that_move_faster_than_on_the_bare_arm_are_named():
    recording = loaded_panda().record(seed=100, duration=20.0, noise=NOISE)
    arm = bare_arm(0)
    slower = altered(arm, ranges={"dq_max": arm.ranges.dq_max * np.array([0.5, 1, 1, 1, 1, 1, 1])})
    _, findings = identify_payload([recording], slower, LINK, SETTINGS)
    assert [(one.code, one.severity, one.joints) for one in findings] == [
        ("arm_model_doubtful", "warning", ()),  # it was validated on its training data
        ("faster_than_arm", "info", ("panda_joint1",)),
    ]


@pytest.mark.slow
def test_what_a_link_near_the_base_does_not_show_is_named():
    robot = panda()
    recording = robot.record(seed=5, duration=20.0, noise=NOISE)
    with pytest.raises(InputError, match=r"the mass on link .* is not identifiable"):
        identify_payload([recording], bare_arm(), "panda_link1", SETTINGS)
    with pytest.raises(InputError, match="does not move"):
        identify_payload([recording], bare_arm(), "panda_link0", SETTINGS)


@pytest.mark.slow
def test_no_payload_is_reported():
    recording = panda().record(seed=9, duration=20.0, noise=NOISE)
    try:
        payload = identify_payload([recording], bare_arm(), LINK, SETTINGS)[0]
    except InputError as error:
        assert "kg" in str(error)
    else:
        assert payload.mass < 4.0 * payload.standard_deviations[0]


def test_impossible_estimates_become_the_nearest_body():
    sigma = np.array([0.01, *(0.005,) * 3, *(0.01,) * 6])
    thin = BRICK.copy()
    thin[9] = -0.002
    payload = make_consistent_payload(LINK, thin, np.diag(sigma**2), np.zeros(10, dtype=bool))
    assert is_consistent(payload.parameters)
    assert [one.code for one in payload.findings] == ["payload_not_physical"]
    assert np.linalg.norm((payload.parameters - thin) / sigma) < np.linalg.norm((BRICK - thin) / sigma)
    with pytest.raises(InputError, match="wrong"):
        make_consistent_payload(LINK, -BRICK, np.diag(sigma**2), np.zeros(10, dtype=bool))


def test_slopes_of_the_central_parameters():
    def central_values(parameters):
        mass, center, inertia = convert_to_central(parameters)
        return np.array([mass, *center, *inertia[(0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]])

    step = 1e-6
    numeric = [
        (central_values(BRICK + step * unit) - central_values(BRICK - step * unit)) / (2 * step) for unit in np.eye(10)
    ]
    np.testing.assert_allclose(compute_central_slopes(BRICK), np.transpose(numeric), atol=1e-8)


def shown_wrench(recording, motion, offsets, noise, seed):
    """Readings of a sensor at the hand that carries the brick, by samples of the true motion."""
    model = panda().model
    t = recording.samples.t
    body = wrench_regressor(compute_frame_motion(model, motion, find_placement_of(model, LINK)))
    wrench = -np.einsum("icn,c->in", body, BRICK) + offsets[:, None]
    return WrenchRecording("wrench", t, wrench + noise * np.random.default_rng(seed).normal(size=wrench.shape))


@pytest.mark.slow
def test_tool_behind_a_force_sensor():
    robot, offsets = panda(), np.array([0.3, -0.2, 0.1, 4.0, -3.0, 5.0])
    series = draw_random_fourier(robot.model, 3)
    recording = robot.record(seed=3, duration=20.0)
    motion = Motion(*series.evaluate(recording.samples.t)[:3])
    scores = []
    for seed in range(3):
        sensed = shown_wrench(recording, motion, offsets, 0.2, seed)
        found, bias, sigma = estimate_tool(recording, sensed, robot.model, LINK, Settings())
        tool = found.payload()
        error = tool.unconstrained - BRICK
        scores.append(error @ np.linalg.solve(tool.covariance, error))
        assert (np.abs(bias - offsets) < 4.5 * sigma).all()
        assert tool.mass == pytest.approx(2.0, rel=0.01)
    assert 2.0 < np.mean(scores) < 27.0
    turned = replace(sensed, wrench=-sensed.wrench)
    with pytest.raises(InputError, match="sign of the wrench"):
        estimate_tool(recording, turned, robot.model, LINK, Settings())[0].payload()
    again, _, _ = estimate_tool(recording, turned, robot.model, LINK, Settings(), reaction=True)
    np.testing.assert_allclose(again.payload().parameters, tool.parameters)
    late = replace(sensed, t=sensed.t + 1e4)
    with pytest.raises(InputError, match="one clock"):
        estimate_tool(recording, late, robot.model, LINK, Settings())


def test_gains_from_a_known_payload():
    gains = np.array([12.0, -9.0, 11.0, 8.0, 6.0, 5.0, 4.0])
    known = Payload(LINK, 2.0 * BRICK, np.zeros((10, 10)), 2.0 * BRICK)
    runs = [
        changed(robot.record(seed=seed, duration=30.0, noise=0.1), tau=lambda tau: tau / gains)
        for robot, seed in ((panda(), 1), (loaded_panda(4.0), 2))
    ]
    runs = [replace(run, effort_is_torque=False) for run in runs]
    found = identify_gains([runs[0]], [runs[1]], panda().model, known, Settings()).gains
    values, sigmas = (np.array([getattr(gain, name) for gain in found]) for name in ("value", "standard_deviation"))
    identifiable = np.isfinite(values)
    assert identifiable[1:6].all()
    assert (np.abs(values - gains)[identifiable] < 4.0 * sigmas[identifiable]).all()
    assert (sigmas / np.abs(gains))[[1, 3]].max() < 0.02


def declared(body, part="mass, center of mass and inertia"):
    kept = np.arange(10) < {"mass": 1, "mass and center of mass": 4}.get(part, 10)
    return DeclaredPayload(LINK, np.where(kept, body, 0.0), part)


def test_p_values_of_a_true_declaration_are_uniform_and_others_are_rejected():
    """Drawn estimates of a known covariance: the test has the size that it states."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(10, 10)) * np.array([0.02, *(0.01,) * 3, *(0.005,) * 6])[:, None]
    hidden = np.arange(10) == 9
    drawn = [PayloadEstimate(LINK, BRICK + root @ rng.normal(size=10), root @ root.T, hidden) for _ in range(400)]
    for part, degrees in (("mass", 1), ("mass and center of mass", 4), ("mass, center of mass and inertia", 9)):
        tests = [compare_declared(estimate, declared(BRICK, part)) for estimate in drawn]
        assert {one.degrees for one in tests} == {degrees}
        values = np.sort([one.p_value for one in tests])
        assert np.abs(values - (np.arange(400) + 0.5) / 400).max() < 0.08  # Kolmogorov: 0.5 % of true ones exceed it
    one = compare_declared(drawn[0], declared(1.5 * BRICK))
    assert not one.accepted
    assert [finding.code for finding in one.findings()] == ["payload_declared_wrong"]
    sigma = root @ root.T
    mass = compare_declared(drawn[0], declared(1.5 * BRICK, "mass"))
    assert mass.sigmas[0] == pytest.approx((drawn[0].values[0] - 1.5 * BRICK[0]) / np.sqrt(sigma[0, 0]))


@pytest.mark.slow
def test_the_declared_payload_of_a_recording():
    """The arm carries the brick: the brick is accepted, and another mass, another center and no payload are not."""
    recording = loaded_panda().record(seed=101, duration=20.0, noise=NOISE)
    estimate, _ = estimate_payload([recording], bare_arm(1), LINK, SETTINGS)
    assert compare_declared(estimate, declared(BRICK)).accepted
    moved = BRICK + np.array([0.0, 0.05, *(0.0,) * 8])
    for wrong in (declared(1.2 * BRICK), declared(1.2 * BRICK, "mass"), declared(moved), declared(0.0 * BRICK)):
        assert not compare_declared(estimate, wrong).accepted
    empty, _ = estimate_payload([panda().record(seed=102, duration=20.0, noise=NOISE)], bare_arm(1), LINK, SETTINGS)
    assert compare_declared(empty, declared(0.0 * BRICK)).accepted
    assert not compare_declared(empty, declared(BRICK)).accepted


def test_nonsense_is_no_declaration():
    for wrong in (-BRICK, BRICK * np.nan, np.array([0.0, 1.0, *(0.0,) * 8])):
        with pytest.raises(InputError, match="declared"):
            DeclaredPayload(LINK, wrong)
    estimate = PayloadEstimate("other", BRICK, np.eye(10), np.zeros(10, dtype=bool))
    with pytest.raises(InputError, match="frame"):
        compare_declared(estimate, declared(BRICK))


@pytest.mark.slow
def test_a_reference_of_the_bare_arm_cancels_what_its_model_does_not_explain():
    """Offsets of the efforts that came after the arm was identified look like a payload unless they are in both."""
    offset = np.array([0.0, 0.0, 0.0, 0.0, 0.5, -0.5, 0.3])
    bare, loaded = (
        changed(robot.record(seed=103 + number, duration=20.0, noise=NOISE), tau=lambda tau: tau + offset)
        for number, robot in enumerate((panda(), loaded_panda()))
    )
    errors, squares, sigmas = [], [], []
    for reference in ((), (bare,)):
        estimate, _ = estimate_payload([loaded], bare_arm(1), LINK, SETTINGS, PayloadOptions(reference))
        wrong = estimate.values - BRICK
        errors.append(np.linalg.norm(wrong[1:4]))
        squares.append(wrong @ np.linalg.solve(estimate.covariance, wrong))
        sigmas.append(np.sqrt(np.diag(estimate.covariance)[1:4]))
    assert max(squares) < 30.0  # chi-square of 10: what is not explained is in the intervals
    assert errors[1] < 0.5 * errors[0] and (sigmas[1] < 0.5 * sigmas[0]).all()


def test_a_doubtful_model_of_the_arm_is_named():
    recording = loaded_panda().record(seed=105, duration=20.0, noise=NOISE)
    good = altered(bare_arm(1), judgment={"verdict": "good", "reasons": ()})
    doubtful = altered(good, judgment={"verdict": "suspect", "reasons": ("joint 5 is not identifiable",)})
    assert "arm_model_doubtful" not in {one.code for one in estimate_payload([recording], good, LINK, SETTINGS)[1]}
    first, *_ = estimate_payload([recording], doubtful, LINK, SETTINGS)[1]
    assert (first.code, first.severity) == ("arm_model_doubtful", "warning")
    assert "suspect (joint 5 is not identifiable)" in first.message


def test_joints_at_rest_are_left_out():
    """A dry friction that holds a joint at rest must not become mass."""
    robot = loaded_panda()
    recording = robot.record(seed=105, duration=20.0, noise=NOISE, still=(0, 1, 2, 3))
    held = changed(recording, tau=lambda tau: tau + np.array([5.0, 5.0, 5.0, 5.0, 0.0, 0.0, 0.0]))
    found = [estimate_payload([one], bare_arm(1), LINK, SETTINGS) for one in (recording, held)]
    np.testing.assert_allclose(found[0][0].values, found[1][0].values)
    (rest,) = [one for one in found[0][1] if one.code == "payload_joint_at_rest"]
    assert rest.joints == panda_arm().joint_names[:4]
    wrong = found[0][0].values - BRICK
    assert wrong @ np.linalg.solve(found[0][0].covariance, wrong) < 30.0


def test_a_recording_that_no_payload_explains_is_named_and_its_payload_uncertain():
    """Errors that neither noise nor the arm explains are in the payload, too."""
    recording = loaded_panda().record(seed=105, duration=20.0, noise=NOISE)
    gains = np.array([1.0, 1.0, 1.0, 1.1, 1.0, 1.0, 1.0])
    estimates, codes = [], []
    for one in (recording, changed(recording, tau=lambda tau: gains * tau)):
        estimate, findings = estimate_payload([one], bare_arm(1), LINK, SETTINGS)
        estimates.append(estimate)
        codes.append({finding.code for finding in findings})
    right, wrong = estimates
    assert "payload_contradicted" not in codes[0] and "payload_contradicted" in codes[1]
    error = right.values - BRICK
    assert error @ np.linalg.solve(right.covariance, error) < 30.0  # chi-square of 10
    assert wrong.covariance[0, 0] > 2.0 * right.covariance[0, 0]


def test_an_effort_that_the_arm_does_not_explain_counts_if_it_shows_the_payload():
    """A lift on a screw does not feel the load: what its motor reports must not become mass."""
    second = panda_arm().joint_names[1]
    loaded, bare = (robot.record(seed=105, duration=20.0, noise=NOISE) for robot in (loaded_panda(), panda()))
    mixed = loaded.samples.tau.copy()
    mixed[:, 1] = bare.samples.tau[:, 1]
    unfelt = changed(loaded, tau=mixed)
    arm = altered(bare_arm(1), judgment={"unexplained_joints": (second,)})
    for recording, left_out in ((loaded, ()), (unfelt, (second,))):
        estimate, findings = estimate_payload([recording], arm, LINK, SETTINGS)
        assert tuple(n for one in findings if one.code == "payload_joint_unexplained" for n in one.joints) == left_out
        wrong = estimate.values - BRICK
        assert wrong @ np.linalg.solve(estimate.covariance, wrong) < 30.0  # chi-square of 10
    nothing = altered(bare_arm(1), judgment={"unexplained_joints": panda_arm().joint_names})
    with pytest.raises(InputError, match="too little of the effort"):
        estimate_payload([loaded], nothing, LINK, SETTINGS)


@pytest.mark.parametrize(
    ("sigmas", "named"),
    [
        ((0.05, 0.01), ()),
        ((0.3, 0.01), ("m 2 +- 0.3 kg",)),
        ((0.05, 3.0), ("mx ", "my ", "mz ")),
        ((np.inf, np.inf), ()),  # reported as not identified
    ],
)
def test_a_payload_that_is_determined_roughly_is_named(sigmas, named):
    mass, moment = sigmas
    deviations = np.array([mass, *(moment,) * 3, *(1.0,) * 6])
    hidden = tuple(np.array(INERTIAL_SYMBOLS)[np.isinf(deviations)])
    covariance = np.diag(np.where(np.isinf(deviations), 0.0, deviations) ** 2)
    found = report_uncertainty(Payload(LINK, BRICK, covariance, BRICK, hidden))
    assert [one.code for one in found] == ["payload_uncertain"] * bool(named)
    assert all(name in one.message for one in found for name in named)


def test_a_zero_that_differs_on_one_joint_contradicts_the_payload():
    """Heavy joints that fit well hide the error of a light one in that of all."""
    recording = loaded_panda().record(seed=105, duration=20.0, noise=NOISE)
    turned = changed(recording, q=lambda q: q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0]))
    codes = [
        {one.code: one for one in estimate_payload([data], bare_arm(1), LINK, SETTINGS)[1]}
        for data in (recording, turned)
    ]
    assert "payload_contradicted" not in codes[0]
    assert "panda_joint6" in codes[1]["payload_contradicted"].joints
