# SPDX-License-Identifier: Apache-2.0
"""Factors of recordings: equal to the fit of all at once, refused where they cannot be merged."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.terms import Coulomb, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, WeightedLeastSquares
from robot_dyn_id.files.factor import encode_factor, parse_factor
from robot_dyn_id.identification.factor import Factor, UpdatedLeastSquares, require_mergeable
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.identification.stages.read import Read

ARM = Simulated()
SETTINGS = Settings(estimator=WeightedLeastSquares(), cutoff=5.0, sample_rate=100.0)


def prepared(recordings, settings=SETTINGS, arm=ARM):
    ready = Examined.from_read(Read.from_recordings(recordings, [], arm.model, settings))
    regressor = ready.known_regressor
    return ready, regressor, compute_base_parameters(regressor)


def factor_of(recordings, settings=SETTINGS, arm=ARM):
    ready, regressor, base = prepared(recordings, settings, arm)
    return Factor.from_trials(ready.trials, regressor, base, ready.read.settings, ready.effort_kind)


@pytest.fixture(scope="module")
def recordings():
    return [replace(ARM.record(seed, 8.0, noise=0.1), source=f"r{seed}") for seed in (1, 2)]


@pytest.fixture(scope="module")
def factors(recordings):
    return [factor_of([one]) for one in recordings]


def test_merged_factors_equal_the_fit_of_all_at_once(recordings, factors):
    ready, regressor, base = prepared(recordings)
    whole = SETTINGS.estimator.fit(ready.trials.problem(regressor, base.independent))
    merged = Factor.merged(factors)
    values = merged.statistics.estimate(base.names).values
    assert np.abs(values - whole.values).max() <= 1e-9 * np.abs(whole.values).max()
    assert merged.sources == ("r1", "r2")
    assert merged.ranges.q_max == pytest.approx(ready.trials.ranges.q_max)


def test_an_updated_fit_equals_that_of_all_at_once(recordings, factors):
    ready, regressor, base = prepared(recordings[1:])
    problem = ready.trials.problem(regressor, base.independent)
    updated = UpdatedLeastSquares(earlier=factors[0]).fit(problem)
    whole = Factor.merged(factors).statistics.estimate(base.names)
    assert np.abs(updated.values - whole.values).max() <= 1e-9 * np.abs(whole.values).max()


def test_other_options_are_refused_and_named(recordings, factors):
    other = factor_of(recordings[1:], replace(SETTINGS, cutoff=4.0, motion_cutoff=5.0))
    with pytest.raises(InputError, match="cutoff"):
        Factor.merged([factors[0], other])
    other = factor_of(recordings[1:], replace(SETTINGS, terms=(Viscous(), Coulomb())))
    with pytest.raises(InputError, match="column_names"):
        Factor.merged([factors[0], other])


def test_another_robot_is_refused(factors):
    other = Simulated(ARM.text.replace('name="l3"', 'name="tip"').replace('link="l3"', 'link="tip"'))
    with pytest.raises(InputError, match="another robot"):
        Factor.merged([factors[0], factor_of([other.record(3, 8.0)], arm=other)])


def test_settings_are_completed_and_never_replaced(factors):
    completed = factors[0].complete(Settings(estimator=WeightedLeastSquares()))
    assert (completed.cutoff, completed.sample_rate) == (5.0, 100.0)
    assert factors[0].complete(replace(SETTINGS, cutoff=3.0)).cutoff == 3.0


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": ESTIMATORS["robust"]()},
        {"bootstrap": 50},
        {"essential": 0.3},
        {"estimator": None},
        {"reversal_speed": "auto"},
        {"reversal_speeds": {"wrist": "auto"}},
    ],
)
def test_what_needs_the_data_themselves_is_refused(change):
    given = {**change} if change.get("estimator", 1) is not None else {"estimator": ESTIMATORS["consistent"]()}
    with pytest.raises(UsageError):
        require_mergeable(replace(SETTINGS, **given))


def test_factors_of_the_same_samples_are_refused(factors):
    with pytest.raises(InputError, match="same samples"):
        Factor.merged([factors[0], factors[1], replace(factors[0], sources=("copy",))])


def test_a_factor_of_recordings_is_read_back(factors):
    again = parse_factor(encode_factor(factors[0]), "again")
    assert again.choices == factors[0].choices
    assert Factor.merged([again, factors[1]]).sources == ("r1", "r2")
