# SPDX-License-Identifier: Apache-2.0
"""The trace of held-out data: equally spaced samples, and folds whose model has other columns than the final one."""

from dataclasses import replace

import numpy as np
from support.simulated import ARM, Simulated

from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Dahl, Offset, Viscous
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.identification import trace
from robot_dyn_id.identification.metrics import Fold
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.trace import Trace

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
    base = base_parameters(smaller)
    numbers = [model.base.names.index(name) for name in base.names]
    covariance = model.estimate.covariance[np.ix_(numbers, numbers)]
    estimate = replace(model.estimate, values=model.values[numbers], covariance=covariance)
    samples = result.evaluation.held_out.samples
    found = Trace.from_folds(IdentifiedModel(smaller, base, estimate), [fold], samples)
    own = Fold(result.evaluation.trials, smaller, base.independent, estimate.values)
    expected = Trace.from_folds(IdentifiedModel(smaller, base, estimate), [own], samples)
    np.testing.assert_allclose(found.deviation, expected.deviation, rtol=1e-12)
    np.testing.assert_array_equal(found.predicted, result.evaluation.trace.predicted)


def test_samples_are_equally_spaced_and_their_number_does_not_grow(monkeypatch):
    monkeypatch.setattr(trace, "PLOTTED_SAMPLES", 300)
    result = identified()
    found, samples = result.evaluation.trace, result.evaluation.held_out.samples
    assert found.stride == -(-samples // 300) and found.samples == samples
    assert len(found.t) == -(-samples // found.stride)
    np.testing.assert_allclose(np.diff(found.t), found.stride / result.evaluation.plan.rate, rtol=1e-6)
    for name in ("measured", "raw", "predicted", "deviation", "valid"):
        assert getattr(found, name).shape == (3, len(found.t))
