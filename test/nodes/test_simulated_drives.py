# SPDX-License-Identifier: Apache-2.0
"""The simulator with identified actuators over real DDS: the motion of the offline simulation, commands, wrong files."""

import numpy as np
import pytest
from std_msgs.msg import Float64MultiArray
from support.commanded import MODEL, TRUTH, save_actuators
from support.ros_world import ros_arguments
from support.simulated import ARM
from support.simulator_scene import DEEP, Commander, seconds, trajectory

from robot_dyn_id.actuators.motion import CommandedMotion
from robot_dyn_id.actuators.rollout import simulate_commands
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.kernels.actuators import roll_out
from robot_dyn_id.kernels.compiled import COMPILED
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.nodes.runtime.robot_node import SENSOR
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.simulator_settings import SimulatorSettings

RATE = 250.0

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


def test_the_arm_moves_as_the_offline_simulation_under_a_trajectory_and_under_positions(world, files):
    """The published commands are simulated again: every position agrees to 1e-9 rad."""
    interfaces = pytest.importorskip("control_msgs.msg")
    states = world.heard(
        interfaces.JointTrajectoryControllerState, "joint_trajectory_controller/controller_state", DEEP
    )
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
    np.testing.assert_allclose(q, simulate_commands(MODEL, TRUTH, motion), rtol=0.0, atol=1e-9)
    assert np.ptp(q, axis=0).min() > 0.2
    assert np.abs(q - reference).max() > 0.05, "drives lag"
    np.testing.assert_allclose(arm.states[-1].effort, TRUTH.kp * (reference[-1] - q[-1]), atol=1e-9)


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
    empty.write_text(files["actuators"].read_text().split("joints:")[0] + "joints: []\n")
    text = files["urdf"].read_text().replace('name="l1"', 'name="l0"').replace('link="l1"', 'link="l0"')
    (tmp_path / "other.urdf").write_text(text)
    for given, error, words in (
        ({"actuators": tmp_path / "none.yaml"}, InputError, "none.yaml"),
        ({"actuators": other}, InputError, "not a actuators file"),
        ({"actuators": empty}, InputError, "joints is empty: it has no actuators"),
        ({"urdf": tmp_path / "other.urdf"}, InputError, "identified with another robot description"),
        ({"urdf": "", "actuators": other}, InputError, "not a actuators file"),
        ({"control": "effort"}, UsageError, "actuators need model to be urdf and control to be position"),
        ({"viscous": "[1.0]"}, UsageError, "viscous and actuators are both given"),
    ):
        with pytest.raises(error, match=words):
            world.add(Simulator, *ros_arguments(**{**files, **given}))


def test_the_links_and_the_order_of_the_joints_are_those_of_the_file(files, tmp_path):
    path = save_actuators(tmp_path / "reversed.yaml", TRUTH.select(MODEL.joint_names[::-1]))
    robots = []
    for file in (files["actuators"], path):
        settings = SimulatorSettings(urdf=str(files["urdf"]), actuators=str(file))
        dynamics = settings.nominal(RobotDescription.from_file(files["urdf"]))
        robots.append(settings.robot(dynamics))
    for _ in range(200):
        states = [dict(zip(one.plant.dynamics.model.joint_names, one.tick()[0], strict=True)) for one in robots]
    assert states[0] == pytest.approx(states[1], abs=1e-12)
    assert abs(states[0]["wrist"]) > 1e-2
