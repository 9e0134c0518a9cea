# SPDX-License-Identifier: Apache-2.0
"""Internal states of terms along recordings."""

from __future__ import annotations

import numpy as np
import pytest
from support.simulated import LIFT, Simulated, changed

from robot_dyn_id.dynamics.terms import Coulomb, Dahl, Viscous
from robot_dyn_id.signals.term_states import integrate_states
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings

TERMS = (Viscous(), Coulomb(), Dahl())


@pytest.fixture(scope="module")
def robot():
    return Simulated(LIFT, TERMS)


def trials_of(robot, recordings):
    return FilteredTrials.from_recordings(recordings, robot.joints, {}, SignalSettings(cutoff=5.0), keep_edges=True)


def own_samples(windows):
    """Positions and deflections of the samples that the windows own, in order."""
    pairs = [(window.motion.q[:, window.own], window.motion.states[Dahl()][..., window.own]) for window in windows]
    return tuple(np.concatenate(parts, axis=-1) for parts in zip(*pairs, strict=True))


def test_states_do_not_depend_on_the_cut_into_windows(robot):
    trials = trials_of(robot, [robot.record(duration=70.0)])
    windows = list(trials.along(robot.regressor))
    assert len(windows) > 2
    q, states = own_samples(windows)
    whole = robot.regressor.integrate(q, 1.0 / trials.plan.rate)[Dahl()]
    assert np.ptp(whole) > 1.9  # the motion slides in both directions
    np.testing.assert_allclose(states, whole, rtol=0, atol=1e-6)


def test_every_segment_begins_with_the_states_of_an_unknown_past(robot):
    whole = robot.record(duration=30.0)
    keep = (whole.samples.t < 12.0) | (whole.samples.t > 18.0)
    trials = trials_of(robot, [changed(whole, rows=keep), robot.record(seed=2, duration=10.0)])
    begins = {}
    for window in trials.along(robot.regressor):
        begins.setdefault(window.segment, window.motion.states[Dahl()][..., 0])
    assert len(begins) == 3
    assert not any(states.any() for states in begins.values())


def test_windows_of_a_memoryless_regressor_stay_as_they_are(robot):
    memoryless = Simulated(LIFT, (Viscous(), Coulomb()))
    for window in trials_of(robot, [robot.record(duration=5.0)]).along(memoryless.regressor):
        assert window.motion.states is None
    assert list(integrate_states([], robot.regressor, 0.01)) == []


def test_rows_of_the_problem_have_the_states(robot):
    """The torque along the rows is the recorded one: with the fully slid limit it would not be."""
    trials = FilteredTrials.from_recordings(
        [robot.record(duration=40.0, velocity=0.0)], robot.joints, {}, SignalSettings(cutoff=5.0, velocity="derivative")
    )
    with_history, without = (
        rms_error(trials, regressor, robot.parameters)
        for regressor in (robot.regressor, without_states(robot.regressor))
    )
    assert with_history < 0.2 * without


def rms_error(trials, regressor, parameters):
    problem = trials.problem(regressor, np.arange(len(regressor.names)))
    supports = problem.supports
    errors = [tile.block[-1] - parameters[supports[tile.joint]] @ tile.block[:-1] for tile in problem.tiles()]
    return np.sqrt(np.mean(np.concatenate(errors) ** 2))


def without_states(regressor):
    """The same columns by a term that has no states."""
    return regressor.with_terms((at, Slid() if term == Dahl() else term) for at, term in regressor.terms)


class Slid(Dahl):
    """Dahl elements in the limit of sliding."""

    state_names = ()
