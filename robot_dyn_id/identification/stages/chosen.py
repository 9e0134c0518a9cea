# SPDX-License-Identifier: Apache-2.0
"""Third stage: the columns of the model, chosen from the data unless they are given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.fit.estimation import describe_prior
from robot_dyn_id.identification.selection.choice import GIVEN_PRIOR_STRENGTH, Selection, choose_model
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.selection.relative_gains import correct_relative_gains
from robot_dyn_id.identification.selection.wide import Wide
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.progress import Progress
from robot_dyn_id.signals.trials import FilteredTrials

CORRECTIONS = 2
"""Times that gains of drives may be found again with the chosen model."""


@dataclass(frozen=True)
class Chosen:
    """Columns of a model before its fit.

    Attributes:
        examined: the data that they were chosen from.
        trials: the training data, with the filters that were chosen.
        regressor: robot and terms.
        settings: the settings, with an estimator that is complete.
        selection: the choice and its alternatives; None if nothing was chosen.
        findings: findings about the choice, and what was suspected and is not explained by it.
    """

    examined: Examined
    trials: FilteredTrials
    regressor: Regressor
    settings: Settings
    selection: Selection | None
    findings: tuple[Finding, ...]

    @classmethod
    def from_examined(cls, examined: Examined, progress: Progress, corrections: int = CORRECTIONS) -> Chosen:
        """Choose what the settings leave open.

        Args:
            examined: training data.
            progress: callback that receives every stage of the work.
            corrections: times that gains of drives which the motion relates may be found again with the chosen model.

        Raises:
            InputError: data that are too short for cross-validation, or a prior that does not suit the robot.
        """
        settings, trials = examined.read.settings, examined.trials
        if not settings.chooses_model:
            return cls(examined, trials, examined.known_regressor, settings, None, examined.suspected)
        options = _list_options(settings, examined.model, repeats=not examined.read.held_out)
        found = choose_model(trials, examined.model, options, progress)
        corrected = _correct_gains(examined, found, options, progress) if corrections else None
        if corrected is not None:
            return cls.from_examined(corrected, progress, corrections - 1)
        unexplained = tuple(one for one in examined.suspected if not found.explains(one))
        settings = replace(settings, estimator=found.complete(settings.estimator))
        return cls(examined, found.trials, found.regressor, settings, found, (*unexplained, *found.findings))


def _correct_gains(examined: Examined, found: Selection, options: Options, progress: Progress) -> Examined | None:
    """The data with gains of drives that the chosen model corrects; None if they are not related, or that pays not."""
    if not examined.read.relates_gains:
        return None
    prior = (options.prior or BodyPrior.from_model(examined.model)).scaled(found.size)
    estimator = found.complete(options.estimator)
    assert isinstance(estimator, Consistent)
    wide = Wide.from_chosen(found.regressor, prior, estimator)
    gains = correct_relative_gains(found.trials, wide, found.blocks)
    return Examined.from_read(examined.read.with_gains(gains), progress) if gains.shown else None


def _list_options(settings: Settings, model: RobotModel, repeats: bool) -> Options:
    """Parts of the model that settings leave to be chosen from the data.

    Args:
        settings: choices of the identification.
        model: the robot.
        repeats: whether the choice is repeated without each block, for cross-validation.
    """
    estimator = settings.estimator if isinstance(settings.estimator, Consistent) else Consistent()
    prior = None
    if isinstance(settings.prior, RobotDescription):
        prior = BodyPrior.from_model(describe_prior(settings.prior, model))
        if estimator.strength is None:
            estimator = replace(estimator, strength=GIVEN_PRIOR_STRENGTH)
    return Options(
        terms=settings.terms,
        couplings=settings.couplings,
        estimator=estimator,
        motion_filter=settings.motion_cutoff is None,
        velocity=settings.velocity == "auto",
        base_tilt=settings.base_tilt,
        reduced=prior is not None,
        prior=prior,
        without_blocks=repeats,
    )
