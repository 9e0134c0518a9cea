# SPDX-License-Identifier: Apache-2.0
"""Steps of the space manipulator's paper: identifiability, its trials, its temperature; small extents."""

import json
from dataclasses import replace

import numpy as np
import pytest

from robot_dyn_id.errors import ConvergenceError
from robot_dyn_id.estimators.constants.estimates import CONSTANTS_NOT_IDENTIFIED
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.design.objectives import condition_raw
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.papers.figures import Extent
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r import comparison, orbit, published, trials
from robot_dyn_id.papers.space6r import reproduction as space6r
from robot_dyn_id.papers.space6r.effects import (
    ALPHA,
    WEIGHTLESS,
    Heat,
    ParameterBound,
    Remainder,
    Weightless,
    compute_ranks,
    compute_velocity_deviations,
)
from robot_dyn_id.papers.space6r.network import train_network
from robot_dyn_id.papers.space6r.shown import draw_all, list_notes
from robot_dyn_id.papers.space6r.trials import (
    HYBRID,
    OURS,
    PAPER,
    RATE,
    TABLE_1,
    TRUTH,
    Conditions,
    NoisyTrial,
    Trials,
    compute_cost,
    compute_error,
    list_parameters,
    make_regressor_of,
    run_random_marquardt,
    sample_states,
)
from robot_dyn_id.progress import ignore_progress

MODEL = model_of("space6r")
MOTION, OTHER = (sample_states(draw_random_fourier(MODEL, seed, period)) for seed, period in ((1, 10.0), (2, 12.5)))
GIVEN = Conditions(MOTION, OTHER)
FEW = {"separable": OURS["separable"], "separable, weighted": OURS["separable, weighted"], "lm": PAPER["lm"]}


@pytest.fixture(scope="module")
def quiet():
    """Some methods on one robot whose torques have a thousandth of the paper's noise."""
    methods = {**FEW, "map_constants": OURS["map_constants"]}
    return Trials.from_methods(1e-3, GIVEN, {name: (one, 1) for name, one in methods.items()}, ignore_progress)


def test_ranks_with_and_without_weight():
    assert compute_ranks(STANDARD_GRAVITY) == space6r.RANKS["on the ground"]
    assert compute_ranks(WEIGHTLESS) == space6r.RANKS["without weight"]


def test_inertias_of_the_table_belong_to_bodies():
    """Read about the frames of the links, as the URDF has them: positive and with the triangle inequality."""
    for m, mx, my, mz, xx, xy, yy, xz, yz, zz in MODEL.inertial_parameters.reshape(-1, 10):
        c = np.array([mx, my, mz]) / m
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        principal = np.linalg.eigvalsh(about_origin - m * (c @ c * np.eye(3) - np.outer(c, c)))
        assert principal[0] > 0.0 and principal[2] < principal[0] + principal[1]


def test_a_true_robot_is_near_the_nominal_one_and_breaks_away_above_sliding():
    nominal, _ = list_parameters(MODEL)
    for seed in range(20):
        values, velocities = list_parameters(MODEL, np.random.default_rng(seed))
        friction = values[72:].reshape(6, 5)
        assert np.all(friction[:, 1] >= 0.05 * friction[:, 0] - 1e-12) and np.all(velocities > 0.0)
        assert np.all(np.abs(values[:72] - nominal[:72]) <= 0.2 * np.abs(nominal[:72]) + 1e-15)


@pytest.mark.slow
def test_with_little_noise_the_truth_is_found(quiet):
    trial = quiet.trials[0]
    true = true_velocities(trial)
    base = trial.base.mapping @ trial.truth
    for name in ("separable", "separable, weighted", "map_constants"):
        outcome = quiet.outcomes[name][0]
        assert outcome.error < 2e-3  # 62 parameters of 1000 samples and noise of 1 to 5 mN m
        for value, constant in zip(true, outcome.estimate.constants, strict=True):
            assert abs(constant.value - value) < 5.0 * constant.standard_deviation
        away = np.abs(outcome.estimate.values - base) / outcome.estimate.standard_deviations
        assert np.mean(away < 3.0) > 0.95
        assert outcome.correlation.min() > 0.999
    noise = quiet.outcomes[TRUTH][0].rmse / trial.noise  # of 1250 samples: give or take 2 %
    np.testing.assert_allclose(noise, 1.0, atol=0.08)


def true_velocities(trial):
    return np.array([term.stribeck_velocity for _, term in trial.regressor.terms if hasattr(term, "stribeck_velocity")])


