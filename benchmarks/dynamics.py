# SPDX-License-Identifier: Apache-2.0
"""Goal 8: forward dynamics of many states from the base parameters alone against Pinocchio with all parameters.

Part of goal 9 too: what one state costs, in a compiled loop and from Python, as a step of a simulation needs it.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, interleaved, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

from collections.abc import Callable
from typing import Any

import arms
import numpy as np
import pinocchio

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.kernels.dynamics import dynamics_single

STATES = 10_000
CALLS = 1_000
PER_CALL, PARALLEL, EQUAL = 3.5, 2.3, 1e-10


def measure() -> list[Goal]:
    """All arms."""
    return [goal for arm in arms.ARMS for goal in _measure(arm)]


def _measure(arm: str) -> list[Goal]:
    model, theirs = arms.model(arm), arms.peer(arm)
    regressor = Regressor(model)
    base = compute_base_parameters(regressor)
    ours = Dynamics(regressor, base.independent, base.mapping @ model.inertial_parameters)
    motion = arms.motion(model, STATES)
    q, dq, _ = arms.by_sample(motion)
    tau = 20.0 * np.random.default_rng(1).normal(size=q.shape)
    reference, alone = np.empty_like(q), np.empty((len(model.joint_names), STATES))
    one_by_one = _compiled_loop(ours, motion.q, motion.dq, np.ascontiguousarray(tau.T), alone)
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.forward_dynamics(q, dq, tau),
        "ours, one state after the other": one_by_one,
        "ours, calls from Python": lambda: [ours.forward_dynamics(q[k], dq[k], tau[k]) for k in range(CALLS)],
        "pin.aba": lambda: _aba(theirs, q, dq, tau, reference),
    }
    parallel = _parallel(theirs, motion.q, motion.dq, tau.T)
    if parallel:
        contenders["pin.abaInParallel"] = parallel
    seconds = interleaved(contenders)
    scale = {"ours, calls from Python": CALLS}
    us = {name: 1e6 * value / scale.get(name, STATES) for name, value in seconds.items()}
    title = f"forward dynamics {arm}"
    peers = {"pin.aba": PER_CALL, "pin.abaInParallel": PARALLEL}
    largest = np.abs(reference).max()
    return [
        *(
            at_least(f"{title}: {name}, 1 thread", us[name] / us["ours"], goal, ours_us=us["ours"], peer_us=us[name])
            if name in us
            else skipped(f"{title}: {name}, 1 thread", goal, "this Pinocchio has none")
            for name, goal in peers.items()
        ),
        at_least(
            f"{title}: pin.aba, one state after the other, in a compiled loop",
            us["pin.aba"] / us["ours, one state after the other"],
            1.0,
            ours_us=us["ours, one state after the other"],
            python_call_us=us["ours, calls from Python"],
        ),
        at_most(
            f"{title}: difference from Pinocchio",
            max(np.abs(x - reference).max() for x in (ours.forward_dynamics(q, dq, tau), alone.T)) / largest,
            EQUAL,
        ),
    ]


def _aba(robot: Any, q: Array, dq: Array, tau: Array, out: Array) -> None:
    data = robot.createData()
    for k in range(len(q)):
        out[k] = pinocchio.aba(robot, data, q[k], dq[k], tau[k])


def _parallel(robot: Any, q: Array, dq: Array, tau: Array) -> Callable[[], object] | None:
    """Pinocchio's batch, states as columns; None where it was built without OpenMP."""
    if not hasattr(pinocchio, "abaInParallel"):
        return None
    pool = pinocchio.ModelPool(robot, 1)
    states = [np.asfortranarray(x) for x in (q, dq, tau)]
    out = np.empty_like(states[0])
    return lambda: pinocchio.abaInParallel(1, pool, *states, out)


def _compiled_loop(ours: Dynamics, q: Array, dq: Array, tau: Array, out: Array) -> Callable[[], object]:
    """The kernel for single states, as a simulation calls it."""
    states = q.shape[1]
    none, rest, entries = np.empty((0, states)), np.zeros_like(q), np.zeros(0, dtype=np.int64)
    known = (ours.body_tree, ours.body_parameters, q, dq, rest, entries, none, tau, none, none, out, np.empty(states))
    return lambda: dynamics_single(*known)


if __name__ == "__main__":
    script(measure)
