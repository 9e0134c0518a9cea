"""The one `--config` file: read, checked key by key, and turned into values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from robot_dyn_id.base_parameters import PIVOTS
from robot_dyn_id.closed_loop import Controller, PerJoint
from robot_dyn_id.errors import InputError, UsageError, suggestion
from robot_dyn_id.estimators import ESTIMATORS, Estimator
from robot_dyn_id.parameter_io import read_parameters
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.settings import VELOCITIES, Settings
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.health import CHECKS
from robot_dyn_id.signals.reversals import AUTO
from robot_dyn_id.terms import TERMS, Coupling, Term
from robot_dyn_id.validation import Thresholds
from robot_dyn_id.yaml_files import read_yaml

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
        cutoff: low-pass [Hz].
        filter_order: of one pass.
        velocity: auto, recorded or derivative.
        terms: names, or name: {constant: value}.
        couplings: name: {weights: {joint: weight}, terms: as above}.
        estimator: name, or {name: ..., option: value}.
        pivots: rref or qr.
        prior: an earlier `parameters.yaml` for estimators that use one, in place of the URDF.
        reversal_speed: speed below which a joint's rows are left out [rad/s or m/s], or auto.
        thresholds: of the verdict.
        ignore: health checks to overrule.
    """

    joints: Mapping[str, JointConfiguration] = field(default_factory=dict)
    identify: tuple[str, ...] | None = None
    gravity: tuple[float, float, float] | None = None
    topic: str | None = None
    cutoff: float | None = None
    filter_order: int = 4
    velocity: str = "auto"
    terms: tuple[Term, ...] = field(default_factory=lambda: tuple(TERMS[name]() for name in DEFAULT_TERMS))
    couplings: tuple[Coupling, ...] = ()
    estimator: Estimator = field(default_factory=ESTIMATORS["weighted"])
    pivots: str = "rref"
    prior: ParameterSet | None = None
    reversal_speed: float | str = 0.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    ignore: tuple[str, ...] = ()

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
        return Settings(
            terms=self.terms,
            couplings=self.couplings,
            estimator=self.estimator,
            drives=self.drives,
            cutoff=self.cutoff,
            filter_order=self.filter_order,
            velocity=self.velocity,
            pivots=self.pivots,
            prior=self.prior,
            reversal_speed=self.reversal_speed,
            reversal_speeds=self.reversal_speeds,
            thresholds=self.thresholds,
            ignore=self.ignore,
        )


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


def parse_configuration(content: Any) -> Configuration:
    """Turn the content of a configuration file into values.

    Raises:
        UsageError: see `read_configuration`.
    """
    known = [item.name for item in fields(Configuration)]
    given = _mapping(content, "the configuration", known)
    readers: dict[str, Any] = {
        "joints": _joints,
        "identify": _texts,
        "gravity": _vector,
        "topic": _text,
        "cutoff": _number,
        "filter_order": _integer,
        "velocity": lambda value, key: _one_of(value, key, VELOCITIES),
        "terms": _terms,
        "couplings": _couplings,
        "estimator": _estimator,
        "pivots": lambda value, key: _one_of(value, key, PIVOTS),
        "prior": lambda value, key: read_parameters(_text(value, key)),
        "reversal_speed": lambda value, key: value if value == AUTO else _number(value, key),
        "thresholds": lambda value, key: Thresholds(**_numbers(value, key, [f.name for f in fields(Thresholds)])),
        "ignore": lambda value, key: tuple(_one_of(v, key, CHECKS) for v in _texts(value, key)),
    }
    configuration = Configuration(**{key: readers[key](value, key) for key, value in given.items()})
    for name in configuration.held:
        if configuration.identify is not None and name in configuration.identify:
            raise UsageError(f"joint {name} is both held and to be identified: choose one")
    _ = configuration.settings  # refuse contradictions now, before anything is read
    return configuration


