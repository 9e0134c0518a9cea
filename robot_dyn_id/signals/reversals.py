# SPDX-License-Identifier: Apache-2.0
"""Rows near a reversal of the velocity, where its noise decides which way friction points.

Columns of friction change fastest there, and are computed from a velocity with noise: what they get wrong, a smoothing
width or a Stribeck velocity soaks up. Rows of a joint that is slower than a few standard deviations of that noise are
left out of its equations: set to zero, which counts for nothing and keeps the time of those that follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.errors import UsageError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.signals.processing import filter_window
from robot_dyn_id.signals.trials import FilteredTrials

SLOW_ROWS_KEPT = Definition(
    "slow_rows_kept",
    Section.DATA,
    "warning",
    "A joint is never faster than its low-velocity threshold, so that its rows near reversals are kept.",
    "lower `reversal_speed`, or record a faster motion",
)

SIGMAS = 3.0
"""Standard deviations of the velocity's noise within which its sign is not known."""

AUTO = "auto"
"""In place of a speed: from the data."""


def check_speed(speed: float | str, what: str) -> None:
    """Check a threshold of the speed.

    Raises:
        UsageError: neither `auto` nor 0 nor positive.
    """
    if speed != AUTO and not (isinstance(speed, float | int) and 0.0 <= speed < math.inf):
        raise UsageError(f"reversal_speed of {what} must be {AUTO}, 0 or a positive speed [rad/s or m/s], not {speed}")


def estimate_velocity_noise(trials: FilteredTrials) -> Array:
    """Standard deviation of the noise that the low-pass leaves in each joint's velocity [rad/s or m/s], shape (n,).

    From what the low-pass takes away, which holds no motion, taking the noise for white: that of recorded velocities,
    or that of the positions whose derivative the velocity is.
    """
    plan, taken, count = trials.plan, 0.0, 0
    for window in trials.windows():
        recorded = plan.recorded_velocity and window.dq is not None
        values = window.dq if recorded and window.dq is not None else window.q
        rest = values - plan.motion_pass.apply(values, plan.native_rate)
        rest = rest[:, :: plan.decimation][:, filter_window(window, plan).own]
        taken, count = taken + (rest**2).sum(axis=1), count + rest.shape[1]
    return estimate_noise_left(
        np.asarray(taken) / max(count, 1), plan.motion_pass.cutoff, plan.native_rate, not plan.recorded_velocity
    )


def estimate_sensor_noise(trials: FilteredTrials) -> tuple[Array, Array]:
    """Standard deviations of the noise in the recorded positions and velocities, shape (n,) each.

    From what the motion filter takes away, taking the noise for white; 0 for velocities that are not recorded.

    Args:
        trials: the trials.

    Returns:
        Of positions [rad or m] and of velocities [rad/s or m/s].
    """
    plan, taken, count = trials.plan, np.zeros((2, len(trials.joints))), 0
    for window in trials.windows():
        own = slice(window.core.start, window.core.stop)
        for place, values in enumerate((window.q, window.dq)):
            if values is not None:
                rest = values - plan.motion_pass.apply(values, plan.native_rate)
                taken[place] += (rest[:, own] ** 2).sum(axis=1)
        count += window.core.stop - window.core.start
    nyquist = 0.5 * plan.native_rate
    share = max(nyquist - plan.motion_pass.cutoff, 0.1 * nyquist) / nyquist
    of_position, of_velocity = np.sqrt(taken / (max(count, 1) * share))
    return of_position, of_velocity


def estimate_noise_left(taken: Array, cutoff: float, rate: float, derived: bool) -> Array:
    """Standard deviation of the white noise that a low-pass leaves, from what it takes away.

    Args:
        taken: mean square of what it takes, of any shape.
        cutoff: cut-off frequency of the low-pass [Hz].
        rate: samples per second [Hz].
        derived: whether the derivative is taken of what is left.
    """
    nyquist = 0.5 * rate
    density = taken / max(nyquist - cutoff, 0.1 * nyquist)
    band = (2 * np.pi) ** 2 * cutoff**3 / 3.0 if derived else cutoff
    return np.sqrt(density * band)


def exclude_reversals(
    trials: FilteredTrials, speed: float | str, of_joint: Mapping[str, float], rest: float = 0.0
) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """The trials without their slow rows, and findings.

    Args:
        trials: the trials.
        speed: see `find_slowest_speeds`.
        of_joint: see `find_slowest_speeds`.
        rest: speed below which a joint is at rest, and its rows are kept [rad/s or m/s].
    """
    slowest, findings = find_slowest_speeds(
        trials.joints, speed, of_joint, lambda: estimate_velocity_noise(trials), trials.max_speeds
    )
    return trials.with_thresholds(slowest, rest), findings


def find_slowest_speeds(
    joints: Sequence[str], speed: float | str, of_joint: Mapping[str, float], noise: Callable[[], Array], fastest: Array
) -> tuple[tuple[float, ...], tuple[Finding, ...]]:
    """The speed of each joint below which its rows are left out, and findings.

    Args:
        joints: names of the joints.
        speed: threshold of all joints, or `auto`: `SIGMAS` standard deviations of the velocity's noise.
        of_joint: thresholds of single joints.
        noise: gives that standard deviation, shape (n,).
        fastest: greatest speed of each joint, shape (n,); one that is never faster than its threshold keeps its rows.
    """
    common = SIGMAS * noise() if speed == AUTO else np.full(len(joints), float(speed))
    wanted = np.array([of_joint.get(name, value) for name, value in zip(joints, common.tolist(), strict=True)])
    keeping = (wanted > 0.0) & (fastest <= wanted)
    findings = tuple(
        SLOW_ROWS_KEPT.found(
            f"joint {name} is never faster than its reversal_speed of {value:.3g}: its rows near reversals are kept",
            [name],
        )
        for name, value, kept in zip(joints, wanted.tolist(), keeping.tolist(), strict=True)
        if kept
    )
    return tuple(np.where(keeping, 0.0, wanted).tolist()), findings
