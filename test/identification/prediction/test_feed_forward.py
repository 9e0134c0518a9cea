# SPDX-License-Identifier: Apache-2.0
"""Feed-forward efforts of trajectories, and the check of torque limits."""

from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.joint_trajectories import rows
from support.model_nodes import identified, presliding

from robot_dyn_id.data.trajectory_points import TrajectoryPoints
from robot_dyn_id.dynamics.compensation import DriverCompensation
from robot_dyn_id.dynamics.terms import Stribeck, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.prediction.feed_forward import (
    EXCITE,
    ONE_SIDED_95,
    SLOWEST,
    FeedForward,
    format_violation,
)
from robot_dyn_id.simulation.trajectory_tracking import TrajectoryTracker
from robot_dyn_id.workflow.feed_forward import fill_efforts

N = len(identified().robot.joint_names)


def smooth(duration=2.0, size=0.5, count=21):
    """A motion from rest to rest with all derivatives."""
    t = np.linspace(0.0, duration, count)
    s = t / duration
    shape = size * np.linspace(1.0, 0.4, N)
    q = np.outer(10 * s**3 - 15 * s**4 + 6 * s**5, shape)
    dq = np.outer(30 * s**2 - 60 * s**3 + 30 * s**4, shape) / duration
    ddq = np.outer(60 * s - 180 * s**2 + 120 * s**3, shape) / duration**2
    return TrajectoryPoints(t, q, dq, ddq)


def feed_forward(*compensates, parameters=None):
    given = altered(parameters or identified(), effort={"robot_compensates": ("unknown",)})
    return FeedForward.from_parameters(given, compensates)


def test_efforts_are_the_inverse_dynamics_without_that_of_the_driver():
    motion = smooth()
    whole = feed_forward("none").along(motion)
    dynamics = feed_forward("none").dynamics
    expected = dynamics.inverse_dynamics(motion.q, motion.dq, motion.ddq)
    assert np.allclose(whole.efforts, expected, atol=1e-9)
    for parts in (("gravity",), ("gravity", "friction"), ("coriolis",)):
        part = feed_forward(*parts)
        added = DriverCompensation(dynamics, parts).torque(motion.q, motion.dq)
        assert np.allclose(part.along(motion).efforts, expected - added, atol=1e-9)
        assert np.allclose(part.effort(motion.q, motion.dq, motion.ddq), expected - added, atol=1e-9)
        assert np.array_equal(part.along(motion).motor, whole.motor)  # the motors carry what the driver adds


def test_an_unknown_driver_and_a_bad_verdict_are_refused():
    with pytest.raises(InputError, match="robot_compensates is unknown"):
        feed_forward()
    with pytest.raises(InputError, match="verdict"):
        feed_forward("none", parameters=altered(identified(), judgment={"verdict": "bad"}))


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_missing_derivatives_are_those_of_the_controller_s_spline(channels):
    motion = smooth()
    given = replace(motion, dq=motion.dq if channels > 1 else np.nan, ddq=motion.ddq if channels > 2 else np.nan)
    efforts = feed_forward("none").along(given)
    tracker = TrajectoryTracker(motion.q[0])
    tracker.follow(given, 0.0, 0.0)
    samples = efforts.samples
    for time, *state in zip(samples.t, samples.q, samples.dq, samples.ddq, strict=True):
        if np.abs(time - motion.t).min() > 1e-9:  # accelerations jump at the points
            for got, expected in zip(state, tracker.setpoint(time), strict=True):
                assert np.allclose(got, expected, atol=1e-8)
    for point, sample in enumerate(efforts.numbers[:-1]):
        assert np.allclose(efforts.samples.ddq[sample], tracker.setpoint(motion.t[point]).ddq, atol=1e-8)
    codes = {finding.code for finding in efforts.findings}
    assert ("trajectory_without_velocities" in codes) == (channels == 1)
    assert ("trajectory_without_accelerations" in codes) == (channels == 2)


def test_the_last_point_holds_the_arm_at_rest():
    motion = smooth()
    efforts = feed_forward("none").along(replace(motion, dq=np.nan, ddq=np.nan))
    assert np.allclose(efforts.efforts[-1], feed_forward("none").dynamics.gravity(motion.q[-1]), atol=1e-9)


