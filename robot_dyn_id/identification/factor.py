# SPDX-License-Identifier: Apache-2.0
"""Factors of recordings: all that later identifications need of them, in tens of kilobytes.

A factor holds the statistics of the rows of some recordings, and the choices that the rows depend on. Factors with the
same choices merge into that of all their recordings, in any grouping.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Integers
from robot_dyn_id.dynamics.problem import LinearProblem
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.stored_terms import list_stored_constants
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.least_squares import WeightedLeastSquares
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.identification.diagnosis.fingerprint import take_fingerprint
from robot_dyn_id.identification.settings import Settings, store_drives
from robot_dyn_id.parameters import BaseParameters, Fingerprint, Ranges, urdf_hash
from robot_dyn_id.signals.processing import RecordedProblem
from robot_dyn_id.signals.reversals import AUTO
from robot_dyn_id.signals.trials import FilteredTrials

Choices = Mapping[str, Any]
"""Plain values by name: numbers, strings and lists of them."""


@dataclass(frozen=True)
class Factor:
    """Statistics of the rows of some recordings of one robot, and what they depend on.

    Attributes:
        choices: robot, terms, filters, drives and options of the estimator; factors merge if these are equal.
        statistics: statistics of the rows of the base parameters.
        sources: names of the recordings.
        data_sha256: hash of their content.
        fingerprint: fingerprint of their samples.
        ranges: ranges of their motion.
        dropped: number of samples that were dropped.
    """

    choices: Choices
    statistics: RowStatistics
    sources: tuple[str, ...]
    data_sha256: str
    fingerprint: Fingerprint
    ranges: Ranges
    dropped: int

    @classmethod
    def from_trials(
        cls,
        trials: FilteredTrials,
        regressor: Regressor,
        base: BaseParameters,
        settings: Settings,
        effort_kind: str,
    ) -> Factor:
        """Factor of filtered recordings.

        Args:
            trials: the recordings.
            regressor: robot and terms.
            base: their base parameters.
            settings: choices of the identification; the estimator is `weighted`.
            effort_kind: content of the measured effort.

        Raises:
            InputError: no rows at all.
            UsageError: another estimator.
        """
        order = require_mergeable(settings)
        prints = [take_fingerprint(one, trials.joints) for one in trials.recordings]
        return cls(
            choices=_list_choices(trials, regressor, base.independent, order, effort_kind),
            statistics=RowStatistics.from_problem(trials.problem(regressor, base.independent), order),
            sources=tuple(recording.source for recording in trials.recordings),
            data_sha256=trials.survey.sha256,
            fingerprint=Fingerprint.joined(prints),
            ranges=trials.ranges,
            dropped=trials.survey.repairs.total_dropped,
        )

    @classmethod
    def merged(cls, parts: Sequence[Factor]) -> Factor:
        """Factor of the recordings of several factors.

        Args:
            parts: at least one.

        Raises:
            InputError: a factor of another robot or of other choices, or two factors of the same samples.
        """
        first = parts[0]
        sources: dict[bytes, str] = {}
        for part in parts:
            part.check_choices(first.choices)
            digests, source = part.fingerprint.digests.tobytes(), ", ".join(part.sources[:1])
            if digests and digests in sources:
                raise InputError(
                    f"{source} and {sources[digests]} are factors of the same samples; leave one of them out"
                )
            sources[digests] = source
        digest = hashlib.sha256("".join(part.data_sha256 for part in parts).encode()).hexdigest()
        return cls(
            choices=first.choices,
            statistics=RowStatistics.merged([part.statistics for part in parts]),
            sources=tuple(source for part in parts for source in part.sources),
            data_sha256=digest if len(parts) > 1 else first.data_sha256,
            fingerprint=Fingerprint.joined([part.fingerprint for part in parts]),
            ranges=reduce(Ranges.union, [part.ranges for part in parts]),
            dropped=sum(part.dropped for part in parts),
        )

    def check_robot(self, urdf_sha256: str) -> None:
        """Check that the recordings are of a robot with a hash of its URDF.

        Raises:
            InputError: another robot.
        """
        own = self.choices["urdf_sha256"]
        if own != urdf_sha256:
            raise InputError(
                f"{', '.join(self.sources[:1])}: the factor is of another robot: the SHA-256 of its URDF is "
                f"{own[:12]}..., expected {urdf_sha256[:12]}...; use factors of one robot description"
            )

    def check_choices(self, choices: Choices) -> None:
        """Check that the rows were made as others are.

        Args:
            choices: those of the others.

        Raises:
            InputError: another robot, or other choices; the first that differs is named.
        """
        self.check_robot(choices["urdf_sha256"])
        mine = ", ".join(self.sources[:1])
        for name in sorted({*self.choices, *choices}):
            own, other = self.choices.get(name), choices.get(name)
            if own != other:
                if isinstance(own, list) and isinstance(other, list) and own and isinstance(own[0], str):
                    own, other = ([x for x in one if x not in rest] for one, rest in ((own, other), (other, own)))
                raise InputError(
                    f"{mine}: the factor was made with another {name}: {_short(own)}, expected {_short(other)}; make "
                    "it again with the same options"
                )

    def complete(self, settings: Settings) -> Settings:
        """Settings with the factor's filters and rate, where they state none."""
        names = ("cutoff", "motion_cutoff", "sample_rate")
        given = {name: getattr(settings, name) or self.choices[name] for name in names}
        velocity = self.choices["velocity"] if settings.velocity == "auto" else settings.velocity
        return replace(settings, **given, velocity=velocity)


