# SPDX-License-Identifier: Apache-2.0
"""Small robots with known parameters, and what their sensors would have recorded."""

from dataclasses import replace

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.closed_loop import ControllerModel
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from support.robots import joint, urdf

ARM = urdf(
    joint("shoulder", "base", "l1", rpy="0 0 0"),
    joint("elbow", "l1", "l2", axis="0 1 0"),
    joint("wrist", "l2", "l3", axis="1 0 0"),
    links=3,
)
"""Three revolute joints."""

LIFT = urdf(
    joint("lift", "base", "l1", kind="prismatic", rpy="0 0 0"),
    joint("turn", "l1", "l2", axis="0 1 0"),
    links=2,
)
"""A prismatic joint that carries a revolute one."""

GRIPPER = urdf(
    joint("turn", "base", "l1", axis="0 1 0"),
    joint("finger", "l1", "l2", axis="1 0 0"),
    joint("follower", "l1", "l3", axis="0 0 1", mimic='joint="finger" multiplier="-0.5" offset="0.3"'),
    links=3,
)
"""Two joints, and one that mimics the second."""

TERMS = (Viscous(), Coulomb(), Offset())
PARAMETERS = {
    **{"fv": 1.5, "fc": 1.0, "off": 0.2, "Ir": 0.1, "ks": 3.0, "fl": 0.1, "ft": -0.01},
    **{"fcp": 1.2, "fcn": 0.8, "fvp": 1.5, "fvn": 1.1, "fcs": 1.0, "dfs": 0.6},
    **{"fci": 1.0, "dfi": 0.6, "kva": 1.5, "kvb": 0.2, "kvc": 0.1},
    **{"fca": 0.4, "fcb": 0.6, "fsa": 0.5, "fsb": 0.3, "fsc": 0.4, "fvd": 0.2},
    **{"rs": 0.8, "rc": -0.5, "rss": 0.3, "rcc": 0.4},
    **{"fda": 0.1, "fdb": 0.2, "fdc": 0.3, "fdd": 0.4, "fde": 0.5, "fdf": 0.6},
    **{"fla": 0.01, "flb": 0.02, "flc": 0.03, "fld": 0.04, "fle": 0.05, "flf": 0.06},
}
"""True values of the terms, by symbol."""


COMPUTED_TORQUE = ControllerModel("computed_torque", (("all", 400.0),), (("all", 40.0),))


SMALL = {
    "pso": {"particles": 30, "iterations": 60},
    "pso_lm": {"particles": 30, "iterations": 60},
    "ga": {"population": 30, "generations": 60},
}
"""Populations that are large enough for a small arm."""


def estimator_of(name):
    """An estimator with its default options; a small population; and a controller for one that simulates the robot."""
    kind = ESTIMATORS[name]
    options = {"controller": COMPUTED_TORQUE} if "controller" in kind.__dataclass_fields__ else {}
    return kind(**options, **SMALL.get(name, {}))


class Simulated:
    """A robot of known parameters: the URDF's inertias made heavier, with friction and sensor offsets."""

    def __init__(self, text=ARM, terms=TERMS, couplings=(), **options):
        self.text = text
        self.model = RobotModel.from_urdf(text, **options)
        heavier = 1.15 * self.model.inertial_parameters
        own = place_terms_on_joints(self.model, terms, couplings)
        self.regressor = Regressor(self.model, own, tuple(heavier.tolist()))
        self.base = compute_base_parameters(self.regressor)
        values = [PARAMETERS[column.term.symbols[column.index]] for column in self.regressor.term_columns]
        self.parameters = np.concatenate([heavier, values])
        self.base_values = self.base.mapping @ self.parameters

    @property
    def joints(self):
        return self.model.joint_names

    def record(
        self, seed=1, duration=20.0, rate=100.0, noise=0.0, correlation_time=0.0, velocity=1e-3, still=(), **options
    ):
        """A recording of a random motion, of joints within their limits; those in `still` are at rest."""
        motion = draw_random_fourier(self.model, seed, **options)
        motion.coefficients[list(still)] = 0.0
        sensors = Sensors(np.full(len(self.joints), noise), 1e-6, velocity, correlation_time)
        return simulate_recording(self.regressor, self.parameters, motion, sample_times(duration, rate), sensors, seed)


def changed(recording, rows=slice(None), **channels):
    """The recording with some channels replaced (by arrays, or functions of the old ones), rows picked first."""
    samples = recording.samples.take(rows)
    values = {n: new(getattr(samples, n).copy()) if callable(new) else new for n, new in channels.items()}
    return replace(recording, samples=replace(samples, **values))


def at_chunk_size(recording, size):
    return replace(recording, chunk_size=size)


def sines(t, joints=2, frequency=0.5):
    """A recording of q = sin(w t + j), with its exact velocity, and an effort of the same shape."""
    phase = 2 * np.pi * frequency * np.asarray(t)[:, None] + np.arange(joints)
    names = tuple(f"j{number}" for number in range(joints))
    q, dq = np.sin(phase), 2 * np.pi * frequency * np.cos(phase)
    return ArrayRecording("sines", names, Chunk(np.asarray(t), q, dq, 3.0 * q + 1.0))


def save_npz(path, recording, **extra):
    """The recording as the neutral `.npz`."""
    samples = recording.samples
    channels = {name: getattr(samples, name) for name in ("t", "q", "dq", "tau", "current")}
    given = {name: values for name, values in channels.items() if values is not None}
    np.savez(path, joint_names=np.array(recording.joint_names), **{**given, **extra})
    return path
