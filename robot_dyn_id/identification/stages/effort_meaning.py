# SPDX-License-Identifier: Apache-2.0
"""Meaning of the recorded efforts: torques, currents with or without gains, torques without weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.corrected import Corrected, ReadAsCurrent
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.diagnosis import EFFORT_GRAVITY_COMPENSATED
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.weight_gains import WeightGain, estimate_weight_gains
from robot_dyn_id.identification.settings import COMPENSATED_KINDS, CURRENT_KINDS, Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import DRIVE_UNITS, GAIN_UNKNOWN, UNKNOWN, describe_unknown_gains
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.trials import FilteredTrials

GAINS_FROM_MASSES = Definition(
    "gains_from_masses",
    Section.DATA,
    "warning",
    "Currents came without gains, which are estimated from the masses of the URDF: all torques are as wrong as "
    "these masses are.",
    "give measured gains, `gain` [N m/A] of each joint, in the configuration",
)


@dataclass(frozen=True)
class Meaning:
    """Meaning of the efforts of recordings: what they are read as.

    Attributes:
        training: recordings to identify from.
        held_out: recordings to validate on.
        model: the robot, without gravity where the efforts contain none, with the units of efforts of unknown gain.
        drives: gains and signs of all joints whose effort is a current.
        findings: findings about gains, and about efforts that are stated to contain no weight.
        effort_kind: content of the measured effort, one of `parameters.EFFORT_KINDS`; unknown if neither the settings
            nor the channels of the recordings determine it.
    """

    training: list[Corrected]
    held_out: list[Corrected]
    model: RobotModel
    drives: Mapping[str, Drive]
    findings: tuple[Finding, ...]
    effort_kind: str


def interpret_efforts(
    training: Sequence[Corrected], held_out: Sequence[Corrected], model: RobotModel, settings: Settings
) -> Meaning:
    """Read the efforts as the settings state, with gains by the URDF's masses where currents come without them.

    Args:
        training: recordings to identify from.
        held_out: recordings to validate on.
        model: the robot as configured.
        settings: meaning of the efforts, drives, choices about signals.

    Raises:
        InputError: external torques, or currents without gains of a robot without masses.
    """
    kind = settings.effort_kind
    joints = model.joint_names
    currents_alone = kind == "auto" and all(observation_of(recording).first.currents_alone for recording in training)
    stored = "current" if currents_alone else UNKNOWN if kind == "auto" else kind
    plain = Meaning(list(training), list(held_out), model, settings.drives, (), stored)
    if kind == "external":
        sources = ", ".join(recording.source for recording in training)
        raise InputError(
            f"{sources}: external torques contain no dynamics of the robot: record joint torques or currents"
        )
    if kind in COMPENSATED_KINDS:
        return replace(plain, model=replace(model, gravity=np.zeros(3)), findings=report_compensated(kind))
    missing = [name for name in joints if settings.drives.get(name, Drive()).gain is None]
    if kind in CURRENT_KINDS and not missing:
        trained, validated = (read_as_trained(group, kind) for group in (training, held_out))
        return replace(plain, training=trained, held_out=validated)
    if not missing or not (kind in CURRENT_KINDS or (currents_alone and model.inertial_parameters.any())):
        return plain
    if not model.inertial_parameters.any():
        raise InputError(
            f"{model.name}: gains of {', '.join(missing)} cannot be estimated, as the URDF has no masses: give `gain` "
            "in the configuration"
        )
    trained, validated = (read_as_trained(group, "current") for group in (training, held_out))
    signs = {name: settings.drives.get(name, Drive()).sign for name in missing}
    unit = {**settings.drives, **{name: Drive.from_unknown_gain(sign) for name, sign in signs.items()}}
    trials = FilteredTrials.from_recordings(trained, joints, unit, settings.signals)
    gains = [gain for gain in estimate_weight_gains(MotionSamples.from_trials(trials), model) if gain.joint in missing]
    found = {g.joint: Drive(abs(g.value), signs[g.joint] * (1.0 if g.value > 0 else -1.0)) for g in gains if g.known}
    drive_units = {name: DRIVE_UNITS[stored] for name in missing if name not in found}
    findings = (*_report_gains(gains), *report_unknown_gains(drive_units))
    model = replace(model, drive_units=drive_units)
    return Meaning(trained, validated, model, {**unit, **found}, findings, stored)


def read_as_trained(recordings: Sequence[Corrected], effort_kind: str) -> list[Corrected]:
    """Recordings with the channel of their efforts that a model was identified from.

    Args:
        recordings: the recordings.
        effort_kind: content of that channel, one of `parameters.EFFORT_KINDS`.
    """
    if effort_kind not in CURRENT_KINDS:
        return list(recordings)
    return [recording.corrected(ReadAsCurrent()) for recording in recordings]


def report_compensated(effort_kind: str) -> tuple[Finding, ...]:
    """Finding about a model of efforts that are known to contain no weight."""
    if effort_kind not in COMPENSATED_KINDS:
        return ()
    message = f"efforts are {effort_kind.replace('_', ' ')}: the model has no gravity, and predicts such efforts"
    return (EFFORT_GRAVITY_COMPENSATED.found(message, severity="info"),)


def _report_gains(gains: Sequence[WeightGain]) -> tuple[Finding, ...]:
    """Finding about gains by the URDF's masses."""
    known = [gain for gain in gains if gain.known]
    if not known:
        return ()
    listed = ", ".join(f"{g.joint} {g.value:.4g} +- {g.standard_deviation:.2g}" for g in known)
    message = f"gains are estimated from the URDF's masses [effort per current]: {listed}"
    return (GAINS_FROM_MASSES.found(message, [gain.joint for gain in known]),)


def report_unknown_gains(drive_units: Mapping[str, str]) -> tuple[Finding, ...]:
    """Finding about joints whose efforts are currents of unknown gain.

    Args:
        drive_units: units of their efforts, by joint name.
    """
    if not drive_units:
        return ()
    return (GAIN_UNKNOWN.found(describe_unknown_gains(drive_units), list(drive_units)),)
