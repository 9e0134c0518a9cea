# SPDX-License-Identifier: Apache-2.0
"""The simulator with identified actuators over real DDS: the motion of the offline simulation, commands, wrong files."""

from dataclasses import replace

import numpy as np
import pytest
from rcl_interfaces.msg import Log
from robot_dyn_id.msg import ActuatorSet as ActuatorSetMsg
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from support.commanded import MODEL, TRUTH, make_actuator_set, save_actuators
from support.ros_world import ros_arguments
from support.simulated import ARM
from support.simulator_scene import DEEP, Commander, seconds, trajectory

from robot_dyn_id.actuators.actuator_set import ActuatorJudgment
from robot_dyn_id.actuators.draws import draw_actuators
from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.actuators import KINDS, roll_out
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.messages.conversions import make_actuator_set_message
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.simulator_settings import SimulatorSettings

RATE = 250.0

UNCERTAIN = make_actuator_set().uncertainty

SLOW = {"rate": RATE, "publish_rate": RATE, "controller_state_rate": RATE}


@pytest.fixture
def files(tmp_path):
    """URDF and actuators of an arm, whose friction lets it come to rest."""
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    return {"urdf": urdf, "actuators": save_actuators(tmp_path / "actuators.yaml")}


def until_at_rest(arm):
    arm.world.until(lambda: not np.any(arm.states[-1].velocity), what="rest")
    arm.passes(0.1)
    assert not np.any(arm.states[-1].velocity)


@pytest.mark.parametrize("draw", [0, 7])
def test_the_arm_moves_as_the_offline_simulation_under_a_trajectory_and_under_positions(world, files, draw):
    """The published commands are simulated again, with the actuators of the file or drawn ones that were received:
    every position agrees to 1e-9 rad."""
    interfaces = pytest.importorskip("control_msgs.msg")
    states = world.heard(
        interfaces.JointTrajectoryControllerState, "joint_trajectory_controller/controller_state", DEEP
    )
    identified = make_actuator_set()
    if draw:
        latched = world.probe.create_publisher(ActuatorSetMsg, "identified_actuators", LATCHED)
        latched.publish(make_actuator_set_message(identified))
        files = {"urdf": files["urdf"], "model": "actuators", "actuator_draw": draw}
        truth = draw_actuators(identified.actuators, identified.uncertainty, 3, draw)[0]
        assert np.abs(truth.coulomb / TRUTH.coulomb - 1.0).min() > 0.01
    else:
        truth = TRUTH
    arm = Commander(world, **files, **SLOW)
    positions = world.probe.create_publisher(Float64MultiArray, "position_command", SENSOR)
    world.until(positions.get_subscription_count, what="position_command")
    world.until(lambda: states, what="controller_state")
    until_at_rest(arm)
    begin = seconds(arm.states[-1].header.stamp)
    arm.trajectories.publish(trajectory(arm.names, [0.3, -0.4, 0.5], 0.8))
    target = [0.1, -0.2, 0.3]
    commands = Float64MultiArray(data=target)

    def until_with_commands(condition, what):
        """Repeated until then: a single message to a subscription that does not ask for it again may be lost."""
        world.until(lambda: positions.publish(commands) or condition(), what=what)

    until_with_commands(lambda: arm.logged("position command: a trajectory is being followed"), "refusal")
    arm.passes(1.0)
    until_with_commands(lambda: np.array_equal(states[-1].output.positions, target), "the position")
    arm.passes(0.5)
    until_at_rest(arm)
    measured = {seconds(one.header.stamp): one.position for one in arm.states}
    commanded = {seconds(one.header.stamp): one.output.positions for one in states}
    stamps = sorted(stamp for stamp in measured.keys() & commanded.keys() if stamp >= begin)
    q, reference = (np.array([values[stamp] for stamp in stamps]) for values in (measured, commanded))
    t = np.arange(len(stamps)) / RATE  # a busy computer leaves out time, not ticks
    motion = CommandedMotion("node", MODEL.joint_names, t, q, reference, (t[:1] - 1.0, reference[:1]))
    np.testing.assert_allclose(q, simulate_commands(MODEL, truth, motion), rtol=0.0, atol=1e-9)
    assert np.ptp(q, axis=0).min() > 0.2
    assert np.abs(q - reference).max() > 0.05, "drives lag"
    np.testing.assert_allclose(arm.states[-1].effort, truth.kp * (reference[-1] - q[-1]), atol=1e-9)


@pytest.mark.skipif(not COMPILED, reason="numba is not installed: nothing is compiled")
def test_nothing_is_compiled_after_the_start(world, files):
    arm = Commander(world, **files, **SLOW)
    known = len(roll_out.signatures)
    arm.trajectories.publish(trajectory(arm.names, [0.1, 0.1, 0.1], 0.2))
    arm.passes(0.4)
    assert len(roll_out.signatures) == known == 1


