# SPDX-License-Identifier: Apache-2.0
"""Comparison of the robots of simulated fleets: those that differ are named, the variation is recovered."""

import numpy as np
import pytest
from support import fleets
from support.fleets import FRICTION_SPREAD, SimulatedFleet

from robot_dyn_id.comparison.models import adjust_holm
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.fleet.differences import MIN_ROBOTS, compare_robots, name_differences
from robot_dyn_id.fleet.directions import predict_probabilities
from robot_dyn_id.fleet.drift import (
    DAY_S,
    MIN_REPEATED,
    RecordingAgreement,
    compare_recordings,
    estimate_overdispersion,
    estimate_overdispersion_of_others,
    fit_drift,
)
from robot_dyn_id.fleet.evidence import Evidence
from robot_dyn_id.fleet.population import Population, VariationModel

FLEET = SimulatedFleet(40, 5, payload=(4, 17), worn=(30,))


@pytest.fixture(scope="module")
def recordings():
    return [[FLEET.rows(robot, number) for number in range(2)] for robot in range(FLEET.robots)]


@pytest.fixture(scope="module")
def evidence(recordings):
    return Evidence.from_statistics([RowStatistics.merged(rows) for rows in recordings])


@pytest.fixture(scope="module")
def comparison(evidence):
    return compare_robots(evidence, FLEET.variation(evidence.scales))


@pytest.mark.slow
def test_the_robots_that_differ_and_no_other_are_named(comparison):
    assert np.flatnonzero(comparison.differs).tolist() == [4, 17, 30]


def test_their_parameters_are_named(comparison):
    names = FLEET.arm.base.names
    worn = {one.name for one in name_differences(comparison, 30, names)}
    assert worn & {"fv1", "fv2"} and not worn & {"fc1", "fc2", "fc3", "off1", "off2", "off3"}
    loaded = {one.name for one in name_differences(comparison, 4, names)}
    assert loaded & {"mz3", "mz2"} and not loaded & {"fv1", "fv2", "fv3"}


def test_friction_varies_as_it_was_drawn(comparison):
    population = comparison.population
    found = dict(zip(population.spread.names, population.deviations.tolist(), strict=True))
    friction = [found[name] for name in FLEET.arm.regressor.names[30:36]]
    assert np.mean(friction) == pytest.approx(FRICTION_SPREAD, rel=0.2)


def test_probabilities_of_sound_robots_are_uniform_or_larger(comparison):
    sound = np.sort(comparison.probabilities[~comparison.differs])
    steps = (np.arange(len(sound)) + 0.5) / len(sound)
    assert (steps - sound).max() < 1.52 / np.sqrt(len(sound))  # Kolmogorov and Smirnov, one-sided, 1 %


def test_a_robot_with_little_data_borrows_from_the_fleet(comparison, recordings):
    population = comparison.population
    columns = FLEET.arm.base.mapping
    truth = [columns @ FLEET.parameters(robot) for robot in range(FLEET.robots)]
    sound = [robot for robot in range(FLEET.robots) if not comparison.differs[robot]]
    few = [population.predict_without(robot, recordings[robot][0]) for robot in sound]
    own = [recordings[robot][0].estimate(FLEET.arm.base.names).values for robot in sound]
    errors = [[np.linalg.norm(v - truth[r]) for v, r in zip(values, sound, strict=True)] for values in (few, own)]
    assert np.median(errors[0]) < np.median(errors[1])
    assert population.predict_without(0, None) == pytest.approx(population.mean, rel=0.1, abs=0.05)
    values, covariance = population.predict(sound[0])
    away = values - truth[sound[0]]
    assert away @ np.linalg.pinv(covariance) @ away < 3.0 * len(away)


def test_too_few_robots_that_do_not_count_end_the_search(evidence):
    counts = np.arange(len(evidence)) < MIN_ROBOTS
    population = Population.from_evidence(evidence, FLEET.variation(evidence.scales), counts)
    assert population.counted[MIN_ROBOTS:].max() == 0.0


@pytest.mark.parametrize(("robots", "odd", "sigmas"), [(12, 2, 30.0), (20, 2, 20.0), (30, 3, 20.0)])
def test_robots_that_differ_alike_do_not_hide_one_another(robots, odd, sigmas):
    rng, count, noise = np.random.default_rng(3), 10, 0.3
    spread = VariationModel(10.0 * np.eye(count), np.arange(count), tuple(f"p{place}" for place in range(count)))
    values = 10.0 * rng.normal(size=count) + rng.normal(size=(robots, count))
    values[:odd, 0] += sigmas
    designs = np.eye(count) + rng.normal(size=(robots, count, count)) / np.sqrt(count)
    targets = np.einsum("rij,rj->ri", designs, values) + noise * rng.normal(size=(robots, count))
    covariances = np.broadcast_to(noise**2 * np.eye(count), designs.shape)
    evidence = Evidence(np.ones(count), designs, targets, covariances, np.full(robots, count), np.ones(1), 1.0)
    assert np.flatnonzero(compare_robots(evidence, spread).differs).tolist() == list(range(odd))


def test_a_difference_of_no_single_parameter_names_none(comparison):
    assert name_differences(comparison, 30, FLEET.arm.base.names, 0.0) == ()


def test_holm_multiplies_by_what_is_left():
    assert adjust_holm(np.array([0.03, 0.001, 0.02])) == pytest.approx([0.04, 0.003, 0.04])


