# SPDX-License-Identifier: Apache-2.0
"""Meaning of the recorded efforts: torques, currents with or without gains, torques without weight."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.corrected import Corrected, ReadAsCurrent
from robot_dyn_id.dynamics.body_prior import has_placeholder_masses
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.diagnosis import EFFORT_GRAVITY_COMPENSATED
from robot_dyn_id.identification.diagnosis.health import find_dead
from robot_dyn_id.identification.diagnosis.observation import observation_of
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.diagnosis.weight_gains import WeightGain, estimate_weight_gains
from robot_dyn_id.identification.selection.engine import LEAST_GAIN, Tried
from robot_dyn_id.identification.selection.payoff import measure_errors
from robot_dyn_id.identification.selection.relative_gains import RelativeGains, estimate_relative_gains
from robot_dyn_id.identification.settings import COMPENSATED_KINDS, CURRENT_KINDS, Settings
from robot_dyn_id.identification.stages.correction import leave_out_dead
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import GAIN_UNKNOWN, UNKNOWN, describe_unknown_gains, name_drive_unit
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.uses import LIMITED, USES

GAINS_FROM_MASSES = Definition(
    "gains_from_masses",
    Section.DATA,
    "warning",
    "Currents came without gains, which are estimated from the masses of the URDF: all torques are as wrong as "
    "these masses are. Information where such gains contradict one another, and are not used.",
    "give measured gains, `gain` [N m/A] of each joint, in the configuration",
)


TORQUES_READ_AS_CURRENTS = Definition(
    "torques_read_as_currents",
    Section.DATA,
    "info",
    "The model was identified from currents, and a recording has none, but efforts in N m by its format: they are read "
    "as the currents of the model, and its gains apply.",
    "give recordings with the currents of the drives; to compare with torques, predict them (command `predict`)",
)

RELATIVE_GAINS = Definition(
    "relative_gains",
    Section.DATA,
    "info",
    "Currents came without gains. Links that several joints move show the gains of the drives relative to one another, "
    "and with these the currents of all joints are predicted better. The gain that is common to all stays unknown, "
    "unless that of a joint is given: the others follow from it, and are as wrong as it is, which is a warning.",
    "measure the gain of one of these joints with a known weight (command `gains`), and give it in the configuration",
    lowers=dict.fromkeys(USES, LIMITED),
    check="sign and unit",
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
        tried: alternatives that were compared.
    """

    training: list[Corrected]
    held_out: list[Corrected]
    model: RobotModel
    drives: Mapping[str, Drive]
    findings: tuple[Finding, ...]
    effort_kind: str
    tried: tuple[Tried, ...] = ()


