# SPDX-License-Identifier: Apache-2.0
"""The measured robots, and how their recordings are converted."""

from __future__ import annotations

import io
import re
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np

from robot_dyn_id import open_recording
from robot_dyn_id.arrays import Array
from robots.checkout import Checkout

MODEL = "model.urdf"
"""Name of the robot description of a set."""


@dataclass(frozen=True)
class RobotSet:
    """Recordings of a measured robot.

    Attributes:
        name: name in the table.
        robot: what it is.
        repository: owner and name.
        commit: commit that the files are read at.
        train: files to identify from, without their suffix.
        held_out: file that the models are judged on.
        cutoff: low-pass of predicted and measured efforts, which least squares and FIGAROH use as well [Hz].
        convert: writes the files and `MODEL` into a folder.
        rate: rate of the comparison [Hz].
        edge: time that is left out at both ends [s].
        effort: channel of the efforts, `tau` or `current`.
        joints: joints that are compared; empty: all.
        folder: folder of the converted files, in the cache and among shared data; empty: `name`.
    """

    name: str
    robot: str
    repository: str
    commit: str
    train: tuple[str, ...]
    held_out: str
    cutoff: float
    convert: Callable[[Checkout, Path], None]
    rate: float = 100.0
    edge: float = 0.5
    effort: str = "tau"
    joints: tuple[str, ...] = ()
    folder: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files."""
        return (*(f"{name}.npz" for name in (*self.train, self.held_out)), MODEL)

    @property
    def place(self) -> str:
        """Name of the folder."""
        return self.folder or self.name


def _save(folder: Path, name: str, joints: Sequence[str], t: Array, **channels: Array) -> None:
    np.savez_compressed(folder / f"{name}.npz", t=t, joint_names=np.array(joints), **channels)


def _save_parts(
    folder: Path, joints: Sequence[str], t: Array, parts: Sequence[tuple[str, float, float]], **channels: Array
) -> None:
    """Save times of one recording, each as a file: name, start and stop [s]."""
    for name, start, stop in parts:
        rows = (t >= start) & (t < stop)
        _save(folder, name, joints, t[rows], **{key: values[rows] for key, values in channels.items()})


def _clean_urdf(text: str, renamed: dict[str, str] | None = None, fixed: Sequence[str] = ()) -> str:
    """A URDF without shapes, with renamed and fixed joints."""
    tree = ElementTree.fromstring(re.sub(r"\sxmlns:\w+=\"[^\"]*\"", "", text, count=0))
    for link in tree.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for joint in tree.iter("joint"):
        name = joint.get("name", "")
        joint.set("name", (renamed or {}).get(name, name))
        if name in fixed:
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
    return ElementTree.tostring(tree, encoding="unicode")


def _packaged_urdf(file_name: str) -> str:
    """A URDF of the wheel example-robot-data."""
    files = metadata.files("example-robot-data") or ()
    return next(Path(str(file.locate())) for file in files if file.name == file_name).read_text(encoding="utf-8")


PANDA_FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def _read_bag(content: bytes) -> tuple[tuple[str, ...], Array, dict[str, Array]]:
    """Joint states of a bag: names, stamps, and channels."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "bag.db3"
        path.write_bytes(content)
        recording = open_recording(str(path))
        chunks = list(recording.chunks(recording.joint_names))
    channels = {key: np.concatenate([getattr(chunk, key) for chunk in chunks]) for key in ("q", "dq", "tau")}
    return recording.joint_names, np.concatenate([chunk.t for chunk in chunks]), channels


def _convert_fer(source: Checkout, folder: Path) -> None:
    bag = source.read("franka_inria_inverse_dynamics_solver/bagfiles/panda_exciting_trajectory.db3")
    joints, t, channels = _read_bag(bag)
    _save_parts(folder, joints, t, [("train_0_16s", 0.0, 16.0), ("val_16_24s", 16.0, np.inf)], **channels)
    renamed = {f"panda_joint{j}": f"fer_joint{j}" for j in range(1, 8)}
    (folder / MODEL).write_text(_clean_urdf(_packaged_urdf("panda.urdf"), renamed, PANDA_FINGERS), encoding="utf-8")


