# SPDX-License-Identifier: Apache-2.0
"""Steps of the space manipulator's paper: identifiability, its trials, its temperature; small extents."""

import numpy as np
import pytest

from robot_dyn_id.dynamics.terms import ImprovedStribeck
from robot_dyn_id.estimators import MaximumAPosterioriConstants, Separable
from robot_dyn_id.excitation import random_fourier
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.papers.inputs import model_of
from robot_dyn_id.papers.space6r import reproduction as space6r
from robot_dyn_id.papers.space6r.effects import ALPHA, WEIGHTLESS, Heat, Weightless, ranks, velocity_deviations
from robot_dyn_id.papers.space6r.network import trained
from robot_dyn_id.papers.space6r.shown import drawings, notes
from robot_dyn_id.papers.space6r.trials import RATE, TABLE_1, NoisyTrial, Trials, cost, error, parameters, states

MODEL = model_of("space6r")
MOTION, OTHER = (states(random_fourier(MODEL, seed, period)) for seed, period in ((1, 10.0), (2, 12.5)))


@pytest.fixture(scope="module")
def quiet():
    """Three methods on one robot whose torques have a thousandth of the paper's noise."""
    trial = NoisyTrial.from_seed(0, 1e-3, MOTION, OTHER)
    found = {
        "separable": Separable(weighted=False),
        "separable, weighted": Separable(),
        "map_constants": MaximumAPosterioriConstants(),
    }
    outcomes = {name: (trial.outcome(estimator),) for name, estimator in found.items()}
    return Trials(1e-3, (trial,), {**outcomes, "truth": (trial.judged_truth(),)})


def test_ranks_with_and_without_weight():
    assert ranks(STANDARD_GRAVITY) == space6r.RANKS["on the ground"]
    assert ranks(WEIGHTLESS) == space6r.RANKS["without weight"]


def test_inertias_of_the_table_belong_to_bodies():
    """Read about the frames of the links, as the URDF has them: positive and with the triangle inequality."""
    for m, mx, my, mz, xx, xy, yy, xz, yz, zz in MODEL.inertial_parameters.reshape(-1, 10):
        c = np.array([mx, my, mz]) / m
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        principal = np.linalg.eigvalsh(about_origin - m * (c @ c * np.eye(3) - np.outer(c, c)))
        assert principal[0] > 0.0 and principal[2] < principal[0] + principal[1]


def test_a_true_robot_is_near_the_nominal_one_and_breaks_away_above_sliding():
    nominal, _ = parameters(MODEL)
    for seed in range(20):
        values, velocities = parameters(MODEL, np.random.default_rng(seed))
        friction = values[72:].reshape(6, 5)
        assert np.all(friction[:, 1] >= 0.05 * friction[:, 0] - 1e-12) and np.all(velocities > 0.0)
        assert np.all(np.abs(values[:72] - nominal[:72]) <= 0.2 * np.abs(nominal[:72]) + 1e-15)


def test_with_little_noise_the_truth_is_found(quiet):
    trial = quiet.trials[0]
    true = [term.stribeck_velocity for _, term in trial.regressor.terms if isinstance(term, ImprovedStribeck)]
    base = trial.base.mapping @ trial.truth
    for name in quiet.outcomes.keys() - {"truth"}:
        outcome = quiet.outcomes[name][0]
        assert outcome.error < 2e-3  # 62 parameters of 1000 samples and noise of 1 to 5 mN m
        for value, constant in zip(true, outcome.estimate.constants, strict=True):
            assert abs(constant.value - value) < 5.0 * constant.standard_deviation
        away = np.abs(outcome.estimate.values - base) / outcome.estimate.standard_deviations
        assert np.mean(away < 3.0) > 0.95
        assert outcome.misfit.max() < space6r.TARGETS["misfit"] and outcome.correlation.min() > 0.999
    noise = quiet.outcomes["truth"][0].misfit  # of 1250 samples: give or take 2 %
    np.testing.assert_allclose(noise, 1.0, atol=0.08)


def test_what_does_not_converge_counts_in_no_median(quiet):
    trial = quiet.trials[0]
    lost = trial.judged(np.full_like(trial.clean, np.nan), None, np.nan, 1.0)
    both = Trials(1.0, (trial, trial), {"a": (lost, quiet.outcomes["map_constants"][0]), "b": (lost, lost)})
    assert both.median("a", error) == quiet.median("map_constants", error)
    assert np.isnan(both.median("b", cost)) and np.isnan(both.ratio("a", "b", error, np.median))


@pytest.mark.parametrize(("seeds", "verdict"), [(4, "shown"), (5, "does not hold")])
def test_a_median_is_judged_by_five_robots_at_least(quiet, seeds, verdict):
    """With the same outcome for all methods the prior has gained nothing."""
    names = ("pso_lm", "separable", "separable, weighted", "map_constants", "map_constants, prior by size")
    outcomes = {name: quiet.outcomes["map_constants"] * seeds for name in names}
    (figure,) = (
        figure
        for figure in space6r._of_goals(Trials(1.0, quiet.trials * seeds, outcomes))
        if figure.name.endswith("error of map_constants over pso_lm, median")
    )
    assert figure.ours == 1.0 and figure.verdict == verdict and ("too few" in figure.why) == (seeds < 5)


def test_a_network_follows_what_it_was_trained_on_and_little_else(quiet):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    trial = quiet.trials[0]
    outcome = trained(trial, 1e-4)
    size = np.sqrt(np.mean(trial.torque**2))
    assert np.sqrt(2.0 * outcome.cost / trial.torque.size) < 0.2 * size < outcome.error
    assert outcome.error == pytest.approx(np.sqrt(np.mean((outcome.predicted - trial.clean) ** 2)))


def test_notes_and_drawings(quiet):
    lines = notes(quiet)
    assert "82 parameters with a standard deviation" in lines[1]
    assert any(line.startswith("no torque depends on m1, mx1") for line in lines)
    torques, courses, errors = drawings([quiet, quiet])
    assert len(torques.panels) == 6 and len(courses.panels) == len(errors.panels) == 2
    assert errors.panels[0].ticks == ("separable", "separable\nweighted", "map_\nconstants")
    assert np.all(np.diff(courses.panels[0].curves[0].y) <= 0.0) and courses.panels[0].curves[0].y[-1] == 1.0


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
    wide, narrow = velocity_deviations(0.05, MOTION), velocity_deviations(1e-3, MOTION)
    assert np.all(wide < narrow) and np.all(np.isinf(velocity_deviations(1e-7, MOTION)))


def test_what_is_identified_without_weight_does_not_carry_arms_on_the_ground():
    found = Weightless.from_trial(0, NoisyTrial.from_seed(0, 1e-3, MOTION, OTHER), MOTION)
    assert found.to_ground[1] > 10.0 * found.to_orbit[1]
    assert np.all(found.friction[1, 1:3] > found.friction[0, 1:3])
