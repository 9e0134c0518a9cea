# SPDX-License-Identifier: Apache-2.0
"""Identification of the robots of a fleet in one configuration, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.comparison.models import adjust_holm
from robot_dyn_id.comparison.words import BODY, ParameterColumns, describe_changes
from robot_dyn_id.dynamics.prior import FLOOR, find_inertial_scales, find_term_scales
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.files.factor import parse_factor
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.fleet.differences import (
    FAMILY_WISE_ERROR,
    MIN_ROBOTS,
    Comparison,
    ParameterDifference,
    compare_robots,
    compute_difference_from_others,
    name_differences,
)
from robot_dyn_id.fleet.drift import estimate_overdispersion, estimate_overdispersion_of_others
from robot_dyn_id.fleet.evidence import Evidence
from robot_dyn_id.fleet.population import VariationModel
from robot_dyn_id.identification.assembly import HeldOutErrors, assemble_from_factor
from robot_dyn_id.identification.factor import Factor
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.thresholds import Thresholds
from robot_dyn_id.parameters import BaseParameters
from robot_dyn_id.version import __version__
from robot_dyn_id.workflow.fleet_results import ConfigurationResult, RobotResult, Variation, format_probability
from robot_dyn_id.workflow.fleet_tasks import (
    RobotSummary,
    merge_statistics,
)
from robot_dyn_id.workflow.scheduler import Executor, LostTaskError

ROBOT_DIFFERS = Definition(
    "robot_differs",
    Section.FLEETS,
    "warning",
    "The parameters of a robot differ from those of the other robots by more than their variation from robot to "
    "robot and the noise explain (docs/fleet.md states how often sound robots are named): another payload, wear, "
    "another part, efforts in another unit, or another robot under this serial number.",
    "inspect the robot, above all the joints of the parameters that are named",
)

ROBOT_RECORDINGS_DISAGREE = Definition(
    "robot_recordings_disagree",
    Section.FLEETS,
    "warning",
    "Recordings with one serial number differ more than those of one robot do: two robots share the number, the "
    "robot was changed between them, or one is in another unit.",
    "check the serial numbers, dates and configurations of the manifest",
)

ROBOT_DRIFTS = Definition(
    "robot_drifts",
    Section.FLEETS,
    "info",
    "A parameter of a robot changes with time by more than the noise explains (Holm's correction, intended "
    "family-wise error 1 %).",
    "look at the trend: friction changes with temperature and wear",
)

FLEET_SMALL = Definition(
    "fleet_small",
    Section.FLEETS,
    "info",
    "The fleet has fewer robots than the variation from robot to robot can be estimated from: every robot is "
    "identified from its own recordings alone, and none is compared.",
    "record more robots of this type; two models are compared by `compare`",
)

BRANCHES = 8
"""Factors that one node of the tree of a reduction merges."""

UNKNOWN_RADIUS_M = 0.2
"""Radius of gyration by which the inertial parameters of a body without masses in the URDF vary together [m]."""

ESTIMATOR = "fleet"
"""Name of the estimator in the parameter sets of robots; that of the pooled set is `weighted`."""

DISAGREEMENT = 0.01
"""Probability, with Holm's correction, below which recordings of one robot are reported to disagree."""


@dataclass(frozen=True)
class FleetModel:
    """Robot, terms and base parameters that all factors share, and thresholds of the verdicts."""

    regressor: Regressor
    base: BaseParameters
    thresholds: Thresholds


def merge_tree(parts: Sequence[RowStatistics], executor: Executor) -> list[RowStatistics]:
    """Merge statistics in a tree, of which the root and its at most `BRANCHES` children stay with the caller.

    Args:
        parts: at least one.
        executor: where the nodes are merged.

    Returns:
        The children of the root.

    Raises:
        LostTaskError: workers died as often as it was tried.
    """
    level = list(parts)
    while len(level) > BRANCHES:
        nodes = [level[start : start + BRANCHES] for start in range(0, len(level), BRANCHES)]
        above: dict[int, RowStatistics] = {}
        for number, merged in executor.run(merge_statistics, nodes):
            if isinstance(merged, LostTaskError):
                raise merged
            above[number] = merged
        level = [above[number] for number in range(len(nodes))]
    return level


