# SPDX-License-Identifier: Apache-2.0
"""Comparisons of an estimate after the fit."""

import numpy as np

from robot_dyn_id.estimators import Estimate
from robot_dyn_id.identification.estimation import count_free


def test_parameters_at_a_bound_do_not_count():
    values = np.array([1.0, -0.2, 1e-15, 0.0, 3e-6, 0.4])
    deviations = np.array([0.1, 5.0, 0.1, 0.3, 1e-2, np.inf])
    none = np.zeros(0)
    estimate = Estimate(values, np.diag(np.zeros(6)), deviations, 1.0, none, none, 6)
    assert count_free(estimate) == 2
