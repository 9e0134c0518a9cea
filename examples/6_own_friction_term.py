# SPDX-License-Identifier: Apache-2.0
"""A friction term of your own: a dataclass with the column that its parameter multiplies.

python examples/6_own_friction_term.py [FOLDER]
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import simulated_arm

import robot_dyn_id as rdi
from robot_dyn_id.dynamics.terms import Coulomb, Term, Viscous


@dataclass(frozen=True)
class CubicFriction(Term):
    """Friction proportional to the third power of the velocity."""

    name: ClassVar[str] = "cubic_friction"
    symbols: ClassVar[tuple[str, ...]] = ("fq",)  # parameters fq1, fq2, ...
    powers: ClassVar[tuple[tuple[int, int], ...]] = ((3, 3),)  # the column has the unit rad^3/s^3

    def columns(self, y: np.ndarray, dy: np.ndarray, ddy: np.ndarray) -> np.ndarray:
        """The column at N samples, shape (1, N)."""
        return dy[None, :] ** 3


CUBIC = 0.02
"""Cubic friction of the simulated joints [N m s^3/rad^3]."""


def main(folder: Path) -> rdi.ParameterSet:
    """Identify an arm with cubic friction, and return its parameters."""
    robot = rdi.load_robot(simulated_arm.write_urdf(folder))
    recorded = simulated_arm.simulate(robot, seed=1)
    recorded["tau"] += CUBIC * recorded["dq"] ** 3
    np.savez(folder / "cubic.npz", **recorded)
    settings = rdi.Settings(terms=(Viscous(), Coulomb(), CubicFriction()))
    result = rdi.identify(robot, rdi.open_recording(folder / "cubic.npz"), settings)
    print(result)
    result.save(folder / "run")
    # The file holds names and numbers, but not code: give the class again.
    parameters = rdi.load_parameters(folder / "run" / "parameters.yaml", term_classes=[CubicFriction])
    for name, value in zip(parameters.base.names, parameters.estimate.values, strict=True):
        if name.startswith("fq"):
            print(f"{name} = {value:.4f} (true {CUBIC})")
    return parameters


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
