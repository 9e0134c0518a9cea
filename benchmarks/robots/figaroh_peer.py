# SPDX-License-Identifier: Apache-2.0
"""FIGAROH on the files of a robot, as a program of its own: it runs in the environment that FIGAROH is installed in.

    figaroh_peer.py model.urdf predicted.npz CHANNEL RATE CUTOFF EDGE held_out.npz train.npz ...

Its class `BaseIdentification` with friction, offsets and rotor inertias, its median and Butterworth filter at the
cut-off of the set, decimation by ten, base parameters by QR, and weighted least squares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio
from figaroh.identification.base_identification import BaseIdentification
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced

ORDER = 4
"""Order of the Butterworth filter."""


class Identification(BaseIdentification):
    """FIGAROH's identification of files on a uniform grid."""

    def __init__(self, robot: Any, channel: str, rate: float, cutoff: float, edge: float, paths: list[Path]) -> None:
        self.channel, self.rate, self.cutoff, self.edge, self.paths = channel, rate, cutoff, edge, paths
        super().__init__(robot)

    def load_param(self, config_file: str, setting_type: str = "identification") -> None:
        n = self.model.nv
        joints = list(range(n))
        names = list(self.model.names[1:])
        self.parts = [self.read(path) for path in self.paths]
        measured = [
            name for j, name in enumerate(names) if not any(np.isnan(p["torques"][:, j]).any() for p in self.parts)
        ]
        self.identif_config = {
            "act_idxq": joints,
            "act_idxv": joints,
            "active_joints": names,
            "torque_fit_joints": measured,
            "is_joint_torques": True,
            "is_external_wrench": False,
            "has_friction": True,
            "has_joint_offset": True,
            "has_actuator_inertia": True,
            "fv": [0.0] * n,
            "fs": [0.0] * n,
            "Ia": [0.0] * n,
            "offset": [0.0] * n,
            "robot_name": "robot",
        }
        self.filter_config = {
            "differentiation_method": "gradient",
            "filter_params": {"nbutter": ORDER, "f_butter": self.cutoff, "med_fil": 5, "f_sample": self.rate},
        }

    def read(self, path: Path) -> dict[str, Any]:
        """A file on a uniform grid."""
        with np.load(path) as stored:
            names = [str(name) for name in stored["joint_names"]]
            order = [names.index(name) for name in self.model.names[1:]]
            t, q, effort = stored["t"], stored["q"][:, order], stored[self.channel][:, order]
        rising = np.append(True, np.diff(t) > 0)
        grid = np.arange(t[rising][0], t[rising][-1], 1.0 / self.rate)
        q, effort = (np.column_stack([np.interp(grid, t[rising], x) for x in v[rising].T]) for v in (q, effort))
        return {"timestamps": grid, "positions": q, "velocities": None, "accelerations": None, "torques": effort}

    def load_trajectory_data(self, data_source: str | None = None) -> dict[str, Any]:
        return self.parts[0]

    def process_kinematics_data(self, filter_config: Any = None) -> None:
        """Filter each file, and put them one after the other."""
        processed, torques = [], []
        for part in self.parts:
            self.raw_data = part
            self.filter_kinematics_data(filter_config)
            edge = round(self.edge * self.rate)
            inside = slice(edge, len(part["timestamps"]) - edge)
            kept = {key: values[inside] for key, values in self.processed_data.items()}
            processed.append(kept)
            missing = np.isnan(part["torques"]).any(axis=0)
            effort = self._apply_filters(np.where(missing, 0.0, part["torques"]), **filter_config["filter_params"])
            torques.append(effort[inside])
        self.processed_data = {key: np.concatenate([part[key] for part in processed]) for key in processed[0]}
        self.raw_data = {**self.raw_data, "torques": np.concatenate(torques)}


def main() -> None:
    """Identify, and write the predicted efforts."""
    urdf, out, channel, rate, cutoff, edge, held_out, *train = sys.argv[1:]
    model = pinocchio.buildModelFromUrdf(urdf)
    with np.load(held_out) as stored:
        names = [str(name) for name in stored["joint_names"]]
    fixed = [model.getJointId(name) for name in model.names[1:] if name not in names]
    model = pinocchio.buildReducedModel(model, fixed, pinocchio.neutral(model))
    robot = SimpleNamespace(
        model=model, data=model.createData(), q0=pinocchio.neutral(model), v0=np.zeros(model.nv), name="robot"
    )
    numbers = float(rate), float(cutoff)
    one = Identification(robot, channel, *numbers, float(edge), [Path(path) for path in train])
    one.initialize()
    values = one.solve(plotting=False, wls=True)
    other = Identification(robot, channel, *numbers, 0.0, [Path(held_out)])
    other.process_data()
    motion = [other.processed_data[key] for key in ("positions", "velocities", "accelerations")]
    whole = build_regressor_basic(robot, *motion, other.identif_config)
    base = build_regressor_reduced(whole, one._idx_eliminated)[:, one._base_indices]
    tau = (base @ values).reshape(model.nv, -1).T
    joints = np.array(list(model.names[1:]))
    np.savez(out, t=other.processed_data["timestamps"], tau=tau, joint_names=joints)


if __name__ == "__main__":
    main()