def identify_group(
    configuration: str,
    members: Mapping[tuple[str, str], RobotSummary],
    read: Callable[[tuple[str, str]], list[tuple[RowStatistics, float]]],
    model: FleetModel,
    executor: Executor,
) -> tuple[ConfigurationResult, list[Finding]]:
    """Results of the robots in one configuration, and findings about them.

    Args:
        configuration: mechanical configuration.
        members: what the recordings of each robot yield alone, by serial number and configuration.
        read: statistics and date of each recording of a robot, which together could exceed the memory.
        model: robot, terms and base parameters.
        executor: where statistics are merged.
    """
    summaries = list(members.values())
    factors = [parse_factor(one.factor, key[0]) for key, one in members.items()]
    names = [key[0] for key in members]
    rows = [factor.statistics for factor in factors]
    repeats = [one.agreement for one in summaries]
    dispersion = estimate_overdispersion(repeats)
    comparison = None
    if len(rows) >= MIN_ROBOTS:
        everyone = RowStatistics.merged(merge_tree(rows, executor)).estimate(model.base.names)
        evidence = Evidence.from_statistics(rows, dispersion)
        changes = _expected_changes(model, everyone, evidence.scales)
        comparison = compare_robots(evidence, _spread(model, everyone, evidence.scales), changes=changes)
    differs = np.zeros(len(rows), dtype=bool) if comparison is None else comparison.differs
    others = estimate_overdispersion_of_others(repeats).tolist()
    agreements = adjust_holm(np.array([one.probability(rest) for one, rest in zip(repeats, others, strict=True)]))
    robots = tuple(
        _robot_result(
            _Member(key, factors[number], summaries[number], read(key), float(agreements[number])),
            number,
            comparison,
            model,
        )
        for number, key in enumerate(members)
    )
    sound = [number for number in range(len(rows)) if not differs[number]]
    parts = merge_tree([rows[number] for number in sound], executor)
    merged = replace(Factor.merged([factors[n] for n in sound]), statistics=RowStatistics.merged(parts))
    estimate = merged.statistics.estimate(model.base.names)
    pooled = assemble_from_factor(
        IdentifiedModel(model.regressor, model.base, estimate),
        merged,
        HeldOutErrors.from_recordings(parts, model.base.names),
        model.thresholds,
        WeightedLeastSquares.name,
        __version__,
    )
    population = None if comparison is None else comparison.population
    result = ConfigurationResult(
        configuration=configuration,
        robots=robots,
        pooled=pooled,
        pooled_robots=tuple(names[number] for number in sound),
        mean=np.zeros(0) if population is None else population.mean,
        variations=()
        if population is None
        else tuple(map(Variation, population.spread.names, population.deviations.tolist())),
        inflation=1.0 if comparison is None else comparison.inflation,
        dispersion=dispersion,
    )
    return result, _report_robots(result, model.base.names)


@dataclass(frozen=True)
class _Member:
    """One robot in one configuration.

    Attributes:
        key: serial number and configuration.
        factor: merged factor of its recordings.
        summary: what its recordings yield without the other robots.
        recordings: statistics and date of each recording.
        agreement: see `RobotResult`.
    """

    key: tuple[str, str]
    factor: Factor
    summary: RobotSummary
    recordings: Sequence[tuple[RowStatistics, float]]
    agreement: float


def _robot_result(member: _Member, number: int, comparison: Comparison | None, model: FleetModel) -> RobotResult:
    """Result of one robot.

    Args:
        member: the robot.
        number: its number in the comparison.
        comparison: test of all robots; None for fleets that are too small.
        model: robot, terms and base parameters.
    """
    names, rows, factor = model.base.names, [one for one, _ in member.recordings], member.factor
    estimate = factor.statistics.estimate(names)
    differences: tuple[ParameterDifference, ...] = ()
    in_words: tuple[str, ...] = ()
    statistic = freedom = np.nan
    probability = 1.0
    if comparison is not None:
        statistic, freedom = float(comparison.statistics[number]), float(comparison.freedom[number])
        probability = float(comparison.adjusted[number])
    if comparison is None or comparison.differs[number]:
        held_out = HeldOutErrors.from_recordings(rows, names)
    else:
        population = comparison.population
        values, covariance = population.predict(number)
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        estimate = replace(
            estimate,
            values=values,
            covariance=covariance,
            standard_deviations=sigma,
            unexcited=(),
            prior_strength=np.nan,  # that of the fleet, which is not one on single links
        )
        held_out = HeldOutErrors.from_predictions(
            rows, [population.predict_without(number, others) for others in _leaving_out(rows)]
        )
    if comparison is not None and comparison.differs[number]:
        differences = name_differences(comparison, number, names)
        own, mean, covariance = compute_difference_from_others(comparison, number)
        columns = ParameterColumns.from_regressor(model.regressor, _full_values(model, mean))
        in_words = describe_changes(own - mean, covariance, model.base.mapping, columns, names)
    identified = IdentifiedModel(model.regressor, model.base, estimate)
    return RobotResult(
        robot=member.key[0],
        configuration=member.key[1],
        parameters=assemble_from_factor(identified, factor, held_out, model.thresholds, ESTIMATOR, __version__),
        factor=factor,
        dates=tuple(date for _, date in member.recordings),
        statistic=statistic,
        freedom=freedom,
        probability=probability,
        differs=comparison is not None and bool(comparison.differs[number]),
        differences=differences,
        in_words=in_words,
        drift=member.summary.drift,
        agreement=member.agreement,
        reduce_seconds=member.summary.seconds,
    )


def _leaving_out(rows: Sequence[RowStatistics]) -> Iterator[RowStatistics | None]:
    """All rows but those of each recording in turn; None where there are no others."""
    for number in range(len(rows)):
        others = [*rows[:number], *rows[number + 1 :]]
        yield RowStatistics.merged(others) if others else None


