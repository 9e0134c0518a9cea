# SPDX-License-Identifier: Apache-2.0
"""Monitoring of a model with presliding friction: its states follow the live positions."""

import numpy as np
import pytest
from support.simulated import ARM, Simulated

from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.online.changes import list_parts_of
from robot_dyn_id.online.monitoring import Columns, ResidualMonitor
from robot_dyn_id.online.watch import WatchSettings
from robot_dyn_id.simulation.sensors import draw_colored_noise

TERMS_OF_ARM = tuple(TERMS[name]() for name in ("viscous", "dahl", "load_dahl", "offset"))


@pytest.fixture(scope="module")
def arm():
    return Simulated(ARM, TERMS_OF_ARM)


@pytest.fixture(scope="module")
def parameters(arm):
    noise = {"noise": 0.02, "duration": 30.0}
    settings = Settings(terms=TERMS_OF_ARM, estimator=ESTIMATORS["weighted"]())
    return identify([arm.record(1, **noise)], [arm.record(2, **noise)], arm.model, settings, "t").parameters


def motion_of(arm, duration=8.0, rate=500.0):
    t = np.arange(round(duration * rate)) / rate
    return t, arm.regressor.with_states(Motion(*draw_random_fourier(arm.model, 7).evaluate(t)[:3]), 1.0 / rate)


def residuals(arm, parameters, position_noise=0.0, velocity=True):
    """Residuals of a monitor along an exact motion, and the monitor."""
    t, motion = motion_of(arm)
    tau = arm.regressor.torque(motion, arm.parameters)
    q = motion.q + position_noise * np.random.default_rng(0).normal(size=motion.q.shape)
    monitor, found = ResidualMonitor(parameters, 10.0, 10.0), []
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], motion.dq[:, k] if velocity else None, tau[:, k]) and k % 10 == 0:
            found.append(monitor.residual())
    return monitor, np.array([one.difference for one in found])


def test_columns_of_elements_are_low_passed_states(arm):
    """True parameters leave no residual: columns and torque pass the same filter."""
    t, motion = motion_of(arm, 2.0)
    tau = arm.regressor.torque(motion, arm.parameters)
    columns, left = Columns(arm.regressor, 10.0), []
    for k in range(len(t)):
        columns.add(t[k], np.array((motion.q[:, k], motion.dq[:, k], tau[:, k])))
        _, low_passed, found = columns.read()
        left.append(arm.parameters @ found - low_passed)
    assert np.abs(left[300:]).max() < 0.01 * np.abs(tau).max()
    assert np.abs(arm.regressor.torque(Motion(motion.q, motion.dq, motion.ddq), arm.parameters) - tau).max() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("velocity", "noise"), [(True, 0.0), (False, 2e-5)])
def test_the_model_fits_its_robot(arm, parameters, velocity, noise):
    monitor, left = residuals(arm, parameters, noise, velocity)
    assert monitor.worse(3.0, 0.05) == ()
    assert np.median(np.abs(left[100:])) < 0.05


def test_the_friction_that_can_change_has_few_parameters(parameters):
    """A change of all dry laws by one level is that of one parameter; the elements are not distinguished."""
    regressor = Regressor.from_parameters(parameters)
    parts = list_parts_of(parameters, regressor)
    assert [part.symbols for part in parts[1:]] == [
        (f"fv{number}", "dry friction", "load friction", f"off{number}") for number in (1, 2, 3)
    ]
    elements = np.array([column.coordinate.name == "elbow" for column in regressor.term_columns])
    elements &= np.array([column.term.name == "dahl" for column in regressor.term_columns])
    levels = np.abs(parameters.terms.values * elements)
    change = parameters.base.mapping[:, -len(levels) :] @ (levels / levels.sum())
    np.testing.assert_allclose(parts[2].directions[:, 1], change, atol=1e-12)


@pytest.mark.slow
def test_states_survive_a_gap_and_restart_with_another_bag(arm, parameters):
    t, motion = motion_of(arm, 3.0)
    tau = arm.regressor.torque(motion, arm.parameters)
    monitor = ResidualMonitor(parameters, 10.0, 10.0)
    for k in range(1000):
        monitor.add(t[k], motion.q[:, k], motion.dq[:, k], tau[:, k])
    monitor.add(10.0, motion.q[:, 999], motion.dq[:, 999], tau[:, 999])  # at rest meanwhile
    for step in range(1, 400):
        monitor.add(10.0 + 2e-3 * step, *(x[:, 999 + step] for x in (motion.q, motion.dq, tau)))
    gap = np.abs(monitor.residual().difference).max()
    monitor.add(0.0, motion.q[:, 0], motion.dq[:, 0], tau[:, 0])  # the bag begins again, without a history
    for k in range(1, 800):
        monitor.add(t[k], motion.q[:, k], motion.dq[:, k], tau[:, k])
    assert gap < 0.15
    assert np.abs(monitor.residual().difference).max() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("part", ["payload", "elbow"])
def test_a_change_is_detected_and_attributed(arm, parameters, part):
    """At 30 s, after 25 s of learning, a payload, or elements of the elbow that are twice as strong."""
    rate, rng, names = 100.0, np.random.default_rng(5), arm.regressor.names
    motion, t = draw_random_fourier(arm.model, 5), np.arange(3900) / rate
    q, dq, ddq, _ = motion.evaluate(t % motion.period)
    states = arm.regressor.with_states(Motion(q, dq, ddq), 1.0 / rate)
    tau = arm.regressor.torque(states, arm.parameters) + draw_colored_noise(np.full(3, 0.05), len(t), rate, 0.1, rng)
    change = np.zeros(len(names))
    if part == "payload":
        change[[names.index(name) for name in ("m3", "mz3", "Ixx3", "Iyy3")]] = 0.8, 0.16, 0.032, 0.032
    else:
        elements = [names.index(f"fd{letter}2") for letter in "abcdef"]
        change[elements] = arm.parameters[elements]
    tau[:, t >= 30.0] += arm.regressor.torque(states.take(t >= 30.0), change)
    monitor = ResidualMonitor(parameters, 10.0, 10.0, settings=WatchSettings(quiet=25.0))
    first, named = np.inf, []
    for k in range(len(t)):
        if monitor.add(t[k], q[:, k], dq[:, k], tau[:, k]) and monitor.watch.due(t[k]):
            monitor.residual()
            first = min(first, t[k] if monitor.watch.changed else np.inf)
            named += [one.part.name for one in monitor.watch.changes if one.significant and t[k] > 33.0]
    assert 30.0 < first < 31.0, "neither a false alarm nor a late detection"
    assert set(named) <= {"payload", "elbow"}, "no other joint"
    assert part in named
