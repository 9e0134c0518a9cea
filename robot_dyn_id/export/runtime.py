# SPDX-License-Identifier: Apache-2.0
"""Header that evaluates any parameter set at run time, from the same algorithms as exported source code.

`python -m robot_dyn_id.export.runtime > cpp/include/robot_dyn_id/runtime_dynamics.hpp` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib.resources import files
from typing import Any, get_type_hints

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.regressor import MAX_TORQUE_DIFFERENCE_RATIO
from robot_dyn_id.dynamics.terms import TERMS, Term
from robot_dyn_id.dynamics.terms.coupling import COUPLING_PREFIX
from robot_dyn_id.dynamics.terms.laws import FrictionLaw
from robot_dyn_id.parameters import FORMAT_VERSION, IMPLIED_COMPENSATIONS, LARGEST, ParameterSet
from robot_dyn_id.parameters.effort import HIGHEST_ORDER, HIGHEST_RATE
from robot_dyn_id.parameters.judgment import FitFor
from robot_dyn_id.parameters.robot import LONGEST_URDF, STRONGEST_GRAVITY
from robot_dyn_id.parameters.rules import AGREEMENT, LONGEST_LINE, FieldRule
from robot_dyn_id.simulation.controllers import POSES
from robot_dyn_id.uses import ANSWERS, USES

CPP_TYPES: dict[Any, str] = {
    str: "std::string",
    float: "double",
    int: "std::uint32_t",
    bool: "bool",
    tuple[str, ...]: "std::vector<std::string>",
    Array: "std::vector<double>",
    Integers: "std::vector<std::uint32_t>",
    tuple[FitFor, ...]: "std::vector<FitFor>",
}
"""Types of fields in C++; those of other types are left out, as only Python uses them."""

VARIANTS = ("signed_square",)
"""Constants of terms that switch between laws."""

ADVANCE = """  for (const Law & law : laws_) {
    if (law.shape != detail::Shape::dahl) { continue; }
    const double moved = along(coordinates_[law.along], next_q, m_joints) - along(coordinates_[law.along], q, m_joints);
    const double toward = m_sign(moved);
    state[law.state] = toward - (toward - state[law.state]) * std::exp(-std::fabs(moved) / law.constant);
  }
"""

TERMS_TORQUE = """  double load[N] = {0.0};
  for (int j = 0; j < m_joints; ++j) { tau[j] = m_constant[j]; }
  if (loaded_) { m_rigid_bodies(m_load_parameters, q, dq, nullptr, load); }
  for (const Law & law : laws_) {
    const Coordinate & at = coordinates_[law.along];
    const double y = along(at, q, m_joints) + at.offset, v = along(at, dq, m_joints);
    if ((law.side > 0 && !(v > 0.0)) || (law.side < 0 && !(v < 0.0))) { continue; }
    double torque = law.value * shape_of(law, y, v, state) * std::exp(-(v / law.fading) * (v / law.fading));
    if (law.loaded) { torque *= std::fabs(along(at, load, m_joints)) / at.square; }
    for (int j = 0; j < m_joints; ++j) { tau[j] += at.weights[j] * torque; }
  }
"""

ROTOR_MASS = """  for (int i = 0; i < m_joints; ++i) {
    for (int j = 0; j < m_joints; ++j) { mass[i * m_joints + j] += m_inertia[i][j]; }
  }
"""

ROTOR_TORQUE = """  for (int i = 0; ddq && i < m_joints; ++i) {
    for (int j = 0; j < m_joints; ++j) { tau[i] += m_inertia[i][j] * ddq[j]; }
  }
