# SPDX-License-Identifier: Apache-2.0
"""Content of a parameter set for exported models: bodies, and the terms that a format can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.consistency import find_violation
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.dynamics.terms.laws import DAHL, SIGN, FrictionLaw
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Definition, Finding, Section, format_findings
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.parameters import COMPENSATED_PARTS, ParameterSet

TERM_NOT_EXPORTED = Definition(
    "term_not_exported",
    Section.PREDICTION,
    "info",
    "The format cannot store a term, or a friction that is negative.",
    "use the parameter file",
)

DRIVER_COMPENSATES = Definition(
    "driver_compensates",
    Section.PREDICTION,
    "info",
    "The robot's driver adds gravity, friction or Coriolis torques to a command, and a model of links and joints "
    "contains them: a simulation needs them, a controller must not command them.",
    "switch the compensation of these torques off in the controller",
)

PRESLIDING_NOT_EXPORTED = Definition(
    "presliding_not_exported",
    Section.PREDICTION,
    "info",
    "The format has Coulomb friction without the elastic deflection before a joint slides: what is written is too "
    "large in motions that are shorter than the breakaway displacement.",
    "use the parameter file, or the node `simulator` with it",
)

GRAVITY_NOT_EXPORTED = Definition(
    "gravity_not_exported",
    Section.PREDICTION,
    "info",
    "The model has another gravity vector than a level base on Earth, such as that of a tilted base, and the "
    "format has no place for it.",
    "give the gravity vector of the message to the tool, or turn the base there",
)

SMOOTHING_NOT_EXPORTED = Definition(
    "smoothing_not_exported",
    Section.PREDICTION,
    "info",
    "The format has Coulomb friction without a smoothing width.",
    "use the parameter file",
)

STATES = 200
"""Number of random states of the trained motion at which the torque of terms that are left out is evaluated."""


GRAVITY_TOLERANCE = 0.005
"""Difference of a component of the gravity vector from the standard one that is not reported [m/s^2]."""


@dataclass(frozen=True)
class Exported:
    """A model in another format.

    Attributes:
        text: content of the file.
        findings: findings about what the format cannot carry, which stays in `parameters.yaml`.
    """

    text: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """All findings as text."""
        return format_findings(self.findings)


def report_gravity(model: RobotModel) -> tuple[Finding, ...]:
    """Finding about a gravity vector that a format without one loses, if it is not that of a level base on Earth."""
    if np.allclose(model.gravity, STANDARD_GRAVITY, rtol=0.0, atol=GRAVITY_TOLERANCE):
        return ()
    vector = " ".join(f"{component:.5g}" for component in model.gravity)
    message = f"the gravity vector in the frame of the base, {vector} m/s^2, has no place in this format"
    return (GRAVITY_NOT_EXPORTED.found(message),)


@dataclass(frozen=True)
class ExportModel:
    """A parameter set as others see a robot.

    Attributes:
        regressor: robot and terms.
        bodies: standard parameters of each body, with positive masses, shape (b, 10).
        terms: value of each of the format's own attributes, by joint: {joint: {attribute: value}}.
        findings: findings about what is left out.
        impossible: what makes bodies those of no real robot; empty for a consistent set.
    """

    regressor: Regressor
    bodies: Array
    terms: dict[str, dict[str, float]]
    findings: tuple[Finding, ...]
    impossible: str

    @classmethod
    def from_parameters(cls, parameters: ParameterSet, places: Mapping[str, str]) -> ExportModel:
        """The model with the terms that a format can carry.

        Args:
            parameters: the set.
            places: the format's attribute for each friction law, by its shape.

        Raises:
            InputError: parameters that are not finite, or a body without mass, which a file of links cannot describe.
        """
        regressor = Regressor.from_parameters(parameters)
        names = regressor.model.body_names
        full = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
        if not parameters.bodies.physically_consistent:
            full = _nearest(parameters, regressor, full)
        if not np.isfinite(full).all():
            raise InputError("the parameters are not all finite: a model with them cannot be used by any tool")
        bodies = full[: 10 * len(names)].reshape(-1, 10)
        for name, body in zip(names, bodies, strict=True):
            if not body[0] > 0.0:
                raise InputError(
                    f"joint {name}: the parameters give its link no mass ({body[0]:.3g} kg): a model of links cannot "
                    f"carry that; identify with `estimator: consistent`"
                )
        faults = [f"joint {n}: {why}" for n, body in zip(names, bodies, strict=True) if (why := find_violation(body))]
        terms, findings = _placed(parameters, regressor, full[10 * len(names) :], places)
        findings += report_driver(parameters)
        return cls(regressor, bodies, terms, findings, "; ".join(faults))


def report_driver(parameters: ParameterSet) -> tuple[Finding, ...]:
    """Finding about a driver that adds torques which tools compute from the model, too."""
    added = [part for part in parameters.effort.robot_compensates if part in COMPENSATED_PARTS]
    if not added:
        return ()
    message = (
        f"the robot's driver adds {', '.join(added)} to a command, and the model contains it: a controller that "
        "computes torques from this model must not add it a second time"
    )
    return (DRIVER_COMPENSATES.found(message),)


def _nearest(parameters: ParameterSet, regressor: Regressor, full: Array) -> Array:
    """Parameters with the same torque that differ least from the URDF's (and from the terms' values).

    The representative of a set that is not consistent has zeros in all dependent columns, masses among them.
    """
    inertial = regressor.model.inertial_parameters
    start = np.append(inertial, full[len(inertial) :])
    change = np.linalg.lstsq(
        parameters.base.mapping, parameters.estimate.values - parameters.base.mapping @ start, rcond=None
    )[0]
    return np.asarray(start + change)


def _placed(
    parameters: ParameterSet, regressor: Regressor, values: Array, places: Mapping[str, str]
) -> tuple[dict[str, dict[str, float]], tuple[Finding, ...]]:
    """Attributes of each joint, and findings about what they do not hold; `values` are those of the term columns."""
    joints = regressor.model.body_names
    placed: dict[str, dict[str, float]] = {name: {} for name in joints}
    left_out: dict[str, dict[str, list[int]]] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    laws: dict[int, FrictionLaw] = {}
    for number, column in enumerate(regressor.term_columns):
        term, joint = column.term, column.coordinate.name
        law = _storable_law(term, column.index)
        place = places.get(SIGN if law and law.shape == DAHL else law.shape) if law else None
        if law is not None and place is not None and joint in placed:
            sums.setdefault((joint, place), []).append(number)
            laws[number] = law
        elif values[number] != 0.0:
            why = f"{term.name} cannot be stored in this format"
            left_out.setdefault(why, {}).setdefault(joint, []).append(number)
    smoothed, presliding = False, dict[str, None]()
    for (joint, place), numbers in sums.items():
        # Single levels of one friction may be negative; only a sum below zero drives the joint.
        total = float(values[numbers].sum())
        if total < 0.0:
            names = dict.fromkeys(regressor.term_columns[number].term.name for number in numbers if values[number])
            why = f"{' + '.join(names)} below zero would drive the joint"
            left_out.setdefault(why, {}).setdefault(joint, []).extend(numbers)
            continue
        placed[joint][place] = total
        smoothed |= any(laws[number].shape == SIGN and laws[number].constant > 0.0 for number in numbers)
        if any(laws[number].shape == DAHL and values[number] != 0.0 for number in numbers):
            presliding[joint] = None
    torques = _term_torques(parameters, regressor, values) if left_out else np.empty((0, 0))
    findings = []
    for why, of_joint in left_out.items():
        listed = ", ".join(
            f"{joint} (up to {_largest(torques, numbers)} {regressor.term_columns[numbers[0]].coordinate.effort_unit})"
            for joint, numbers in of_joint.items()
        )
        message = f"{why}: left out for {listed} within the trained motion, kept in the parameter file"
        findings.append(TERM_NOT_EXPORTED.found(message, tuple(of_joint)))
    if presliding:
        message = (
            f"presliding friction of {', '.join(presliding)} is written as Coulomb friction with its torque in "
            "sliding: without the deflection before it slides"
        )
        findings.append(PRESLIDING_NOT_EXPORTED.found(message, tuple(presliding)))
    if smoothed:
        message = "coulomb friction is written without its smoothing width: it is discontinuous at rest"
        findings.append(SMOOTHING_NOT_EXPORTED.found(message))
    return placed, tuple(findings)


def _storable_law(term: Term, symbol: int) -> FrictionLaw | None:
    """The friction law of a column, if it is one law of both directions that depends on the motion alone."""
    laws = [law for law in term.laws or () if law.symbol == symbol]
    plain = len(laws) == 1 and laws[0] == FrictionLaw(laws[0].shape, laws[0].constant, symbol=symbol)
    return laws[0] if plain and not term.signal else None


def _term_torques(parameters: ParameterSet, regressor: Regressor, values: Array) -> Array:
    """Torque of each term column in sliding at random states of the trained motion, shape (t, n, N)."""
    rng, joints = np.random.default_rng(0), len(parameters.robot.joint_names)
    q = rng.uniform(parameters.ranges.q_min, parameters.ranges.q_max, (STATES, joints)).T
    dq, ddq = (
        rng.uniform(-most, most, (STATES, joints)).T for most in (parameters.ranges.dq_max, parameters.ranges.ddq_max)
    )
    columns = regressor.dense(Motion(q, dq, ddq))[10 * len(regressor.model.body_names) :]
    return np.asarray(columns * values[:, None, None])


def _largest(torques: Array, numbers: list[int]) -> str:
    """Largest torque of some columns together, as text."""
    return f"{np.abs(torques[numbers].sum(axis=0)).max():.2g}"
