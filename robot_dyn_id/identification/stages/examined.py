# SPDX-License-Identifier: Apache-2.0
"""Second stage: recordings that are filtered, free of faults that can be corrected, and refused with others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.corrected import Corrected
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.body_prior import has_placeholder_masses
from robot_dyn_id.dynamics.compensation import check_compensations
from robot_dyn_id.dynamics.prior import check_prior_robot
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.errors import InputError, UnsafeDataError
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.agreement import measure_nominal_agreement
from robot_dyn_id.identification.diagnosis.diagnosis import diagnose, examine_lengths
from robot_dyn_id.identification.diagnosis.directions import examine_directions
from robot_dyn_id.identification.diagnosis.fingerprint import report_repeated, report_trained
from robot_dyn_id.identification.diagnosis.health import (
    compare_with_nominal,
    count_independent_positions,
    examine,
    overrule,
    refuse,
    soften_for_validation,
)
from robot_dyn_id.identification.diagnosis.samples import MotionSamples
from robot_dyn_id.identification.fit.load import fit_load
from robot_dyn_id.identification.selection.choice import EXPLAINED_BY_CHOICE
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.payoff import measure_errors
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.correction import Realigned, correct_channels, leave_out_dead, realign
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import Fingerprint, ParameterSet
from robot_dyn_id.progress import Progress, Stage, ignore_progress
from robot_dyn_id.signals.reversals import exclude_reversals
from robot_dyn_id.signals.strokes import report_strokes
from robot_dyn_id.signals.survey import PERIODOGRAM
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings, require_signals

FEWEST_POSITIONS = 8
"""Least number of independent positions of the joints whose efforts are judged: a correlation of 0.8 of fewer is not
significant at 1 %."""

RESOLUTION_PERIODS = 2.0
"""Half of the main lobe of a Hann window, times its length: bandwidths of short recordings are too large by it."""


@dataclass(frozen=True)
class Examined:
    """Training data that a model can be fitted to.

    Attributes:
        read: the recordings behind them.
        trials: the training data, corrected and filtered.
        model: the robot, with the gravity that the efforts contain.
        effort_kind: content of the measured effort, one of `parameters.EFFORT_KINDS`.
        fingerprint: fingerprint of the training data as they were recorded.
        findings: findings about the data.
        suspected: further findings, unless the choice of a model explains them, see `Selection.explains`.
        tried: corrections that were compared with none.
    """

    read: Read
    trials: FilteredTrials
    model: RobotModel
    effort_kind: str
    fingerprint: Fingerprint
    findings: tuple[Finding, ...]
    suspected: tuple[Finding, ...]
    tried: tuple[Tried, ...] = ()

    @classmethod
    def from_read(cls, read: Read, progress: Progress = ignore_progress) -> Examined:
        """Filter, diagnose and correct training data.

        Args:
            read: the recordings.
            progress: callback that receives every stage of the work.

        Raises:
            InputError: data that cannot be used.
            UnsafeDataError: a health check refuses the data.
            UsageError: contradictory settings.
        """
        settings, model = read.settings, read.model
        regressor = make_known_regressor(model, settings)
        trials, found, prints = filter_recordings(read.training, regressor, settings, settings.signals, progress)
        found += report_repeated(read.training, prints)
        if not read.held_out:
            found += report_earlier(read, read.training, prints)
        samples = MotionSamples.from_trials(trials)
        diagnosis = diagnose(samples, model, count_independent_positions(trials.survey))
        _refuse_short(diagnosis.findings, settings.ignore, trials)
        currents = read.as_currents((*diagnosis.findings, *diagnosis.doubts), diagnosis.factors)
        if currents is not None:
            with suppress(UnsafeDataError):  # they contradict the robot as currents, too: one fault has one name
                return cls.from_read(currents, progress)
        with _naming_causes(found):
            explained = _refuse_unless_predicted(diagnosis.findings, trials, model, settings)
        found += explained
        found += overrule(diagnosis.doubts, settings.ignore)
        found += examine_directions(model.joint_names, samples.motion.q, samples.segment)
        weightless = diagnosis.weightless and settings.effort_kind == "auto"
        if weightless:
            model = replace(model, gravity=np.zeros(3))
        realigned = realign(trials, model) if diagnosis.sufficient else Realigned(trials)
        trials = realigned.trials
        found += realigned.findings
        compensated = weightless and not model.drive_units  # a current stays one, with gravity or without
        kind = "gravity_compensated" if compensated else read.effort_kind
        check_compensations(kind, settings.robot_compensates)
        if all(one.severity != "error" for one in explained):  # one fault has one name
            compared = measure_nominal_agreement(make_known_regressor(model, settings), trials)
            weighed = not has_placeholder_masses(model)
            agreement, doubts = compare_with_nominal(model.joint_names, *compared, weighed=weighed)
            _refuse_short(agreement, settings.ignore, trials)
            with _naming_causes(found):
                found += refuse(agreement, settings.ignore, trials.survey.sources)
            found += overrule(doubts, settings.ignore)
        trials, excluded = exclude_reversals(
            trials, settings.reversal_speed, settings.reversal_speeds, settings.rest_speed
        )
        if trials.plan.strokes is not None:
            found += report_strokes(trials.plan.strokes, model.joint_names)
        suspected = tuple(one for one in found if one.code in EXPLAINED_BY_CHOICE and one.severity != "error")
        certain = tuple(one for one in found if one not in suspected)
        findings = (*certain, *excluded)
        return cls(read, trials, model, kind, Fingerprint.joined(prints), findings, suspected, realigned.tried)

    @property
    def known_regressor(self) -> Regressor:
        """Robot with the terms that are known before any choice, and the load of a first fit."""
        return fit_load(make_known_regressor(self.model, self.read.settings), self.trials)


def report_earlier(read: Read, recordings: Sequence[Recording], prints: Sequence[Fingerprint]) -> tuple[Finding, ...]:
    """Findings about recordings that are held out though the model, or its prior, was identified from them.

    The error of a model with a prior from data that it is validated on is too small, too.

    Args:
        read: the first stage.
        recordings: recordings to validate on; under cross-validation the training data.
        prints: their fingerprints.
    """
    if read.earlier is None:
        return ()
    name = "training data of the prior" if read.training else "training data"
    return report_trained(recordings, prints, read.earlier, name)


def filter_recordings(
    recordings: Sequence[Corrected],
    regressor: Regressor,
    settings: Settings,
    signals: SignalSettings,
    progress: Progress = ignore_progress,
) -> tuple[FilteredTrials, tuple[Finding, ...], tuple[Fingerprint, ...]]:
    """Survey recordings, check their health, and decide about their signals.

    Args:
        recordings: the trials, which have been observed.
        regressor: robot and terms that the signals must suffice for.
        settings: drives of the joints, and health checks to overrule.
        signals: choices about signals.
        progress: callback that receives every stage of the work.

    Returns:
        The filtered trials, findings about them, and the fingerprint of each recording.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
    """
    progress(Stage("surveying the recordings"))
    model = regressor.model
    sound = correct_channels(recordings, model.joint_names, settings.drives)
    trials = FilteredTrials.from_survey(sound.survey, sound.recordings, settings.drives, signals)
    trials = trials if regressor.peaked else trials.decimated()
    found = (*examine_lengths(model), *sound.findings, *examine(trials.survey, model, signals.velocity))
    findings = refuse(found, settings.ignore, trials.survey.sources)
    require_signals(regressor, trials.survey)
    trials.require_length()
    return leave_out_dead(trials), findings, sound.fingerprints


def filter_to_validate(
    read: Read, regressor: Regressor, signals: SignalSettings, progress: Progress = ignore_progress
) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """Recordings to validate a model on, filtered as its training data were, and findings about them.

    Args:
        read: the recordings.
        regressor: robot and terms of the model.
        signals: choices about signals.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
    """
    trials, findings, prints = filter_recordings(read.held_out, regressor, read.settings, signals, progress)
    aligned = realign(trials, regressor.model)
    return aligned.trials, (
        *soften_for_validation(findings),
        *aligned.findings,
        *report_earlier(read, read.held_out, prints),
    )


def filter_as_trained(
    examined: Examined, training: FilteredTrials, regressor: Regressor
) -> tuple[FilteredTrials, tuple[Finding, ...]]:
    """Held-out recordings, corrected, examined and filtered like the training data, and findings about them.

    Args:
        examined: the stage of the training data.
        training: the training data.
        regressor: robot and terms of the model.

    Raises:
        InputError: a term needs a signal that is not recorded.
        UnsafeDataError: a health check refuses the data.
    """
    read, model = examined.read, regressor.model
    sound = correct_channels(read.held_out, model.joint_names, training.drives)
    trials = training.with_recordings(sound.recordings, sound.survey)
    require_signals(regressor, trials.survey)
    velocity = "recorded" if training.plan.recorded_velocity else "derivative"
    found = (*sound.findings, *soften_for_validation(examine(trials.survey, model, velocity)))
    findings = refuse(found, read.settings.ignore, trials.survey.sources)
    findings += report_trained(read.held_out, sound.fingerprints, examined.fingerprint)
    findings += report_earlier(read, read.held_out, sound.fingerprints)
    aligned = realign(leave_out_dead(trials), model)
    return aligned.trials, (*findings, *aligned.findings)


def make_known_regressor(model: RobotModel, settings: Settings) -> Regressor:
    """Robot with the terms that are known before any choice: none of them if they are chosen from the data.

    Raises:
        InputError: a prior with other joints than are to be identified, or other units of their efforts, or of another
            robot.
    """
    if isinstance(settings.prior, ParameterSet):
        check_prior_robot(settings.prior, model)
        if settings.prior.drive_units != model.drive_units:
            raise InputError(
                f"prior: the parameter set of {settings.prior.robot.name} has efforts in other units, as drive gains "
                "are not known: identify both with the gains"
            )
    if isinstance(settings.prior, ParameterSet) and settings.terms is None and not settings.couplings:
        if settings.prior.robot.joint_names != model.joint_names:
            raise InputError(
                f"prior: the parameter set of {settings.prior.robot.name} has other joints than are to be identified"
            )
        return replace(Regressor.from_parameters(settings.prior), model=model)
    terms = () if settings.chooses_terms else settings.fixed_terms
    return Regressor(model, place_terms_on_joints(model, terms, settings.couplings))


@contextmanager
def _naming_causes(findings: Iterable[Finding]) -> Iterator[None]:
    """Add the findings that explain errors to a refusal; see `Definition.explains_errors`.

    Raises:
        UnsafeDataError: the refusal.
    """
    try:
        yield
    except UnsafeDataError as error:
        raise error.with_causes([one for one in findings if one.definition.explains_errors]) from error


def _refuse_unless_predicted(
    findings: Sequence[Finding], trials: FilteredTrials, model: RobotModel, settings: Settings
) -> tuple[Finding, ...]:
    """Refuse efforts that contradict the robot, unless a model predicts those of the joints that are named.

    A model that predicts them is made, and its verdict is bad: what contradicts the robot stays an error.

    Raises:
        UnsafeDataError: an error that is not overruled, about efforts that no model predicts.
    """
    if all(one.severity != "error" or one.code in settings.ignore for one in findings):
        return refuse(findings, settings.ignore, trials.survey.sources)
    try:
        errors = dict(zip(trials.joints, measure_errors(trials, model).tolist(), strict=True))
    except InputError:  # too short to hold a block out
        errors = dict.fromkeys(trials.joints, np.inf)
    limit = settings.thresholds.bad_nrmse
    # joints without efforts have no error
    missed = {name for name, error in errors.items() if error >= limit}
    predicted = [one for one in findings if not missed.intersection(one.joints or trials.joints)]
    refuse([one for one in findings if one not in predicted], settings.ignore, trials.survey.sources)
    return overrule(findings, settings.ignore)


def _refuse_short(findings: Sequence[Finding], ignore: Sequence[str], trials: FilteredTrials) -> None:
    """Refuse data that seem faulty, but are too short to show it.

    Args:
        findings: findings about the efforts.
        ignore: codes of errors that are overruled.
        trials: the data.

    Raises:
        InputError: less than one periodogram, and an error about joints whose motions together hold fewer than
            `FEWEST_POSITIONS` independent positions.
    """
    seconds = sum(trials.survey.durations)
    bandwidth = np.maximum(trials.survey.bandwidth - RESOLUTION_PERIODS / max(trials.survey.durations), 0.0)
    positions = dict(zip(trials.joints, (2.0 * seconds * bandwidth).tolist(), strict=True))
    errors = [one for one in findings if one.severity == "error" and one.code not in ignore]
    held = {sum(positions[name] for name in one.joints): one for one in errors if one.joints}
    if not held or min(held) >= FEWEST_POSITIONS or seconds >= PERIODOGRAM:
        return
    raise InputError(
        f"{trials.sources}: {seconds:.2g} s of motion are too short: they hold about {min(held):.0f} independent "
        f"positions, and {FEWEST_POSITIONS} are needed to judge efforts: record longer (as far as they go, "
        f"{held[min(held)].message})"
    )