def _convert_ur10(source: Checkout, folder: Path) -> None:
    joints, t, channels = _read_bag(source.read("ur10_inverse_dynamics_solver/bagfiles/ur10_exciting_trajectory.db3"))
    _save_parts(folder, joints, t, [("train_0_18s", 0.0, 18.0), ("val_18_28s", 18.0, np.inf)], **channels)
    (folder / MODEL).write_text(_clean_urdf(_packaged_urdf("ur10_robot.urdf")), encoding="utf-8")


TIAGO_GEAR = np.array([1, 100, 100, 100, 100, 336, 336, 336])
TIAGO_CONSTANT = np.array([1, 0.136, 0.136, -0.087, -0.087, -0.0613, -0.0613, -0.0613])
"""Gears and motor constants as the repository states them [1, N m/A]."""


def _convert_tiago(source: Checkout, folder: Path) -> None:
    place = "examples/tiago/data/identification/dynamic"
    t, q = _split(source.read_table(f"{place}/tiago_position.csv", ",", 1))
    _, dq = _split(source.read_table(f"{place}/tiago_velocity.csv", ",", 1))
    _, current = _split(source.read_table(f"{place}/tiago_effort.csv", ",", 1))
    joints = ("torso_lift_joint", *(f"arm_{j}_joint" for j in range(1, 8)))
    tau = current * TIAGO_GEAR * TIAGO_CONSTANT
    parts = [("train_7_48s", 7.58, 48.19), ("val_48_68s", 48.19, 68.185)]
    _save_parts(folder, joints, t, parts, q=q, dq=dq, tau=tau, current=current)
    text = source.read_text("examples/tiago/urdf/tiago_48_schunk.urdf")
    moving = [joint.get("name", "") for joint in ElementTree.fromstring(text).iter("joint")]
    fixed = [name for name in moving if name not in joints]
    (folder / MODEL).write_text(_clean_urdf(text, fixed=fixed), encoding="utf-8")


def _split(table: Array) -> tuple[Array, Array]:
    return table[:, 0], table[:, 1:]


def _convert_panda(source: Checkout, folder: Path) -> None:
    place = "matlab/data/Exciting_Traj/Trajectory_1/rbt_log/exciting_traj"
    t = source.read_table(f"{place}_time.txt").ravel()
    names = {"q": "positions", "dq": "velocity", "tau": "torques"}
    channels = {key: source.read_table(f"{place}_{name}.txt").reshape(len(t), -1) for key, name in names.items()}
    joints = [f"panda_joint{j}" for j in range(1, 8)]
    _save_parts(folder, joints, t, [("train_0_14s", 0.0, 14.0), ("val_14_21s", 14.0, np.inf)], **channels)
    (folder / MODEL).write_text(_clean_urdf(_packaged_urdf("panda.urdf"), fixed=PANDA_FINGERS), encoding="utf-8")


def _convert_kuka(source: Checkout, folder: Path) -> None:
    names = {1: "train_m1_slow", 3: "train_m3_fast", 2: "val_m2_slow_repeat"}
    for number, name in names.items():
        content = io.BytesIO(source.read(f"data/KUKA/HW/measurements_{number}.npz"))
        with np.load(content, allow_pickle=False, encoding="latin1") as stored:
            t = stored["times"].ravel()
            channels = {"q": stored["positions"], "dq": stored["velocities"], "tau": stored["torques"]}
        _save(folder, name, [f"lwr_{j}_joint" for j in range(7)], t - t[0], **channels)
    text = replace(source, commit=FLOBAROID_HEAD).read_text("model/kuka_lwr4.urdf")
    (folder / MODEL).write_text(_clean_urdf(text), encoding="utf-8")


def _convert_krang(source: Checkout, folder: Path) -> None:
    for name in ("train", "test"):
        place = f"29-ArmDataCollection/{name}Data"
        t = source.read_table(f"{place}/dataTimeStamp.txt").ravel()
        names = {"q": "dataQ", "dq": "dataDotQ", "current": "dataCur"}
        channels = {key: source.read_table(f"{place}/{file}.txt") for key, file in names.items()}
        _save(folder, name, [f"LJ{j}" for j in range(1, 8)], t, **channels)
    (folder / MODEL).write_text(_clean_urdf(source.read_text("09-URDF/7DOFArm/singlearmOld.urdf")), encoding="utf-8")


