# SPDX-License-Identifier: Apache-2.0
"""Forward simulation of an identified model with friction states, from its file: along a trajectory and under efforts."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.model_nodes import presliding

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.prediction.forward_simulation import simulate_efforts, simulate_trajectory
from robot_dyn_id.identification.settings import Settings

RATE = 500.0


@pytest.fixture(scope="module")
def parameters(tmp_path_factory):
    """The set as it comes back from its file, where nothing but names, constants and states is stored."""
    file = tmp_path_factory.mktemp("presliding") / "parameters.yaml"
    write_parameters(file, presliding())
    return read_parameters(file)


@pytest.fixture(scope="module")
def along(parameters):
    dynamics = Dynamics.from_parameters(parameters)
    return simulate_trajectory(dynamics, draw_random_fourier(dynamics.regressor.model, 3, period=6.0), RATE)


def test_a_trajectory_is_followed(parameters, along):
    assert {state.name for state in parameters.terms.states} == {"dahl.deflection"}
    assert along.distance.max() < 2e-3


@pytest.mark.parametrize("elements", [True, False])
def test_its_efforts_reproduce_the_motion_only_with_the_elements(parameters, along, elements):
    """Restarted twice a second from the recorded motion, and from the states of its friction."""
    dynamics = Dynamics.from_parameters(parameters)
    recording = ArrayRecording("simulated", parameters.robot.joint_names, Chunk(along.t, along.q, along.dq, along.tau))
    if not elements:
        dynamics = replace(dynamics, values=np.where(_of_elements(dynamics), 0.0, dynamics.values))
    slow = altered(parameters, processing={"cutoff_frequency": 20.0, "motion_cutoff_frequency": 20.0})
    found = simulate_efforts(recording, slow, dynamics, Settings(), restart=0.5)
    assert bool(found.distance.max() < 1e-3) == elements


def test_the_restart_that_is_advised_counts_from_the_end_of_a_gap(parameters, along):
    """The simulation restarts after the gap of 1 s, and false efforts begin there."""
    kept, after = (along.t < 3.0) | (along.t >= 4.0), along.t >= 4.0
    tau = along.tau + 10.0 * after[:, None]
    samples = Chunk(along.t[kept], along.q[kept], along.dq[kept], tau[kept])
    recording = ArrayRecording("simulated", parameters.robot.joint_names, samples)
    slow = altered(parameters, processing={"cutoff_frequency": 20.0, "motion_cutoff_frequency": 20.0})
    found = simulate_efforts(recording, slow, Dynamics.from_parameters(parameters), Settings())
    (finding,) = [one for one in found.findings if one.code == "simulation_drifts"]
    starts = [float(start) for start in re.findall(r"from (\S+) s on", finding.message)]
    assert 4.0 < min(starts) < 5.0, "the time in the recording"
    advised = float(re.search(r"every (\S+) s", finding.action)[1])
    assert advised == pytest.approx(0.5 * (min(starts) - 4.0), abs=0.01)


def _of_elements(dynamics):
    columns = dynamics.regressor.term_columns
    of_term = np.array([column.term.name == "dahl" for column in columns])
    bodies = 10 * len(dynamics.regressor.model.body_names)
    return np.isin(dynamics.columns, bodies + np.flatnonzero(of_term))