def _full_values(model: FleetModel, values: Array) -> Array:
    """Values of all columns, shape (c,): bodies of the URDF, and terms of base parameters, shape (p,)."""
    full = np.zeros(len(model.regressor.names))
    full[model.base.independent] = values
    inertial = model.regressor.model.inertial_parameters.ravel()
    full[: len(inertial)] = inertial
    return full


def _expected_changes(model: FleetModel, everyone: Estimate, scales: Array) -> Array:
    """Changes that single robots are tested for: a body that is heavier as a whole, and more of a term in all joints.

    Args:
        model: robot, terms and base parameters.
        everyone: estimate of all robots together.
        scales: see `Evidence`.

    Returns:
        Changes of the scaled base parameters, shape (p, c).
    """
    columns = ParameterColumns.from_regressor(model.regressor, _full_values(model, everyone.values))
    groups = [(kind, place if kind == BODY else "") for kind, place in zip(columns.kinds, columns.places, strict=True)]
    found = [
        model.base.mapping @ np.where([other == group for other in groups], columns.values, 0.0)
        for group in dict.fromkeys(groups)
    ]
    return np.array([change for change in found if np.any(change)]).reshape(-1, len(scales)).T / scales[:, None]


def _spread(model: FleetModel, everyone: Estimate, scales: Array) -> VariationModel:
    """Variation of the parameters of a fleet, in proportion to their sizes.

    Args:
        model: robot, terms and base parameters.
        everyone: estimate of all robots together, for the sizes of the terms.
        scales: see `Evidence`.
    """
    regressor, base = model.regressor, model.base
    robot = regressor.model
    inertial = 10 * len(robot.body_names)
    full = np.zeros(len(regressor.names))
    full[base.independent] = everyone.values
    terms = find_term_scales(regressor, full[inertial:])
    kinds = [column.term.symbols[column.index] for column in regressor.term_columns]
    floors = [FLOOR * terms[np.array([other == kind for other in kinds])].mean() for kind in kinds]
    radius = UNKNOWN_RADIUS_M
    alike = np.tile([1.0, *[radius] * 3, *[radius**2] * 6], len(robot.body_names))
    bodies = find_inertial_scales(robot) if robot.inertial_parameters.any() else alike
    labels = [f"inertia of {name}" for name in robot.body_names for _ in range(10)] + list(regressor.names[inertial:])
    single = {p: base.names[p] for p, column in enumerate(base.independent.tolist()) if column < inertial}
    return VariationModel.from_sizes(base.mapping, np.append(bodies, np.maximum(terms, floors)), labels, scales, single)


def _report_robots(result: ConfigurationResult, names: Sequence[str]) -> list[Finding]:
    """Findings about robots that differ, whose recordings disagree, or that drift."""
    findings = []
    suffix = f" ({result.configuration})"
    if not result.is_compared:
        message = f"{len(result.robots)} robots{suffix}: too few to compare them, fewer than {MIN_ROBOTS}"
        findings.append(FLEET_SMALL.found(message))
    for one in result.robots:
        if one.differs:
            named = ", ".join(f"{d.name} {d.value:.3g} ({d.fleet:.3g})" for d in one.differences[:5])
            listed = f"{'; '.join(one.in_words)}; {named or 'no single parameter differs significantly'}"
            message = (
                f"robot {one.robot}{suffix} differs from the fleet ({format_probability(one.probability)}): {listed}"
            )
            findings.append(ROBOT_DIFFERS.found(message))
        if one.agreement < DISAGREEMENT:
            chance = format_probability(one.agreement)
            message = f"the recordings of robot {one.robot}{suffix} disagree with one another ({chance})"
            findings.append(ROBOT_RECORDINGS_DISAGREE.found(message))
    findings += _report_drift(result, names, suffix)
    return findings


def _report_drift(result: ConfigurationResult, names: Sequence[str], suffix: str) -> Iterator[Finding]:
    """Findings about parameters that drift, with Holm's correction for all robots and parameters."""
    from scipy.special import erfc

    drifting = [one for one in result.robots if one.drift is not None]
    if not drifting:
        return
    rates = np.array([one.drift.rates for one in drifting if one.drift is not None])
    spread = np.array([one.drift.standard_deviations for one in drifting if one.drift is not None])
    sigma = np.sqrt(result.dispersion) * np.maximum(spread, 1e-300)
    adjusted = adjust_holm(np.asarray(erfc(np.abs(rates) / sigma / np.sqrt(2.0))).ravel()).reshape(rates.shape)
    for number, one in enumerate(drifting):
        places = np.flatnonzero(adjusted[number] < FAMILY_WISE_ERROR)
        if len(places):
            order = places[np.argsort(adjusted[number][places])][:5].tolist()
            listed = ", ".join(f"{names[p]} {rates[number, p]:.2g} +- {sigma[number, p]:.1g}" for p in order)
            yield ROBOT_DRIFTS.found(f"robot {one.robot}{suffix}: change per day of {listed}")