def _convert_viperx(source: Checkout, folder: Path) -> None:
    joints = ("waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate")
    for name in ("sysid_run1_20260514_140507", "sysid_run1"):
        table = source.read_table(f"data/{name}.csv", ",", 1)
        q, dq, effort = (table[:, 1 + k : 19 : 3] for k in range(3))
        _save(folder, name, joints, table[:, 0], q=q, dq=dq, current=1e-3 * effort)  # recorded in mA
    (folder / MODEL).write_text(_clean_urdf(source.read_text("urdf/vx300s.urdf")), encoding="utf-8")


def _convert_ur10e(source: Checkout, folder: Path) -> None:
    names = {
        "train_14_harmonics": "identification_data/ur-20_02_19_14harm50sec",
        "train_12_harmonics": "identification_data/ur-20_02_12-50sec_12harm",
        "val_point_to_point": "validation_data/ur-20_01_17-ptp_10_points",
    }
    joints = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
    for name, file in names.items():
        table = source.read_table(f"dataset_ur10e/{file}.csv", ",")
        t, q, dq, current = table[:, 0], table[:, 1:7], table[:, 7:13], table[:, 13:19]
        _save(folder, name, joints, t - t[0], q=q, dq=dq, current=current)
    (folder / MODEL).write_text(_clean_urdf(source.read_text("URe/urdf/ur10e.urdf")), encoding="utf-8")


TX40_GEAR = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
TX40_RATE_HZ = 5000.0


def _convert_tx40(source: Checkout, folder: Path) -> None:
    """Angles and torques of the motors, the last of which turns with the sum of the last two joints."""
    place = "examples/staubli_TX40/data"
    turned, torque = (source.read_table(f"{place}/{name}.csv", ",", 1) for name in ("pos_read_data", "curr_data"))
    gear = np.diag(TX40_GEAR)
    gear[5, 4] = TX40_GEAR[5]
    q = turned @ np.linalg.inv(gear).T + np.array([0.0, -0.5 * np.pi, 0.5 * np.pi, 0.0, 0.0, 0.0])
    t = np.arange(len(q)) / TX40_RATE_HZ
    text = source.read_text("examples/staubli_TX40/urdf/tx40_mdh_modified.urdf")
    joints = [f"joint_{j}" for j in range(1, 7)]
    parts = [("train_0_6s", 0.0, 6.0), ("val_6_9s", 6.0, np.inf)]
    _save_parts(folder, joints, t, parts, q=q, tau=torque @ gear)
    (folder / MODEL).write_text(_clean_urdf(text), encoding="utf-8")


XMATE_OFFSETS_M = (0.3415, 0.0, 0.394, 0.0, 0.366, 0.0, 0.2503)
XMATE_TURNS = (0, -1, 1, -1, 1, -1, 1)
"""Distances along the axes, and quarter turns between them (modified Denavit-Hartenberg)."""

XMATE_RATE_HZ = 1000.0


def _convert_xmate(source: Checkout, folder: Path) -> None:
    place = "filtering/data/excit/excit"
    names = {"q": "ang", "dq": "vel", "tau": "torque"}
    channels = {key: source.read_table(f"{place}_{name}_record.txt") for key, name in names.items()}
    t = np.arange(len(channels["q"])) / XMATE_RATE_HZ
    joints = [f"joint_{j}" for j in range(1, 8)]
    _save_parts(folder, joints, t, [("train_0_14s", 0.0, 14.0), ("val_14_20s", 14.0, np.inf)], **channels)
    origins = [
        (0.0, distance if turn < 0 else -distance if turn > 0 else 0.0, 0.0 if turn else distance)
        for distance, turn in zip(XMATE_OFFSETS_M, XMATE_TURNS, strict=True)
    ]
    turns = [(0.5 * np.pi * turn, 0.0, 0.0) for turn in XMATE_TURNS]
    (folder / MODEL).write_text(_make_chain("xmate", joints, origins, turns, 10_000.0), encoding="utf-8")