def interpret_efforts(
    training: Sequence[Corrected],
    held_out: Sequence[Corrected],
    model: RobotModel,
    settings: Settings,
    *,
    by_masses: bool = True,
) -> Meaning:
    """Read the efforts as the settings state, with gains by the URDF's masses where currents come without them.

    Where these masses are missing or placeholders, the gains stay unknown, and the efforts are the currents.

    Args:
        training: recordings to identify from.
        held_out: recordings to validate on.
        model: the robot as configured.
        settings: meaning of the efforts, drives, choices about signals.
        by_masses: whether gains that follow from the URDF's masses are used.

    Raises:
        InputError: external torques.
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
    if not missing or not (kind in CURRENT_KINDS or currents_alone):
        return plain
    trained, validated = (read_as_trained(group, "current") for group in (training, held_out))
    signs = {name: settings.drives.get(name, Drive()).sign for name in missing}
    unit = {**settings.drives, **{name: Drive.from_unknown_gain(sign) for name, sign in signs.items()}}
    currents = FilteredTrials.from_recordings(trained, joints, unit, settings.signals)
    found = _find_gains(currents, model, signs, by_masses=by_masses)
    known = _make_drives(found.gains, signs)
    unknown = {name: Drive.from_unknown_gain(sign, found.ratios.get(name, 1.0)) for name, sign in signs.items()}
    model = replace(
        model,
        drive_units={name: name_drive_unit(stored, name in found.ratios) for name in missing if name not in known},
    )
    findings = (*found.findings, *report_unknown_gains(model.drive_units, list(found.ratios)))
    return Meaning(trained, validated, model, {**settings.drives, **unknown, **known}, findings, stored, found.tried)


@dataclass(frozen=True)
class _Gains:
    """Gains of drives that come without any.

    Attributes:
        gains: those that are known.
        ratios: gains as ratios to their mean by joint, where the motion relates them.
        findings: findings about them.
        tried: alternatives that were compared.
    """

    gains: list[WeightGain]
    ratios: Mapping[str, float]
    findings: tuple[Finding, ...]
    tried: tuple[Tried, ...]


def _find_gains(currents: FilteredTrials, model: RobotModel, signs: Mapping[str, float], *, by_masses: bool) -> _Gains:
    """Gains by the URDF's masses, and as the motion relates them.

    Args:
        currents: trials whose efforts are currents, where no gain is known.
        model: the robot.
        signs: signs of the drives without gains, by joint.
        by_masses: whether gains that follow from the URDF's masses are used.
    """
    live = _list_live(currents)
    currents = leave_out_dead(currents)
    gains = _settle_signs(currents, _weigh_gains(currents, model, signs), signs, model) if by_masses else []
    findings: tuple[Finding, ...] = ()
    if gains and not _are_better(currents, _make_drives(gains, signs), model):
        findings, gains = (_report_unused(gains),), []
    measured = [
        WeightGain(name, drive.gain, 0.0)
        for name, drive in currents.drives.items()
        if name in live and name not in signs and drive.gain is not None
    ]
    row: tuple[Tried, ...] = ()
    if len(live) > 1:
        begun = _begin_gains(live, [*measured, *gains])
        relative, row = _compare_gains(_with_drives(currents, _make_drives(begun, signs)), model, live)
        if relative is not None:
            anchors = [gain.joint for gain in measured or gains if gain.joint in relative.values]
            relative = relative.relative_to(anchors)
            if not anchors:
                findings += (_report_relative(relative, live, (), ()),)
                return _Gains(gains, relative.values, (*findings, *_report_used(gains)), row)
            corrected = _correct_gains(begun, relative, gains, signs)
            findings += (_report_relative(relative, live, corrected, anchors if measured else ()),)
            weighed = [gain for gain in corrected if not measured or gain in gains]
            return _Gains(corrected, {}, (*findings, *_report_used(weighed)), row)
    return _Gains(gains, {}, (*findings, *_report_used(gains)), row)


def _list_live(trials: FilteredTrials) -> list[str]:
    """Joints whose effort is recorded."""
    return [name for name, dead in zip(trials.joints, find_dead(trials.survey), strict=True) if not dead]


def _with_drives(trials: FilteredTrials, drives: Mapping[str, Drive]) -> FilteredTrials:
    """Trials with other drives of some joints."""
    return replace(trials, drives={**trials.drives, **drives})


def _make_drives(gains: Sequence[WeightGain], signs: Mapping[str, float]) -> dict[str, Drive]:
    """Drives without stated gains, which are negative where the drive counts the other way than its sign states."""
    return {
        gain.joint: Drive(abs(gain.value), signs[gain.joint] * math.copysign(1.0, gain.value))
        for gain in gains
        if gain.joint in signs
    }


def _weigh_gains(currents: FilteredTrials, model: RobotModel, signs: Mapping[str, float]) -> list[WeightGain]:
    """Gains that follow from the URDF's masses, unless these are placeholders.

    Args:
        currents: trials whose efforts are currents.
        model: the robot.
        signs: signs of the drives without gains, by joint.
    """
    if has_placeholder_masses(model):
        return []
    found = estimate_weight_gains(MotionSamples.from_trials(currents), model)
    return [gain for gain in found if gain.joint in signs and gain.known]


def _settle_signs(
    currents: FilteredTrials, gains: list[WeightGain], signs: Mapping[str, float], model: RobotModel
) -> list[WeightGain]:
    """Gains with the better of both signs where the masses contradict the sign of the drive.

    The weight on a joint that carries little has the sign of a distance that a URDF may have wrong: other joints carry
    the same bodies, and decide.
    """

    def loss(gains: Sequence[WeightGain]) -> float:
        errors = measure_errors(_with_drives(currents, _make_drives(gains, signs)), model)
        return float(np.log(errors[errors > 0.0]).sum())

    for number, gain in enumerate(gains):
        other = [*gains[:number], replace(gain, value=-gain.value), *gains[number + 1 :]]
        with contextlib.suppress(InputError):  # too short to hold a block out
            if gain.value < 0.0 and loss(other) < loss(gains):
                gains = other
    return gains


def _begin_gains(joints: Sequence[str], gains: Sequence[WeightGain]) -> list[WeightGain]:
    """Gains of all joints to begin with: the mean of those that are known where none is."""
    if not gains:
        return []
    found = {gain.joint: gain for gain in gains}
    mean = math.exp(sum(math.log(abs(gain.value)) for gain in gains) / len(gains))
    return [found.get(name, WeightGain(name, mean, 0.0)) for name in joints]


def _correct_gains(
    begun: Sequence[WeightGain], relative: RelativeGains, weighed: Sequence[WeightGain], signs: Mapping[str, float]
) -> list[WeightGain]:
    """Gains of the joints without a stated one as the motion relates them, else as the masses give them."""
    by_masses = {gain.joint: gain for gain in weighed}
    corrected = []
    for gain in begun:
        if gain.joint not in signs:
            continue
        if gain.joint in relative.values:
            value = gain.value * relative.values[gain.joint]
            deviation = abs(value) * relative.deviations[gain.joint]
            corrected.append(replace(gain, value=value, standard_deviation=deviation))
        elif gain.joint in by_masses:
            corrected.append(by_masses[gain.joint])
    return corrected


def _compare_gains(
    trials: FilteredTrials, model: RobotModel, live: Sequence[str]
) -> tuple[RelativeGains | None, tuple[Tried, ...]]:
    """Ratios of the gains of joints with efforts to those of drives, if the motion shows them, and the comparison."""
    try:
        found = estimate_relative_gains(trials, model)
    except InputError:  # too short to hold a block out
        return None, ()
    found = found.of(live)
    return found if found.shown else None, (found.row,)


def _report_relative(
    relative: RelativeGains, live: Sequence[str], gains: Sequence[WeightGain], measured: Sequence[str]
) -> Finding:
    """Finding about gains relative to one another.

    Args:
        relative: the gains.
        live: joints with efforts.
        gains: gains of joints without a stated one that are known now.
        measured: joints with a stated gain that the others follow from.
    """
    joints = list(relative.values)
    missing = [name for name in live if name not in joints]
    hidden = f"; the motion does not show that of {', '.join(missing)}" if missing else ""
    if measured:
        listed = ", ".join(
            f"{gain.joint} {gain.value:.3g} (+- {gain.standard_deviation:.1g})"
            for gain in gains
            if gain.joint in relative.values
        )
        source = ", ".join(measured)
        message = f"gains that follow from that of {source} by the motion (+- standard deviation): {listed}{hidden}"
        action = "measure these gains, too, with a known weight (command `gains`)"
        return RELATIVE_GAINS.found(message, joints, "warning", action)
    if gains:
        message = (
            "gains by the URDF's masses contradict one another: only their mean is that of the masses, and the motion "
            f"corrects each by a factor of: {relative.describe()}{hidden}"
        )
        return RELATIVE_GAINS.found(message, joints, "warning")
    message = (
        f"gains of the drives as ratios to their mean, as the motion shows them: {relative.describe()}{hidden}; "
        "efforts of these joints are in rel. A, currents that a drive with the mean gain would have"
    )
    return RELATIVE_GAINS.found(message, joints)


def report_corrected(gains: RelativeGains) -> Finding:
    """Finding about relative gains that are found again with the model that was chosen."""
    message = f"with the chosen model the motion corrects each gain by a factor of: {gains.describe()}"
    return RELATIVE_GAINS.found(message, list(gains.values))


def _are_better(currents: FilteredTrials, drives: Mapping[str, Drive], model: RobotModel) -> bool:
    """Whether gains let bodies predict held-out blocks not worse than the currents themselves do.

    Gains that contradict one another spoil what the joints have in common; equal errors hold nothing against gains.
    """
    try:
        without, with_gains = (measure_errors(one, model) for one in (currents, _with_drives(currents, drives)))
    except InputError:  # too short to hold a block out
        return True
    known = (without > 0.0) & (with_gains > 0.0)  # joints without efforts have no error
    ratios = np.log(without[known] / with_gains[known])
    return not known.any() or bool(1.0 - math.exp(2.0 * float(ratios.mean())) < LEAST_GAIN)


def have_different_gains(
    training: Sequence[Corrected], model: RobotModel, settings: Settings, factors: Mapping[str, float]
) -> bool:
    """Whether drives with different gains explain efforts better than wrong factors of single ones do.

    The gains need not be better by more than chance: the factors are not the cause while gains may explain more.

    Args:
        training: recordings to identify from.
        model: the robot.
        settings: drives, choices about signals.
        factors: factors of single efforts that explain the recordings, by joint.
    """
    drives = {name: settings.drives.get(name, Drive()) for name in model.joint_names}
    for name, drive in drives.items():  # also those with a stated gain: the factors are those of efforts as torques
        factor = factors.get(name, 1.0)
        drives[name] = Drive.from_unknown_gain(math.copysign(drive.sign, drive.sign * factor), 1.0 / abs(factor))
    trained = read_as_trained(training, "current")
    trials = FilteredTrials.from_recordings(trained, model.joint_names, drives, settings.signals)
    _, rows = _compare_gains(leave_out_dead(trials), model, _list_live(trials))
    return any(row.gain > LEAST_GAIN for row in rows)


def read_as_trained(recordings: Sequence[Corrected], effort_kind: str) -> list[Corrected]:
    """Recordings with the channel of their efforts that a model was identified from.

    Args:
        recordings: the recordings.
        effort_kind: content of that channel, one of `parameters.EFFORT_KINDS`.
    """
    if effort_kind not in CURRENT_KINDS:
        return list(recordings)
    return [recording.corrected(ReadAsCurrent()) for recording in recordings]


def report_read_as_currents(recordings: Sequence[Corrected], effort_kind: str) -> tuple[Finding, ...]:
    """Findings about efforts that their format states in N m, and that are read as currents of a model."""
    if effort_kind not in CURRENT_KINDS:
        return ()
    return tuple(
        TORQUES_READ_AS_CURRENTS.found(
            f"{one.source}: efforts in N m are read as currents, and multiplied by the gains"
        )
        for one in recordings
        if one.effort_is_torque and not observation_of(one).first.has_currents
    )


def report_compensated(effort_kind: str) -> tuple[Finding, ...]:
    """Finding about a model of efforts that are known to contain no weight."""
    if effort_kind not in COMPENSATED_KINDS:
        return ()
    message = f"efforts are {effort_kind.replace('_', ' ')}: the model has no gravity, and predicts such efforts"
    return (EFFORT_GRAVITY_COMPENSATED.found(message, severity="info"),)


def _report_used(gains: Sequence[WeightGain]) -> tuple[Finding, ...]:
    """Finding about gains by the URDF's masses, if there are any."""
    if not gains:
        return ()
    message = (
        "gains are estimated from the URDF's masses [effort per current], with 95 % intervals for masses that may "
        f"be wrong by a factor of two: {_list(gains)}"
    )
    return (GAINS_FROM_MASSES.found(message, [gain.joint for gain in gains]),)


