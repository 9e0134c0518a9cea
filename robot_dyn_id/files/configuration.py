# SPDX-License-Identifier: Apache-2.0
"""The configuration file of an identification (`--config`): joints, topics and settings as checked values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_dyn_id.data.chunk import Span
from robot_dyn_id.dynamics.base_parameters import PIVOTS
from robot_dyn_id.dynamics.terms import TERMS, Coupling, Term
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import ESTIMATORS, Consistent, Estimator
from robot_dyn_id.files.flexible_section import FlexibleSettings, read_flexible_section
from robot_dyn_id.files.prior import read_prior
from robot_dyn_id.files.shared import read_section
from robot_dyn_id.files.values import (
    check_keys,
    choice,
    file_errors,
    list_field_hints,
    read_dataclass,
    read_mapping,
    read_value,
)
from robot_dyn_id.identification.settings import EFFORT_KINDS, VELOCITIES, Exclusions, Settings
from robot_dyn_id.model.robot import check_gravity
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import LARGEST, NONE, ParameterSet
from robot_dyn_id.recordings.meaning import POSITION_UNITS, ColumnMeaning
from robot_dyn_id.recordings.merged import CHANNEL_WORDS, ChannelTopics
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.reversals import AUTO

LARGEST_GAIN = 1e6
"""Magnitude that no gain reaches [N m/A or N/A], nor its inverse."""

OF_JOINTS = ("drives", "reversal_speeds")
"""Settings that the section `joints` gives; all others are keys of the file."""


@dataclass(frozen=True)
class JointConfiguration:
    """Settings of one joint.

    Attributes:
        gain: torque constant times gear ratio of its current [N m/A or N/A]; None where the effort is recorded.
        sign: 1, or -1 where its current or effort counts the other way.
        held: position of a locked joint [rad or m]; None for a joint that may move.
        reversal_speed: speed below which its rows are left out [rad/s or m/s]; None: that of all joints.
    """

    gain: float | None = None
    sign: float = 1.0
    held: float | None = None
    reversal_speed: float | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a gain of a magnitude that no drive has, such as 0, or a sign other than 1 and -1.
        """
        if self.gain is not None and not 1.0 / LARGEST_GAIN <= abs(self.gain) <= LARGEST_GAIN:
            raise UsageError(
                f"gain must be a number other than 0, of a magnitude from {1.0 / LARGEST_GAIN:g} to {LARGEST_GAIN:g}, "
                f"not {self.gain:g}"
            )
        if self.sign not in (1.0, -1.0):
            raise UsageError(f"sign must be 1 or -1, not {self.sign:g}")