def test_the_108_numbers_are_those_of_the_columns(quiet):
    """Torques, costs and the Jacobian of the paper's searches against the regressor, and against differences."""
    trial = quiet.trials[0]
    space, rng = trial.space, np.random.default_rng(0)
    points = rng.uniform(space.lower, space.upper, (3, 108))
    for point, value in zip(points, space.compute_costs(points), strict=True):
        values, velocities = published.convert_to_columns(point)
        np.testing.assert_allclose(published.convert_from_columns(values, velocities), point, rtol=1e-14)
        rest = trial.torque - make_regressor_of(MODEL, velocities).torque(MOTION, values)
        assert value == pytest.approx(0.5 * np.sum(rest**2), rel=1e-12)
        for joint in (0, 4):
            jacobian, columns, own = space.linearized(joint, point)
            np.testing.assert_allclose(own, rest[joint], atol=1e-9)
            for place in (0, len(columns) - 3, len(columns) - 2, len(columns) - 1):
                step = 1e-6 * max(1.0, abs(point[columns[place]]))
                moved = [point + sign * step * np.eye(108)[columns[place]] for sign in (1.0, -1.0)]
                slope = (space.linearized(joint, moved[1])[2] - space.linearized(joint, moved[0])[2]) / (2.0 * step)
                np.testing.assert_allclose(jacobian[:, place], slope, atol=1e-4 * (1.0 + np.abs(slope).max()))


def test_marquardt_ends_where_separable_does_and_counts_where_it_does_not(quiet, monkeypatch):
    found = quiet.outcomes["lm"][0]
    assert not found.failed and found.cost == pytest.approx(quiet.outcomes["separable"][0].cost, rel=1e-4)
    monkeypatch.setattr(published, "MARQUARDT_STEPS", 1)
    short = run_random_marquardt(quiet.trials[0])
    assert short.failed and np.isfinite(short.error) and short.error > found.error
    one = replace(quiet, outcomes={"a": (short, found)})
    spread = one.spread("a", compute_error)
    assert (spread.failed, spread.draws) == (1, 2) and spread.median == pytest.approx(np.mean(spread.values))


def test_swarm_kalman_filter_and_hybrid_lower_the_cost(quiet, monkeypatch):
    monkeypatch.setattr("robot_dyn_id.papers.space6r.trials.PARTICLES", 20)
    monkeypatch.setattr("robot_dyn_id.papers.space6r.trials.ITERATIONS", 10)
    trial = quiet.trials[0]
    nominal = trial.space.compute_costs(trial.nominal[None])[0]
    mixed, filtered = PAPER[HYBRID](trial), PAPER["kalman filter"](trial)
    assert mixed.cost < 1e-3 * nominal and len(mixed.course) > 10
    assert mixed.course[-1] == mixed.cost < mixed.course[0]
    assert filtered.cost < 1e-3 * nominal and not filtered.failed


def test_only_the_hybrid_stops_at_the_limit_of_mu(quiet, monkeypatch):
    """A restart has no other reason, and the end with the lowest cost counts, not the last."""
    trial, limits = quiet.trials[0], []
    ends = iter([(3.0, True), (5.0, True), (4.0, False), (7.0, False), (6.0, False)])

    def ended(space, start, max_damping=np.inf):
        limits.append(max_damping)
        cost, exceeded = next(ends)
        return published.Ended(np.full(108, cost), np.array([9.0, cost]), False, exceeded)

    monkeypatch.setattr(trials, "run_marquardt", ended)
    monkeypatch.setattr(trials, "run_swarm", lambda space, rng, *size: (np.zeros(108), np.array([20.0, 10.0])))
    mixed = trials.run_hybrid(trial)
    assert limits == [published.MAX_DAMPING] * 3 and mixed.failed
    assert mixed.cost == 3.0 and np.all(np.diff(mixed.course) <= 0.0)
    assert trials.run_hybrid(trial).cost == 7.0 and len(limits) == 4, (
        "a search that ends after its steps is not repeated"
    )
    assert trials.PAPER["lm"](trial).cost == 6.0 and limits[-1] == np.inf


def test_marquardt_goes_on_beyond_any_mu_without_a_limit(quiet):
    trial = quiet.trials[0]
    limited, free = (published.run_marquardt(trial.space, trial.nominal, limit) for limit in (1e-6, np.inf))
    assert limited.exceeded and not limited.converged
    assert free.converged and not free.exceeded and free.course[-1] < limited.course[-1]


def test_a_method_without_a_result_counts_as_infinite(quiet):
    class Lost:
        def fit(self, problem):
            raise ConvergenceError("lost")

    lost = quiet.trials[0].outcome(Lost())
    assert lost.failed and np.isinf(lost.error) and np.isinf(lost.cost)
    both = replace(quiet, outcomes={"a": (lost,), "b": quiet.outcomes["lm"]})
    assert both.spread("a", compute_error).failed == 1
    assert both.ratio("a", "b", compute_error).median == np.inf and both.ratio("b", "a", compute_cost).median == 0.0


