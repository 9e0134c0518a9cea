# SPDX-License-Identifier: Apache-2.0
"""An estimator of your own: a value with a name and a method `fit`.

python examples/7_own_estimator.py [FOLDER]
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import simulated_arm

import robot_dyn_id as rdi
from robot_dyn_id.dynamics.problem import LinearProblem, Tile
from robot_dyn_id.estimators import Estimate, WeightedLeastSquares


@dataclass(frozen=True)
class WithoutLargeTorques:
    """Weighted least squares without the rows of large torque, such as those of collisions.

    Attributes:
        factor: multiple of a joint's median absolute torque above which a row is left out.
    """

    factor: float = 10.0

    name: ClassVar[str] = "without_large_torques"
    uses_prior: ClassVar[bool] = False

    def fit(self, problem: LinearProblem) -> Estimate:
        """Estimate the parameters; each call of `problem.tiles()` is a new pass over the data."""
        joints = {}
        for tile in problem.tiles():  # rows of one joint: its columns, and its torque last
            joints.setdefault(tile.joint, []).append(np.abs(tile.block[-1]))
        limits = {joint: self.factor * np.median(np.concatenate(torques)) for joint, torques in joints.items()}

        def tiles() -> Iterator[Tile]:
            for tile in problem.tiles():
                kept = np.abs(tile.block[-1]) < limits[tile.joint]
                yield replace(tile, block=np.where(kept, tile.block, 0.0))  # rows of zeros do not count

        return WeightedLeastSquares().fit(replace(problem, tiles=tiles))


def main(folder: Path) -> dict[str, float]:
    """Identify an arm from data with a collision, and return the error of both estimators on data without."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    recorded = simulated_arm.simulate(robot, seed=1)
    recorded["tau"][300:330] += 300.0  # a collision that lasts 0.3 s
    np.savez(folder / "collision.npz", **recorded)
    recording = rdi.open_recording(folder / "collision.npz")
    other = rdi.open_recording(simulated_arm.write_recording(robot, folder / "other.npz", seed=2))
    errors = {}
    for estimator in (WeightedLeastSquares(), WithoutLargeTorques()):
        result = rdi.identify(robot, recording, rdi.Settings(estimator=estimator), held_out=other)
        errors[estimator.name] = result.evaluation.held_out.all_joints_nrmse
        print(f"{estimator.name}: held-out NRMSE {errors[estimator.name]:.1%}")
    return errors


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
