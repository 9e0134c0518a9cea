# SPDX-License-Identifier: Apache-2.0
"""Measured and predicted torque along held-out data, thinned for plots, with the causes of the prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.torque_parts import TorqueParts
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.validation.extrapolation import compute_torque_deviation
from robot_dyn_id.identification.validation.metrics import Fold, iterate_held_out_windows
from robot_dyn_id.identification.validation.thinning import ExtremeCurves, Thinning
from robot_dyn_id.parameters import ResidualProfile
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.signals.windows import FilteredWindow

PLOTTED_SAMPLES = 6000
"""Approximate number of samples kept for plots."""


def thin_out(trials: FilteredTrials) -> Thinning:
    """Thinning of held-out data to about `PLOTTED_SAMPLES` samples."""
    samples = math.ceil(sum(trials.survey.durations) * trials.plan.rate)
    return Thinning(max(1, -(-samples // PLOTTED_SAMPLES)))


@dataclass(frozen=True)
class Trace:
    """Every `stride`-th used sample of held-out data, see `Thinning`, in order of time; N samples of n joints.

    Attributes:
        t: time stamps [s], shape (N,).
        measured: measured torque, low-passed [N m or N], shape (n, N).
        raw: measured torque as recorded, shape (n, N).
        predicted: torque predicted by a model that was identified without the sample, shape (n, N).
        trial: number of the recording of each sample, shape (N,).
        fold: number of the part of the held-out data, each predicted by its own model, shape (N,).
        motion: motion of the joints, without states of terms.
        parts: the prediction by cause; their sum is `predicted`.
        deviation: standard deviation of the prediction due to the parameter covariance, shape (n, N).
        valid: whether the sample of a joint counts in the metrics, shape (n, N).
        profile: residuals of the training data over the speed; None if not known.
        extremes: smallest and largest values of `raw`, `measured`, `predicted` and `residual` from each sample up to
            the next one, shape (2, 4, n, N).
        stride: number of used samples of which one is kept.
        samples: number of used samples.
    """

    t: Array
    measured: Array
    raw: Array
    predicted: Array
    trial: Integers = field(repr=False)
    fold: Integers = field(repr=False)
    motion: Motion = field(repr=False)
    parts: TorqueParts = field(repr=False)
    deviation: Array = field(repr=False)
    valid: Mask = field(repr=False)
    profile: ResidualProfile | None = field(repr=False)
    extremes: Array = field(repr=False)
    stride: int
    samples: int

    @classmethod
    def from_folds(
        cls,
        model: IdentifiedModel,
        folds: Sequence[Fold],
        samples: int,
        extremes: ExtremeCurves,
        profile: ResidualProfile | None = None,
    ) -> Trace:
        """Trace held-out data.

        Args:
            model: the identified model, whose covariance gives the deviation.
            folds: held-out data, each with the model that predicts them.
            samples: number of their used samples.
            extremes: extremes of the curves of these folds, see `compare`.
            profile: residuals of the training data; None: not known, or these folds are the training data.
        """
        thinning, found = Thinning(extremes.thinning.stride), iter(extremes.pieces)
        pieces: list[_Piece] = []
        for number, fold, window, tau in iterate_held_out_windows(folds):
            used = np.flatnonzero(window.used)
            rows = used[thinning.pick(number, window, len(used))]
            if len(rows):
                pieces.append(_Piece.from_window(model, (number, fold), window, tau, rows, next(found)))
        pieces.sort(key=lambda piece: (piece.trial, float(piece.t[0])))
        channels = {
            name: np.concatenate([getattr(piece, name) for piece in pieces], axis=-1)
            for name in ("t", "measured", "raw", "predicted", "deviation", "valid", "extremes")
        }
        q, dq, ddq = np.concatenate([piece.motion for piece in pieces], axis=-1)
        return cls(
            **channels,
            **{
                name: np.repeat([getattr(piece, name) for piece in pieces], [len(piece.t) for piece in pieces])
                for name in ("trial", "fold")
            },
            motion=Motion(q, dq, ddq),
            parts=TorqueParts(*np.concatenate([piece.parts for piece in pieces], axis=-1)),
            profile=profile,
            stride=thinning.stride,
            samples=samples,
        )

    @property
    def residual(self) -> Array:
        """Measured minus predicted torque, shape (n, N)."""
        return self.measured - self.predicted


@dataclass(frozen=True)
class _Piece:
    """The kept samples of one window; see `Trace`. `motion` has the shape (3, n, N), `parts` (5, n, N)."""

    t: Array
    trial: int
    fold: int
    measured: Array
    raw: Array
    predicted: Array
    motion: Array
    parts: Array
    deviation: Array
    valid: Mask
    extremes: Array

    @classmethod
    def from_window(
        cls,
        model: IdentifiedModel,
        numbered: tuple[int, Fold],
        window: FilteredWindow,
        tau: Array,
        rows: Integers,
        extremes: Array,
    ) -> _Piece:
        """Evaluate the models at some samples of a window of a fold, which comes with its number."""
        number, fold = numbered
        plan, motion = fold.trials.plan, window.motion.take(rows)
        return cls(
            t=window.t[rows],
            trial=window.trial,
            fold=number,
            measured=plan.low_pass.apply(tau, plan.rate)[:, rows],
            raw=tau[:, rows],
            predicted=fold.regressor.torque(motion, fold.values, fold.columns),
            motion=np.stack([motion.q, motion.dq, motion.ddq]),
            parts=TorqueParts.from_motion(fold.regressor, fold.columns, fold.values, motion).stacked,
            deviation=_deviation(model, fold.regressor, motion),
            valid=window.valid[:, rows],
            extremes=extremes,
        )


def _deviation(model: IdentifiedModel, regressor: Regressor, motion: Motion) -> Array:
    """Standard deviation of a model's prediction along a motion with the states of another regressor, shape (n, N).

    Terms that only the model has are evaluated without a history.
    """
    states = {}
    for group in model.regressor.state_groups:
        other = next((one for one in regressor.state_groups if one.term == group.term), None)
        if other is None or motion.states is None:
            continue
        same = (group.weights[:, None] == other.weights).all(axis=2) & (group.offsets == other.offsets.T)
        if same.any(axis=1).all():
            states[group.term] = motion.states[group.term][:, same.argmax(axis=1)]
    own = replace(motion, states=states or None)
    return compute_torque_deviation(model.regressor, model.columns, model.estimate.covariance, own)
