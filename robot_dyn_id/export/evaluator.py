# SPDX-License-Identifier: Apache-2.0
"""Source code that evaluates an identified model in a control loop: a header for C, and one for C++17.

The header holds the numbers of one robot and needs the mathematical functions of the standard library only: no
allocation, no exceptions, loops of fixed length. Its recursions are those of `Dynamics` (Newton-Euler, composite
bodies, Cholesky factors), one body at a time in the bodies' own frames.
"""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import TermGroup
from robot_dyn_id.dynamics.terms.laws import (
    ARCTAN,
    CONSTANT,
    COSINE,
    DAHL,
    INERTIA,
    POWER,
    SIGN,
    SINE,
    SPRING,
    VISCOUS,
    FrictionLaw,
)
from robot_dyn_id.errors import InputError
from robot_dyn_id.export.model import TERM_NOT_EXPORTED, Exported
from robot_dyn_id.findings import Definition, Finding, Section
from robot_dyn_id.parameters import UNKNOWN, ParameterSet

DRIVER_UNKNOWN = Definition(
    "driver_unknown",
    Section.PREDICTION,
    "info",
    "It is not known what the driver adds to a command: exported source code has the torque of the motors but no "
    "function for commands.",
    "state `robot_compensates` at the identification or at the export",
)

COMMENT_WIDTH = 110
"""Longest line of the comment at the top of the header [characters]."""


def make_c_header(parameters: ParameterSet) -> Exported:
    """A C99 header with the dynamics of a parameter set, its functions named after the robot.

    Raises:
        InputError: parameters that are not finite, or a term that is not a sum of friction laws.
    """
    source = _Source.from_parameters(parameters)
    guard = f"{source.name.upper()}_DYNAMICS_H"
    text = f"{source.comment}#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n\n{source.core}\n#endif\n"
    return Exported(text, source.findings)


def make_cpp_header(parameters: ParameterSet) -> Exported:
    """A C++17 header with the dynamics of a parameter set, in the namespace `<robot>_dynamics`.

    Raises:
        InputError: parameters that are not finite, or a term that is not a sum of friction laws.
    """
    source = _Source.from_parameters(parameters)
    command = fill_parts(read_template("evaluator_driver.hpp.in"), {"parts": source.driver}) if source.driver else ""
    interface = read_template("evaluator.hpp.in").replace("@command@", command)
    fields = {"comment": source.comment, "name": source.name, "upper": source.name.upper(), "core": source.core}
    return Exported(fill_parts(interface, fields), source.findings)


@dataclass(frozen=True)
class _Source:
    """Parts of a header.

    Attributes:
        name: name of the robot as an identifier.
        comment: origin and meaning of the numbers, as a comment.
        core: definitions of data and functions, valid in C99 and C++17.
        driver: parts of the torque that the driver adds, as text; empty if they are not known.
        findings: findings about what is left out.
    """

    name: str
    comment: str
    core: str
    driver: str
    findings: tuple[Finding, ...]

    @classmethod
    def from_parameters(cls, parameters: ParameterSet) -> _Source:
        """Write the numbers of a parameter set into the core.

        Raises:
            InputError: parameters that are not finite, or a term that is not a sum of friction laws.
        """
        dynamics = Dynamics.from_parameters(parameters)
        if not np.isfinite(dynamics.parameters).all():
            raise InputError("the parameters are not all finite: a model with them cannot be used by any tool")
        name = _identifier(parameters.robot.name)
        terms = _TermCode.from_dynamics(dynamics, name)
        regressor, model = dynamics.regressor, dynamics.regressor.model
        tree, bodies = regressor.tree, len(model.body_names)
        own = np.arange(bodies)
        loaded = (
            f"/* Those that the load is computed from. */\nstatic const double {name}_load_parameters[{bodies}][10]"
        )
        fields = {
            "bodies": str(bodies),
            "joints": str(len(model.joint_names)),
            "states": str(len(terms.states)),
            "parent": _initializer(np.where(tree.parent < 0, own, tree.parent)),
            "leader": _initializer(tree.leader),
            "multiplier": _initializer(tree.multiplier),
            "offset": _initializer(model.offset),
            "turn": _initializer(tree.turn.reshape(bodies, 3, 9)),
            "shift": _initializer(tree.shift),
            "axis": _initializer(tree.axis),
            "gravity": _initializer(tree.gravity),
            "parameters": _initializer(dynamics.parameters[: 10 * bodies].reshape(bodies, 10)),
            "load_parameters": f"{loaded} = {_initializer(regressor.load_bodies.reshape(bodies, 10))};\n"
            if terms.loaded
            else "",
            "rotor_mass": terms.rotor_mass,
            "rotor_torque": terms.rotor_torque,
            "advance": terms.advance,
            "terms": terms.torque,
        }
        driver, unknown = _driver(parameters)
        fields |= {"driver": _driver_code(driver) if driver else ""}
        fields |= {"function": "static inline", "const": ""}
        core = fill_parts(read_template("evaluator_data.h.in") + read_template("evaluator.h.in"), fields)
        core = fill_parts(core, {"joints": str(len(model.joint_names)), "name": name})
        return cls(name, _comment(parameters), core, driver, (*terms.findings, *unknown))


