# SPDX-License-Identifier: Apache-2.0
"""The one `--config` file: read, checked key by key, and turned into values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from robot_dyn_id.dynamics.base_parameters import PIVOTS
from robot_dyn_id.dynamics.terms import TERMS, Coupling, Term
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, Estimator
from robot_dyn_id.files.flexible_section import FlexibleSettings, flexible_settings
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.values import flag, integer, mapping, number, numbers, one_of, per_joint, text, texts, vector
from robot_dyn_id.identification.settings import VELOCITIES, Settings
from robot_dyn_id.identification.verdict import Thresholds
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.reversals import AUTO
from robot_dyn_id.simulation.closed_loop import ControllerModel
from robot_dyn_id.text.yaml import read_yaml

DEFAULT_TERMS = ("viscous", "coulomb", "offset")


@dataclass(frozen=True)
class JointConfiguration:
    """One joint.

    Attributes:
        gain: of its current [N m/A or N/A].
        sign: 1, or -1 where its current or effort counts the other way.
        held: where it stands still [rad or m].
        reversal_speed: speed below which its rows are left out [rad/s or m/s].
    """

    gain: float | None = None
    sign: float = 1.0
    held: float | None = None
    reversal_speed: float | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UsageError: a gain of 0 or that is not finite, a sign that is none.
        """
        if self.gain is not None and not 0.0 < abs(self.gain) < math.inf:
            raise UsageError(f"gain must be a number other than 0, not {self.gain}")
        if self.sign not in (1.0, -1.0):
            raise UsageError(f"sign must be 1 or -1, not {self.sign:g}")


@dataclass(frozen=True)
class Configuration:
    """The content of a configuration file; every key may be left out.

    Attributes:
        joints: per joint name; see `JointConfiguration`.
        identify: the joints to identify; all that the recording holds by default.
        gravity: gravity vector in the base frame [m/s^2].
        topic: the JointState topic of bags.
        reference_topic: that of the positions that the robot's controller was told, in the same bags.
        cutoff: low-pass [Hz].
        filter_order: of one pass.
        velocity: auto, recorded or derivative.
        terms: names, or name: {constant: value}.
        couplings: name: {weights: {joint: weight}, terms: as above}.
        estimator: name, or {name: ..., option: value}.
        pivots: rref or qr.
        prior: an earlier `parameters.yaml` for estimators that use one, in place of the URDF.
        reversal_speed: speed below which a joint's rows are left out [rad/s or m/s], or auto.
        period: of a periodic motion, for `period_averaged` [s].
        essential: relative standard deviation above which parameters are left out; 0 keeps all.
        bootstrap: draws of a bootstrap of the standard deviations; 0 is none.
        thresholds: of the verdict.
        ignore: codes of findings whose refusal is overruled.
        flexible: the flexible joints and what was recorded of them, for `robot-dyn-id flexible`.
    """

    joints: Mapping[str, JointConfiguration] = field(default_factory=dict)
    identify: tuple[str, ...] | None = None
    gravity: tuple[float, float, float] | None = None
    topic: str | None = None
    reference_topic: str | None = None
    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    terms: tuple[Term, ...] = field(default_factory=lambda: tuple(TERMS[name]() for name in DEFAULT_TERMS))
    couplings: tuple[Coupling, ...] = ()
    estimator: Estimator = field(default_factory=ESTIMATORS["weighted"])
    pivots: str = "rref"
    prior: ParameterSet | None = None
    reversal_speed: float | str = 0.0
    period: float = 0.0
    essential: float = 0.0
    bootstrap: int = 0
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()
    flexible: FlexibleSettings | None = None

    @property
    def drives(self) -> dict[str, Drive]:
        """Joints whose effort is a current, or has the wrong sign."""
        return {name: Drive(joint.gain, joint.sign) for name, joint in self.joints.items()}

    @property
    def held(self) -> dict[str, float]:
        """Joints that stand still, and where."""
        return {name: joint.held for name, joint in self.joints.items() if joint.held is not None}

    @property
    def reversal_speeds(self) -> dict[str, float]:
        """Least speeds of single joints."""
        return {n: joint.reversal_speed for n, joint in self.joints.items() if joint.reversal_speed is not None}

    @property
    def settings(self) -> Settings:
        """What the pipeline needs of it."""
        return Settings(**{item.name: getattr(self, item.name) for item in fields(Settings)})


