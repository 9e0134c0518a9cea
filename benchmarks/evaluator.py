# SPDX-License-Identifier: Apache-2.0
"""Exported C source code in a control loop: CPU time of one inverse dynamics of 7 axes with friction."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

from measuring import Goal, at_most, interleaved, one_thread, script

if __name__ == "__main__":
    one_thread()

import arms
import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Dahl, Offset, RotorInertia, SaturatingViscous, Viscous
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.export import make_c_header
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.parameters import ParameterSet

ARM = "panda"
STATES = 20_000
MAX_US = 1.0
"""Most CPU time of one inverse dynamics [us]."""

LOOP = """
void run(long states, const double * q, const double * dq, const double * ddq, double * tau)
{
  double state[ROBOT_states + 1];
  ROBOT_start(state);
  for (long k = 0; k < JOINTS * states; k += JOINTS) {
    if (k) { ROBOT_advance(state, q + k - JOINTS, q + k); }
    ROBOT_inverse_dynamics(state, q + k, dq + k, ddq + k, tau + k);
  }
}
"""

TERMS = {
    "viscous and Coulomb friction": (Viscous(), Coulomb(0.01), Offset()),
    "presliding and saturating friction": (Viscous(), RotorInertia(), Dahl(), SaturatingViscous(), Offset()),
}


def measure() -> list[Goal]:
    """Two friction models, with the compiler's usual optimization."""
    robot = arms.model(ARM)
    states = arms.by_sample(arms.motion(robot, STATES))
    goals = []
    for title, terms in TERMS.items():
        out = np.empty(states[0].shape)
        with tempfile.TemporaryDirectory() as folder:
            library = _compiled(_identified(terms), Path(folder))

            def ours(library: ctypes.CDLL = library, out: np.ndarray = out) -> None:
                library.run(ctypes.c_long(STATES), *(ctypes.c_void_p(x.ctypes.data) for x in (*states, out)))

            seconds = interleaved({"ours": ours})["ours"]
        goals.append(at_most(f"exported inverse dynamics {ARM}, {title} [us]", 1e6 * seconds / STATES, MAX_US))
    return goals


def _identified(terms: tuple[Viscous, ...]) -> ParameterSet:
    """A set of the arm with all parameters of some terms different from zero."""
    robot = arms.model(ARM)
    regressor = Regressor(robot, place_terms_on_joints(robot, terms))
    states = arms.motion(robot, 3000)
    rng = np.random.default_rng(0)
    full = np.append(robot.inertial_parameters, rng.uniform(0.2, 1.0, len(regressor.term_columns)))
    tau = regressor.torque(regressor.with_states(states, 0.01), full) + 0.1 * rng.normal(size=states.q.shape)
    rows = Chunk(np.arange(3000) / 100.0, states.q.T, states.dq.T, tau.T)
    recording = ArrayRecording("simulated", robot.joint_names, rows)
    settings = Settings(estimator=WeightedLeastSquares(), terms=terms)
    return identify([recording], [recording], robot, settings, "benchmark").parameters


def _compiled(parameters: ParameterSet, folder: Path) -> ctypes.CDLL:
    """The exported source code as a library, in a folder."""
    loop = LOOP.replace("ROBOT", ARM).replace("JOINTS", str(len(parameters.robot.joint_names)))
    (folder / "loop.c").write_text(make_c_header(parameters).text + loop)
    command = ["cc", "-O2", "-std=c99", "-shared", "-fPIC", "loop.c", "-o", "loop.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "loop.so"))


if __name__ == "__main__":
    script(measure)
