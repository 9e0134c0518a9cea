# SPDX-License-Identifier: Apache-2.0
"""From a motion of a simulated robot with drives to its actuators, over real DDS, as `actuators.launch.py` does it."""

from dataclasses import replace

import numpy as np
import pytest
from robot_dyn_id.action import IdentifyRecordings
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport
from std_srvs.srv import Trigger
from support.commanded import MODEL, TRUTH, assert_same_actuators, record, save, save_actuators
from support.goal_client import GoalClient
from support.ros_world import ros_arguments
from support.simulated import ARM

from robot_dyn_id.actuators.actuator_set import ActuatorSet
from robot_dyn_id.errors import UsageError
from robot_dyn_id.files.actuators import read_actuators
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.recorder import Recorder
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from robot_dyn_id.nodes.simulator import Simulator

STATE = "joint_trajectory_controller/controller_state"

RATE = 100.0

DAMPED = replace(TRUTH, kd=4.0 * TRUTH.kd)
"""Drives that come to rest at the end of a motion."""

GAINS = {name: str(getattr(DAMPED, name).tolist()) for name in ("kp", "kd")}


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def check(world, folder, error):
    """The actuators in a folder are those of the robot, but for a relative error; the message has the same."""
    stored = read_actuators(folder / "actuators.yaml")
    published = world.heard(ActuatorSetMsg, "identified_actuators", LATCHED)
    world.until(lambda: published, what="the latched actuators")
    assert_same_actuators(ActuatorSet.from_message(published[-1]), stored)
    assert published[-1].header.stamp.sec > 0
    found = stored.actuators
    for name in ("armature", "viscous", "coulomb", "delay"):
        np.testing.assert_allclose(getattr(found, name), getattr(DAMPED, name), rtol=error, err_msg=name)


@pytest.mark.slow
def test_a_motion_is_executed_recorded_and_its_actuators_are_identified(world, urdf, tmp_path):
    pytest.importorskip("control_msgs")
    world.keep_time()
    rates = {"rate": RATE, "publish_rate": RATE, "controller_state_rate": RATE}
    world.add(Simulator, *ros_arguments(urdf=urdf, actuators=save_actuators(tmp_path / "truth.yaml", DAMPED), **rates))
    world.add(Recorder, *ros_arguments(folder=tmp_path / "bag", topics=f"[joint_states, {STATE}]"))
    rules = f"joint_states:={STATE}", "identifier_recording_status:=identifier/recording_status"
    remapped = [word for rule in rules for word in ("-r", rule)]
    options = {"urdf": urdf, "folder": tmp_path / "run", "model": "actuators", **GAINS}
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    world.add(Identifier, *ros_arguments(**options, joint_states_type=kind), *remapped)
    motion = {"period": 4.0, "periods": 2, "acceleration": "[8.0]", "effort_scale": 0.0, "require_effort": "false"}
    quick = {"rehearsal": "false", "latency": 0.5, "tracking_error": "[1.0]", "allow_unchecked_collisions": "true"}
    world.add(ExcitationPublisher, *ros_arguments(urdf=urdf, mode="action", recording="required", **motion, **quick))
    statuses = world.heard(ExcitationStatus, "excitation_status", LATCHED)
    reports = world.heard(IdentificationReport, "identification_report", LATCHED)
    world.until(lambda: statuses and statuses[-1].state == ExcitationStatus.READY, what="a planned motion")
    world.until(lambda: world.call(Trigger, "excitation_publisher/start").success, what="the start")
    world.until(lambda: reports or statuses[-1].state == ExcitationStatus.FAULT, what="a report")
    assert reports, statuses[-1].reason
    assert reports[-1].verdict in ("good", "suspect"), reports[-1].reasons
    assert list(reports[-1].joint_names) == list(MODEL.joint_names)
    assert reports[-1].folder == str(tmp_path / "run")
    check(
        world, tmp_path / "run", 0.3
    )  # the first command is blended in, which the state of the controller does not show
    goal = GoalClient(world, IdentifyRecordings, "identifier/identify_recordings").send()
    world.until(lambda: goal.rejected, what="a refusal: goals are of the dynamics")


@pytest.mark.slow
def test_recordings_are_identified_at_once(world, urdf, tmp_path):
    path = tmp_path / "moved.npz"
    save(path, record(truth=DAMPED, duration=6.0, rate=50.0))
    reports = world.heard(IdentificationReport, "identification_report", LATCHED)
    options = {"urdf": urdf, "data": f"[{path}]", "folder": tmp_path / "run", "model": "actuators", **GAINS}
    node = world.add(Identifier, *ros_arguments(**options))
    world.until(lambda: reports, what="a report")
    assert node.end is None, "it stays, as with dynamics"
    assert list(reports[-1].data_sources) == [str(path)]
    check(world, tmp_path / "run", 0.05)


@pytest.mark.slow
def test_bad_actuators_are_written_and_not_published(world, urdf, tmp_path):
    path = tmp_path / "moved.npz"
    save(path, record(truth=DAMPED, duration=4.0, rate=50.0, noise=0.3))
    published = world.heard(ActuatorSetMsg, "identified_actuators", LATCHED)
    reports = world.heard(IdentificationReport, "identification_report", LATCHED)
    options = {"urdf": urdf, "data": f"[{path}]", "folder": tmp_path / "run", "model": "actuators", **GAINS}
    node = world.add(Identifier, *ros_arguments(**options))
    world.until(lambda: reports and node.end == 1, what="a report, and the exit code of the command line")
    assert reports[-1].verdict == "bad"
    assert read_actuators(tmp_path / "run" / "actuators.yaml").judgment.fit_for_simulation == "no"
    assert not published


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kp": "[1.0]"}, "kp and kd need model to be actuators"),
        ({"model": "actuators", "parameters": "run/parameters.yaml"}, "parameters needs model to be dynamics"),
    ],
)
def test_parameters_of_the_other_model_are_refused(world, urdf, tmp_path, given, words):
    with pytest.raises(UsageError, match=words):
        world.add(Identifier, *ros_arguments(urdf=urdf, folder=tmp_path / "run", **given))
