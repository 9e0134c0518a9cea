# SPDX-License-Identifier: Apache-2.0
"""Neural network with which the paper compares: from the motion of the joints to their torques.

The paper prints neither layers nor training: two layers of 64 are used here, motions and torques are standardized, and
everything else has scikit-learn's defaults.
"""

from __future__ import annotations

import importlib
import time

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.papers.space6r.trials import Method, NoisyTrial, Outcome

NETWORKS = {"network": 1e-4, "network, trained longer": 1e-6}
"""Names of the methods, and the decrease of the loss at which training stops: scikit-learn's, and a hundredth of it."""

LAYERS = (64, 64)

EPOCHS = 5000
"""Largest number of epochs: training stops earlier, when the loss has not decreased for ten of them."""


def make_network(name: str) -> Method:
    """One of `NETWORKS` as a method of the comparison."""
    return lambda trial: train_network(trial, NETWORKS[name])


def train_network(trial: NoisyTrial, tolerance: float) -> Outcome:
    """Train on the recorded motion and predict along the other one (needs scikit-learn).

    Args:
        trial: recorded motion, and the motion of the prediction.
        tolerance: decrease of the loss below which training stops.
    """
    layered = importlib.import_module("sklearn.neural_network").MLPRegressor
    scaled = importlib.import_module("sklearn.preprocessing").StandardScaler
    piped = importlib.import_module("sklearn.pipeline").make_pipeline
    of_scaled = importlib.import_module("sklearn.compose").TransformedTargetRegressor
    begun = time.process_time()
    network = layered(hidden_layer_sizes=LAYERS, tol=tolerance, max_iter=EPOCHS, random_state=0)
    network = of_scaled(piped(scaled(), network), transformer=scaled())
    network.fit(_inputs(trial.conditions.motion), trial.torque.T)
    seconds = time.process_time() - begun
    rest = trial.torque - network.predict(_inputs(trial.conditions.motion)).T
    predicted = np.ascontiguousarray(network.predict(_inputs(trial.conditions.other)).T)
    return trial.judged(predicted, seconds, 0.5 * float(np.sum(rest**2)))


def _inputs(motion: Motion) -> Array:
    return np.concatenate([motion.q, motion.dq, motion.ddq]).T