"""


def make_runtime_header() -> str:
    """Text of the header."""
    core = _template("evaluator.h.in")
    parts = {
        "advance": ADVANCE,
        "terms": TERMS_TORQUE,
        "rotor_mass": ROTOR_MASS,
        "rotor_torque": ROTOR_TORQUE,
        "driver": "",
        "function": "inline",
        "const": " const",
        "bodies": "N",
        "joints": "N",
        "name": "m",
    }
    for field, text in parts.items():
        core = core.replace(f"@{field}@", text)
    core = "".join(f"  {line}\n" if line and not line.startswith("#") else f"{line}\n" for line in core.splitlines())
    header = {
        "format_version": str(FORMAT_VERSION),
        "terms_table": "".join(f'  {{"{name}", {len(kind.symbols)}}},\n' for name, kind in TERMS.items()),
        "laws_table": "".join(f"  {row},\n" for kind in TERMS.values() for row in _rows(kind())),
        "coupling_prefix": COUPLING_PREFIX,
        **_checks(),
        "core": core,
    }
    text = _template("runtime.hpp.in")
    for field, value in header.items():
        text = text.replace(f"@{field}@", value)
    return text


def _checks() -> dict[str, str]:
    """Parts of a parameter set with the rules of their fields, and constants of its checks."""
    return {
        "parts": "".join(_part(name, kind) for name, kind in _parts()),
        "fields": "".join(_field(name, item.name, rule) for name, kind in _parts() for item, _, rule in _list(kind)),
        "implied_table": _pairs(IMPLIED_COMPENSATIONS),
        "largest": repr(LARGEST),
        "agreement": repr(AGREEMENT),
        "torque_agreement": repr(MAX_TORQUE_DIFFERENCE_RATIO),
        "strongest_gravity": repr(STRONGEST_GRAVITY),
        "highest_rate": repr(HIGHEST_RATE),
        "highest_order": str(HIGHEST_ORDER),
        "longest_urdf": str(LONGEST_URDF),
        "poses": str(POSES),
        "longest_line": str(LONGEST_LINE),
        "uses": ", ".join(USES),
        "answers": ", ".join(ANSWERS),
    }


def _parts() -> list[tuple[str, Any]]:
    """Name and class of the parts of a parameter set that dynamics and checks need."""
    return [
        (name, hint) for name, hint in get_type_hints(ParameterSet).items() if is_dataclass(hint) and any(_list(hint))
    ]


def _list(kind: Any) -> Iterator[tuple[Any, str, FieldRule]]:
    """List the fields of a part that are numbers and texts, with their C++ types and rules."""
    hints = get_type_hints(kind)
    for item in fields(kind):
        if hints[item.name] in CPP_TYPES:
            yield item, CPP_TYPES[hints[item.name]], item.metadata["rule"]


def _part(name: str, kind: Any) -> str:
    """Structure of a part."""
    rows = "".join(f"    {cpp} {item.name}{{}};\n" for item, cpp, _ in _list(kind))
    return f"  struct {kind.__name__}\n  {{\n{rows}  }} {name};\n"


def _field(part: str, field: str, rule: FieldRule) -> str:
    """Visit of a field with its rule."""
    shape = ", ".join(f'"{size}"' for size in (*rule.shape, "", "")[:2])
    least = repr(rule.least) if math.isfinite(rule.least) else "detail::unbounded"
    flags = [str(flag).lower() for flag in (rule.optional, rule.finite, rule.nan, rule.unique)]
    path = f"{part}.{field}"
    return (
        f'    visit(detail::Rule{{"{path}", {{{{{shape}}}}}, {flags[0]}, {flags[1]}, {least}, {flags[2]}, {rule.most}, '
        f'{rule.longest}, "{", ".join(rule.words)}", {flags[3]}}}, self.{path}, other.{path});\n'
    )


def _pairs(words: Mapping[str, Sequence[str]]) -> str:
    return "".join(f'  {{"{name}", "{word}"}},\n' for name, known in words.items() for word in known)


def _rows(term: Term) -> Iterator[str]:
    """Rows of the table of laws, for each choice of the constants that switch between laws."""
    switches = [name for name in VARIANTS if name in term.constants]
    for value in (0.0, 1.0) if switches else (0.0,):
        chosen = term.with_constants({**term.constants, **dict.fromkeys(switches, value)})
        names = [name for name in term.constants if name not in switches]
        marked = chosen.with_constants(
            {**chosen.constants, **{name: 0.011 + 0.002 * k for k, name in enumerate(names)}}
        )
        by_value = {marked.constants[name]: name for name in names}
        for law, own in zip(marked.laws or (), chosen.laws or (), strict=True):
            yield _row(term, law, own, by_value, (switches[0] if switches else "", value))


def _row(term: Term, law: FrictionLaw, own: FrictionLaw, by_value: dict[float, str], variant: tuple[str, float]) -> str:
    """A row of the table; `law` has marked constants, `own` those of the default term."""
    if replace(law, constant=own.constant, fading=own.fading) != own:
        raise AssertionError(f"the shape of a law of {term.name} depends on its constants")
    constant, fading = by_value.get(law.constant, ""), by_value.get(law.fading, "")
    if (not constant and law.constant != own.constant) or (not fading and math.isfinite(law.fading)):
        raise AssertionError(f"a law of {term.name} is not a function of one constant")
    fields = (
        f'"{term.name}", "{variant[0]}", {variant[1]!r}, {law.symbol}, Shape::{law.shape}, {own.constant!r}, '
        f'"{constant}", {law.side}, {law.factor!r}, "{fading}", "{term.signal or ""}"'
    )
    return f"{{{fields}}}"


def _template(name: str) -> str:
    return files("robot_dyn_id.export").joinpath(name).read_text(encoding="utf-8")


if __name__ == "__main__":
    print(make_runtime_header(), end="")