@dataclass(frozen=True, kw_only=True)
class UpdatedLeastSquares(WeightedLeastSquares):
    """`weighted`, fitted to recordings together with earlier ones of which only the factor is known.

    Attributes:
        earlier: factor of the earlier recordings.
    """

    any_columns = False

    earlier: Factor = field(repr=False)

    def fit(self, problem: LinearProblem) -> Estimate:
        """See `Estimator.fit`.

        Raises:
            InputError: the factor is of another robot or of other choices, or the rows are not those of recordings.
        """
        if not (isinstance(problem, RecordedProblem) and isinstance(problem.windows, FilteredTrials)):
            raise InputError("a factor is only updated with recordings")
        choices = _list_choices(
            problem.windows,
            problem.regressor,
            problem.columns,
            self.autoregressive_order,
            self.earlier.choices["effort_kind"],
        )
        self.earlier.check_choices(choices)
        new = RowStatistics.from_problem(problem, self.autoregressive_order)
        return RowStatistics.merged([self.earlier.statistics, new]).estimate(problem.names)


def require_mergeable(settings: Settings) -> int:
    """Check that the estimate follows from factors; returns the AR order of its noise model.

    Raises:
        UsageError: an estimator that passes over the data more than once, or a choice that depends on all data.
    """
    estimator = settings.estimator
    if not isinstance(estimator, WeightedLeastSquares):
        raise UsageError(
            f"estimator {estimator.name}: factors determine the estimate of estimator weighted alone; use weighted"
        )
    if settings.essential or settings.bootstrap:
        raise UsageError("essential and bootstrap need the data themselves: leave them out where factors are used")
    if AUTO in (settings.reversal_speed, *settings.reversal_speeds.values()):
        raise UsageError(
            f"reversal_speed {AUTO} depends on the noise of each recording: factors cannot be merged; state a speed"
        )
    if any(term.signal == "load" for term in settings.fixed_terms):
        raise UsageError("load-dependent friction depends on a fit to all data: factors cannot be merged; leave it out")
    return estimator.autoregressive_order


def _short(value: Any) -> str:
    """A value in at most 60 characters."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _list_choices(
    trials: FilteredTrials, regressor: Regressor, columns: Integers, order: int, effort_kind: str
) -> Choices:
    """All that rows depend on besides the data, as plain values."""
    model, plan = regressor.model, trials.plan
    gains, signs, relative = store_drives(trials.drives, model.joint_names)
    constants = list_stored_constants(regressor.terms, model.joint_names, model.body_names)
    return {
        "urdf_sha256": urdf_hash(model.urdf),
        "joint_names": list(model.joint_names),
        "held": {name: float(value) for name, value in model.held.items()},
        "gravity": np.asarray(model.gravity, dtype=np.float64).tolist(),
        "column_names": list(regressor.names),
        "independent_columns": columns.tolist(),
        "term_constants": [[name, joint, float(value)] for name, joint, value in constants],
        "sample_rate": float(plan.native_rate),
        "decimation": int(plan.decimation),
        "cutoff": float(plan.low_pass.cutoff),
        "motion_cutoff": float(plan.motion_pass.cutoff),
        "filter_order": int(plan.low_pass.order),
        "velocity": plan.velocity_source,
        "period": float(plan.period or 0.0),
        "reversal_speeds": [float(speed) for speed in plan.slowest],
        "rest_speed": float(plan.rest),
        "drive_gains": gains.tolist(),
        "drive_signs": signs.tolist(),
        "relative_gains": relative.tolist(),
        "effort_kind": effort_kind,
        "autoregressive_order": order,
    }