@pytest.mark.slow
def test_presliding_friction_is_integrated_along_the_path():
    motion, model = smooth(size=0.002), feed_forward("none", parameters=presliding())
    efforts = model.along(motion)
    sliding = model.effort(motion.q, motion.dq, motion.ddq)
    assert np.abs(efforts.efforts[1] - sliding[1]).max() > 0.1  # less than in sliding before the joints slide
    states = model.dynamics.regressor.integrate(efforts.samples.q.T, 0.0)
    samples = efforts.samples
    expected = model.dynamics.inverse_dynamics(samples.q, samples.dq, samples.ddq, states)
    assert np.allclose(efforts.motor, expected, atol=1e-9)


def test_a_violation_names_joint_time_and_bound():
    parameters = identified()
    relaxed = feed_forward("none").along(smooth())
    assert relaxed.violations == ()
    fast = feed_forward("none").along(smooth(duration=0.1, count=11))
    assert fast.violations
    for violation in fast.violations:
        joint = parameters.robot.joint_names.index(violation.joint)
        ratio = np.abs(fast.motor[:, joint]) + ONE_SIDED_95 * fast.deviation[:, joint]
        assert violation.bound == pytest.approx(ratio.max()) and violation.bound > violation.limit
        assert violation.time == fast.samples.t[np.argmax(ratio)]


def test_the_bound_contains_parameter_covariance_and_held_out_error():
    motion = smooth()
    model = feed_forward("none")
    plain = feed_forward("none", parameters=altered(model.parameters, judgment={"held_out_nrmse": np.zeros(N)})).along(
        motion
    )
    rms = np.sqrt(np.mean(plain.motor**2, axis=0))
    error = altered(model.parameters, judgment={"held_out_nrmse": np.full(N, 0.2)})
    assert np.allclose(
        feed_forward("none", parameters=error).along(motion).deviation, np.hypot(plain.deviation, 0.2 * rms)
    )
    # monte carlo over the parameter covariance
    rng, p = np.random.default_rng(0), model.parameters
    draws = rng.multivariate_normal(p.estimate.values, p.estimate.covariance, 400)
    at = plain.numbers[10]
    state = [channel[at] for channel in (plain.samples.q, plain.samples.dq, plain.samples.ddq)]
    torques = [replace(model.dynamics, values=v).inverse_dynamics(*state) for v in draws]
    assert np.allclose(np.std(torques, axis=0), plain.deviation[at], rtol=0.15)


def test_a_parameter_that_is_not_identifiable_bounds_nothing():
    given = parameter_set(identified().robot.urdf)
    deviations, covariance = given.estimate.standard_deviations.copy(), given.estimate.covariance.copy()
    deviations[:], covariance[:] = 1e-6, 1e-12 * np.eye(len(deviations))
    last = len(deviations) - 1
    deviations[last] = covariance[last] = covariance[:, last] = np.inf
    parameters = altered(given, estimate={"standard_deviations": deviations, "covariance": covariance})
    violations = (model := feed_forward("none", parameters=parameters)).along(smooth()).violations
    assert violations and all(np.isinf(v.bound) or v.bound > v.limit for v in violations)
    assert any(np.isinf(v.bound) for v in violations)
    with pytest.raises(InputError) as refused:
        model.slowed(smooth())
    assert refused.value.action == EXCITE
    trajectory = rows(names=given.robot.joint_names)
    findings = fill_efforts(parameters, trajectory, ("none",)).findings
    unbounded = [one.joints for one in findings if one.code == "effort_unbounded"]
    assert unbounded and not any("above its limit" in one.message for one in findings if one.joints in unbounded)


def test_slowing_down_keeps_path_and_limits():
    fast, model = smooth(duration=0.1, count=11), feed_forward("none")
    speed, slowed = model.slowed(fast)
    assert SLOWEST < speed < 1.0 and not slowed.violations
    assert np.allclose(slowed.points.t, fast.t / speed) and np.array_equal(slowed.points.q, fast.q)
    assert model.along(
        replace(fast, t=fast.t / (1.05 * speed), dq=1.05 * speed * fast.dq, ddq=(1.05 * speed) ** 2 * fast.ddq)
    ).violations
    assert model.slowed(smooth())[0] == 1.0
    weak = altered(model.parameters, judgment={"held_out_nrmse": np.full(N, 1e3)})
    with pytest.raises(InputError, match="none keeps the torque limits"):
        feed_forward("none", parameters=weak).slowed(fast)


