# SPDX-License-Identifier: Apache-2.0
"""Results of a fleet: values that write their files, and their summary."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.files.factor import write_factor
from robot_dyn_id.files.manifest import DEFAULT, ManifestEntry
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.findings import Finding, summarize_findings
from robot_dyn_id.fleet.differences import (
    MIN_ROBOTS,
    ParameterDifference,
)
from robot_dyn_id.fleet.drift import Drift
from robot_dyn_id.identification.factor import Choices, Factor
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.fleet import write_fleet_page
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically
from robot_dyn_id.version import __version__

ROBOTS, FACTORS, POOLED = "robots", "factors", "pooled"

REPORT, PAGE = "fleet.json", "fleet.html"

RESULTS = (REPORT, PAGE, f"{POOLED}.yaml", ROBOTS, FACTORS)
"""Files and folders of a folder of results."""


@dataclass(frozen=True)
class LeftOut:
    """A recording that is not used.

    Attributes:
        entry: its entry in the manifest.
        reason: why it is not used.
    """

    entry: ManifestEntry
    reason: str


@dataclass(frozen=True)
class RobotResult:
    """Result of one robot in one configuration.

    Attributes:
        robot: serial number.
        configuration: mechanical configuration.
        parameters: parameter set; it borrows from the fleet unless the robot differs from it.
        factor: factor of its recordings.
        dates: dates of its recordings [s since the Unix epoch].
        statistic: squared Mahalanobis distance from the other robots; NaN for fleets that are too small.
        freedom: its degrees of freedom.
        probability: probability of such a statistic for a robot of the fleet, with Holm's correction.
        differs: whether it differs from the fleet; False if it was not compared.
        differences: parameters in which it differs; may be empty, as several can differ by little each.
        in_words: sentences about what differs: friction, rotor inertia, bodies, offsets; empty if it does not differ.
        drift: linear drift of its parameters; None for recordings of a single date.
        agreement: probability of recordings that differ as much if they are of one robot, with Holm's correction.
        reduce_seconds: processor time of the reduction [s].
    """

    robot: str
    configuration: str
    parameters: ParameterSet = field(repr=False)
    factor: Factor = field(repr=False)
    dates: tuple[float, ...]
    statistic: float
    freedom: float
    probability: float
    differs: bool
    differences: tuple[ParameterDifference, ...]
    in_words: tuple[str, ...]
    drift: Drift | None
    agreement: float
    reduce_seconds: float


@dataclass(frozen=True)
class Variation:
    """Variation of a group of parameters from robot to robot.

    Attributes:
        name: parameters of the group.
        deviation: their standard deviation, as a share of their size.
    """

    name: str
    deviation: float


@dataclass(frozen=True)
class ConfigurationResult:
    """Result of all robots in one configuration.

    Attributes:
        configuration: mechanical configuration.
        robots: results by robot.
        pooled: parameter set of all robots together that do not differ.
        pooled_robots: serial numbers of these.
        mean: mean of the base parameters over robots, shape (p,); empty for fleets that are too small.
        variations: variation from robot to robot.
        inflation: factor by which the test's statistics were too large.
        dispersion: variance of the noise between recordings of one robot over that within one.
    """

    configuration: str
    robots: tuple[RobotResult, ...]
    pooled: ParameterSet = field(repr=False)
    pooled_robots: tuple[str, ...]
    mean: Array
    variations: tuple[Variation, ...]
    inflation: float
    dispersion: float

    @property
    def is_compared(self) -> bool:
        """Whether there are enough robots to compare them."""
        return len(self.robots) >= MIN_ROBOTS


@dataclass(frozen=True)
class FleetResult:
    """Result of a fleet.

    Attributes:
        configurations: results by mechanical configuration.
        left_out: recordings that are not used.
        findings: what was found.
        recordings: number of recordings that are used.
        restored: number of them whose factors were in the store.
        signals: filters and rate that all recordings were processed with.
        map_seconds: processor time of each recording that was reduced in this run [s].
        factor_bytes: sizes of the factors of all recordings [bytes].
    """

    configurations: tuple[ConfigurationResult, ...]
    left_out: tuple[LeftOut, ...]
    findings: tuple[Finding, ...]
    recordings: int
    restored: int
    signals: Choices
    map_seconds: tuple[float, ...]
    factor_bytes: tuple[int, ...]

    def save(self, folder: str | Path) -> dict[str, Any]:
        """Write `fleet.json`, `fleet.html`, the parameter sets and the factors of the robots.

        Args:
            folder: the folder of the results, created if needed.

        Returns:
            Content of `fleet.json`.

        Raises:
            InputError: the folder cannot be written to.
        """
        root = make_output_folder(folder)
        summary = summarize_fleet(self)
        for name in (ROBOTS, FACTORS):
            make_output_folder(root / name)
        for group in self.configurations:
            write_parameters(root / f"{POOLED}{_suffix(group.configuration)}.yaml", group.pooled)
            for one in group.robots:
                write_parameters(root / _robot_file(one), one.parameters)
                write_factor(root / FACTORS / f"{one.robot}{_suffix(one.configuration)}.npz", one.factor)
        write_fleet_page(root / PAGE, summary)
        write_atomically(root / REPORT, json.dumps(replace_infinities(summary), indent=1, allow_nan=False) + "\n")
        return summary

    @property
    def differing(self) -> tuple[RobotResult, ...]:
        """Results of the robots that differ from their fleet."""
        return tuple(one for group in self.configurations for one in group.robots if one.differs)


def summarize_fleet(result: FleetResult) -> dict[str, Any]:
    """The result as `--json` and `fleet.json` hold it."""
    return {
        "task": "fleet",
        "robots": [_summarize_robot(one, group) for group in result.configurations for one in group.robots],
        "differing": [one.robot for one in result.differing],
        "configurations": [
            {
                "configuration": group.configuration,
                "compared": group.is_compared,
                "pooled_file": f"{POOLED}{_suffix(group.configuration)}.yaml",
                "pooled_robots": list(group.pooled_robots),
                "held_out_nrmse": group.pooled.judgment.held_out_all_joints_nrmse,
                "parameters": [
                    {"name": name, "unit": unit, "pooled": value, "mean": mean}
                    for name, unit, value, mean in zip(
                        group.pooled.base.names,
                        group.pooled.base.units,
                        group.pooled.estimate.values.tolist(),
                        group.mean.tolist() or [None] * len(group.pooled.base.names),
                        strict=True,
                    )
                ],
                "variation": [{"name": one.name, "relative_deviation": one.deviation} for one in group.variations],
                "inflation": group.inflation,
                "dispersion": group.dispersion,
            }
            for group in result.configurations
        ],
        "left_out": [
            {"robot": one.entry.robot, "recording": one.entry.recording, "reason": one.reason}
            for one in result.left_out
        ],
        "recordings": {"used": result.recordings, "restored": result.restored, "left_out": len(result.left_out)},
        "signals": dict(result.signals),
        "cost": {
            "map_seconds": float(np.median(result.map_seconds)) if result.map_seconds else None,
            "factor_bytes": float(np.median(result.factor_bytes)),
        },
        "software_version": __version__,
        **summarize_findings(result.findings),
    }


def _summarize_robot(one: RobotResult, group: ConfigurationResult) -> dict[str, Any]:
    names, units = one.parameters.base.names, one.parameters.base.units
    drift = []
    if one.drift is not None:
        ends = one.drift.intervals(group.dispersion).tolist()
        drift = [
            {"name": name, "unit": f"{unit}/d", "rate": rate, "interval": interval}
            for name, unit, rate, interval in zip(names, units, one.drift.rates.tolist(), ends, strict=True)
        ]
    return {
        "robot": one.robot,
        "configuration": one.configuration,
        "parameters_file": _robot_file(one),
        "dates": [datetime.fromtimestamp(date, timezone.utc).isoformat() for date in one.dates],
        "differs": one.differs if group.is_compared else None,
        "chi_square": one.statistic,
        "degrees_of_freedom": one.freedom,
        "probability": one.probability if group.is_compared else None,
        "differences": [vars(difference) for difference in one.differences],
        "in_words": list(one.in_words),
        "recordings_agree": one.agreement,
        "held_out_nrmse": one.parameters.judgment.held_out_all_joints_nrmse,
        "verdict": one.parameters.judgment.verdict,
        "drift": drift,
    }


def format_probability(probability: float) -> str:
    """A probability, with the least one that a double of normal precision holds as a bound: `p 1.2e-05`."""
    least = np.finfo(np.float64).tiny
    return f"p {probability:.1e}" if probability >= least else f"p < {least:.0e}"


def _suffix(configuration: str) -> str:
    return "" if configuration == DEFAULT else f"@{configuration}"


def _robot_file(one: RobotResult) -> str:
    """Parameter file of a robot in the folder of the results."""
    return f"{ROBOTS}/{one.robot}{_suffix(one.configuration)}.yaml"


def replace_infinities(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: replace_infinities(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_infinities(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
