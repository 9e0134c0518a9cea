# SPDX-License-Identifier: Apache-2.0
"""Recordings of other tools: the truth in SI units, and one line on what is missing or not stated."""

import json

import numpy as np
import pyarrow
import pytest
import scipy.io
from pyarrow.parquet import write_table
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_typestore
from support.recording_files import JOINTS, samples, truth, write_bag

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.recordings import ColumnMeaning, lerobot, open_recording, rtde

RNG = np.random.default_rng(0)
T = 12.5 + 0.008 * np.arange(50)
STRANGERS = [f"a{number}" for number in range(1, 7)]
Q, DQ, CURRENT, HEAT, AIM, TORQUE = RNG.normal(size=(6, 50, 6))


def refused(path, *words, **options):
    with pytest.raises(InputError) as caught:
        samples(open_recording(path, columns=ColumnMeaning(**options)))
    message = str(caught.value)
    assert message.startswith(str(path).partition("#")[0]) and "\n" not in message
    assert all(word in message for word in words), message


# --- RTDE -----------------------------------------------------------------------------------------------------------

CHANNELS = {
    "actual_q": Q,
    "actual_qd": DQ,
    "actual_current": CURRENT,
    "joint_temperatures": HEAT,
    "target_q": AIM,
    "target_moment": TORQUE,
}