def test_verdicts_need_draws_and_noise_of_the_papers_size_is_not_beaten(quiet):
    """With the same outcome for all methods the prior has gained nothing, and R is decided by the noise."""
    names = (*PAPER, *OURS, TRUTH)
    for seeds in (1, 20):
        same = {name: quiet.outcomes["map_constants"] * seeds for name in names}
        trials = replace(quiet, trials=quiet.trials * seeds, outcomes=same)
        goals = {figure.name: figure for figure in comparison.list_figures_of_goals(trials)}
        ratios = [figure for figure in goals.values() if figure.rerun is not None]
        assert len(ratios) == len(OURS) + 1 and {figure.verdict for figure in ratios} == {"other conditions"}
        assert goals["noise x 0.001: error of map_constants over kalman filter"].ours == 1.0
        assert all("0.04 to 0.08 rad/s" in figure.conditions for figure in ratios)
        limits = [figure for figure in comparison.list_figures_at_table_1(trials) if figure.rerun is not None]
        assert len(limits) == 9 and {figure.verdict for figure in limits} == {"other conditions"}
        paper = [
            figure
            for figure in comparison.list_figures_at_table_1(replace(trials, level=1.0))
            if figure.rerun is not None
        ]
        assert {figure.verdict for figure in paper} == {"other conditions"}, "rate, box and first mu are chosen"
        assert all(figure.conditions.startswith("1 kHz") for figure in paper)
        assert {figure.comparisons for figure in paper} == {len(paper)} == {9}
        table = list(comparison.list_figures_of_table_2(trials))
        printed = [figure for figure in table if figure.published is not None]
        assert len(printed) == 26 and {figure.verdict for figure in printed} == {"other conditions"}
        claims = list(comparison.list_figures_of_claims(trials, dict.fromkeys(comparison.TIMES, "full")))
        assert [figure.verdict for figure in claims[3:]] == ["needs --full"] * 3
        assert claims[0].verdict == "other conditions" and "not printed" in claims[0].conditions


def test_costs_are_compared_where_no_peak_is_left_out(quiet):
    """With fewer parameters the cost may be higher."""
    whole = quiet.outcomes["separable"][0]
    left_out = replace(whole.estimate, findings=(CONSTANTS_NOT_IDENTIFIED.found("a peak within the noise"),))
    without = replace(whole, estimate=left_out, cost=2.0 * whole.cost)

    def compare(*outcomes):
        given = {"separable": outcomes, HYBRID: (whole,) * len(outcomes)}
        return next(iter(comparison.list_figures_of_goals(replace(quiet, outcomes=given))))

    both, neither = compare(whole, without), compare(without)
    assert (both.ours, both.verdict) == (1.0, "holds") and "1 of 2 draws; 2 in the others" in both.why
    assert neither.verdict == "shown" and not neither.missed


@pytest.fixture(scope="module")
def fast():
    """One robot with the Stribeck velocities of Table 1 at 1 kHz and a tenth of the noise, without PSO-LM."""
    return space6r.compare_at_table_1(0.1, Extent(), ignore_progress)


@pytest.mark.slow
def test_peaks_of_a_few_samples_are_identified(fast):
    """At the Stribeck velocities of Table 1 `separable` finds the minimum of LM from the nominal numbers."""
    trial = fast.trials[0]
    assert len(trial.base.independent) == 76, "all peaks are base parameters"
    found = {name: outcomes[0] for name, outcomes in fast.outcomes.items()}
    assert found["separable"].cost == pytest.approx(found["lm"].cost, rel=1e-6)
    assert found["map_constants"].error < found["lm"].error < 0.03
    for value, constant in zip(true_velocities(trial), found["separable"].estimate.constants, strict=True):
        assert abs(constant.value - value) < 4.0 * constant.standard_deviation < value
    verdicts = {figure.name: figure.verdict for figure in comparison.list_figures_at_table_1(fast)}
    assert [name for name, verdict in verdicts.items() if verdict == "needs --full"] == [
        f"vb of Table 1, 1 kHz, noise x 0.1: error of {name} over {HYBRID}"
        for name in ("separable", "separable, weighted", "map_constants")
    ]


def test_what_is_not_run_states_what_it_needs():
    methods, missing = space6r.slow_methods(False)
    assert methods == {} and set(missing) >= {"ga", "pso, 800 iterations", "network"}