def read_configuration(path: str | Path | None) -> Configuration:
    """Read a configuration file; None is the default configuration.

    Raises:
        UsageError: not readable, an unknown key (the nearest known one is named), a wrong type or value.
    """
    if path is None:
        return Configuration()
    content = read_yaml(path, "configuration", UsageError)
    try:
        return parse_configuration({} if content is None else content)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def files_named_in(path: str | Path) -> tuple[Path, ...]:
    """Files that a configuration file names: the earlier parameter set, if there is one.

    Raises:
        UsageError: the configuration is not readable.
    """
    content = read_yaml(path, "configuration", UsageError)
    prior = content.get("prior") if isinstance(content, dict) else None
    return (Path(prior).expanduser(),) if isinstance(prior, str) else ()


def parse_configuration(content: Any) -> Configuration:
    """Turn the content of a configuration file into values.

    Raises:
        UsageError: see `read_configuration`.
    """
    known = [item.name for item in fields(Configuration)]
    given = mapping(content, "the configuration", known)
    readers: dict[str, Any] = {
        "joints": _joints,
        "identify": texts,
        "gravity": vector,
        "topic": text,
        "reference_topic": text,
        "cutoff": number,
        "filter_order": integer,
        "velocity": lambda value, key: one_of(value, key, VELOCITIES),
        "terms": _terms,
        "couplings": _couplings,
        "estimator": _estimator,
        "pivots": lambda value, key: one_of(value, key, PIVOTS),
        "prior": lambda value, key: read_parameters(text(value, key)),
        "reversal_speed": lambda value, key: value if value == AUTO else number(value, key),
        "period": number,
        "essential": number,
        "bootstrap": integer,
        "thresholds": lambda value, key: Thresholds(**numbers(value, key, [f.name for f in fields(Thresholds)])),
        "ignore": texts,
        "flexible": flexible_settings,
    }
    configuration = Configuration(**{key: readers[key](value, key) for key, value in given.items()})
    for name in configuration.held:
        if configuration.identify is not None and name in configuration.identify:
            raise UsageError(f"joint {name} is both held and to be identified: choose one")
    _ = configuration.settings  # refuse contradictions now, before anything is read
    return configuration


def _joints(value: Any, key: str) -> dict[str, JointConfiguration]:
    known = [item.name for item in fields(JointConfiguration)]
    joints = {}
    for name, entry in mapping(value, key).items():
        given = numbers(entry, f"{key}.{name}", known)
        try:
            joints[str(name)] = JointConfiguration(**given)
        except UsageError as error:
            raise UsageError(f"{key}.{name}: {error}") from None
    return joints


def _options(kind: type, value: Any, key: str) -> dict[str, Any]:
    """Constructor arguments of a term or an estimator, each of the type of its default."""
    defaults = {item.name: item.default for item in fields(kind)}
    readers: dict[type, Any] = {
        **{float: number, int: integer, str: text, bool: flag, tuple: per_joint},
        ControllerModel: lambda entry, part: ControllerModel(**_options(ControllerModel, entry, part)),
    }
    given = mapping(value, key, list(defaults))
    return {name: readers[type(defaults[name])](entry, f"{key}.{name}") for name, entry in given.items()}


def _terms(value: Any, key: str) -> tuple[Term, ...]:
    entries = value if isinstance(value, dict) else dict.fromkeys(texts(value, key))
    terms = []
    for name, options in entries.items():
        kind = TERMS[one_of(name, key, list(TERMS))]
        terms.append(kind(**_options(kind, {} if options is None else options, f"{key}.{name}")))
    return tuple(terms)


def _couplings(value: Any, key: str) -> tuple[Coupling, ...]:
    couplings = []
    for name, entry in mapping(value, key).items():
        given = mapping(entry, f"{key}.{name}", ("weights", "terms"))
        missing = [part for part in ("weights", "terms") if not given.get(part)]
        if missing:
            raise UsageError(f"{key}.{name}: {' and '.join(missing)} must be given")
        weights = mapping(given["weights"], f"{key}.{name}.weights")
        numbers = {str(joint): number(weight, f"{key}.{name}.weights.{joint}") for joint, weight in weights.items()}
        couplings.append(Coupling(str(name), tuple(numbers.items()), _terms(given["terms"], f"{key}.{name}.terms")))
    return tuple(couplings)


def _estimator(value: Any, key: str) -> Estimator:
    given = dict(mapping(value, key)) if isinstance(value, dict) else {"name": value}
    name = one_of(given.pop("name", "weighted"), key, list(ESTIMATORS))
    return ESTIMATORS[name](**_options(ESTIMATORS[name], given, f"{key}.{name}"))


def shared_file(name: str) -> Path:
    """A file that comes with the package: `urdf/...`, `config/...`, from the source tree or the installed share folder.

    Raises:
        InputError: it is not there.
    """
    package = Path(__file__).resolve().parents[1]
    # <prefix>/lib/pythonX/site-packages/robot_dyn_id, or the root of the source tree
    for folder in (package.parent, *(above / "share" / "robot_dyn_id" for above in package.parents)):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{name} is not installed with this package")