@dataclass(frozen=True)
class Configuration:
    """The content of a configuration file; every key may be left out.

    The keys of the file are the attributes below and, on the same level, those of `Settings` except for `OF_JOINTS`.

    Attributes:
        joints: settings of single joints, by joint name.
        identify: joints to identify; None: all that the recording holds.
        gravity: gravity vector in the base frame [m/s^2], which is then not corrected for a tilt of the base; None:
            standard gravity along -z.
        topic: topic of bags with the joint states; None: the only one.
        reference_topic: topic of the commanded positions in the same bags; None: they are not used.
        channel_topics: topics of the same bags with further channels, by `effort`, `current`, `temperature`.
        recorded_joints: names of the joints where a file or the messages of bags have none, in their order.
        position_unit: unit of positions of formats that leave it open, `rad` or `deg`; None: not stated.
        definitions: folder with `.msg` files of message types whose definition a bag lacks; None: there is none.
        flexible: flexible joints and their recordings, for flexible-joint identification.
        settings: settings of the identification; drives and reversal speeds are completed from `joints`.
    """

    joints: Mapping[str, JointConfiguration] = field(default_factory=dict)
    identify: tuple[str, ...] | None = None
    gravity: tuple[float, float, float] | None = None
    topic: str | None = None
    reference_topic: str | None = None
    channel_topics: ChannelTopics = field(default_factory=dict)
    recorded_joints: tuple[str, ...] = ()
    position_unit: str | None = None
    definitions: str | None = None
    flexible: FlexibleSettings | None = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        """Complete the settings from the joints, and refuse contradictions.

        Raises:
            UsageError: a joint that is both locked and to be identified, a setting of a joint that is out of range, or
                a gravity vector in another unit.
        """
        if self.gravity is not None:
            check_gravity(self.gravity)
        drives = {name: Drive(joint.gain, joint.sign) for name, joint in self.joints.items()}
        speeds = {n: joint.reversal_speed for n, joint in self.joints.items() if joint.reversal_speed is not None}
        settings = replace(
            self.settings,
            drives={**self.settings.drives, **drives},
            reversal_speeds={**self.settings.reversal_speeds, **speeds},
            base_tilt=self.settings.base_tilt and self.gravity is None,
        )
        object.__setattr__(self, "settings", settings)
        for name in self.held:
            if self.identify is not None and name in self.identify:
                raise UsageError(f"joint {name} is both held and to be identified: choose one")

    @property
    def held(self) -> dict[str, float]:
        """Positions of the locked joints, by joint name [rad or m]."""
        return {name: joint.held for name, joint in self.joints.items() if joint.held is not None}

    @property
    def column_meaning(self) -> ColumnMeaning:
        """Statements about files that do not make them."""
        return ColumnMeaning(self.recorded_joints, self.position_unit or "")

    def with_values(self, **values: Any) -> Configuration:
        """The configuration with other values of its attributes or of its settings, as a file would name them.

        Args:
            values: values by key, such as `cutoff` or `topic`.

        Raises:
            UsageError: values that contradict the others.
        """
        own = {name: value for name, value in values.items() if name in list_field_hints(Configuration)}
        of_settings = {name: value for name, value in values.items() if name not in own}
        settings = replace(own.pop("settings", self.settings), **of_settings)
        return replace(self, settings=settings, **own)


def read_configuration(path: str | Path | None) -> Configuration:
    """Read a configuration file, or that of a robot by its name, see `robot_names`; None is the default configuration.

    Raises:
        UsageError: not readable, an unknown key (the nearest known one is named), a wrong type or value.
    """
    if path is None:
        return Configuration()
    content = read_section(path, "identification", "configuration")
    with file_errors(path, UsageError):
        return parse_configuration({} if content is None else content)


def list_files_named_in(path: str | Path) -> tuple[Path, ...]:
    """Files that a configuration file names: the prior, if there is one.

    Raises:
        UsageError: the configuration is not readable.
    """
    content = read_section(path, "identification", "configuration")
    prior = content.get("prior") if isinstance(content, dict) else None
    return (Path(prior).expanduser(),) if isinstance(prior, str) else ()


def parse_configuration(content: Any) -> Configuration:
    """Turn the content of a configuration file into checked values.

    Raises:
        UsageError: see `read_configuration`.
    """
    _refuse_huge(content, "")
    own = {name: hint for name, hint in list_field_hints(Configuration).items() if name != "settings"}
    of_settings = {name: hint for name, hint in list_field_hints(Settings).items() if name not in OF_JOINTS}
    values = read_mapping(own | of_settings, content, readers=_READERS)
    settings = Settings(**{name: value for name, value in values.items() if name in of_settings})
    return Configuration(settings=settings, **{name: value for name, value in values.items() if name in own})


def _refuse_huge(value: Any, key: str) -> None:
    """Refuse finite numbers that a parameter set would not hold, and with which computations overflow.

    Raises:
        UsageError: such a number, with its key.
    """
    if isinstance(value, dict | list):
        for name, entry in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_huge(entry, f"{key}.{name}".lstrip(".") if isinstance(value, dict) else f"{key}[{name}]")
    elif isinstance(value, int | float) and LARGEST < abs(value) < math.inf:
        raise UsageError(f"{key}: {float(value):.4g} is above {LARGEST:g}, the largest number that is used")


