# SPDX-License-Identifier: Apache-2.0
"""Joint states of drivers' message types, in bags written by tools that are not ours."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from support.driver_messages import INTERFACES, cdr, header, message, stamped, write_topics, write_topics_with_mcap
from support.recording_files import samples, truth

from robot_dyn_id.errors import InputError, MissingDefinitionError
from robot_dyn_id.recordings import ColumnMeaning, open_recording
from robot_dyn_id.recordings.experiments import open_experiment
from robot_dyn_id.recordings.rosbag2 import MessageReading

AXES = tuple(f"A{number}" for number in range(1, 8))
UR = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
ARM = tuple(f"fr3_joint{number}" for number in range(1, 8))
STAMPS = truth(joints=1).stamps
Q, DQ, TAU, CURRENT, TEMPERATURE, REFERENCE = np.random.default_rng(0).normal(size=(6, len(STAMPS), 7))
TEMPERATURE += 35.0
POINT = "trajectory_msgs/msg/JointTrajectoryPoint"


def dynamic(row, stamp, names=ARM, interfaces=("position", "velocity", "effort", "current", "temperature")):
    columns = {"position": Q, "velocity": DQ, "effort": TAU, "current": CURRENT, "temperature": TEMPERATURE}
    values = [
        message(
            "control_msgs/msg/InterfaceValue",
            interface_names=list(interfaces),
            values=np.array([columns.get(name, 1e3 * Q)[row, joint] for name in interfaces]),
        )
        for joint in range(len(names))
    ]
    return message(
        "control_msgs/msg/DynamicJointState", header=header(stamp), joint_names=list(names), interface_values=values
    )


def controller(row, stamp):
    feedback = message(POINT, positions=Q[row], velocities=DQ[row], effort=TAU[row])
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    reference = message(POINT, positions=REFERENCE[row])
    return message(kind, header=header(stamp), joint_names=list(ARM), reference=reference, feedback=feedback)


def degrees(row, stamp):
    states = [
        message(
            "control_msgs/msg/SingleDOFState",
            name=name,
            feedback=Q[row, number],
            feedback_dot=DQ[row, number],
            reference=REFERENCE[row, number],
        )
        for number, name in enumerate(ARM)
    ]
    return message("control_msgs/msg/MultiDOFStateStamped", header=header(stamp), dof_states=states)


def joint_state(row, stamp, names=ARM, **fields):
    given = fields or {"position": Q[row], "velocity": DQ[row], "effort": TAU[row]}
    return message("sensor_msgs/msg/JointState", header=header(stamp), name=list(names), **given)


def franka(row, stamp):
    errors = message("franka_msgs/msg/Errors", joint_reflex=bool(row % 2))  # bytes that change from message to message
    return message(
        "franka_msgs/msg/FrankaRobotState",
        header=header(stamp, frame_id="base"),
        measured_joint_state=joint_state(row, stamp),
        desired_joint_state=joint_state(row, stamp, position=REFERENCE[row]),
        current_errors=errors,
        time=1e-3 * row,
    )


def lbr(row, stamp):
    return message(
        "lbr_fri_idl/msg/LBRState",
        time_stamp_sec=stamp // 10**9,
        time_stamp_nano_sec=stamp % 10**9,
        measured_joint_position=Q[row],
        measured_torque=TAU[row],
    )


def universal(row, stamp):
    fields = {
        "q_actual": Q,
        "qd_actual": DQ,
        "i_actual": CURRENT,
        "motor_temperatures": TEMPERATURE,
        "q_target": REFERENCE,
    }
    values = {name: array[row, :6] for name, array in fields.items()}
    return message("ur_msgs/msg/RobotStateRTMsg", time=1e-9 * (stamp - STAMPS[0]) + 1.0, **values)


CASES = {
    "control_msgs/msg/DynamicJointState": (dynamic, ARM, ("q", "dq", "tau", "current", "temperature"), False),
    "control_msgs/msg/JointTrajectoryControllerState": (controller, ARM, ("q", "dq", "tau", "reference"), False),
    "control_msgs/msg/MultiDOFStateStamped": (degrees, ARM, ("q", "dq", "reference"), False),
    "franka_msgs/msg/FrankaRobotState": (franka, ARM, ("q", "dq", "tau"), True),
    "lbr_fri_idl/msg/LBRState": (lbr, AXES, ("q", "tau"), True),
    "ur_msgs/msg/RobotStateRTMsg": (universal, UR, ("q", "dq", "current", "temperature", "reference"), False),
}
TRUTH = {"q": Q, "dq": DQ, "tau": TAU, "current": CURRENT, "temperature": TEMPERATURE, "reference": REFERENCE}


def bag(folder, kind, make, stamps=STAMPS, **options):
    return write_topics(folder, {"/state": (kind, stamped(stamps, make))}, **options)


def assert_whole(recording, joints, channels):
    assert recording.joint_names == joints
    chunk = samples(recording, joints)
    np.testing.assert_allclose(chunk.t, (STAMPS - STAMPS[0]) * 1e-9, atol=2e-9)
    for name, values in TRUTH.items():
        if name in channels:
            np.testing.assert_array_equal(getattr(chunk, name), values[:, : len(joints)], err_msg=name)
        else:
            assert getattr(chunk, name) is None, name
    assert recording.findings(joints) == ()


@pytest.mark.parametrize("kind", CASES)
def test_every_channel_of_every_type_is_read(tmp_path, kind):
    make, joints, channels, torque = CASES[kind]
    recording = open_recording(bag(tmp_path / "bag", kind, make))
    assert_whole(recording, joints, channels)
    assert recording.effort_is_torque is torque


def test_bags_of_the_mcap_library_too(tmp_path):
    kind = "franka_msgs/msg/FrankaRobotState"
    path = write_topics_with_mcap(tmp_path / "bag.mcap", {"/state": (kind, stamped(STAMPS, franka))})
    assert_whole(open_recording(path), ARM, CASES[kind][2])


def test_joints_are_read_in_any_order_and_of_any_message(tmp_path):
    """A gripper of its own on the same topic, and names in another order from the middle on."""
    swapped = ARM[::-1]

    def make(row, stamp):
        if row % 3 == 0:
            return dynamic(row, stamp, ("finger",), ("position",))
        return dynamic(row, stamp, ARM if row < 30 else swapped)

    recording = open_recording(bag(tmp_path / "bag", "control_msgs/msg/DynamicJointState", make))
    chunk = samples(recording, ARM)
    rows = np.array([row for row in range(60) if row % 3])
    late = rows >= 30
    np.testing.assert_array_equal(chunk.q[~late], Q[rows[~late]])
    np.testing.assert_array_equal(chunk.q[late], Q[rows[late]][:, ::-1])
    np.testing.assert_array_equal(chunk.temperature[late], TEMPERATURE[rows[late]][:, ::-1])


def test_resources_without_a_position_are_no_joints_and_unknown_interfaces_are_reported(tmp_path):
    def make(row, stamp):
        state = dynamic(row, stamp, ARM[:2], ("position", "effort", "torque_sensor_raw"))
        sensor = message("control_msgs/msg/InterfaceValue", interface_names=["force.x"], values=np.array([1.0]))
        state.joint_names.append("wrist_sensor")
        state.interface_values.append(sensor)
        return state

    recording = open_recording(bag(tmp_path / "bag", "control_msgs/msg/DynamicJointState", make))
    assert recording.joint_names == ARM[:2]
    np.testing.assert_array_equal(samples(recording, ARM[:2]).tau, TAU[:, :2])
    (finding,) = recording.findings(ARM[:2])
    assert finding.code == "data_unused" and "torque_sensor_raw" in finding.message


def test_a_temperature_that_some_joints_lack_is_left_out_for_them_alone(tmp_path):
    def make(row, stamp):
        state = dynamic(row, stamp, ARM[:3])
        state.interface_values[2].values[4] = np.nan
        return state

    recording = open_recording(bag(tmp_path / "bag", "control_msgs/msg/DynamicJointState", make))
    np.testing.assert_array_equal(samples(recording, ARM[:2]).temperature, TEMPERATURE[:, :2])
    assert samples(recording, ARM[:3]).temperature is None


def test_nan_and_arrays_that_do_not_fit_are_missing_values_and_dropped_messages(tmp_path):
    def make(row, stamp):
        state = controller(row, stamp)
        if row == 5:
            state.feedback.effort = TAU[row, :3]
        if row == 6:
            state.feedback.effort = np.full(7, np.nan)
        if row == 7:
            state.feedback.effort = np.zeros(0)
        return state

    recording = open_recording(bag(tmp_path / "bag", "control_msgs/msg/JointTrajectoryControllerState", make))
    chunk = samples(recording, ARM)
    rows = [row for row in range(60) if row != 5]
    expected = TAU[rows].copy()
    expected[5:7] = np.nan
    np.testing.assert_array_equal(chunk.tau, expected)
    assert recording.dropped(ARM) == {"arrays do not fit the joint names": 1}


def test_messages_that_are_cut_or_lie_about_their_length_are_dropped(tmp_path):
    kind = "control_msgs/msg/DynamicJointState"
    whole = [cdr(dynamic(row, int(stamp))) for row, stamp in enumerate(STAMPS)]
    cut = {3: whole[3][:40], 9: whole[9][:-8], 20: b"", 21: whole[21][:17] + b"\xff\xff\xff\x7f" + whole[21][21:]}
    from rosbags.rosbag2 import Writer
    from support.driver_messages import types

    with Writer(tmp_path / "bag", version=9) as writer:
        connection = writer.add_connection("/state", kind, typestore=types())
        for row, stamp in enumerate(STAMPS):
            writer.write(connection, int(stamp), cut.get(row, whole[row]))
    recording = open_recording(tmp_path / "bag")
    assert recording.dropped(ARM) == {"not a DynamicJointState in CDR": 4}
    np.testing.assert_array_equal(samples(recording, ARM).q, Q[[row for row in range(60) if row not in cut]])


def test_axes_without_names_take_those_of_the_user_if_their_number_fits(tmp_path):
    path = bag(tmp_path / "bag", "lbr_fri_idl/msg/LBRState", lbr)
    names = tuple(f"lbr_{axis}" for axis in AXES)
    recording = open_recording(path, columns=ColumnMeaning(names))
    assert_whole(recording, names, ("q", "tau"))
    with pytest.raises(InputError, match=r"no usable LBRState message on /state: .*arrays do not fit the joint names"):
        open_recording(path, columns=ColumnMeaning(names[:6]))


def test_experiments_with_flexible_joints_read_the_same_types(tmp_path):
    path = bag(tmp_path / "bag", "lbr_fri_idl/msg/LBRState", lbr)
    names = tuple(f"lbr_{axis}" for axis in AXES)
    how = MessageReading.given(None, names)
    assert open_experiment(path, reading=how).links.joint_names == names


def test_the_older_layouts_are_read_by_the_definition_in_the_bag(tmp_path):
    """FRI 1 has one array more, controllers before Humble have other names."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    fri = (INTERFACES / "lbr_fri_idl/msg/LBRState.msg").read_text(encoding="utf-8")
    fri = fri.replace("float64[7] measured_torque", "float64[7] commanded_joint_position\nfloat64[7] measured_torque")
    store.register(get_types_from_msg(fri, "lbr_fri_idl/msg/LBRState"))
    fields = "Header header\nstring[] joint_names\n" + "".join(
        f"trajectory_msgs/JointTrajectoryPoint {name}\n" for name in ("desired", "actual", "error")
    )
    kind = "control_msgs/msg/JointTrajectoryControllerState"
    store.register(get_types_from_msg(fields.replace("Header", "std_msgs/Header", 1), kind))
    seven = np.zeros(7)
    with Writer(tmp_path / "bag", version=9) as writer:
        axes = writer.add_connection("/axes", "lbr_fri_idl/msg/LBRState", typestore=store)
        arm = writer.add_connection("/arm", kind, typestore=store)
        for row, stamp in enumerate(STAMPS):
            state = store.types["lbr_fri_idl/msg/LBRState"](
                *(0.005, 0, 0, 0, 0, 0, 0, 0, 0, int(stamp) // 10**9, int(stamp) % 10**9),
                *(Q[row], seven, TAU[row], seven, seven, seven, 1.0),
            )
            writer.write(axes, int(stamp), bytes(store.serialize_cdr(state, state.__msgtype__)))
            actual = message(POINT, positions=Q[row], velocities=DQ[row], effort=TAU[row])
            wanted = message(POINT, positions=REFERENCE[row])
            state = store.types[kind](header(stamp), list(ARM), wanted, actual, message(POINT))
            writer.write(arm, int(stamp), bytes(store.serialize_cdr(state, kind)))
    assert_whole(open_recording(tmp_path / "bag", "/axes"), AXES, ("q", "tau"))
    assert_whole(open_recording(tmp_path / "bag", "/arm"), ARM, ("q", "dq", "tau", "reference"))
    with pytest.raises(InputError, match="several JointTrajectoryControllerState and LBRState topics"):
        open_recording(tmp_path / "bag")


def test_a_topic_of_joint_state_takes_precedence(tmp_path):
    topics = {
        "/dynamic_joint_states": ("control_msgs/msg/DynamicJointState", stamped(STAMPS, dynamic)),
        "/joint_states": ("sensor_msgs/msg/JointState", stamped(STAMPS, joint_state)),
    }
    recording = open_recording(write_topics(tmp_path / "bag", topics))
    assert recording.topic == "/joint_states" and samples(recording, ARM).temperature is None


def test_the_reference_of_a_controller_completes_joint_states(tmp_path):
    topics = {
        "/joint_states": ("sensor_msgs/msg/JointState", stamped(STAMPS, joint_state)),
        "/arm/controller_state": (
            "control_msgs/msg/JointTrajectoryControllerState",
            stamped(STAMPS, controller),
        ),
    }
    recording = open_recording(write_topics(tmp_path / "bag", topics), reference_topic="/arm/controller_state")
    np.testing.assert_array_equal(samples(recording, ARM).reference, REFERENCE)
    assert recording.findings(ARM) == ()


# --- Definitions ----------------------------------------------------------------------------------------------


def old_bag(folder, kind, make):
    """As before ROS 2 Iron: a database without definitions."""
    path = bag(folder, kind, make, storage="sqlite3")
    (file,) = path.glob("*.db3")
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE message_definitions")
        database.commit()
    return file


def test_an_old_bag_is_read_with_a_folder_of_definitions(tmp_path):
    kind = "control_msgs/msg/DynamicJointState"
    file = old_bag(tmp_path / "bag", kind, dynamic)
    with pytest.raises(MissingDefinitionError) as caught:
        open_recording(file)
    assert (caught.value.code, caught.value.exit_code) == ("definition_missing", 3)
    assert kind in caught.value.message and "control_msgs/msg/DynamicJointState.msg" in caught.value.message
    assert_whole(open_recording(file, definitions=INTERFACES), ARM, CASES[kind][2])
    flat = tmp_path / "flat"
    flat.mkdir()
    for name in ("DynamicJointState.msg", "InterfaceValue.msg"):
        shutil.copy(INTERFACES / "control_msgs/msg" / name, flat)
    assert_whole(open_recording(file, definitions=flat), ARM, CASES[kind][2])
    (flat / "InterfaceValue.msg").unlink()
    with pytest.raises(
        InputError, match=r"flat: no file control_msgs/msg/InterfaceValue.msg in it, which control_msgs"
    ):
        open_recording(file, definitions=flat)
    (flat / "InterfaceValue.msg").write_text("float64[ values\n")
    with pytest.raises(InputError, match=r"InterfaceValue.msg: not a definition of a message type"):
        open_recording(file, definitions=flat)


def test_old_bags_of_common_types_need_none(tmp_path):
    file = old_bag(tmp_path / "bag", "sensor_msgs/msg/JointState", joint_state)
    assert_whole(open_recording(file), ARM, ("q", "dq", "tau"))


def test_a_definition_that_contains_itself_ends(tmp_path):
    file = old_bag(tmp_path / "bag", "control_msgs/msg/DynamicJointState", dynamic)
    (tmp_path / "DynamicJointState.msg").write_text("std_msgs/Header header\nDynamicJointState again\n")
    with pytest.raises(InputError, match="not a DynamicJointState in CDR"):
        open_recording(file, definitions=tmp_path)


@pytest.mark.parametrize("kind", CASES)
def test_bytes_that_make_no_sense_are_dropped_and_never_an_error_or_a_hang(kind):
    from support.driver_messages import types

    from robot_dyn_id.recordings.definitions import COMMON, parse_definition
    from robot_dyn_id.recordings.joint_states import Decoder
    from robot_dyn_id.recordings.types import JOINT_TYPES

    text = types().generate_msgdef(kind, ros_version=2)[0]
    decoder = Decoder(JOINT_TYPES[kind], {**COMMON, **parse_definition(kind, text)})
    rng = np.random.default_rng(2)
    whole = [cdr(CASES[kind][0](row, int(stamp))) for row, stamp in enumerate(STAMPS[:20])]
    messages = []
    for number in range(200):
        message = bytearray(whole[number % 20])
        for place in rng.integers(0, len(message), rng.integers(1, 6)):
            message[place] = rng.choice([0, 1, 127, 255, rng.integers(256)])
        messages.append(bytes(message[: rng.integers(0, len(message) + 1)] if number % 4 == 0 else message))
    batch = decoder.decode(messages)
    assert len(batch.stamps) == 200 and 0 < batch.decodable.sum() < 200
    assert all(not group.usable or np.shape(group.channels["q"])[1] == len(group.names) for group in batch.groups)