def _mapping(value: Any, key: str, known: Sequence[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{key}: must be keys and values, not {value!r}")
    for name in value:
        if known is not None:
            _one_of(name, key, known, "unknown key")
    return value


def _one_of(value: Any, key: str, known: Sequence[str], what: str = "unknown value") -> str:
    if value not in known:
        raise UsageError(f"{key}: {what} {value!r}; {suggestion(value, known)}")
    return str(value)


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{key}: must be a number, not {value!r}")
    return float(value)


def _integer(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{key}: must be a whole number, not {value!r}")
    return value


def _flag(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{key}: must be true or false, not {value!r}")
    return value


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{key}: must be a text, not {value!r}")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{key}: must be a list, not {value!r}")
    return tuple(_text(entry, key) for entry in value)


def _vector(value: Any, key: str) -> tuple[float, float, float]:
    if not isinstance(value, list) or len(value) != 3:
        raise UsageError(f"{key}: must be a list of 3 numbers, not {value!r}")
    return (_number(value[0], key), _number(value[1], key), _number(value[2], key))


def _numbers(value: Any, key: str, known: Sequence[str]) -> dict[str, float]:
    return {name: _number(entry, f"{key}.{name}") for name, entry in _mapping(value, key, known).items()}


def _joints(value: Any, key: str) -> dict[str, JointConfiguration]:
    known = [item.name for item in fields(JointConfiguration)]
    joints = {}
    for name, entry in _mapping(value, key).items():
        numbers = _numbers(entry, f"{key}.{name}", known)
        try:
            joints[str(name)] = JointConfiguration(**numbers)
        except UsageError as error:
            raise UsageError(f"{key}.{name}: {error}") from None
    return joints


def _options(kind: type, value: Any, key: str) -> dict[str, Any]:
    """Constructor arguments of a term or an estimator, each of the type of its default."""
    defaults = {item.name: item.default for item in fields(kind)}
    readers: dict[type, Any] = {
        **{float: _number, int: _integer, str: _text, bool: _flag, tuple: _per_joint},
        Controller: lambda entry, part: Controller(**_options(Controller, entry, part)),
    }
    given = _mapping(value, key, list(defaults))
    return {name: readers[type(defaults[name])](entry, f"{key}.{name}") for name, entry in given.items()}


def _per_joint(value: Any, key: str) -> PerJoint:
    """A number for all joints, or numbers by joint."""
    named = value.items() if isinstance(value, dict) else [("all", value)]
    return tuple((str(name), _number(entry, f"{key}.{name}")) for name, entry in named)


def _terms(value: Any, key: str) -> tuple[Term, ...]:
    entries = value if isinstance(value, dict) else dict.fromkeys(_texts(value, key))
    terms = []
    for name, options in entries.items():
        kind = TERMS[_one_of(name, key, list(TERMS))]
        terms.append(kind(**_options(kind, {} if options is None else options, f"{key}.{name}")))
    return tuple(terms)


def _couplings(value: Any, key: str) -> tuple[Coupling, ...]:
    couplings = []
    for name, entry in _mapping(value, key).items():
        given = _mapping(entry, f"{key}.{name}", ("weights", "terms"))
        missing = [part for part in ("weights", "terms") if not given.get(part)]
        if missing:
            raise UsageError(f"{key}.{name}: {' and '.join(missing)} must be given")
        weights = _mapping(given["weights"], f"{key}.{name}.weights")
        numbers = {str(joint): _number(weight, f"{key}.{name}.weights.{joint}") for joint, weight in weights.items()}
        couplings.append(Coupling(str(name), tuple(numbers.items()), _terms(given["terms"], f"{key}.{name}.terms")))
    return tuple(couplings)


def _estimator(value: Any, key: str) -> Estimator:
    given = dict(_mapping(value, key)) if isinstance(value, dict) else {"name": value}
    name = _one_of(given.pop("name", "weighted"), key, list(ESTIMATORS))
    return ESTIMATORS[name](**_options(ESTIMATORS[name], given, f"{key}.{name}"))


def shared_file(name: str) -> Path:
    """A file that comes with the package: `urdf/...`, `config/...`, from the source tree or the installed share folder.

    Raises:
        InputError: it is not there.
    """
    package = Path(__file__).resolve().parent
    # <prefix>/lib/pythonX/site-packages/robot_dyn_id, or the root of the source tree
    for folder in (package.parent, *(above / "share" / "robot_dyn_id" for above in package.parents)):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{name} is not installed with this package")