def _read_reversal_speed(value: Any, key: str) -> float | str:
    return AUTO if value == AUTO else float(read_value(float, value, key))


def _read_prior(value: Any, key: str) -> ParameterSet | RobotDescription:
    return read_prior(read_value(str, value, key))


def _read_compensations(value: Any, key: str) -> tuple[str, ...]:
    words = read_value(tuple[str, ...], value, key)
    if not words:
        raise UsageError(f"{key} is empty: give [{NONE}] if the driver adds nothing, or leave the key out")
    return tuple(words)


def _read_terms(value: Any, key: str) -> tuple[Term, ...]:
    """Terms by name, `[viscous, coulomb]`, or with constants, `{coulomb: {smoothing_width: 0.05}}`."""
    entries = value if isinstance(value, dict) else dict.fromkeys(read_value(tuple[str, ...], value, key))
    terms = []
    for name, options in entries.items():
        kind: type[Term] = TERMS[choice(list(TERMS))(name, key)]
        terms.append(read_dataclass(kind, {} if options is None else options, f"{key}.{name}"))
    return tuple(terms)


def _read_channel_topics(value: Any, key: str) -> ChannelTopics:
    """One topic per channel, `{current: /motors}`, or one per joint, `{temperature: {elbow: /elbow/temperature}}`."""
    topics = {}
    for channel, given in read_value(dict[str, Any], value, key).items():
        kind = dict[str, str] if isinstance(given, dict) else str
        topics[choice(list(CHANNEL_WORDS))(channel, key)] = read_value(kind, given, f"{key}.{channel}")
    return topics


def _read_exclude(value: Any, key: str) -> Exclusions:
    """Spans of the only recording, `[[53.2, 53.6]]`, or by recording, `{a.npz: [[53.2, 53.6]]}`."""
    if not isinstance(value, dict):
        spans: tuple[Span, ...] = read_value(tuple[Span, ...], value, key)
        return spans
    return {str(name): read_value(tuple[Span, ...], spans, f"{key}.{name}") for name, spans in value.items()}


def _read_couplings(value: Any, key: str) -> tuple[Coupling, ...]:
    couplings = []
    for name, entry in read_value(dict[str, Any], value, key).items():
        path = f"{key}.{name}"
        check_keys(entry, ("weights", "terms"), path)
        missing = [part for part in ("weights", "terms") if not entry.get(part)]
        if missing:
            raise UsageError(f"{path}: {' and '.join(missing)} must be given")
        weights = read_value(dict[str, float], entry["weights"], f"{path}.weights")
        couplings.append(Coupling(name, tuple(weights.items()), _read_terms(entry["terms"], f"{path}.terms")))
    return tuple(couplings)


def _read_estimator(value: Any, key: str) -> Estimator:
    """An estimator by name, or with options, `{name: ols, autoregressive_order: 2}`."""
    options = dict(value) if isinstance(value, dict) else {"name": value}
    name = choice(list(ESTIMATORS))(options.pop("name", Consistent.name), key)
    kind: type[Estimator] = ESTIMATORS[name]
    return read_dataclass(kind, options, f"{key}.{name}")


_READERS = {
    "velocity": choice(VELOCITIES),
    "effort_kind": choice(EFFORT_KINDS),
    "position_unit": choice(list(POSITION_UNITS)),
    "robot_compensates": _read_compensations,
    "pivots": choice(PIVOTS),
    "channel_topics": _read_channel_topics,
    "terms": _read_terms,
    "couplings": _read_couplings,
    "estimator": _read_estimator,
    "prior": _read_prior,
    "reversal_speed": _read_reversal_speed,
    "exclude": _read_exclude,
    "flexible": read_flexible_section,
}
"""Readers of keys that need more than a type hint."""