def test_what_the_limit_check_does_not_cover_is_reported():
    given = parameter_set(identified().robot.urdf.replace('effort="40.0"', 'effort="0"', 1), gravity=(0.0, 0.0, 0.0))
    given = altered(given, judgment={"held_out_nrmse": np.zeros(N)})
    findings = {one.code: one for one in feed_forward("gravity", parameters=given).along(smooth()).findings}
    assert findings["effort_limit_missing"].joints == given.robot.joint_names[:1]
    assert "limits_without_gravity" in findings


def test_a_joint_without_held_out_error_has_that_of_all_joints():
    motion, given = smooth(), identified()
    own, stated = (np.where(np.arange(N) == 1, other, 0.2) for other in (np.nan, 0.5))
    one = altered(given, judgment={"held_out_nrmse": own, "held_out_all_joints_nrmse": 0.5})
    expected = feed_forward("none", parameters=altered(given, judgment={"held_out_nrmse": stated})).along(motion)
    found = feed_forward("none", parameters=one).along(motion)
    assert np.allclose(found.deviation, expected.deviation)
    assert "bound_without_held_out_error" not in {finding.code for finding in found.findings}
    unknown = altered(given, judgment={"held_out_nrmse": np.full(N, np.nan), "held_out_all_joints_nrmse": np.nan})
    findings = feed_forward("none", parameters=unknown).along(motion).findings
    assert "bound_without_held_out_error" in {finding.code for finding in findings}


def test_friction_that_falls_with_the_speed_forbids_slow_motion_only():
    given = parameter_set(identified().robot.urdf, terms=(Stribeck(0.2), Viscous()))
    given = altered(
        given,
        estimate={
            "standard_deviations": np.zeros_like(given.estimate.values),
            "covariance": np.zeros_like(given.estimate.covariance),
        },
    )
    t = np.linspace(0.0, 0.1, 11)
    motion = TrajectoryPoints(
        t, np.outer(t, np.full(N, 4.0)), np.full((11, N), 4.0), np.zeros((11, N))
    )  # is moving already
    model = feed_forward("none", parameters=altered(given, judgment={"held_out_nrmse": np.zeros(N)}))
    torques = {
        speed: np.abs(model.along(replace(motion, t=t / speed, dq=speed * motion.dq)).motor).max(axis=0)
        for speed in (1.0, 0.1, 0.01)
    }
    limit = 0.5 * (torques[0.1] + np.minimum(torques[1.0], torques[0.01]))
    limit[0] = np.inf  # its friction rises with the speed
    speed, efforts = replace(model, limit=limit).slowed(motion)
    assert 0.1 < speed < 1.0 and not efforts.violations


def test_the_command_alone_is_compared_with_the_limit_too():
    """Where the driver adds gravity and an acceleration needs less, the command is larger than the motor torque."""
    motion, driver = smooth(duration=0.6), feed_forward("gravity")
    efforts = driver.along(motion)
    joint = N - 1
    largest = np.abs(efforts.commanded[:, joint]).max()
    assert largest > 1.3 * np.abs(efforts.motor[:, joint]).max()
    limited = replace(driver, limit=np.where(np.arange(N) == joint, 0.999 * largest, np.inf))
    (violation,) = limited.along(motion).violations
    assert violation.of == "command"
    assert "needs a command of" in format_violation(violation)
    assert violation.effort == pytest.approx(largest)


def test_commands_and_motors_are_cut_off_at_the_limits():
    motion, limit = smooth(duration=0.4), 2.0
    for parts in (("none",), ("gravity",), ("gravity", "friction", "coriolis")):
        model = feed_forward(*parts)
        command = model.effort(motion.q, motion.dq, motion.ddq, limit)
        motor = command + model.compensation.torque(motion.q, motion.dq)
        assert np.abs(command).max() <= limit
        inside = np.abs(motor - command) <= limit
        assert np.abs(motor[inside]).max() <= limit + 1e-12
        assert not inside.all() or np.abs(model.effort(motion.q, motion.dq, motion.ddq)).max() > limit