def test_recordings_of_one_robot_agree_and_those_of_two_do_not(recordings):
    dispersion = estimate_overdispersion([compare_recordings(rows) for rows in recordings])
    assert 1.0 <= dispersion < 1.5
    assert compare_recordings(recordings[0]).probability(dispersion) > 1e-4
    mixed = compare_recordings([recordings[0][0], recordings[4][1]])  # one of them has a payload
    assert mixed.probability(dispersion) < 1e-9
    assert compare_recordings(recordings[0][:1]) == RecordingAgreement(0.0, 0)
    assert RecordingAgreement(0.0, 0).probability(1.0) == 1.0


@pytest.mark.parametrize("robots", [1, 2, 7])
def test_a_robot_does_not_excuse_its_own_disagreement(robots, recordings):
    mixed = compare_recordings([recordings[0][0], recordings[4][1]])
    agreements = [mixed, *(compare_recordings(rows) for rows in recordings[5 : 4 + robots])]
    assert mixed.probability(estimate_overdispersion_of_others(agreements)[0]) < 1e-9


def test_few_robots_with_several_recordings_leave_the_noise_as_it_is():
    apart = RecordingAgreement(1000.0, 10)
    assert estimate_overdispersion([apart] * (MIN_REPEATED - 1)) == 1.0
    assert estimate_overdispersion([apart] * MIN_REPEATED) > 90.0
    assert estimate_overdispersion_of_others([apart] * MIN_REPEATED)[2] == 1.0


def test_drift_is_recovered_with_its_interval():
    drifting = SimulatedFleet(1, 9)
    friction = 30
    rates = []
    rows = []
    true_rate = 0.01 * drifting.arm.parameters[friction]
    for number in range(4):
        changed = SimulatedFleet(1, 9)
        shifted = changed.parameters(0)
        shifted[friction] += number * true_rate
        changed.parameters = lambda robot, shifted=shifted: shifted
        rows.append(changed.rows(0, number, noise=0.01))
    drift = fit_drift(rows, [number * DAY_S for number in range(4)])
    place = FLEET.arm.base.names.index("fv1")
    low, high = drift.intervals(1.0)[place]
    assert low <= true_rate <= high and low > 0.0
    others = np.delete(drift.intervals(1.0), place, axis=0)
    rates = np.count_nonzero((others[:, 0] > 0.0) | (others[:, 1] < 0.0))
    assert rates <= 4
    assert fit_drift(rows, [0.0] * 4) is None


LINK = slice(10, 20)
"""Standard parameters of the second link."""


def expected_changes(arm, scales):
    """Each body heavier as a whole, and more of each term in all joints."""
    columns = [slice(10 * body, 10 * body + 10) for body in range(3)] + [
        slice(30 + 3 * term, 33 + 3 * term) for term in range(3)
    ]
    found = [arm.base.mapping[:, some] @ arm.parameters[some] for some in columns]
    return np.array(found).T / scales[:, None]


@pytest.mark.parametrize("heavier", [False, True])
def test_of_eight_equal_robots_the_one_with_a_heavier_link_is_named(heavier, monkeypatch):
    monkeypatch.setattr(fleets, "INERTIAL_SPREAD", 0.0)
    monkeypatch.setattr(fleets, "FRICTION_SPREAD", 0.0)
    fleet = SimulatedFleet(8, 3)
    if heavier:
        equal = fleet.arm.parameters
        changed = equal.copy()
        changed[LINK] *= 1.25
        fleet.parameters = lambda robot: changed if robot == 5 else equal
    rows = [fleet.rows(robot, 0, noise=0.18) for robot in range(8)]
    evidence = Evidence.from_statistics(rows)
    found = compare_robots(
        evidence, fleet.variation(evidence.scales), changes=expected_changes(fleet.arm, evidence.scales)
    )
    assert np.flatnonzero(found.differs).tolist() == ([5] if heavier else [])
    if heavier:
        pair = [rows[robot].estimate(fleet.arm.base.names) for robot in (5, 0)]
        sigmas = (pair[0].values - pair[1].values) / np.hypot(*(one.standard_deviations for one in pair))
        assert np.abs(sigmas).max() < 9.0


@pytest.mark.slow
@pytest.mark.parametrize("varies", [0.0, 1.0, 10.0])
def test_equal_robots_are_named_as_seldom_as_intended(varies):
    """Some, none or all of the variance is that from robot to robot; 20 combinations of 8 robots."""
    rng, draws, robots, count = np.random.default_rng(7), 30, 8, 20
    least = np.empty(draws)
    for draw in range(draws):
        estimates = np.hypot(1.0, varies) * rng.normal(size=(robots, count))
        least[draw] = predict_probabilities(estimates, np.ones_like(estimates), np.ones(robots, bool)).min()
    assert np.count_nonzero(least * robots * count < 0.1) <= 8  # 3 expected at most; more: 1 in 250


def test_a_difference_of_eight_sigma_between_two_robots_is_found_among_eight():
    rng, robots, count = np.random.default_rng(8), 8, 20
    estimates = rng.normal(size=(robots, count))
    estimates[2, 4] += 8.0 * np.sqrt(2.0)
    found = predict_probabilities(estimates, np.ones_like(estimates), np.ones(robots, bool))
    assert np.argwhere(2.0 * found * robots * count < 0.01).tolist() == [[2, 4]]


def test_a_combination_that_few_robots_excite_is_not_tested():
    variances = np.ones((8, 1))
    variances[:5] = np.inf
    assert predict_probabilities(np.arange(8.0)[:, None] * 100.0, variances, np.ones(8, bool)).min() == 1.0
