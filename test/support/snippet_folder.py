# SPDX-License-Identifier: Apache-2.0
"""The folder in which the snippets of the documentation run: a simulated arm, its recordings and models."""

import importlib.util
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import robot_dyn_id as rdi
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.loads.chain import find_joint_frames, simulate_chain
from robot_dyn_id.loads.gravity import KnownWeight
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.loads.wrench import compute_frame_motion, wrench_regressor
from robot_dyn_id.model.kinematics import find_placement_of
from robot_dyn_id.model.urdf import RobotDescription, find_root_link
from robot_dyn_id.recordings.bag_writer import StampedSamples, write_joint_state_bag
from support.commanded import TRUTH, record, save
from support.low_cost_arm import LowCostArm
from support.recording_files import WRENCH, joint_state, wrench_messages, write_bag

ROOT = Path(__file__).resolve().parents[2]

GAINS = np.array([12.0, 10.0, 4.0])
"""Drive gains of the recordings with currents [N m/A]."""

PAYLOAD = "link: link3\nmass: 1.5\ncenter_of_mass: [0.02, 0.01, 0.10]\ninertia: {ixx: 0.001, ixy: 0, iyy: 0.001, ixz: 0, iyz: 0, izz: 0.001}\n"

FLEET = "robot_description: arm.urdf\nrecordings:\n" + "".join(
    f"- {{robot: R{robot}, date: 2026-0{1 + day}-05, recording: R{robot}_{day}.npz}}\n"
    for robot in (1, 2)
    for day in (0, 1)
)


def load_example(name):
    """A module of `examples/`."""
    spec = importlib.util.spec_from_file_location(f"snippet_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(folder):
    """Write what all pages use: `arm.urdf`, `recording.npz`, `recording.mcap`, `bag`, `run`, and the repository's folders."""
    arm = load_example("simulated_arm")
    robot = rdi.load_robot(arm.write_urdf(folder))
    for name, seed in (("recording", 1), ("friday", 2), ("monday", 3), ("tuesday", 4)):
        arm.write_recording(robot, folder / f"{name}.npz", seed=seed)
    recorded = np.load(folder / "recording.npz")
    stamps = np.round(1e9 * recorded["t"]).astype(np.int64)
    channels = {name: recorded[name] for name in ("q", "dq", "tau")}
    write_joint_state_bag(folder / "bag", "/joint_states", robot.joint_names, StampedSamples(stamps, **channels))
    shutil.copy(next((folder / "bag").glob("*.mcap")), folder / "recording.mcap")
    settings = rdi.Settings(estimator=rdi.ESTIMATORS["weighted"]())
    for run, file in (("run", "recording"), ("bare", "friday")):
        rdi.identify(robot, rdi.open_recording(folder / f"{file}.npz"), settings).save(folder / run)
    for name in ("examples", "config", "urdf"):
        (folder / name).symlink_to(ROOT / name)


def add_friction(folder):
    """A configuration with a Stribeck term."""
    (folder / "friction.yaml").write_text("terms: [viscous, stribeck, offset]\n")


def add_two_models(folder):
    """Folders `monday` and `friday` with models, and `friday.mcap`."""
    shutil.copytree(folder / "run", folder / "friday")
    shutil.copytree(folder / "bare", folder / "monday")
    shutil.copy(folder / "recording.mcap", folder / "friday.mcap")
    add_trajectory(folder)


def add_trajectory(folder):
    """A designed motion, `trajectory.yaml`."""
    (folder / "trajectory.yaml").write_text(designed_motion((folder / "arm.urdf").read_text()))


@cache
def designed_motion(urdf):
    """Text of the designed motion of an arm, which several pages use."""
    from robot_dyn_id.cli import main

    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "arm.urdf").write_text(urdf)
        (folder / "short.yaml").write_text("search: {draws: 20, starts: 1, finished: 1, steps: 30}\n")
        words = ("design", "--robot", folder / "arm.urdf", "--design", folder / "short.yaml", "--out", folder / "out")
        assert main([str(word) for word in words]) == 0
        return (folder / "out" / "trajectory.yaml").read_text()


def point_mass(mass, center):
    """Ten inertial parameters of a point mass."""
    x, y, z = center
    inertia = np.array([y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])
    return mass * np.concatenate([[1.0], center, inertia])


