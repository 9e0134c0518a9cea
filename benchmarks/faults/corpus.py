# SPDX-License-Identifier: Apache-2.0
"""Valid input of every kind, from which mutations are made: `python -m faults.corpus FOLDER` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from faults import ROOT

sys.path.insert(0, str(ROOT / "test"))

PAYLOAD = """link: l3
mass: 1.5
center_of_mass: [0.05, 0.02, 0.1]
inertia: {ixx: 0.0078125, ixy: 0, iyy: 0.0040625, ixz: 0, iyz: 0, izz: 0.00625}
"""

JOINT_LIMITS = """joint_limits:
  shoulder: {has_position_limits: true, min_position: -1.0, max_position: 1.0,
             has_velocity_limits: true, max_velocity: 1.5}
  elbow: {has_acceleration_limits: true, max_acceleration: 3.0, has_jerk_limits: true, max_jerk: 30.0}
  wrist: {has_effort_limits: true, max_effort: 20.0, has_velocity_limits: false}
"""

CONFIGURATION = """joints:
  shoulder: {gain: 13.6, sign: 1}
  elbow: {reversal_speed: 0.1}
identify: [shoulder, elbow, wrist]
gravity: [0.0, 0.0, -9.81]
topic: /joint_states
cutoff: 5.0
filter_order: 4
velocity: auto
terms:
  viscous:
  coulomb: {smoothing_width: 0.02}
  offset:
couplings:
  motor: {weights: {elbow: 1.0, wrist: 1.0}, terms: [rotor_inertia]}
estimator: {name: weighted, method: qr}
essential: 0.0
bootstrap: 0
pivots: rref
thresholds: {joint_nrmse: 0.3, bad_nrmse: 0.3, condition_number: 1000}
ignore: []
"""

DESIGN = """form: fourier
harmonics: 4
period: 6.0
periods: 1
posture: {shoulder: 0.0, elbow: 0.2, wrist: -0.2}
velocity_scale: 0.5
margin: 0.05
acceleration: {shoulder: 3.0, elbow: 3.0, wrist: 5.0}
clearance: 0.02
obstacles:
- {name: table, height: -0.5}
- {name: box, size: [0.1, 0.1, 0.1], xyz: [5.0, 0.0, 0.0], rpy: [0.0, 0.0, 0.1]}
seed: 3
"""

SRDF = """<robot name="arm">
  <group name="all"><chain base_link="base" tip_link="l3"/></group>
  <disable_collisions link1="base" link2="l1" reason="Adjacent"/>
  <disable_collisions link1="l1" link2="l2" reason="Adjacent"/>
</robot>
"""

XACRO = """<?xml version="1.0"?>
<robot name="made" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="length" default="0.4"/>
  <xacro:property name="length" value="$(arg length)"/>
  <xacro:property name="mass" value="${2 * 1.5}"/>
  <xacro:macro name="body" params="name m *origin">
    <link name="${name}"><inertial><xacro:insert_block name="origin"/><mass value="${m}"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  </xacro:macro>
  <link name="base"/>
  <xacro:body name="upper" m="${mass}"><origin xyz="0 0 ${length / 2}" rpy="0 0 0"/></xacro:body>
  <xacro:body name="lower" m="${mass / 2}"><origin xyz="0 0 ${length / 3}" rpy="0 0 0"/></xacro:body>
  <joint name="first" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="${-pi / 2}" upper="${pi / 2}" effort="50" velocity="2"/></joint>
  <xacro:if value="${length > 0.1}">
  <joint name="second" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 ${length}"/>
    <axis xyz="1 0 0"/><limit lower="-1.5" upper="1.5" effort="20" velocity="3"/></joint>
  </xacro:if>
</robot>
"""


def write(folder: Path) -> None:
    """Write the corpus."""
    from support.model_nodes import identified
    from support.recording_files import JOINTS, truth, write_bag, write_mcap
    from support.simulated import ARM, Simulated, save_npz

    from robot_dyn_id.files.parameters import write_parameters
    from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag

    _write_box(folder)
    texts = {
        "arm.srdf": SRDF,
        "payload.yaml": PAYLOAD,
        "joint_limits.yaml": JOINT_LIMITS,
        "configuration.yaml": CONFIGURATION,
        "design.yaml": DESIGN,
        "made.xacro": XACRO,
        "arm.urdf": ARM,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    write_parameters(folder / "parameters.yaml", identified())
    (folder / "identified.urdf").write_text(identified().robot.urdf)
    robot = Simulated()
    trial = robot.record(seed=1, duration=8.0, noise=0.05)
    save_npz(folder / "trial.npz", trial)
    samples = trial.samples
    stamps = np.round(1e9 * (1000.0 + samples.t)).astype(np.int64)
    write_joint_state_bag(
        folder / "bag", "/joint_states", robot.joints, StampedSamples(stamps, samples.q, samples.dq, samples.tau)
    )
    columns = [f"{channel}_{joint}" for channel in ("q", "dq", "tau") for joint in robot.joints]
    table = np.column_stack([samples.t, samples.q, samples.dq, samples.tau])[:200]
    np.savetxt(folder / "trial.csv", table, delimiter=",", header=",".join(["t", *columns]), comments="")
    small = truth(count=60)
    write_mcap(folder / "small.mcap", small.messages(JOINTS))
    write_bag(folder / "small_db3", small.messages(JOINTS))
    write_bag(folder / "small_mcap", small.messages(JOINTS), storage="mcap")
    _write_messages(folder, ARM)


def _write_box(folder: Path) -> None:
    """Write a unit cube as a binary STL and as an OBJ file."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype="<f4")
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    triangles = [(side[0], side[k], side[k + 1]) for side in sides for k in (1, 2)]
    records = b"".join(bytes(12) + corners[list(triangle)].tobytes() + bytes(2) for triangle in triangles)
    (folder / "box.stl").write_bytes(bytes(80) + len(triangles).to_bytes(4, "little") + records)
    lines = [f"v {x:g} {y:g} {z:g}" for x, y, z in corners] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles]
    (folder / "box.obj").write_text("\n".join(lines) + "\n")


def _write_messages(folder: Path, urdf: str) -> None:
    from builtin_interfaces.msg import Time
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray, Header, String
    from support.model_nodes import message
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    joints = ["shoulder", "elbow", "wrist"]
    state = JointState(name=joints, position=[0.1, 0.2, 0.3], velocity=[0.0] * 3, effort=[1.0] * 3)
    state.header = Header(stamp=Time(sec=1000, nanosec=1))
    points = []
    for second in (1, 2):
        point = JointTrajectoryPoint(positions=[0.1 * second] * 3, velocities=[0.0] * 3, accelerations=[0.0] * 3)
        point.time_from_start.sec = second
        points.append(point)
    trajectory = JointTrajectory(joint_names=joints, points=points)
    for item in (message(), state, trajectory, String(data=urdf), Float64MultiArray(data=[0.0] * 3)):
        (folder / f"{type(item).__name__}.cdr").write_bytes(serialize_message(item))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
