# SPDX-License-Identifier: Apache-2.0
"""First stage: recordings that are complete, and whose efforts have a meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.corrected import Corrected
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.identification.diagnosis.diagnosis import (
    JOINTS_SWAPPED,
    POSITION_CONVENTION,
    POSITION_ZERO,
    TIME_SCALE,
)
from robot_dyn_id.identification.diagnosis.health import EFFORT_IN_AMPERES
from robot_dyn_id.identification.diagnosis.observation import observe_recordings
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.identification.selection.relative_gains import RelativeGains
from robot_dyn_id.identification.settings import CURRENT_KINDS, Settings
from robot_dyn_id.identification.stages.correction import correct_positions
from robot_dyn_id.identification.stages.effort_meaning import (
    RELATIVE_GAINS,
    have_different_gains,
    interpret_efforts,
    read_as_trained,
    report_compensated,
    report_corrected,
    report_read_as_currents,
    report_unknown_gains,
)
from robot_dyn_id.identification.validation.holdout import find_held_out_method
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.parameters import UNKNOWN, Fingerprint, ParameterSet
from robot_dyn_id.signals.stillness import report_rest_left_out

GRAVITY_OF_PRIOR = Definition(
    "gravity_of_prior",
    Section.ESTIMATES,
    "info",
    "No gravity vector was given, and the parameter set that is the prior has another one than the default, such "
    "as that of a tilted base: the model has it, too.",
    "give the gravity vector if the base has been mounted in another way since",
)

OTHER_CAUSES = frozenset({JOINTS_SWAPPED.code, POSITION_CONVENTION.code, POSITION_ZERO.code, TIME_SCALE.code})
"""Faults of positions or time stamps, which make efforts contradict the robot."""


@dataclass(frozen=True)
class Read:
    """Recordings with continuous positions, whose efforts are read as the settings state or the channels show.

    Attributes:
        training: recordings to identify from; empty where a model is only validated.
        held_out: recordings to validate on; empty: cross-validation.
        method: origin of the held-out data, one of `HELD_OUT_METHODS`.
        model: the robot, with the gravity that the efforts are stated to contain, and the units of efforts of unknown
            gain.
        settings: the settings, with the drives of all joints.
        effort_kind: content of the measured effort, one of `parameters.EFFORT_KINDS`.
        earlier: fingerprint of the data that the model that is validated, or the prior, was identified from; None:
            there are no such data.
        findings: findings about positions, and the meaning of the efforts.
        measured_gains: joints whose drive gain is stated; those of others are relative to these.
        tried: meanings of the efforts that were compared.
    """

    training: Sequence[Corrected]
    held_out: Sequence[Corrected]
    method: str
    model: RobotModel
    settings: Settings
    effort_kind: str
    earlier: Fingerprint | None
    findings: tuple[Finding, ...]
    measured_gains: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()

    @classmethod
    def from_recordings(
        cls, training: Sequence[Recording], held_out: Sequence[Recording], model: RobotModel, settings: Settings
    ) -> Read:
        """Read recordings to identify a robot from.

        Args:
            training: trials to estimate from.
            held_out: trials to validate on.
            model: the robot; its joints are identified.
            settings: choices of the identification.

        Raises:
            InputError: recordings that cannot be read, or external torques.
        """
        currents, prior = settings.effort_kind in CURRENT_KINDS, settings.prior
        observed = [observe_recordings(group, model, settings.drives, currents) for group in (training, held_out)]
        (trained, continued), (others, jumps) = map(correct_positions, observed)
        meaning = interpret_efforts(trained, others, model, settings)
        model, turned = _with_gravity_of_prior(meaning.model, settings)
        return cls(
            training=meaning.training,
            held_out=meaning.held_out,
            method=find_held_out_method(training, held_out),
            model=model,
            settings=replace(settings, drives=meaning.drives),
            effort_kind=meaning.effort_kind,
            earlier=prior.provenance.fingerprint if isinstance(prior, ParameterSet) else None,
            findings=(
                *continued,
                *jumps,
                *meaning.findings,
                *turned,
                *report_rest_left_out([*meaning.training, *meaning.held_out]),
            ),
            measured_gains=tuple(name for name, drive in settings.drives.items() if drive.gain is not None),
            tried=meaning.tried,
        )

    def as_currents(self, found: Sequence[Finding], factors: Mapping[str, float]) -> Read | None:
        """Read efforts that contradict the robot as currents of unknown gains; None unless that pays.

        Args:
            found: findings about the efforts as torques. An error that is not overruled contradicts the robot, unless a
                fault of positions or time stamps explains the efforts.
            factors: factors of single efforts that explain them as torques, by joint; currents must explain more.
        """
        errors = {one.code for one in found if one.severity == "error"}
        explained = errors & OTHER_CAUSES
        if (
            explained
            or not errors - set(self.settings.ignore)
            or self.settings.effort_kind != "auto"
            or self.effort_kind != UNKNOWN
        ):
            return None
        stated = replace(self.settings, effort_kind="current")
        meaning = interpret_efforts(self.training, self.held_out, self.model, stated, by_masses=False)
        if not any(row.chosen for row in meaning.tried):
            return None
        if factors and not have_different_gains(self.training, self.model, stated, factors):
            return None
        message = (
            "no torques of this robot explain the efforts, and currents of drives with different gains do: they are "
            "read as currents"
        )
        others = [one for one in found if one.code != EFFORT_IN_AMPERES.code]
        return replace(
            self,
            training=meaning.training,
            held_out=meaning.held_out,
            model=meaning.model,
            settings=replace(stated, drives=meaning.drives),
            effort_kind=meaning.effort_kind,
            findings=(*self.findings, *others, EFFORT_IN_AMPERES.found(message), *meaning.findings),
            tried=(*self.tried, *meaning.tried),
        )

    @property
    def relates_gains(self) -> bool:
        """Whether the gains of the drives are related by the motion."""
        return any(row.step == RELATIVE_GAINS.code and row.chosen for row in self.tried)

    def with_gains(self, gains: RelativeGains) -> Read:
        """The same with gains that are corrected by factors; those that were not related before stay as they are."""
        drives = dict(self.settings.drives)
        related = [name for name, drive in drives.items() if drive.is_known or drive.gain != 1.0]
        gains = gains.of(related).relative_to(self.measured_gains)
        for name, factor in gains.values.items():
            gain = drives[name].gain
            if gain is not None and name not in self.measured_gains:
                drives[name] = replace(drives[name], gain=gain * factor)
        return replace(
            self,
            settings=replace(self.settings, drives=drives),
            findings=(*self.findings, report_corrected(gains)),
            tried=(*self.tried, gains.row),
        )

    @classmethod
    def to_validate(cls, recordings: Sequence[Recording], parameters: ParameterSet, settings: Settings) -> Read:
        """Read recordings to validate a model on, as those that it was identified from.

        Args:
            recordings: trials to validate on.
            parameters: the identified model.
            settings: drives of the joints that are not those of the parameter set.

        Raises:
            InputError: recordings that cannot be read, or gains of joints whose gain was not known when the model was
                identified.
        """
        model, drives = RobotModel.from_parameters(parameters), settings.drives_of(parameters)
        observed = observe_recordings(recordings, model, drives, parameters.effort.kind in CURRENT_KINDS)
        continued, jumps = correct_positions(observed)
        return cls(
            training=(),
            held_out=read_as_trained(continued, parameters.effort.kind),
            method="recordings",
            model=model,
            settings=replace(settings, drives=drives),
            effort_kind=parameters.effort.kind,
            earlier=parameters.provenance.fingerprint,
            findings=(
                *jumps,
                *report_read_as_currents(continued, parameters.effort.kind),
                *report_compensated(parameters.effort.kind),
                *report_unknown_gains(parameters.drive_units),
            ),
        )


def _with_gravity_of_prior(model: RobotModel, settings: Settings) -> tuple[RobotModel, tuple[Finding, ...]]:
    """Robot with the gravity vector of an earlier parameter set, such as a tilt of the base, where none was given."""
    prior = settings.prior
    if not (isinstance(prior, ParameterSet) and settings.base_tilt and prior.robot.gravity.any()):
        return model, ()
    if not np.allclose(model.gravity, STANDARD_GRAVITY) or np.allclose(model.gravity, prior.robot.gravity):
        return model, ()
    vector = " ".join(f"{component:.4g}" for component in prior.robot.gravity)
    message = f"the gravity vector is that of the prior, {vector}, as none was given"
    return replace(model, gravity=prior.robot.gravity), (GRAVITY_OF_PRIOR.found(message),)
