# SPDX-License-Identifier: Apache-2.0
"""Assessment of an identified model on live data: whether it fits, and the values behind that."""

from __future__ import annotations

from dataclasses import dataclass

from robot_dyn_id.identification.validation.extrapolation import format_excesses
from robot_dyn_id.online.monitoring import ResidualMonitor


@dataclass(frozen=True)
class Assessment:
    """Result of the comparison of measured and predicted torque.

    Attributes:
        fits: whether nothing contradicts the model.
        message: one line without numbers, so that it stays the same as long as the result does.
        values: quantities behind the message, as texts by their names.
    """

    fits: bool
    message: str
    values: dict[str, str]


def assess(monitor: ResidualMonitor, warn_factor: float, warn_floor: float) -> Assessment:
    """Assess the model of a monitor.

    Args:
        monitor: monitor that has received the joint states.
        warn_factor: ratio of the residual to the held-out error from which on the model does not fit.
        warn_floor: normalized residual below which the model always fits.
    """
    watch = monitor.watch
    fits = True
    worse = monitor.worse(warn_factor, warn_floor)
    outside = ", ".join(excess.name for excess in monitor.outside)
    extrapolation = f"; far outside the training motion: {outside}" if outside else ""
    if watch.changed:
        fits = False
        message = f"the robot has changed since the identification: {watch.summary}"
    elif worse:
        fits = False
        message = f"the model does not fit any more: {', '.join(worse)}"
    else:
        names = monitor.parameters.robot.joint_names
        resting = [name for name, assessed in zip(names, monitor.assessed, strict=True) if not assessed]
        message = f"too little motion for an assessment: {', '.join(resting)}" if resting else "the model fits"
    learning = "; changes are not detected yet" if fits and watch.learning else ""
    return Assessment(fits, message + extrapolation + learning, _values(monitor))


def _values(monitor: ResidualMonitor) -> dict[str, str]:
    """Residuals of each joint, changes and extrapolation."""
    parameters = monitor.parameters
    names = parameters.robot.joint_names
    values = {f"{name}: RMS residual": f"{rms:.4g}" for name, rms in zip(names, monitor.rms, strict=True)}
    for name, live, held_out in zip(names, monitor.nrmse, parameters.judgment.held_out_nrmse, strict=True):
        values[f"{name}: NRMSE (held-out)"] = f"{live:.2%} ({held_out:.2%})"
    watch = monitor.watch
    values["changes"] = f"thresholds need {watch.learning:.0f} s of motion" if watch.learning else watch.description
    values["not monitored: at rest during the learning"] = ", ".join(watch.unmonitored) or "none"
    values["interruptions of the joint states"] = str(monitor.interruptions)
    values["far outside the training motion"] = format_excesses(monitor.outside) or "none"
    return values