def test_wrong_actuators_end_the_node_at_the_start(world, files, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("format: robot_dyn_id parameters\nformat_version: 1\n")
    empty = tmp_path / "empty.yaml"
    empty.write_text(files["actuators"].read_text().split("joints:")[0] + "joints: []\ncorrelation: []\n")
    old = tmp_path / "old.yaml"
    old.write_text(files["actuators"].read_text().replace("format_version: 3", "format_version: 2"))
    unfit = save_actuators(tmp_path / "unfit.yaml", judgment=ActuatorJudgment("bad", ("it misses",), "no"))
    wide = save_actuators(tmp_path / "wide.yaml", uncertainty=replace(UNCERTAIN, high=np.full((len(KINDS), 3), np.inf)))
    given = replace(UNCERTAIN, index=np.full((len(KINDS), 3), -1), correlation=np.zeros((0, 0)))
    certain = save_actuators(tmp_path / "certain.yaml", uncertainty=given)
    text = files["urdf"].read_text().replace('name="l1"', 'name="l0"').replace('link="l1"', 'link="l0"')
    (tmp_path / "other.urdf").write_text(text)
    for given, error, words in (
        ({"actuators": tmp_path / "none.yaml"}, InputError, "none.yaml"),
        ({"actuators": other}, InputError, "not a actuators file"),
        ({"actuators": empty}, InputError, "empty.yaml: actuator set: it has no actuators"),
        ({"urdf": tmp_path / "other.urdf"}, InputError, "identified with another robot description"),
        ({"urdf": "", "actuators": other}, InputError, "not a actuators file"),
        ({"actuators": old}, InputError, "format_version is 2, this version of robot_dyn_id reads 3"),
        ({"actuators": unfit}, InputError, "the actuators are not fit for simulation: it misses"),
        ({"actuators": wide, "actuator_draw": 1}, InputError, "the interval of armature of shoulder is infinite"),
        ({"actuators": certain, "actuator_draw": 1}, InputError, "no value of the actuators was estimated"),
        ({"actuator_draw": -1}, UsageError, "actuator_draw must be at least 0"),
        ({"actuators": "", "actuator_draw": 1}, UsageError, "actuator_draw needs actuators"),
        ({"model": "actuators"}, UsageError, "actuators need model to be urdf"),
        ({"control": "effort"}, UsageError, "actuators need control to be position"),
        ({"actuators": "", "model": "actuators", "control": "either"}, UsageError, "need control to be position"),
        ({"viscous": "[1.0]"}, UsageError, "viscous and actuators are both given"),
    ):
        with pytest.raises(error, match=words):
            world.add(Simulator, *ros_arguments(**{**files, **given}))


def test_received_actuators_wait_for_their_robot_and_those_of_others_are_refused(world):
    log, states = world.heard(Log, "/rosout", DEEP), world.heard(JointState, "joint_states", DEEP)
    actuators = world.probe.create_publisher(ActuatorSetMsg, "identified_actuators", LATCHED)
    descriptions = world.probe.create_publisher(String, "robot_description", LATCHED)
    node = world.add(Simulator, *ros_arguments(model="actuators", actuator_draw=3))

    def until_logged(words):
        world.until(lambda: any(words in line.msg for line in log), what=words)

    until_logged("waiting for identified_actuators")
    message = make_actuator_set_message(make_actuator_set())
    message.format_version = 1
    actuators.publish(message)
    until_logged("refused: identified_actuators: actuator set: format_version is 1")
    actuators.publish(make_actuator_set_message(make_actuator_set(judgment=ActuatorJudgment("bad", (), "no"))))
    until_logged("refused: identified_actuators: the actuators are not fit for simulation")
    actuators.publish(
        make_actuator_set_message(
            make_actuator_set(urdf=ARM.replace('name="l1"', 'name="l0"').replace('link="l1"', 'link="l0"'))
        )
    )
    until_logged("waiting for robot_description")
    descriptions.publish(String(data=ARM))
    until_logged("refused: robot_description: the actuators were identified with another robot description")
    actuators.publish(make_actuator_set_message(make_actuator_set()))
    descriptions.publish(String(data=ARM))
    world.until(lambda: states, what="joint states")
    assert node.end is None


def test_the_links_and_the_order_of_the_joints_are_those_of_the_file(files, tmp_path):
    path = save_actuators(tmp_path / "reversed.yaml", TRUTH.select(MODEL.joint_names[::-1]))
    robots = []
    for file in (files["actuators"], path):
        settings = SimulatorSettings(urdf=str(files["urdf"]), actuators=str(file))
        drives = settings.read_drives()
        dynamics = settings.nominal(RobotDescription.from_file(files["urdf"]), drives)
        robots.append(settings.robot(dynamics, drives))
    for _ in range(200):
        states = [dict(zip(one.plant.dynamics.model.joint_names, one.tick()[0], strict=True)) for one in robots]
    assert states[0] == pytest.approx(states[1], abs=1e-12)
    assert abs(states[0]["wrist"]) > 1e-2