def test_a_known_gravity_torque_is_as_good_as_it_is_true(quiet):
    trial = quiet.trials[0]
    assert trial.with_known_gravity(True).error < 2e-3
    assert trial.with_known_gravity(False).error > 0.1


@pytest.mark.slow
def test_the_monitor_updates_a_breakaway_torque_in_orbit(monkeypatch):
    monkeypatch.setattr(orbit, "END", 115.0)
    found = orbit.FrictionRise.from_seed(1)
    assert found.delay < 10.0 and found.others == ()
    assert abs(found.estimated - found.true) < 4.0 * found.standard_deviation < 0.2 * found.true
    monkeypatch.setattr(orbit.FrictionRise, "from_seed", lambda seed: found)
    answers = json.loads(json.dumps([figure.answer() for figure in space6r.list_figures_in_orbit(1)]))
    assert [(one["draws"], one["failed"]) for one in answers] == [(1, 0), (1, 0)]


def test_the_remainder_of_the_linearized_friction_is_below_its_bound():
    for share in (0.1, 0.3):
        found = Remainder.from_share(share)
        assert np.all(found.error <= found.bound) and np.all(found.error > 0.2 * found.bound)


def test_the_bound_of_the_parameters_holds_and_is_defined_by_its_denominator():
    """Eq. 7 with the Stribeck velocities of the robot, with nominal ones, and where it has no bound."""
    trial = trials.NoisyTrial.from_seed(0, 0.1, space6r.list_conditions())
    known, nominal = (ParameterBound.from_trial(trial, one) for one in (True, False))
    assert known.product == 0.0 and known.error < known.bound == known.condition_number * known.torque_error
    assert 0.0 < nominal.product < 1.0 and nominal.error < nominal.bound
    assert np.isinf(replace(nominal, matrix_error=1.1 / nominal.condition_number).bound)


def test_the_motion_of_the_comparison_has_its_condition_number():
    motion = space6r.list_conditions().motion
    value = np.exp(condition_raw(space6r.plan().problem.information.matrix(motion)).value)
    assert value == pytest.approx(115.08, abs=0.01) and value <= space6r.TARGETS["condition"]


def test_a_network_follows_what_it_was_trained_on_and_little_else(quiet):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    trial = quiet.trials[0]
    outcome = train_network(trial, 1e-4)
    size = np.sqrt(np.mean(trial.torque**2))
    assert np.sqrt(2.0 * outcome.cost / trial.torque.size) < 0.2 * size < outcome.error
    assert outcome.error == pytest.approx(np.sqrt(np.mean((outcome.predicted - trial.clean) ** 2)))


def test_notes_and_drawings(quiet):
    lines = list_notes(quiet)
    assert "82 parameters with a standard deviation" in lines[1]
    assert any(line.startswith("no torque depends on m1, mx1") for line in lines)
    motion, torques, courses, errors = draw_all([quiet, quiet])
    assert [len(panel.curves) for panel in motion.panels] == [6, 6, 6]
    assert len(torques.panels) == 6 and len(courses.panels) == len(errors.panels) == 2
    assert errors.panels[0].ticks == ("separable", "separable\nweighted", "lm", "map_\nconstants")
    assert all(np.all(np.diff(curve.y) <= 0.0) for curve in courses.panels[0].curves if curve.label == "lm")


def test_temperature():
    heat = Heat.from_seed(1)
    for alpha, sigma in (heat.one[0], heat.both, heat.several[0]):
        assert abs(alpha - ALPHA) < 4.0 * sigma
    count = 13 * 5.0 * RATE
    spread = np.std(np.arange(-40.0, 81.0, 10.0))
    assert heat.one[0, 1] == pytest.approx(3.9 / np.sqrt(count) / spread, rel=0.05)  # of a straight line
    for name, (value, sigma) in zip(("fc", "kv1"), heat.several[1:], strict=True):
        assert abs(value - TABLE_1[name][0]) < 4.0 * sigma
    assert heat.one[1, 0] > TABLE_1["fc"][0] + 0.2 * TABLE_1["kv1"][0]  # viscous friction is in it


def test_stribeck_velocities_below_the_resolution_of_samples_are_not_identifiable():
    wide, narrow = compute_velocity_deviations(0.05, MOTION), compute_velocity_deviations(1e-3, MOTION)
    assert np.all(wide < narrow) and np.all(np.isinf(compute_velocity_deviations(1e-7, MOTION)))


def test_what_is_identified_without_weight_does_not_carry_arms_on_the_ground():
    found = Weightless.from_trial(NoisyTrial.from_seed(0, 1e-3, GIVEN))
    assert found.to_ground[1] > 10.0 * found.to_orbit[1]
    assert np.all(found.friction[1, 1:3] > found.friction[0, 1:3])