@dataclass(frozen=True)
class ExportedLaws:
    """Terms of a robot as sums of laws on coordinates, those of friction and springs in the order of the terms.

    Attributes:
        inertia: rotor inertias, in addition to the mass matrix, shape (n, n).
        constant: constant torque [N m or N], shape (n,).
        friction: law, weights and offset of its coordinate, coefficient, and whether it is multiplied by the load.
        states: breakaway displacement and coordinate of each state, with its number.
        findings: findings about what is left out.
    """

    inertia: Array
    constant: Array
    friction: tuple[tuple[FrictionLaw, tuple[float, ...], float, float, bool], ...]
    states: dict[tuple[float, tuple[float, ...]], int]
    findings: tuple[Finding, ...]

    @classmethod
    def from_dynamics(cls, dynamics: Dynamics) -> ExportedLaws:
        """Collect the terms whose parameters are not zero.

        Raises:
            InputError: a term that is not a sum of friction laws.
        """
        joints = len(dynamics.regressor.model.joint_names)
        first = 10 * len(dynamics.regressor.model.body_names)
        inertia, constant = np.zeros((joints, joints)), np.zeros(joints)
        friction: list[tuple[FrictionLaw, tuple[float, ...], float, float, bool]] = []
        states: dict[tuple[float, tuple[float, ...]], int] = {}
        cold: dict[str, None] = {}
        for group in dynamics.regressor.term_groups:
            values = dynamics.parameters[first + group.numbers]
            if not np.any(values):
                continue
            if group.term.signal == "temperature":
                cold[group.term.name] = None
                continue
            for law, weights, offset, value in _list_summands(group, values):
                along = tuple(weights.tolist())
                if law.shape == INERTIA:
                    inertia += value * np.outer(weights, weights)
                elif law.shape == CONSTANT:
                    constant += value * weights
                else:
                    friction.append((law, along, offset, value, group.term.signal == "load"))
                    if law.shape == DAHL:
                        states.setdefault((law.constant, along), len(states))
        return cls(inertia, constant, tuple(friction), states, _report_cold(cold))

    def state_of(self, law: FrictionLaw, along: tuple[float, ...], without: int) -> int:
        """Number of the state of a law on a coordinate; `without` of a law that has none."""
        return self.states[law.constant, along] if law.shape == DAHL else without


@dataclass(frozen=True)
class _TermCode:
    """Statements for the terms of a robot.

    Attributes:
        torque: statements that set tau to the torque of friction, springs and offsets.
        advance: statements that carry the states along a motion.
        rotor_mass: statements that add rotor inertias to the mass matrix.
        rotor_torque: statements that add their torque to tau.
        states: breakaway displacement and coordinate of each state.
        loaded: whether any friction depends on the load.
        findings: findings about what is left out.
    """

    torque: str
    advance: str
    rotor_mass: str
    rotor_torque: str
    states: tuple[tuple[float, tuple[float, ...]], ...]
    loaded: bool
    findings: tuple[Finding, ...]

    @classmethod
    def from_dynamics(cls, dynamics: Dynamics, name: str) -> _TermCode:
        """Write the terms whose parameters are not zero.

        Raises:
            InputError: a term that is not a sum of friction laws.
        """
        sums: dict[tuple[tuple[float, ...], float], dict[bool, list[str]]] = {}
        laws = ExportedLaws.from_dynamics(dynamics)
        for law, along, offset, value, pressed in laws.friction:
            parts = sums.setdefault((along, offset), {}).setdefault(pressed, [])
            parts.append(f"{value!r} * {_value(law, name, laws.state_of(law, along, 0))}")
        loaded = any(True in parts for parts in sums.values())
        return cls(
            _torque_code(sums, laws.constant, name),
            _advance_code(laws.states, name),
            "".join(
                f"  mass[{i * len(laws.constant) + j}] += {float(laws.inertia[i, j])!r};\n"
                for i, j in np.argwhere(laws.inertia)
            ),
            _rotor_code(laws.inertia),
            tuple(laws.states),
            loaded,
            laws.findings,
        )