def _report_unused(gains: Sequence[WeightGain]) -> Finding:
    """Finding about gains by the URDF's masses that contradict one another."""
    message = (
        "gains by the URDF's masses contradict one another, as the currents themselves are predicted better, and are "
        f"not used: {_list(gains)}"
    )
    return GAINS_FROM_MASSES.found(message, [gain.joint for gain in gains], "info")


def _list(gains: Sequence[WeightGain]) -> str:
    """Gains and their intervals."""
    intervals = [(gain.joint, gain.value, *gain.interval) for gain in gains]
    return ", ".join(f"{joint} {value:.3g} ({low:.2g} to {high:.2g})" for joint, value, low, high in intervals)


def report_unknown_gains(drive_units: Mapping[str, str], related: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Finding about joints whose efforts are currents of unknown gain.

    Args:
        drive_units: units of their efforts, by joint name.
        related: joints whose gains follow from that of any one of them.
    """
    if not drive_units:
        return ()
    action = GAIN_UNKNOWN.cure
    if related:
        action = (
            f"measure the gain of one of {', '.join(related)} with a known weight (command `gains`), give it in the "
            "configuration, and identify again: those of the others follow"
        )
    return (GAIN_UNKNOWN.found(describe_unknown_gains(drive_units), list(drive_units), action=action),)
