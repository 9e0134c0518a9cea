# SPDX-License-Identifier: Apache-2.0
"""Measured and predicted torques of the equations of an arm with flexible joints, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.flexible.experiment import Experiment, FilteredRows, filter_rows
from robot_dyn_id.flexible.model import SPRING, FlexibleModel
from robot_dyn_id.signals.filtering import LowPass


@dataclass(frozen=True)
class EquationCurve:
    """Both sides of one equation along an experiment, filtered, N samples.

    Attributes:
        equation: experiment, kind and joint, such as `both: link of joint1`.
        t: times since the start of the experiment [s], shape (N,); numbers of the poses where the arm is at rest.
        measured: measured torque [N m or N], shape (N,); that of the spring in link equations of joints without a
            sensor. NaN where a sample does not count.
        predicted: torque of the other parameters, shape (N,); NaN there too, and where one is not identified.
        at_rest: whether the samples are poses at rest.
    """

    equation: str
    t: Array
    measured: Array
    predicted: Array
    at_rest: bool = False


def compute_equation_curves(
    model: FlexibleModel, experiments: Sequence[Experiment], low_pass: LowPass, values: Array
) -> tuple[EquationCurve, ...]:
    """Curves of the equations, without those that only parameters that are not identified would explain.

    Args:
        model: the arm.
        experiments: the recorded experiments.
        low_pass: low-pass filter of the equations.
        values: parameters, shape (p,); NaN where not identified.
    """
    return tuple(curve for experiment in experiments for curve in _curves(model, experiment, low_pass, values))


def _curves(model: FlexibleModel, experiment: Experiment, low_pass: LowPass, values: Array) -> Iterator[EquationCurve]:
    springs = np.concatenate([model.columns(SPRING, joint.name) for joint in model.joints])
    parts: dict[str, list[Array]] = {}
    for block in filter_rows(model, experiment, low_pass):
        parts.setdefault(block.name, []).append(_sides(block, values, springs))
    for name, found in parts.items():
        samples, measured, predicted = np.concatenate(found, axis=1)
        if np.isfinite(predicted).any():
            t = samples / experiment.rate if experiment.rate else samples
            yield EquationCurve(name, t, measured, predicted, experiment.rate == 0.0)


def _sides(block: FilteredRows, values: Array, springs: Array) -> Array:
    """Numbers of the samples, measured and predicted torque, shape (3, N)."""
    unknown = np.isnan(values)
    known = np.where(unknown, 0.0, values)
    measured, predicted = block.target, block.rows @ known
    if not measured.any():  # no sensor: the spring is what the link's torque is compared with
        measured = -block.rows[:, springs] @ known[springs]
        predicted = predicted + measured
    used = block.counted[block.samples] & ~block.rows[:, unknown].any(axis=1)
    return np.stack([block.samples, np.where(used, measured, np.nan), np.where(used, predicted, np.nan)])
