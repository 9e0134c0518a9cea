# SPDX-License-Identifier: Apache-2.0
"""The neural network that the space manipulator's paper compares with: from the motion of the joints to their torques.

The paper prints neither its layers nor its training: here two layers of 64, motions and torques standardised,
everything else as scikit-learn has it.
"""

from __future__ import annotations

import importlib
import importlib.util
import time

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.papers.space6r.trials import Outcome, Trial

NETWORKS = {"network": 1e-4, "network, trained longer": 1e-6}
"""Names among the methods, and the decrease of the loss that is none: that of scikit-learn, and a hundredth of it."""

LAYERS = (64, 64)

EPOCHS = 5000
"""More than are needed: training stops when the loss has not fallen for ten of them."""


def why_not(full: bool) -> str:
    """Why no network is trained; empty if one is.

    Args:
        full: whether the slow baselines are run.
    """
    if not full:
        return "only --full trains one"
    if importlib.util.find_spec("sklearn") is None:
        return "scikit-learn is not installed (pip install 'robot-dyn-id[network]')"
    return ""


def trained(trial: Trial, tolerance: float) -> Outcome:
    """Train on what is recorded, and predict along the other motion; where scikit-learn is installed.

    Args:
        trial: what is recorded, and the other motion.
        tolerance: decrease of the loss that is none.
    """
    layered = importlib.import_module("sklearn.neural_network").MLPRegressor
    scaled = importlib.import_module("sklearn.preprocessing").StandardScaler
    piped = importlib.import_module("sklearn.pipeline").make_pipeline
    of_scaled = importlib.import_module("sklearn.compose").TransformedTargetRegressor
    begun = time.process_time()
    network = layered(hidden_layer_sizes=LAYERS, tol=tolerance, max_iter=EPOCHS, random_state=0)
    network = of_scaled(piped(scaled(), network), transformer=scaled())
    network.fit(_inputs(trial.motion), trial.torque.T)
    seconds = time.process_time() - begun
    rest = trial.torque - network.predict(_inputs(trial.motion)).T
    predicted = np.ascontiguousarray(network.predict(_inputs(trial.other)).T)
    return trial.judged(predicted, None, 0.5 * float(np.sum(rest**2)), seconds)


def _inputs(motion: Motion) -> Array:
    return np.concatenate([motion.q, motion.dq, motion.ddq]).T
