# SPDX-License-Identifier: Apache-2.0
"""A demo or a test in a ROS domain of its own: no robot is reached, whatever its names and wherever it is."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from support.follower import Follower
from support.processes import HANG_S, child, run_program

from robot_dyn_id.cli import demo, note
from robot_dyn_id.errors import GraphError
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.runtime import isolation
from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.recordings import open_recording

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """The environment of the test process is restored afterwards."""
    for name in ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", *isolation.NO_PROFILES):
        monkeypatch.setenv(name, os.environ[name])


def free_domain():
    """A domain that is not in use; unlike those of `keep_to_this_host` it is not reserved."""
    own = os.environ["ROS_DOMAIN_ID"]
    domain = keep_to_this_host(listen=False)
    isolation._reservations.pop(domain).close()
    os.environ["ROS_DOMAIN_ID"] = own
    return domain


@pytest.fixture
def domain_with_robot():
    """A domain in which a robot publishes joint states."""
    domain = free_domain()
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    robot = Node("robot", context=context)
    robot.create_publisher(JointState, "joint_states", 1)
    yield domain
    robot.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize("listen", [False, True])
def test_a_domain_with_a_robot_is_not_taken(domain_with_robot, listen):
    with pytest.raises(GraphError, match="no ROS domain is empty"):  # its ports are bound
        keep_to_this_host(listen, [domain_with_robot])
    assert keep_to_this_host(listen, [domain_with_robot, *isolation.DOMAINS]) != domain_with_robot


def test_a_robot_that_no_port_of_this_host_betrays_is_discovered(domain_with_robot, monkeypatch):
    monkeypatch.setattr(isolation, "_in_use", lambda domain: False)
    with pytest.raises(GraphError, match=f"robot.* is in domain {domain_with_robot}"):
        keep_to_this_host(True, [domain_with_robot])


def test_an_empty_domain_is_found_after_listening(domain_with_robot):
    begin = time.monotonic()
    keep_to_this_host(listen=True)
    assert isolation.LISTENING_S <= time.monotonic() - begin < HANG_S  # 1.1 s on a computer that does nothing else


def test_the_domain_of_the_user_is_never_taken(monkeypatch):
    users = free_domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(users))
    monkeypatch.setenv("ROS_STATIC_PEERS", "192.168.0.2")
    monkeypatch.setenv("ROS_DISCOVERY_SERVER", "192.168.0.2:11811")
    assert keep_to_this_host(False, [users, *isolation.DOMAINS]) != users
    assert {"ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER"}.isdisjoint(os.environ)


def test_processes_at_the_same_time_get_domains_of_their_own():
    domains = [free_domain()]
    while len(domains) < 2:
        domains += {free_domain()}.difference(domains)
    code = f"from robot_dyn_id.nodes.runtime.isolation import *\nprint(keep_to_this_host(False, {domains}), flush=True)\ninput()"
    command, options = [sys.executable, "-c", code], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with child(command, **options) as first, child(command, **options) as second:
        taken = [process.stdout.readline().strip() for process in (first, second)]
        third = run_program(*command)
        for process in (first, second):
            process.kill()
    assert sorted(taken) == sorted(map(str, domains))
    assert "GraphError: no ROS domain is empty" in third.stderr
    assert keep_to_this_host(False, domains) in domains, "processes that were killed hold nothing"


def test_a_demo_that_is_forced_next_to_a_robot_of_the_same_names_does_not_move_it(world, tmp_path):
    demo.write_robots(tmp_path)
    names = RobotModel.from_file(tmp_path / demo.PLANT).joint_names
    assert set(names).isdisjoint(RobotModel.from_file(find_shared_file("urdf/arm7.urdf")).joint_names)
    robot = world.add(lambda **options: Follower(names, np.full(7, 0.1), **options))
    config = (find_shared_file("config/arm7.yaml"),)
    with demo.make_composition() as ros:
        with pytest.raises(GraphError, match=r"a robot has joined the demo's ROS domain .*, with the topic /joint_"):
            ros.until(lambda: False, HANG_S, "the robot")
        ros._check = None
        ros.add(Simulator, {"urdf": str(tmp_path / demo.PLANT), "clock": True}, config)
        motion = {
            "urdf": str(tmp_path / demo.DESCRIPTION),
            "start": True,
            "period": 1.0,
            "harmonics": 3,
            **{"form": "fourier", "amplitude_share": 0.1},
            **demo.SIMULATED_TIME,
        }
        bag = {"folder": str(tmp_path / "bag"), "topics": ("joint_states",), **demo.SIMULATED_TIME}
        try:
            demo._record(ros, bag, motion, config)
        finally:
            note("recorded")  # ends the progress, which a command would do
        world.until(lambda: len(robot.history) > 100)
    assert robot.received == []
    (chunk, *_) = open_recording(tmp_path / "bag").chunks(names)
    assert np.ptp(chunk.q, axis=0).max() > 0.01, "the simulated arm moved"
    assert not (chunk.q == 0.1).all(axis=1).any(), "nothing of the robot was recorded"