def _make_chain(
    name: str,
    joints: Sequence[str],
    origins: Sequence[Sequence[float]],
    turns: Sequence[Sequence[float]],
    rating: float,
) -> str:
    """URDF of a serial arm from drawings alone: its masses are placeholders of 1 kg."""
    lines, parent = ['<link name="base"/>'], "base"
    for joint, origin, turn in zip(joints, origins, turns, strict=True):
        xyz, rpy = (" ".join(map(repr, map(float, values))) for values in (origin, turn))
        lines.append(
            f'<link name="{joint}_link"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" '
            f'iyz="0" izz="0.01"/></inertial></link><joint name="{joint}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{joint}_link"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>'
            f'<limit lower="-3.1" upper="3.1" velocity="3" effort="{rating:g}"/></joint>'
        )
        parent = f"{joint}_link"
    return f'<robot name="{name}">' + "\n".join(lines) + "</robot>\n"


QUARTER = 0.5 * np.pi
DUAL_ARM_ORIGINS_M = (
    *((0, 0.18, 0), (0, 0, 0), (0, -0.27, 0), (0.03857, 0, 0), (0, -0.2, 0), (0, 0, 0), (0.065, 0, 0)),
)
DUAL_ARM_TURNS = (
    *((0, QUARTER, QUARTER), (-QUARTER, 0, 0), (QUARTER, 0, 0), (-QUARTER, 0, 0), (QUARTER, 0, 0)),
    *((0, -QUARTER, -QUARTER), (QUARTER, 0, 0)),
)
"""Frames of the joints, from the modified Denavit-Hartenberg table of the repository."""

DUAL_ARM_SIGNS = np.array([-1.0, 1.0, -1.0, 1.0, np.nan, np.nan, np.nan])
"""Signs of the joint-torque sensors; three joints have none."""

RPM = 2 * np.pi / 60.0


def _convert_dual_arm(source: Checkout, folder: Path) -> None:
    """Columns: time, 7 positions [deg], 7 velocities [rpm], 7 currents; the last 7 are joint-torque sensors."""
    joints = [f"joint{j}" for j in range(1, 8)]
    for name in ("13.5", "15.7", "52.2"):
        table = source.read_table(f"code/para_est/coupled_ident/dualArmV2_data_write_excitation_{name}.txt")
        t, q, dq = table[:, 0] - table[0, 0], np.radians(table[:, 1:8]), RPM * table[:, 8:15]
        _save(folder, f"exc_{name}_current", joints, t, q=q, dq=dq, current=table[:, 15:22])
        _save(folder, f"exc_{name}_sensor_fixed4", joints, t, q=q, dq=dq, tau=table[:, 43:50] * DUAL_ARM_SIGNS)
    text = _make_chain("dualarm_v2_left", joints, DUAL_ARM_ORIGINS_M, DUAL_ARM_TURNS, 60.0)
    (folder / MODEL).write_text(text, encoding="utf-8")


FIGAROH = "thanhndv212/figaroh-examples", "c0b5c7f0fda10078be55104f9ee76ac106b7a5ee"
UNISA = "unisa-acg/inverse-dynamics-solver", "41e196de5ca340f2b48e443484a7c74a77533da4"
DUAL_ARM = "hujinfei1994/dyn_ident_dualArmV2", "76e38b9a3da105202e94cf76dd097a543c6ff3bb"
FLOBAROID = "kjyv/FloBaRoID", "4e2e5a2992f2175aa4e494c0d827590435a969a8"
FLOBAROID_HEAD = "9c0680445e874947bac4056cd86ff9e26bdd7fcb"
"""Commits with the recordings, which are pointers to large files later, and with the robot description."""

GAZ = "marcocognetti/FrankaEmikaPandaDynModel", "24d85ce4e648e2e894c832bfeee9b16711eb1a1a"
KRANG = "zubair-irshad/manipulator_parameter_identification", "c84fded219580419b2cff6f3302450facaa2c83e"
VIPERX = "tompatobbe/ViperX-300", "09b13752ddd78fc3fd43ab93ef048e73943476af"
UR10E = "shamilmamedov/dynamic_calibration", "11af40e7deb758ec080a175fed8fcdd6c99aca29"
XMATE = "YanjunLIU-ac/Dynamic_Parameter_Identification_for_Rokae_xMate", "d5855f4731b00fc90061c838d66cc40c59f88c7d"
"""Repositories and commits."""

