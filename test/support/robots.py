# SPDX-License-Identifier: Apache-2.0
"""The robots that tests run on, and Pinocchio's truth for them, by another way than that of the package."""

from collections import Counter
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from robot_dyn_id.dynamics.consistency import convert_to_parameters
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel

PLANAR3R = Path(__file__).resolve().parents[2] / "urdf" / "planar3r.urdf"


def _published():
    """Name and path of every URDF of the wheel example-robot-data; files of the same name go by their folders."""
    files = metadata.files("example-robot-data") or ()
    paths = sorted(Path(str(file.locate())) for file in files if file.suffix == ".urdf")
    count = Counter(path.stem for path in paths)
    folders = [path.parents[1].name.removesuffix("_description") for path in paths]
    return {path.stem if count[path.stem] == 1 else folder: path for path, folder in zip(paths, folders, strict=True)}


URDFS = _published()

LEFT_OUT = {
    "ur3": "the robot has no name, no URDF parser takes it",
    "iris_simple": "no joints",
    "quadrotor_base": "no joints",
    "alex_psyonic_hands": "a joint mimics one that does not exist",
}
"""Models that cannot be identified, and why."""

SINGULAR_MASS_MATRIX = {
    "romeo": "massless joints",
    "romeo_laas_small": "massless joints",
}
"""Models without forward dynamics, and why."""

TOLERANCE_DEPENDENT = {
    "kinova": "axes rounded to about 1e-10 in the URDF: rank 36 at 1e-9, 37 at 1e-11",
    "anymal-kinova": "carries the arm of kinova",
}
"""Models whose rank depends on what counts as zero, and why."""

MIMICKING = (
    "baxter",
    "panda",
    "panda_collision",
    "pr2",
    "romeo",
    "talos_full_v2",
    "talos_full_v2_box",
    "tiago_pro",
)
"""Models with mimic joints."""

MODELS = tuple(name for name in URDFS if name not in LEFT_OUT)

every_model = pytest.mark.parametrize("name", MODELS)

KINDS = ("panda", "ur5_robot", "kinova", "allegro_left_hand", "anymal_c_simple", "double_pendulum_continuous")
KINDS += ("tiago_pro", "talos_full_v2", "romeo", "pr2", "iris", "b1-z1")
"""Arms, a hand, legs, mobile robots, humanoids, mimic and continuous joints, massless ones, a free base and a mixture."""

every_kind = pytest.mark.parametrize("name", KINDS)


@cache
def robot(name):
    """The robot of that name with all its joints."""
    ours = PLANAR3R.parent / f"{name}.urdf"
    return RobotModel.from_file(URDFS.get(name, ours))


def panda_arm():
    """Seven joints, the fingers held."""
    return RobotModel.from_file(URDFS["panda"], joints=[f"panda_joint{i}" for i in range(1, 8)])


class Truth:
    """Pinocchio's own reading of a URDF: every joint free, then projected, G' Y(G q + offset, G dq, G ddq)."""

    def __init__(self, robot, held=None):
        self.robot = robot
        self.model = pinocchio.buildModelFromXML(robot.urdf)
        self.model.gravity.linear = robot.gravity
        if held:
            stand = self._configuration(held.keys(), [*held.values()])
            joints = [self.model.getJointId(name) for name in held]
            self.model = pinocchio.buildReducedModel(self.model, joints, stand)
        self.data = self.model.createData()

    def _configuration(self, names, positions):
        """In Pinocchio's neutral configuration all joints are at 0, also those that it counts as cos and sin."""
        displacement = np.zeros(self.model.nv)
        for name, position in zip(names, positions, strict=True):
            displacement[self.model.joints[self.model.getJointId(name)].idx_v] = position
        return pinocchio.integrate(self.model, pinocchio.neutral(self.model), displacement)

    def _states(self, motion):
        project = self.robot.coupling
        for q, dq, ddq in zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True):
            full = self._configuration(self.robot.body_names, project @ q + self.robot.offset)
            yield full, project @ dq, project @ ddq

    def regressor(self, motion):
        """Shape (N, n, 10 b)."""
        project, compute = self.robot.coupling.T, pinocchio.computeJointTorqueRegressor
        return np.array([project @ compute(self.model, self.data, *state) for state in self._states(motion)])

    def torque(self, motion):
        """Recursive Newton-Euler, shape (N, n)."""
        rnea = (pinocchio.rnea(self.model, self.data, *state) for state in self._states(motion))
        return np.array([tau @ self.robot.coupling for tau in rnea])

    def mass_matrix(self, motion):
        """Composite rigid bodies, shape (N, n, n)."""
        project = self.robot.coupling
        upper = (np.triu(pinocchio.crba(self.model, self.data, state[0])) for state in self._states(motion))
        return np.array([project.T @ (matrix + np.triu(matrix, 1).T) @ project for matrix in upper])