def _list_summands(group: TermGroup, values: Array) -> list[tuple[FrictionLaw, Array, float, float]]:
    """Laws of a group with the coordinate's weights and offset, and their coefficient; zeros are left out.

    Args:
        group: terms on g coordinates.
        values: parameters, shape (symbols, g).

    Raises:
        InputError: a term that is not a sum of laws.
    """
    if group.term.laws is None:
        raise InputError(
            f"term {group.term.name} is not a sum of friction laws and cannot be written as source code: identify with "
            "another friction model"
        )
    return [
        (law, weights, float(offset), float(law.factor * value))
        for law in group.term.laws
        for weights, offset, value in zip(group.weights, group.offsets[:, 0], values[law.symbol], strict=True)
        if value != 0.0
    ]


def _value(law: FrictionLaw, name: str, state: int) -> str:
    """Expression of a law over the coordinate's position y and velocity v."""
    constant = repr(law.constant)
    value = {
        VISCOUS: "v",
        SIGN: f"tanh(v / {constant})" if law.constant else f"{name}_sign(v)",
        DAHL: f"(state ? state[{state}] : {name}_sign(v))",
        POWER: _power(law.constant, name),
        ARCTAN: f"atan(v / {constant})",
        SPRING: f"(y - {constant})",
        SINE: f"sin({constant} * y)",
        COSINE: f"cos({constant} * y)",
    }[law.shape]
    side = {0: "", 1: " * (v > 0.0)", -1: " * (v < 0.0)"}[law.side]
    fading = f" * exp(-(v / {law.fading!r}) * (v / {law.fading!r}))" if math.isfinite(law.fading) else ""
    return f"{value}{fading}{side}"


def _power(exponent: float, name: str) -> str:
    """sign(v) |v|^c; the library's pow is slow."""
    known = {0.5: f"{name}_sign(v) * sqrt(fabs(v))", 2.0: "v * fabs(v)", 3.0: "v * v * v"}
    return known.get(exponent, f"{name}_sign(v) * pow(fabs(v), {exponent!r})")


def _torque_code(sums: dict[tuple[tuple[float, ...], float], dict[bool, list[str]]], constant: Array, name: str) -> str:
    lines = [f"  tau[{j}] = {value!r};" for j, value in enumerate(constant.tolist())]
    if any(True in parts for parts in sums.values()):
        lines += [
            f"  double load[{len(constant)}];",
            f"  {name}_rigid_bodies({name}_load_parameters, q, dq, 0, load);",
        ]
    lines += ["  (void)state;", "  (void)q;", "  (void)dq;"]
    for (along, offset), parts in sums.items():
        code = []
        if _mention("v", parts):
            code.append(f"const double v = {_linear(along, 'dq')};")
        if _mention("y", parts):
            code.append(f"const double y = {_linear(along, 'q')} + {offset!r};")
        summands = list(parts.get(False, []))
        if True in parts:
            square = sum(weight**2 for weight in along)
            code.append(f"const double pressed = fabs({_linear(along, 'load')}) / {square!r};")
            summands.append("pressed * (" + " +\n      ".join(parts[True]) + ")")
        joined = " +\n      ".join(summands)
        code.append(f"const double torque = {joined};")
        code += [f"tau[{j}] += {_times(weight)}torque;" for j, weight in enumerate(along) if weight]
        lines += ["  {", *(f"    {line}" for line in code), "  }"]
    return "\n".join(lines) + "\n"


def _mention(variable: str, parts: dict[bool, list[str]]) -> bool:
    """Whether an expression depends on a variable."""
    return any(re.search(rf"\b{variable}\b", expression) for own in parts.values() for expression in own)


def _advance_code(states: dict[tuple[float, tuple[float, ...]], int], name: str) -> str:
    if not states:
        return "  (void)state;\n  (void)q;\n  (void)next_q;\n"
    lines = []
    for along in dict.fromkeys(along for _, along in states):
        lines += [
            "  {",
            f"    const double moved = {_linear(along, 'next_q')} - ({_linear(along, 'q')});",
            f"    const double way = fabs(moved), toward = {name}_sign(moved);",
        ]
        lines += [
            f"    state[{number}] = toward - (toward - state[{number}]) * exp(-way / {displacement!r});"
            for (displacement, own), number in states.items()
            if own == along
        ]
        lines.append("  }")
    return "\n".join(lines) + "\n"


def _rotor_code(inertia: Array) -> str:
    rows = [
        f"    tau[{i}] += {' + '.join(f'{float(inertia[i, j])!r} * ddq[{j}]' for j in np.flatnonzero(inertia[i]))};"
        for i in np.flatnonzero(inertia.any(axis=1))
    ]
    return "\n".join(["  if (ddq) {", *rows, "  }"]) + "\n" if rows else ""


def _report_cold(names: dict[str, None]) -> tuple[Finding, ...]:
    """Finding about terms that depend on temperature, which source code leaves out."""
    if not names:
        return ()
    message = f"{', '.join(names)}: written at the reference temperature, where its torque is zero"
    return (TERM_NOT_EXPORTED.found(message),)


