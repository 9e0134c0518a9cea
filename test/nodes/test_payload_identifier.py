# SPDX-License-Identifier: Apache-2.0
"""The payload identifier over DDS: with a simulated arm, a driver's service, and everything that goes wrong."""

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from std_srvs.srv import SetBool
from support.lifecycle import ACTIVATE, ACTIVE_SHUTDOWN, CLEANUP, CONFIGURE, DEACTIVATE, change
from support.payload_cell import BRICK, PACE, RESULT, START, TASKS, UPRIGHT, PayloadCell

from robot_dyn_id.dynamics.consistency import convert_to_central
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.payload import read_payload
from robot_dyn_id.loads.declared import SIGNIFICANCE
from robot_dyn_id.nodes.payload_identifier import PayloadIdentifier

pytestmark = pytest.mark.real_time


def test_identify_compare_and_write_into_a_driver(world, tmp_path):
    franka = pytest.importorskip("franka_msgs.srv")
    taken = []

    def take(request, answer):
        taken.append(request)
        answer.success = len(taken) > 1
        answer.error = "" if answer.success else "brakes are closed"
        return answer

    world.probe.create_service(franka.SetLoad, "service_server/set_load", take)
    options = {"driver": "franka", "driver_frame": "link7", "declared": "[1.2]"}
    cell = PayloadCell(world, tmp_path, **options)
    assert "there is no identified payload" in cell.rejection(TASKS.WRITE)
    result, stages = cell.run()
    assert result.code == RESULT.SUCCEEDED, result.message
    assert stages == ["check", "slow test", "warm-up", "measurement", "return", "estimate"]
    mass, center, _ = convert_to_central(BRICK)
    sigma = np.array(result.standard_deviations)
    assert abs(result.mass - mass) < 4.0 * sigma[0] < 0.5
    assert (np.abs(result.center_of_mass - center) < 4.0 * sigma[1:4]).all()
    assert result.declared and not result.declared_accepted and result.declared_mass == pytest.approx(1.2)
    assert "payload_declared_wrong" in [finding.code for finding in result.findings]
    assert taken == []  # never without a confirmation
    world.until(lambda: cell.loaded)
    first, _ = cell.run(TASKS.WRITE)
    assert (first.code, "brakes are closed" in first.message) == (RESULT.DRIVER_REFUSED, True)
    second, _ = cell.run(TASKS.WRITE)
    assert second.code == RESULT.SUCCEEDED, second.message
    request = taken[-1]
    stored = read_payload(tmp_path / "out" / "goal_1" / "payload.yaml")
    assert request.mass == pytest.approx(result.mass)
    np.testing.assert_allclose(request.center_of_mass, stored.center_of_mass, rtol=1e-9)
    np.testing.assert_allclose(np.reshape(request.load_inertia, (3, 3), order="F"), stored.inertia, rtol=1e-6)


NODE = PayloadIdentifier.NAME


def companions(world):
    return [name for name in world.probe.get_node_names() if name in PayloadIdentifier.COMPANIONS]


def at_rest(cell):
    return np.abs(cell.simulator._robot.plant.dq).max() < 0.01


def test_nothing_moves_before_the_node_is_active(world, tmp_path):
    cell = PayloadCell(world, tmp_path, autostart="false", wait=False)
    for transition, state in ((None, "unconfigured"), (CONFIGURE, "inactive")):
        assert transition is None or change(world, transition, NODE)
        for task in (TASKS.IDENTIFY, TASKS.REFERENCE, TASKS.WRITE):
            assert f"{state}: configure and activate the node" in cell.rejection(task)
    world.wait(2.0 / PACE)
    np.testing.assert_allclose(cell.simulator._robot.plant.q, START, atol=1e-3)
    assert not companions(world)
    assert change(world, ACTIVATE, NODE)
    world.until(lambda: cell.node._inputs and cell.node._inputs.position is not None, what="joint states")
    goal = cell.send()
    cell.until_stage(goal, "slow test")
    world.until(lambda: not at_rest(cell), what="motion")
    goal.cancel()
    assert goal.end()[1].code == RESULT.CANCELED


@pytest.mark.parametrize(
    ("stage", "last"), [("check", "deactivate"), ("slow test", "cleanup"), ("warm-up", "shutdown")]
)
def test_a_transition_during_a_goal_brakes_and_ends_it(world, tmp_path, stage, last):
    cell = PayloadCell(world, tmp_path)
    goal = cell.send()
    cell.until_stage(goal, stage)
    if stage != "check":
        world.until(lambda: goal.done or not at_rest(cell), what="motion")
    assert change(world, ACTIVE_SHUTDOWN if last == "shutdown" else DEACTIVATE, NODE)
    if last == "cleanup":
        assert change(world, CLEANUP, NODE)
    status, result = goal.end()
    assert (status, result.code) == (GoalStatus.STATUS_ABORTED, RESULT.STOPPED), result.message
    assert result.message == "stopped: the node was deactivated"
    world.within(1.0 / PACE, lambda: at_rest(cell), "rest, of which the simulator hears by the same queue")
    world.until(lambda: not companions(world), what="the end of its companion")
    world.wait(1.0 / PACE)  # the servo of the arm has followed the last setpoint
    rest = cell.simulator._robot.plant.q.copy()
    world.wait(1.0 / PACE)
    np.testing.assert_allclose(cell.simulator._robot.plant.q, rest, atol=1e-3)
    assert cell.rejection(TASKS.CHECK)  # the node is not active, or the computation has not ended
    if last == "shutdown":
        return
    if last == "cleanup":
        world.until(lambda: change(world, CONFIGURE, NODE), what="configuration")
    assert change(world, ACTIVATE, NODE)
    world.until(lambda: cell.node._inputs and cell.node._inputs.position is not None, what="joint states")
    world.until(lambda: not cell.node._goals._latest.busy, what="the end of the computation")
    result, stages = cell.run(TASKS.CHECK)
    assert (result.code, stages) == (RESULT.SUCCEEDED, ["check"]), result.message


