# SPDX-License-Identifier: Apache-2.0
"""Goal 9: a simulated second of an arm with friction, Runge-Kutta of fourth order at 1 kHz, against MuJoCo.

MuJoCo carries a general engine's overhead; contacts and constraints are switched off here. Both step one robot. Its
friction is viscous only: `frictionloss` would be a constraint. Ours has viscous and Coulomb friction.
"""

from __future__ import annotations

from measuring import Goal, at_least, interleaved, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

from collections.abc import Callable

import arms
import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.simulation.plant import Plant, make_nominal_dynamics

STEPS = 1000
TWICE, REAL_TIME = 2.0, 50.0
VISCOUS = 1.0


def measure() -> list[Goal]:
    """All arms."""
    return [goal for arm in arms.ARMS for goal in _measure(arm)]


def _measure(arm: str) -> list[Goal]:
    model = arms.model(arm)
    joints = len(model.joint_names)
    start = np.linspace(-0.5, 0.5, joints)
    effort = np.zeros(joints)
    contenders = {
        "coulomb": _ours(model, start, effort, 0.5),
        "viscous": _ours(model, start, effort, 0.0),
    }
    title = f"simulation {arm}, RK4 at 1 kHz"
    peer = _mujoco(arm, start)
    if isinstance(peer, str):
        contested = [skipped(f"{title}: MuJoCo mj_step(nstep)", TWICE, peer)]
        seconds = interleaved(contenders)
    else:
        seconds = interleaved({**contenders, "mujoco": peer})
        ratio = seconds["mujoco"] / seconds["viscous"]
        contested = [at_least(f"{title}: MuJoCo mj_step(nstep), viscous friction", ratio, TWICE)]
    us = {name: 1e6 * value / STEPS for name, value in seconds.items()}
    real_time = STEPS * 1e-3 / seconds["coulomb"]
    return [
        *contested,
        at_least(
            f"{title}: times real time, with Coulomb friction",
            real_time,
            REAL_TIME,
            step_us=us["coulomb"],
            viscous_only_us=us["viscous"],
        ),
    ]


def _ours(model: RobotModel, start: Array, effort: Array, coulomb: float) -> Callable[[], object]:
    joints = len(start)
    dynamics = make_nominal_dynamics(model, np.full(joints, VISCOUS), np.full(joints, coulomb), 0.01)
    plant = Plant(dynamics, start)

    def run() -> None:
        plant.q[:], plant.dq[:] = start, 0.0
        plant.advance(effort, 1e-3 * STEPS)

    return run


def _mujoco(arm: str, start: Array) -> Callable[[], object] | str:
    """The same in MuJoCo, or why not."""
    theirs = arms.mujoco_model(arm)
    if isinstance(theirs, str):
        return theirs
    import mujoco

    theirs.opt.integrator, theirs.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    theirs.dof_damping[:] = VISCOUS
    data = mujoco.MjData(theirs)

    def run() -> None:
        data.qpos[:], data.qvel[:] = start, 0.0
        mujoco.mj_step(theirs, data, nstep=STEPS)

    return run


if __name__ == "__main__":
    script(measure)