def _driver(parameters: ParameterSet) -> tuple[str, tuple[Finding, ...]]:
    """Parts that the driver adds to a command as text, and a finding if they are not known."""
    unknown = report_unknown_driver(parameters)
    return "" if unknown else ", ".join(parameters.effort.robot_compensates), unknown


def report_unknown_driver(parameters: ParameterSet) -> tuple[Finding, ...]:
    """Finding about a driver of which it is not known what it adds to a command."""
    if parameters.effort.robot_compensates != (UNKNOWN,):
        return ()
    message = "robot_compensates is unknown: the code has no function for commands, only the torque of the motors"
    return (DRIVER_UNKNOWN.found(message),)


_PARTS = {
    "gravity": "rigid_bodies(@name@_parameters, q, still, 0, part)",
    "coriolis": "rigid_bodies(@name@_parameters, q, dq, 0, part)",
    "friction": "friction(state, q, dq, part)",
}
"""Function of each part that the driver adds."""

_AT_REST = {
    "coriolis": "rigid_bodies(@name@_parameters, q, still, 0, part)",
    "friction": "friction(0, q, still, part)",
}
"""Functions whose torque at rest is not part of it."""


def _driver_code(driver: str) -> str:
    """Functions of a driver that adds these parts."""
    lines = []
    for part in driver.split(", "):
        for sign, calls in (("+", _PARTS), ("-", _AT_REST)):
            if part in calls:
                lines += [
                    f"  @name@_{calls[part]};",
                    f"  for (int j = 0; j < @name@_joints; ++j) {{ tau[j] {sign}= part[j]; }}",
                ]
    return fill_parts(
        read_template("evaluator_driver.h.in"), {"parts": driver, "sums": "".join(f"{line}\n" for line in lines)}
    )


def _linear(weights: tuple[float, ...], vector: str) -> str:
    """Expression of weights . vector."""
    return " + ".join(f"{_times(weight)}{vector}[{j}]" for j, weight in enumerate(weights) if weight)


def _times(weight: float) -> str:
    return "" if weight == 1.0 else f"{weight!r} * "


def _initializer(array: Array | Integers) -> str:
    """Braced initializer of an array, one line per entry of its first axis if it has several axes."""
    if array.ndim < 2:
        return _braced(array.tolist())
    return "{\n" + "".join(f"  {_braced(row)},\n" for row in array.tolist()) + "}"


def _braced(value: object) -> str:
    return "{" + ", ".join(map(_braced, value)) + "}" if isinstance(value, list) else repr(value)


def _identifier(name: str) -> str:
    """The robot's name as an identifier."""
    word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return f"robot_{word}" if not word or word[0].isdigit() else word


def describe_origin(parameters: ParameterSet) -> list[str]:
    """Origin and limits of the numbers, as lines of a comment."""
    joints = zip(
        parameters.robot.joint_names,
        parameters.ranges.q_min,
        parameters.ranges.q_max,
        parameters.ranges.dq_max,
        parameters.ranges.ddq_max,
        strict=True,
    )
    uses = [f"{use.use}: {use.answer}" for use in parameters.judgment.fit_for]
    lines = [
        f"Dynamics of {parameters.robot.name}, written by robot_dyn_id {parameters.provenance.software_version}.",
        f"URDF with the SHA-256 {parameters.robot.urdf_sha256}.",
        f"Verdict: {parameters.judgment.verdict}" + (f"; fit for {', '.join(uses)}." if uses else "."),
        "SI units; joints in this order, with the positions, speeds and accelerations of the training data:",
        *(
            f"  {name}: {low:.4g} to {high:.4g}, {speed:.4g} per s, {acceleration:.4g} per s^2"
            for name, low, high, speed, acceleration in joints
        ),
        "Outside these ranges the torque is an extrapolation.",
    ]
    return [line for long in lines for line in textwrap.wrap(long, COMMENT_WIDTH)]


def _comment(parameters: ParameterSet) -> str:
    """Origin and limits of the numbers, as a comment."""
    lines = (line.replace("*/", "* /") for line in describe_origin(parameters))
    return "/*\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def read_template(name: str) -> str:
    """Text of a template of this folder."""
    return files("robot_dyn_id.export").joinpath(name).read_text(encoding="utf-8")


def fill_template(template: str, fields: dict[str, str]) -> str:
    """A template with the texts of its fields, which it holds as `@field@`; fields within these texts stay."""
    return re.sub(r"@(\w+)@", lambda found: fields.get(found[1], found[0]), template)


def fill_parts(template: str, fields: dict[str, str]) -> str:
    """A template of which some fields are parts with fields of their own: these are filled too, in the given order."""
    for field, text in fields.items():
        template = template.replace(f"@{field}@", text)
    return template