def mimic_torque(robot, motion):
    """Recursive Newton-Euler of the model that Pinocchio builds with its own mimic joints, shape (N, n)."""
    model = pinocchio.buildModelFromXML(robot.urdf, mimic=True)
    model.gravity.linear = robot.gravity
    assert model.nv == len(robot.joint_names)
    order = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    data, neutral = model.createData(), pinocchio.neutral(model)
    torques = []
    for q, dq, ddq in zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True):
        state = np.zeros((3, model.nv))
        state[:, order] = q, dq, ddq
        torques.append(pinocchio.rnea(model, data, pinocchio.integrate(model, neutral, state[0]), *state[1:])[order])
    return np.array(torques)


def ratio(ours, reference):
    """max |difference| / max |entry|; the difference itself where all entries are zero."""
    difference, largest = np.abs(ours - reference).max(), np.abs(reference).max()
    return difference / largest if largest > 0 else difference


def link(name, scale=1.0):
    """A link with every standard parameter different from zero."""
    return (
        f'<link name="{name}"><inertial><origin xyz="0.03 {-0.02 * scale} 0.05" rpy="0.1 0.2 0.3"/>'
        f'<mass value="{2 * scale}"/><inertia ixx="{0.02 * scale}" ixy="0.001" ixz="-0.002" iyy="0.03"'
        f' iyz="0.0015" izz="{0.025 * scale}"/></inertial></link>'
    )


def joint(name, parent, child, kind="revolute", axis="0 0 1", xyz="0.1 -0.2 0.3", rpy="0.3 -0.4 0.5", mimic=""):
    """A joint at an oblique placement; `mimic` holds the attributes of its mimic tag."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f'<limit lower="-2" upper="3" velocity="4" effort="5"/>{f"<mimic {mimic}/>" if mimic else ""}</joint>'
    )


def urdf(*joints, links=4):
    """The text of a robot with links `base`, `l1`, `l2`, ... and the joints given."""
    bodies = "".join(link(f"l{i}", 0.5 + 0.3 * i) for i in range(1, links + 1))
    return f'<robot name="small"><link name="base"/>{bodies}{"".join(joints)}</robot>'


OBLIQUE = urdf(
    joint("turn", "base", "l1", axis="0.3 -0.5 0.8"),
    joint("slide", "l1", "l2", kind="prismatic", axis="-0.6 0.2 0.4"),
    joint("spin", "l2", "l3", kind="continuous", axis="0 -1 0"),
    joint("branch", "l1", "l4", axis="1 0 0"),
)
"""A tree of revolute, prismatic and continuous joints with oblique axes."""

MIMICS = urdf(
    joint("a", "base", "l1"),
    joint("b", "l1", "l2", axis="0 1 0", mimic='joint="a" multiplier="-1.5" offset="0.2"'),
    joint("c", "l2", "l3", kind="prismatic", axis="1 0 0", mimic='joint="b" multiplier="0.5" offset="-0.1"'),
    joint("d", "l2", "l4", axis="1 2 3"),
    joint("e", "l4", "l5", kind="continuous", mimic='joint="d"'),
    joint("f", "base", "l6", kind="prismatic", axis="0 0 -1", mimic='joint="e" multiplier="2"'),
    links=6,
)
"""A mimic of a mimic on its leader's own branch, one that slides, and one on a branch before its leader's."""

PLAIN_MIMICS = urdf(
    joint("a", "base", "l1"),
    joint("b", "l1", "l2", axis="0 1 0", mimic='joint="a" multiplier="-1.5" offset="0.2"'),
    joint("c", "l2", "l3", kind="prismatic", axis="1 0 0", mimic='joint="a" multiplier="0.5" offset="-0.1"'),
    joint("d", "l2", "l4", axis="1 2 3"),
)
"""Mimics as Pinocchio reads them itself: of joints that do not mimic and stand before them."""

GRAVITIES = {
    "floor": STANDARD_GRAVITY,
    "tilted": (3.0, -5.0, -7.5),
    "ceiling": (0.0, 0.0, 9.81),
    "none": (0.0, 0.0, 0.0),
}


def brick(mass, center, sides):
    """The ten parameters of a brick along the axes of a frame."""
    spread = np.diag(np.square(sides)) / 12.0 + np.outer(center, center)
    pseudo = mass * np.block([[spread, np.reshape(center, (3, 1))], [np.reshape(center, (1, 3)), np.ones((1, 1))]])
    return convert_to_parameters(pseudo)
