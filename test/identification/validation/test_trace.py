# SPDX-License-Identifier: Apache-2.0
"""The trace of held-out data: equally spaced samples, and folds whose model has other columns than the final one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from support.simulated import ARM, Simulated

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Dahl, Offset, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation import trace
from robot_dyn_id.identification.validation.metrics import Fold, compare
from robot_dyn_id.identification.validation.thinning import CURVES, ExtremeCurves, Thinning
from robot_dyn_id.identification.validation.trace import Trace, thin_out

TERMS = (Viscous(), Dahl(), Offset())


def identified():
    arm = Simulated(ARM, TERMS)
    settings = Settings(terms=TERMS, estimator=ESTIMATORS["weighted"]())
    return identify([arm.record(1, noise=0.1)], [arm.record(2, noise=0.1)], arm.model, settings, "test")


def test_a_final_model_with_fewer_terms_than_its_folds_keeps_their_history():
    """The automatic model leaves out terms of single joints: their states are those of the joints that are left."""
    result = identified()
    model, fold = result.model, Fold.from_model(result.evaluation.trials, result.model)
    kept = [(at, term) for at, term in model.regressor.terms if at.name != "elbow" or not isinstance(term, Dahl)]
    smaller = Regressor(model.regressor.model, tuple(kept))
    base = compute_base_parameters(smaller)
    numbers = [model.base.names.index(name) for name in base.names]
    covariance = model.estimate.covariance[np.ix_(numbers, numbers)]
    estimate = replace(model.estimate, values=model.values[numbers], covariance=covariance)
    samples = result.evaluation.held_out.samples
    extremes = ExtremeCurves(thin_out(fold.trials))
    compare([fold], extremes=extremes)
    found = Trace.from_folds(IdentifiedModel(smaller, base, estimate), [fold], samples, extremes)
    own = Fold(result.evaluation.trials, smaller, base.independent, estimate.values)
    expected = Trace.from_folds(IdentifiedModel(smaller, base, estimate), [own], samples, extremes)
    np.testing.assert_allclose(found.deviation, expected.deviation, rtol=1e-12)
    np.testing.assert_array_equal(found.predicted, result.evaluation.trace.predicted)


def test_samples_are_equally_spaced_and_their_number_does_not_grow(monkeypatch):
    monkeypatch.setattr(trace, "PLOTTED_SAMPLES", 300)
    result = identified()
    found, samples = result.evaluation.trace, result.evaluation.held_out.samples
    assert samples / 400 < found.stride <= samples / 200 and found.samples == samples
    assert len(found.t) == -(-samples // found.stride)
    np.testing.assert_allclose(np.diff(found.t), found.stride / result.evaluation.plan.rate, rtol=1e-6)
    for name in ("measured", "raw", "predicted", "deviation", "valid"):
        assert getattr(found, name).shape == (3, len(found.t))


def test_extremes_between_the_samples_are_kept():
    """Each kept sample has the extremes of all samples up to the next one, wherever windows end."""
    result = identified()
    trials = result.evaluation.trials
    fold = Fold.from_model(trials, result.model)
    whole, sparse, pieces = (ExtremeCurves(Thinning(stride)) for stride in (1, 7, 7))
    compare([fold], extremes=whole)
    compare([fold], extremes=sparse)
    every, kept = (np.concatenate(one.pieces, axis=-1) for one in (whole, sparse))
    np.testing.assert_array_equal(every[0], every[1])
    count = every.shape[-1]
    assert kept.shape == (2, len(CURVES), 3, -(-count // 7))
    for place in range(kept.shape[-1]):
        between = every[0][..., 7 * place : 7 * place + 7]
        np.testing.assert_array_equal(kept[0][..., place], between.min(axis=-1))
        np.testing.assert_array_equal(kept[1][..., place], between.max(axis=-1))
    window = next(iter(trials))
    for first, last in pairwise((0, 5, 8, 100, 101, 102, count)):
        pieces.add(0, window, every[0][..., first:last])
    np.testing.assert_array_equal(np.concatenate(pieces.pieces, axis=-1), kept)