@pytest.mark.parametrize("stage", ["check", "slow test", "measurement"])
def test_a_goal_is_canceled_in_every_stage(world, tmp_path, stage):
    cell = PayloadCell(world, tmp_path)
    goal = cell.send()
    cell.until_stage(goal, stage)
    goal.cancel()
    status, result = goal.end()
    assert (status, result.code) == (GoalStatus.STATUS_CANCELED, RESULT.CANCELED), result.message
    world.until(lambda: np.abs(cell.simulator._robot.plant.dq).max() < 0.01)
    assert cell.loaded == []


def test_a_payload_that_falls_off_is_not_identified(world, tmp_path):
    cell = PayloadCell(world, tmp_path)
    goal = cell.send()
    cell.until_stage(goal, "measurement")
    first_half = lambda: (one := cell.node._goals.goal) and one.recording and one.recording.parts  # noqa: E731
    world.until(lambda: goal.done or first_half(), what="the first half")
    cell.drop()
    _, result = goal.end()
    assert result.code == RESULT.FAILED, result.message
    assert [one.code for one in result.findings if one.severity == "error"] == ["payload_changed"]
    assert cell.loaded == []


def test_an_arm_that_carries_nothing_has_no_payload(world, tmp_path):
    cell = PayloadCell(world, tmp_path, declared="[0.0]")
    cell.drop()
    result, _ = cell.run()
    assert result.code == RESULT.NO_PAYLOAD, result.message
    assert result.declared and result.declared_accepted == (result.declared_p_value >= SIGNIFICANCE)
    assert result.declared_p_value > 1e-4, "the test rejects a true payload in one of a hundred recordings"


def test_a_reference_of_the_empty_arm(world, tmp_path):
    """Payloads of the same configuration use its motion and its data; a driver that is absent is named."""
    pytest.importorskip("ur_msgs.srv")
    cell = PayloadCell(world, tmp_path, driver="ur", driver_frame="link7")
    cell.drop()
    result, _ = cell.run(TASKS.REFERENCE)
    assert result.code == RESULT.SUCCEEDED, result.message
    assert world.call(SetBool, "simulator/carry_payload", SetBool.Request(data=True)).success
    result, _ = cell.run()
    assert result.code == RESULT.SUCCEEDED, result.message
    assert abs(result.mass - BRICK[0]) < 4.0 * result.standard_deviations[0] < 1.0
    first, second = ((tmp_path / "out" / f"goal_{n}" / "trajectory.yaml").read_text() for n in (1, 2))
    assert first == second
    assert "no server of the service" in cell.rejection(TASKS.WRITE)


def test_what_is_checked_before_the_robot_moves(world, tmp_path):
    cell = PayloadCell(world, tmp_path, driver="file")
    result, stages = cell.run(TASKS.CHECK)
    assert result.code == RESULT.SUCCEEDED, result.message
    assert stages == ["check"]
    assert np.isfinite(result.expected_deviations[:4]).all()
    np.testing.assert_allclose(cell.simulator._robot.plant.q, START, atol=1e-3)


def test_a_configuration_that_is_not_suited_is_refused_with_what_to_change(world, tmp_path):
    cell = PayloadCell(world, tmp_path, start=UPRIGHT, moving_joints="['joint7']")
    result, stages = cell.run()
    assert result.code == RESULT.UNSUITED
    assert stages == ["check"]
    assert "vertical axes: joint7" in result.message
    assert "turn " in result.message or "moving_joints" in result.message


def test_what_is_missing_is_named(world, tmp_path):
    cell = PayloadCell(world, tmp_path, model=False, simulator=False)
    assert "the model of the bare arm" in cell.rejection()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"declared": "[-1.0]"}, "a declared payload has a mass of 0 or more"),
        ({"declared": "[1.0, 0.0]"}, "1, 4 or 10 numbers"),
        ({"declared": "[1.0]", "declared_file": "known.yaml"}, "one of them"),
        ({"driver": "ur", "driver_frame": "nowhere"}, "driver_frame"),
        ({"driver": "ur", "driver_frame": "link3"}, "a joint separates link3 from link7"),
        ({"link": "nowhere"}, "nowhere"),
        ({"link": "''"}, "parameter link"),
    ],
)
def test_wrong_parameters_are_refused(world, tmp_path, wrong, named):
    if "driver" in wrong:
        pytest.importorskip("ur_msgs.srv")
    with pytest.raises(RobotDynIdError, match=named):
        PayloadCell(world, tmp_path, model=False, simulator=False, **wrong)
