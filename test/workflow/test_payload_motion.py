# SPDX-License-Identifier: Apache-2.0
"""Motion of the wrist for a payload: check of the configuration, design, expected and reached accuracy."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.altered import altered
from support.payload_cell import BRICK, LINK, NOISE, START, UPRIGHT, arm

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import InputError, MotionError, UsageError
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.declared import DeclaredPayload
from robot_dyn_id.loads.identification import add_payload
from robot_dyn_id.loads.payload import find_friction_columns, transform_parameters
from robot_dyn_id.loads.payload_accuracy import PayloadAccuracy
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.online.monitoring import ResidualMonitor
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from robot_dyn_id.workflow.payload import PayloadRun, identify_from_halves
from robot_dyn_id.workflow.payload_motion import PayloadMotion, check_configuration, design_payload_motion

PERIOD, PERIODS = 4.0, 4


def demands(position=START, joints=(), **changes):
    keys = {"period": PERIOD, "periods": PERIODS, "acceleration": {"all": 15.0}, "clearance": 0.0}
    values = (
        arm(),
        RobotModel.from_urdf(arm().robot.urdf),
        LINK,
        np.array(position),
        joints,
        0.5,
        PERIOD * PERIODS,
        1.0,
        0.1,
    )
    return replace(PayloadMotion(*values, keys), **changes)


@cache
def designed():
    return design_payload_motion(demands())


def half(body, seed):
    """A recording of half of the measurement with a body on the link, by an arm whose friction has changed by 5 %."""
    at = demands().at
    parameters = np.concatenate([arm().bodies.standard_parameters, arm().terms.values])
    regressor = Regressor.from_parameters(arm())
    parameters[find_friction_columns(regressor)] *= 1.05
    parameters[10 * at.body : 10 * at.body + 10] += transform_parameters(at) @ body
    times = sample_times(0.5 * PERIOD * PERIODS, 100.0)
    motion = designed()[0].trajectory
    return simulate_recording(regressor, parameters, motion, times, Sensors(NOISE, 1e-5, 1e-3), seed)


def run(*bodies, declared=None):
    result, accuracy = designed()
    recordings = tuple(half(body, seed) for seed, body in enumerate(bodies))
    whole = PayloadRun(demands(), accuracy, result.stored, Settings(), recordings=recordings)
    return identify_from_halves(whole, declared)


@pytest.mark.slow
def test_the_motion_stays_in_the_window_and_moves_the_wrist_alone():
    result, _ = designed()
    q = result.trajectory.evaluate(np.linspace(0.0, PERIOD, 400))[0]
    moved = np.abs(q - np.array(START)[:, None]).max(axis=1)
    assert (moved[:4] == 0.0).all()
    assert (moved[4:] > 0.1).all() and (moved <= 0.5 + 1e-9).all()
    speed = np.abs(result.trajectory.evaluate(np.linspace(0.0, PERIOD, 400))[1]).max(axis=1)
    assert (speed <= arm().ranges.dq_max + 1e-9).all()


@pytest.mark.slow
def test_the_accuracy_that_is_expected_is_that_of_the_estimate():
    _, accuracy = designed()
    found = run(BRICK, BRICK)
    reached = np.sqrt(np.diag(found.estimate.covariance))
    assert accuracy.found[:4].all()
    np.testing.assert_allclose(np.log(accuracy.standard_deviations[:4] / reached[:4]), 0.0, atol=np.log(2.5))
    error = found.estimate.values - BRICK
    assert error @ np.linalg.solve(found.estimate.covariance, error) < 30.0  # chi-square of 10
    assert found.payload is not None and not found.problem


@pytest.mark.slow
def test_a_payload_that_changes_between_the_halves_is_no_payload():
    changed = run(BRICK, 0.0 * BRICK)
    assert changed.payload is None
    assert [one.code for one in changed.findings if one.severity == "error"] == ["payload_changed"]
    nothing = run(0.0 * BRICK, 0.0 * BRICK, declared=DeclaredPayload(LINK, np.zeros(10)))
    assert nothing.payload is None and nothing.absent
    assert nothing.test.accepted


@pytest.mark.slow
def test_the_monitor_reports_when_the_payload_is_no_longer_true():
    """The model of the arm with the payload fits the loaded arm, and no longer the arm that has dropped it."""
    found = run(BRICK, BRICK)
    loaded = add_payload(arm(), found.payload)

    def worse(body):
        monitor = ResidualMonitor(loaded, cutoff=5.0, window=10.0)
        samples = half(body, 7).samples
        for t, q, dq, tau in zip(samples.t, samples.q, samples.dq, samples.tau, strict=True):
            if monitor.add(t, q, dq, tau):
                monitor.residual()
        return set(monitor.worse(3.0, 0.1))

    assert not worse(BRICK) & set(demands().moving)
    assert "joint6" in worse(0.0 * BRICK)


@pytest.mark.slow
def test_an_unsuited_configuration_is_refused_with_what_to_change():
    with pytest.raises(MotionError, match=r"vertical axes: joint7\); (turn|let) joint"):
        check_configuration(demands(UPRIGHT, ("joint7",)))
    assert check_configuration(demands()).worst_ratio < 1.0
    at_limit = np.array(START)
    at_limit[5] = 1.9
    with pytest.raises(MotionError, match="joint6"):
        check_configuration(demands(at_limit))


def test_an_accuracy_that_is_not_a_number_is_refused():
    """Comparisons with nan are false, so that it must not pass by one."""
    nan = np.full(len(arm().robot.joint_names), np.nan)
    unknown = altered(arm(), judgment={"held_out_nrmse": nan, "held_out_all_joints_nrmse": np.nan})
    with pytest.raises(InputError, match="not known: joint5"):
        check_configuration(demands(arm=unknown))
    sigma = np.array([np.nan, *(1e-3,) * 9])
    assert PayloadAccuracy(1.0, sigma).worst_ratio == np.inf


def test_joints_that_do_not_move_the_payload_are_refused():
    with pytest.raises(UsageError, match="joint9"):
        demands(joints=("joint9",))