def add_payload(folder):
    """Recordings with a payload, as torques, currents and wrenches."""
    arm, body = load_example("simulated_arm"), point_mass(1.5, [0.02, 0.01, 0.10])
    robot = rdi.load_robot(folder / "arm.urdf")
    arm.write_recording(robot, folder / "loaded.npz", seed=3, payload=body)
    for name, options in (("currents", {}), ("currents_loaded", {"payload": body})):
        recorded = arm.simulate(robot, 3 if options else 1, **options)
        recorded["current"] = recorded.pop("tau") / GAINS
        np.savez(folder / f"{name}.npz", **recorded)
    (folder / "known.yaml").write_text(PAYLOAD)
    recorded = arm.simulate(robot, 2)
    motion = Motion(*draw_random_fourier(robot, 2).evaluate(recorded["t"])[:3])
    rows = wrench_regressor(compute_frame_motion(robot, motion, find_placement_of(robot, "link3")))
    moment_first = np.einsum("icn,c->in", rows, -body) + np.arange(6)[:, None]
    noise = 0.01 * np.random.default_rng(0).normal(size=moment_first.shape)
    np.savez(folder / "tool.npz", **recorded, wrench=(moment_first + noise)[[3, 4, 5, 0, 1, 2]].T)


def add_standing(folder):
    """A bag of an arm on a sensor, with its wrench and without efforts."""
    robot = rdi.load_robot(folder / "arm.urdf")
    recorded = load_example("simulated_arm").simulate(robot, 2)
    motion = Motion(*draw_random_fourier(robot, 2).evaluate(recorded["t"])[:3])
    first = simulate_chain(robot, motion, find_joint_frames(robot))[0]
    moment = first.wrench[:3] + np.cross(first.hinge, first.wrench[3:], axis=0)
    shown = np.arange(6.0)[:, None] - np.concatenate([moment, first.wrench[3:]])
    shown += 0.01 * np.random.default_rng(0).normal(size=shown.shape)
    stamps = [int(1e9 * t) + 10**18 for t in recorded["t"]]
    states = [(stamp, joint_state(stamp, robot.joint_names, q)) for stamp, q in zip(stamps, recorded["q"], strict=True)]
    root = find_root_link(RobotDescription(robot.urdf).root())
    write_bag(folder / "standing", states, others=[("/ft", WRENCH, list(wrench_messages(stamps, shown, root)))])


def add_poses(folder):
    """A desktop arm with servo drives, and poses that it held without and with a weight."""
    (folder / "arm.urdf").unlink()
    shutil.copy(ROOT / "urdf" / "so101.urdf", folder / "arm.urdf")
    robot = rdi.load_robot(folder / "arm.urdf")
    arm = LowCostArm(robot, seed=1, same_total=True)
    bare = arm.record()
    holds = find_holds([bare], robot.joint_names)
    weight = KnownWeight.at_link(robot, holds, 0.2, "gripper_link", np.array([0.0, 0.0, 0.05])).added
    for name, recording in (("poses", bare), ("heavy", arm.record(added=weight))):
        chunk = recording.samples
        np.savez(folder / f"{name}.npz", t=chunk.t, q=chunk.q, tau=chunk.tau, joint_names=np.array(robot.joint_names))


def add_fleet(folder):
    """Recordings of two robots and their manifest."""
    arm = load_example("simulated_arm")
    robot = rdi.load_robot(folder / "arm.urdf")
    for number in (1, 2):
        for day in (0, 1):
            arm.write_recording(robot, folder / f"R{number}_{day}.npz", seed=10 * number + day)
    (folder / "fleet.yaml").write_text(FLEET)


def add_commanded(folder):
    """Recordings with commanded positions, and the gains of the drives."""
    robot = rdi.load_robot(folder / "arm.urdf")
    truth = ActuatorModel.from_values(robot.joint_names, TRUTH.values)
    for name, seed in (("commanded", 0), ("commanded_other", 1)):
        save(folder / f"{name}.npz", record(robot, truth, seed=seed), kp=truth.kp, kd=truth.kd)


EXTRAS = {
    "docs/howto/actuators.md": add_commanded,
    "docs/howto/bad_joint.md": add_friction,
    "docs/commands.md": add_two_models,
    "docs/simulation.md": add_trajectory,
    "docs/howto/driver.md": add_trajectory,
    "docs/export.md": add_payload,
    "docs/payload.md": add_payload,
    "docs/howto/payload.md": add_payload,
    "docs/howto/base_sensor.md": add_standing,
    "docs/howto/currents.md": add_payload,
    "docs/gravity.md": add_poses,
    "docs/fleet.md": add_fleet,
}
"""Preparation of single pages, by page."""