SETS: tuple[RobotSet, ...] = (
    RobotSet(
        "fer_unisa_bag",
        "Franka FER, 7 axes, torque sensors, 30 Hz",
        *UNISA,
        ("train_0_16s",),
        "val_16_24s",
        5.0,
        _convert_fer,
    ),
    RobotSet(
        "tiago_figaroh",
        "TIAGo, 8 axes, motor torques from currents",
        *FIGAROH,
        ("train_7_48s",),
        "val_48_68s",
        4.0,
        _convert_tiago,
        edge=0.4,
    ),
    RobotSet(
        "panda_gaz2019",
        "Franka Panda, 7 axes, torque sensors",
        *GAZ,
        ("train_0_14s",),
        "val_14_21s",
        5.0,
        _convert_panda,
        rate=1000.0,
    ),
    RobotSet(
        "kuka_lwr4_iit",
        "KUKA LWR4+, 7 axes, torque sensors, repeated motion",
        *FLOBAROID,
        ("train_m1_slow", "train_m3_fast"),
        "val_m2_slow_repeat",
        5.0,
        _convert_kuka,
        rate=200.0,
        edge=1.5,
    ),
    RobotSet(
        "kuka_lwr4_iit-fast",
        "the same, trained slow, judged fast",
        *FLOBAROID,
        ("train_m1_slow", "val_m2_slow_repeat"),
        "train_m3_fast",
        5.0,
        _convert_kuka,
        rate=200.0,
        edge=1.5,
        folder="kuka_lwr4_iit",
    ),
    RobotSet(
        "krang_lwa3",
        "Schunk LWA3 of Krang, 7 axes, currents",
        *KRANG,
        ("train",),
        "test",
        5.55,
        _convert_krang,
        effort="current",
    ),
    RobotSet(
        "dualarm_v2-sensors",
        "DualArm V2, 7 axes, torque sensors on four",
        *DUAL_ARM,
        ("exc_13.5_sensor_fixed4", "exc_15.7_sensor_fixed4"),
        "exc_52.2_sensor_fixed4",
        6.75,
        _convert_dual_arm,
        joints=("joint1", "joint2", "joint3", "joint4"),
        folder="dualarm_v2",
    ),
    RobotSet(
        "dualarm_v2-currents",
        "DualArm V2, 7 axes, currents",
        *DUAL_ARM,
        ("exc_13.5_current", "exc_15.7_current"),
        "exc_52.2_current",
        4.0,
        _convert_dual_arm,
        effort="current",
        folder="dualarm_v2",
    ),
    RobotSet(
        "viperx300s",
        "ViperX-300 s, 6 axes, servo currents, failed reads",
        *VIPERX,
        ("sysid_run1_20260514_140507",),
        "sysid_run1",
        4.0,
        _convert_viperx,
        effort="current",
    ),
    RobotSet(
        "ur10_unisa_bag",
        "UR10, 6 axes, torques from currents",
        *UNISA,
        ("train_0_18s",),
        "val_18_28s",
        5.0,
        _convert_ur10,
    ),
    RobotSet(
        "ur10e_innopolis",
        "UR10e, 6 axes, currents, judged on moves",
        *UR10E,
        ("train_14_harmonics", "train_12_harmonics"),
        "val_point_to_point",
        5.0,
        _convert_ur10e,
        effort="current",
    ),
    RobotSet(
        "tx40_figaroh",
        "Staubli TX40, 6 axes, motor torques, coupled wrist",
        *FIGAROH,
        ("train_0_6s",),
        "val_6_9s",
        10.0,
        _convert_tx40,
        rate=500.0,
        edge=0.2,
    ),
    RobotSet(
        "xmate_rokae",
        "Rokae xMate 3 Pro, 7 axes, torque sensors, URDF of placeholders",
        *XMATE,
        ("train_0_14s",),
        "val_14_20s",
        5.0,
        _convert_xmate,
        rate=1000.0,
    ),
)
"""All robots."""
