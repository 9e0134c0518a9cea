# SPDX-License-Identifier: Apache-2.0
"""Robots, states and expected results for tests of compiled evaluators."""

import subprocess

import numpy as np

from robot_dyn_id.dynamics.dynamics import Dynamics
from support.robots import MIMICS, OBLIQUE, URDFS

PANDA = (URDFS["panda"].read_text(), tuple(f"panda_joint{i}" for i in range(1, 8)))
ROBOTS = {
    "oblique": (OBLIQUE, None),  # prismatic and oblique axes
    "mimics": (MIMICS, None),
    "panda": PANDA,
    "talos arm": (URDFS["talos_left_arm"].read_text(), None),
}
STATES = 1000


def run(command, given=b""):
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def path(n, rng):
    """Random states along a continuous path, so that the states of the friction have a history."""
    q = np.cumsum(rng.normal(scale=0.02, size=(STATES + 1, n)), axis=0)
    dq, ddq, tau = rng.uniform(-2.0, 2.0, (3, STATES, n))
    dq[0] = 0.0  # at rest
    return q[:-1], dq, ddq, 10.0 * tau, q[1:]


def expected(parameters, motion):
    """The same from `Dynamics`."""
    dynamics = Dynamics.from_parameters(parameters)
    q, dq, ddq, tau, _ = motion
    states = dynamics.regressor.integrate(q.T, 0.01)
    blocks = (
        dynamics.inverse_dynamics(q, dq, ddq),
        dynamics.inverse_dynamics(q, dq, ddq, states),
        dynamics.gravity(q),
        dynamics.friction(q, dq, states),
        dynamics.forward_dynamics(q, dq, tau, states),
        np.zeros((len(q), 1)),
        dynamics.mass_matrix(q).reshape(len(q), -1),
    )
    return blocks