def rtde_file(path, channels, separator=" ", end="\n", time="timestamp", leave_out=()):
    columns = {time: T, **{f"{name}_{i}": values[:, i] for name, values in channels.items() for i in range(6)}}
    columns = {name: values for name, values in columns.items() if name not in leave_out}
    rows = [separator.join(columns)] + [
        separator.join(map(repr, map(float, row))) for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("".join(f"{row}{end}" for row in rows))
    return path


@pytest.mark.parametrize(
    ("separator", "end"),
    [(" ", "\n"), (",", "\n"), (", ", "\n"), (";", "\r\n"), ("\t", "\n"), (" ", " \n"), (",", ",\n")],
)
def test_rtde_in_every_spelling(separator, end, tmp_path):
    recording = open_recording(rtde_file(tmp_path / "ur.csv", CHANNELS, separator, end))
    chunk = samples(recording, rtde.JOINTS)
    for name, values in {"q": Q, "dq": DQ, "current": CURRENT, "temperature": HEAT, "reference": AIM}.items():
        np.testing.assert_array_equal(getattr(chunk, name), values)
    np.testing.assert_array_equal(chunk.t, T)
    assert chunk.tau is None, "target_moment is computed by the controller"
    assert "target_moment_0" in str(recording.findings(rtde.JOINTS))


def test_rtde_with_currents_as_torques_has_efforts(tmp_path):
    path = rtde_file(tmp_path / "ur.csv", {**CHANNELS, "actual_current_as_torque": TORQUE})
    np.testing.assert_array_equal(samples(open_recording(path), rtde.JOINTS).tau, TORQUE)


def test_rtde_joints_may_have_other_names(tmp_path):
    names = [f"ur5_{name}" for name in rtde.JOINTS]
    path = rtde_file(tmp_path / "ur.csv", CHANNELS)
    assert open_recording(path, columns=ColumnMeaning(names)).joint_names == tuple(names)
    refused(path, "6 joints, and 1 names", joint_names=["one"])


def test_rtde_names_all_missing_columns_at_once(tmp_path):
    out = ("actual_q_2", "actual_qd_0", "actual_current_5")
    refused(rtde_file(tmp_path / "ur.csv", CHANNELS, time="time", leave_out=out), "timestamp", *out)


def test_rtde_names_a_column_that_is_there_twice_as_the_file_does(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("timestamp actual_q_0 actual_q_0\n0 1 2\n")
    refused(path, "column actual_q_0 is there twice", joint_names=["a"])


def test_rtde_of_another_robot_needs_names(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("timestamp actual_q_0 actual_q_1\n0 1 2\n")
    refused(path, "2 joints without names", "recorded_joints")


def test_a_table_without_a_known_header_shows_what_it_has(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("time,position_1,position_2\n0,1,2\n")
    refused(path, "time, position_1, position_2", "t,q_<joint>", "actual_q_0")


# --- LeRobot --------------------------------------------------------------------------------------------------------


def parquet(path, episodes=(0,), **columns):
    count = len(Q)
    state = {"observation.state": np.degrees(Q).astype(np.float32), "action": np.degrees(AIM).astype(np.float32)}
    state = {name: values for name, values in {**state, **columns}.items() if values is not None}
    table = {name: [list(row) for row in values] * len(episodes) for name, values in state.items()}
    table["timestamp"] = np.tile(T - T[0], len(episodes)).astype(np.float32)
    table["episode_index"] = np.repeat(episodes, count)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(pyarrow.table(table), path)
    return path


@pytest.fixture
def data_set(tmp_path):
    """Folder of a data set whose information names the joints."""
    (tmp_path / "meta").mkdir()
    names = [f"{name}.pos" for name in rtde.JOINTS]
    (tmp_path / "meta/info.json").write_text(json.dumps({"features": {"observation.state": {"names": names}}}))
    return tmp_path


def test_lerobot_degrees_become_radians(data_set):
    path = parquet(data_set / "data/chunk-000/episode_000000.parquet", **{"observation.effort": TORQUE})
    recording = open_recording(path, columns=ColumnMeaning(position_unit="deg"))
    assert recording.joint_names == rtde.JOINTS and not recording.effort_is_torque
    chunk = samples(recording, rtde.JOINTS)
    np.testing.assert_allclose(chunk.q, Q, atol=1e-6)
    np.testing.assert_allclose(chunk.reference, AIM, atol=1e-6)
    np.testing.assert_array_equal(chunk.tau, TORQUE)
    np.testing.assert_allclose(
        samples(open_recording(path, columns=ColumnMeaning(position_unit="rad")), rtde.JOINTS).q,
        np.degrees(Q),
        rtol=1e-6,
    )


def test_lerobot_units_and_names_are_not_guessed(tmp_path):
    path = parquet(tmp_path / "episode.parquet")
    refused(path, "position_unit: deg")
    refused(path, "6 joints without names", position_unit="deg")
    with pytest.raises(UsageError, match="rad or deg"):
        open_recording(path, columns=ColumnMeaning(position_unit="grad"))


def test_lerobot_episodes_are_trials(data_set):
    path = parquet(data_set / "data/file-000.parquet", episodes=(3, 4))
    refused(path, "episodes 3 to 4", "file-000.parquet#3", position_unit="deg")
    assert len(samples(open_recording(f"{path}#4", columns=ColumnMeaning(position_unit="deg")), rtde.JOINTS).t) == len(
        T
    )
    refused(f"{path}#5", "no episode 5", position_unit="deg")


def test_lerobot_reads_only_the_row_groups_of_the_episode(data_set, monkeypatch):
    path = parquet(data_set / "data/file-000.parquet", episodes=(3, 4, 5))
    write_table(pyarrow.parquet.read_table(path), path, row_group_size=len(Q) // 2)
    monkeypatch.setattr(lerobot, "LARGEST", 8 * len(Q) * 15)
    chunk = samples(open_recording(f"{path}#4", columns=ColumnMeaning(position_unit="deg")), rtde.JOINTS)
    np.testing.assert_allclose(chunk.q, Q, atol=1e-6)
    monkeypatch.setattr(lerobot, "LARGEST", 8 * len(Q) * 5)
    refused(f"{path}#4", "at most", position_unit="deg")


def test_lerobot_names_of_the_data_set_are_not_replaced(data_set):
    path = parquet(data_set / "episode.parquet")
    refused(path, rtde.JOINTS[0], "a1, a2, a3, a4, a5, a6", position_unit="deg", joint_names=STRANGERS)
    recording = open_recording(path, columns=ColumnMeaning(rtde.JOINTS, "deg"))
    assert recording.joint_names == rtde.JOINTS


def test_lerobot_columns_twice_empty_files_and_nulls(data_set):
    table = pyarrow.parquet.read_table(parquet(data_set / "a.parquet"))
    twice, none, nulls, broken, empty = (data_set / f"{name}.parquet" for name in "bcdef")
    write_table(table.append_column("timestamp", table.column("timestamp")), twice)
    refused(twice, "timestamp is there 2 times", position_unit="deg")
    write_table(table.slice(0, 0), none)
    refused(none, "no samples", position_unit="deg")
    numbers = pyarrow.array([None, *[0] * (len(Q) - 1)], pyarrow.int64())
    write_table(table.set_column(table.schema.get_field_index("episode_index"), "episode_index", numbers), nulls)
    refused(nulls, "episode_index is empty in 1 rows", position_unit="deg")
    refused(f"{nulls}#0", "episode_index is empty in 1 rows", position_unit="deg")
    content = bytearray((data_set / "a.parquet").read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    content[-8 - length : -8] = b"\xff" * length
    broken.write_bytes(content)
    refused(broken, "not a Parquet file, or a damaged one", position_unit="deg")
    empty.write_bytes(b"")
    refused(empty, "empty", position_unit="deg")


def test_lerobot_missing_columns_and_damage(tmp_path):
    refused(parquet(tmp_path / "a.parquet", **{"observation.state": None}), "observation.state", position_unit="deg")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    refused(tmp_path / "b.parquet", "not a Parquet file", position_unit="deg")


# --- MATLAB ---------------------------------------------------------------------------------------------------------

VARIABLES = {"t": T[:, None], "q": Q, "tau": TORQUE, "joint_names": np.array(rtde.JOINTS, dtype=object)}


def mat(path, **changes):
    scipy.io.savemat(path, {key: value for key, value in {**VARIABLES, **changes}.items() if value is not None})
    return path


@pytest.mark.parametrize("stamps", [T[:, None], T[None, :]], ids=["column", "row"])
def test_mat(stamps, tmp_path):
    recording = open_recording(mat(tmp_path / "a.mat", t=stamps, note=1.0))
    chunk = samples(recording, rtde.JOINTS)
    for name, values in {"t": T, "q": Q, "tau": TORQUE}.items():
        np.testing.assert_array_equal(getattr(chunk, name), values)
    assert "note" in str(recording.findings(rtde.JOINTS))


def test_mat_names_may_be_rows_of_characters_or_stated(tmp_path):
    assert open_recording(mat(tmp_path / "a.mat", joint_names=np.array(rtde.JOINTS))).joint_names == rtde.JOINTS
    bare = mat(tmp_path / "b.mat", joint_names=None)
    refused(bare, "6 joints without names")
    assert open_recording(bare, columns=ColumnMeaning(rtde.JOINTS)).joint_names == rtde.JOINTS
    named = mat(tmp_path / "c.mat")
    assert open_recording(named, columns=ColumnMeaning(rtde.JOINTS)).joint_names == rtde.JOINTS
    refused(named, rtde.JOINTS[0], "a1, a2, a3, a4, a5, a6", joint_names=STRANGERS)


def test_mat_that_cannot_be_used(tmp_path):
    refused(mat(tmp_path / "a.mat", t=None, q=None), "no variable t, q", "tau")
    refused(mat(tmp_path / "b.mat", q=Q.T), "q = q'")
    (tmp_path / "c.mat").write_bytes(b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n")
    refused(tmp_path / "c.mat", "version 7.3", "-v7")
    (tmp_path / "d.mat").write_bytes((tmp_path / "a.mat").read_bytes()[:200])
    refused(tmp_path / "d.mat", "not a MAT-file")
    (tmp_path / "e.mat").write_bytes(b"")
    refused(tmp_path / "e.mat", "not a MAT-file")


# --- ROS 1 ----------------------------------------------------------------------------------------------------------


def ros1_bag(path, of):
    types = get_typestore(Stores.ROS1_NOETIC)
    header, stamp, state = (
        types.types[name]
        for name in ("std_msgs/msg/Header", "builtin_interfaces/msg/Time", "sensor_msgs/msg/JointState")
    )
    with Writer(path) as bag:
        connection = bag.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
        for row, at in enumerate(of.stamps):
            at = int(at)
            message = state(
                header(row, stamp(at // 10**9, at % 10**9), ""), list(JOINTS), of.q[row], of.dq[row], of.tau[row]
            )
            bag.write(connection, at, types.serialize_ros1(message, "sensor_msgs/msg/JointState"))
    return path


def test_a_bag_of_ros_1_reads_as_that_of_ros_2(tmp_path):
    of = truth()
    one = open_recording(ros1_bag(tmp_path / "one.bag", of))
    write_bag(tmp_path / "two", of.messages())
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(
            getattr(samples(one), name), getattr(samples(open_recording(tmp_path / "two")), name)
        )
    assert one.joint_names == JOINTS


def test_a_bag_of_ros_1_that_is_damaged_is_refused_in_one_line(tmp_path):
    path = ros1_bag(tmp_path / "one.bag", truth())
    path.write_bytes(path.read_bytes()[:300])
    refused(path, "rosbag reindex")
    path.write_bytes(b"no bag")
    refused(path, "not a whole bag of ROS 1")
