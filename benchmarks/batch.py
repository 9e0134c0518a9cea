# SPDX-License-Identifier: Apache-2.0
"""Batch simulation: steps of many unlike robots at once against MuJoCo and a loop over the single simulator.

Runge-Kutta steps of fourth order of 1 ms of 512 copies of an arm with different masses, moving from rest. Peers step
one robot. MuJoCo has no contacts and no joint limits here and takes all steps in one call; its `damping` is part of the
smooth dynamics, its `frictionloss` a constraint, ours a smoothed sign. CPU time of one thread; for the second core wall
time is compared.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, interleaved, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

import time
from collections.abc import Callable

import arms
import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.simulation.batch_plant import BatchPlant
from robot_dyn_id.simulation.plant import Plant, make_nominal_dynamics

ROBOTS, STEPS, STEP = 512, 50, 1e-3
VISCOUS, COULOMB, WIDTH = 1.0, 0.5, 0.01
TWICE, EQUAL = 2.0, 1e-9
MUJOCO, SINGLE = "MuJoCo RK4, mj_step(nstep)", "single simulator, one after the other"


def measure() -> list[Goal]:
    """All arms, with viscous friction alone and with Coulomb friction."""
    goals = [goal for arm in arms.ARMS for coulomb in (0.0, COULOMB) for goal in _measure(arm, coulomb)]
    return [*goals, _second_core("panda")]


def _measure(arm: str, coulomb: float) -> list[Goal]:
    dynamics, start = _dynamics(arm, coulomb)
    batch = _batch(dynamics, 1)
    plant = Plant(dynamics, start)
    contenders = {"ours": _steps_of_all(batch, start), SINGLE: _steps_of_one(plant, start)}
    peer = _mujoco(arm, coulomb, start)
    absent = peer if isinstance(peer, str) else ""
    if not isinstance(peer, str):
        contenders[MUJOCO] = peer[0]
    seconds = interleaved(contenders)
    us = {name: 1e6 * value / STEPS / (ROBOTS if name == "ours" else 1) for name, value in seconds.items()}
    title = f"batch of {ROBOTS} {arm}, {'Coulomb' if coulomb else 'viscous'} friction"
    goals = [
        at_least(f"{title}: {name}", us[name] / us["ours"], TWICE, ours_us=us["ours"], peer_us=us[name])
        if name in us
        else skipped(f"{title}: {name}", TWICE, absent)
        for name in (MUJOCO, SINGLE)
    ]
    goals.append(
        at_most(f"{title}: difference from the single simulator", _distance(batch.q[0] - start, plant.q - start), EQUAL)
    )
    if not isinstance(peer, str) and not coulomb:
        goals.append(
            at_most(f"{title}: difference from MuJoCo", _distance(batch.q[0] - start, peer[1].qpos - start), EQUAL)
        )
    return goals


def _dynamics(arm: str, coulomb: float) -> tuple[Dynamics, Array]:
    model = arms.model(arm)
    joints = len(model.joint_names)
    dynamics = make_nominal_dynamics(model, np.full(joints, VISCOUS), np.full(joints, coulomb), WIDTH)
    return dynamics, np.linspace(-0.5, 0.5, joints)


def _batch(dynamics: Dynamics, threads: int) -> BatchPlant:
    """Robots with up to 20 % more mass; the first has the URDF's."""
    parameters = np.tile(dynamics.parameters, (ROBOTS, 1))
    inertial = 10 * len(dynamics.regressor.model.body_names)
    parameters[:, :inertial] *= np.linspace(1.0, 1.2, ROBOTS)[:, None]
    return BatchPlant(dynamics, parameters, np.zeros(len(dynamics.regressor.model.joint_names)), threads=threads)


def _steps_of_all(batch: BatchPlant, start: Array) -> Callable[[], object]:
    every, effort = np.ones(len(batch), dtype=bool), np.zeros_like(batch.q)

    def run() -> None:
        batch.place(every, start, np.zeros_like(start))
        for _ in range(STEPS):
            batch.advance(effort, STEP)

    return run


def _steps_of_one(plant: Plant, start: Array) -> Callable[[], object]:
    def run() -> None:
        plant.q[:], plant.dq[:], plant.dry[:] = start, 0.0, 0.0
        for _ in range(STEPS):
            plant.advance(np.zeros_like(start), STEP)

    return run


def _mujoco(arm: str, coulomb: float, start: Array):  # type: ignore[no-untyped-def]
    """The same steps in MuJoCo and its state, or why not."""
    theirs = arms.mujoco_model(arm)
    if isinstance(theirs, str):
        return theirs
    import mujoco

    disabled = mujoco.mjtDisableBit
    theirs.opt.integrator, theirs.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    theirs.opt.disableflags |= disabled.mjDSBL_CONTACT | disabled.mjDSBL_LIMIT
    if not coulomb:
        theirs.opt.disableflags |= disabled.mjDSBL_CONSTRAINT
    theirs.dof_damping[:], theirs.dof_frictionloss[:] = VISCOUS, coulomb
    data = mujoco.MjData(theirs)

    def run() -> None:
        mujoco.mj_resetData(theirs, data)
        data.qpos[:], data.qvel[:] = start, 0.0
        mujoco.mj_step(theirs, data, nstep=STEPS)

    return run, data


def _second_core(arm: str) -> Goal:
    """Wall time of one thread over that of two, best of five."""
    dynamics, start = _dynamics(arm, COULOMB)
    best = {}
    for threads in (1, 2):
        run, times = _steps_of_all(_batch(dynamics, threads), start), []
        for _ in range(6):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        best[threads] = min(times)
    title = f"batch of {ROBOTS} {arm}: two threads against one, wall time"
    return at_least(title, best[1] / best[2], 1.6, robots_steps_per_s=ROBOTS * STEPS / best[2])


def _distance(here: Array, there: Array) -> float:
    return float(np.abs(here - there).max() / np.abs(there).max())


if __name__ == "__main__":
    script(measure)
