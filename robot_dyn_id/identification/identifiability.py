# SPDX-License-Identifier: Apache-2.0
"""Which parameters a recording has told, why not the others, and which motion would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import BaseParameters, random_motion
from robot_dyn_id.dynamics.regressor import Regressor

SAMPLES = 40
"""Random states that a column is looked at in."""

STRUCTURAL, GOOD, LEFT_OUT = "structural", "good", "left out"


@dataclass(frozen=True)
class Identifiability:
    """Of one parameter, standard or of a term.

    Attributes:
        name: of the parameter.
        status: `structural`: no motion tells it (on its own); `not excited`, `weak`, `good`: of these data; `left
            out`: not essential, and taken for zero.
        base: the base parameter that it is known in, as an expression; empty: no torque depends on it.
        advice: the motion that would help, for what is not good; empty otherwise.
    """

    name: str
    status: str
    base: str
    advice: str


def identifiability(
    regressor: Regressor, base: BaseParameters, names: Sequence[str], status: Sequence[str]
) -> tuple[Identifiability, ...]:
    """Of all c parameters of a regressor.

    Args:
        regressor: robot and terms.
        base: its base parameters.
        names: of those that were estimated: all, or the essential ones.
        status: of those, as in a `ParameterSet`.
    """
    known = dict.fromkeys(base.names, LEFT_OUT) | dict(zip(names, status, strict=True))
    asked = [int(i) for i, name in zip(base.independent, base.names, strict=True) if known[name] != GOOD]
    advice = dict(zip([regressor.names[i] for i in asked], motions_that_help(regressor, asked), strict=True))
    alone = np.count_nonzero(base.mapping, axis=1) == 1
    found = []
    for column, name in enumerate(base.column_names):
        rows = np.flatnonzero(base.mapping[:, column])
        own = [row for row in rows if alone[row]] if len(rows) == 1 else []
        word = known[base.names[own[0]]] if own else STRUCTURAL
        best = next((int(row) for row in rows if base.names[row] == name), int(rows[0]) if len(rows) else None)
        told = "" if best is None else base.expressions[best]
        found.append(Identifiability(name, word, told, "" if best is None else advice.get(base.names[best], "")))
    return tuple(found)


def motions_that_help(regressor: Regressor, columns: Sequence[int]) -> tuple[str, ...]:
    """One sentence for each column: the joint, and the kind of its motion, that moves the column most.

    Each joint's speed, acceleration and position is let go in turn at random states; what changes most tells.
    """
    if not columns:
        return ()
    full = random_motion(regressor.model, SAMPLES)
    still = np.zeros_like(full.q)
    rest = replace(full, dq=still, ddq=still)
    joints = regressor.model.joint_names
    at_rest = regressor.dense(rest)[list(columns)]
    effects = np.zeros((len(columns), 3, len(joints)))
    for joint in range(len(joints)):
        only = np.zeros((len(joints), 1))
        only[joint] = 1.0
        for kind, motion in enumerate((
            replace(rest, dq=only * full.dq),
            replace(rest, ddq=only * full.ddq),
            replace(rest, q=(1.0 - only) * full.q),
        )):  # fmt: skip
            change = regressor.dense(motion)[list(columns)] - at_rest
            effects[:, kind, joint] = np.sqrt((change**2).mean(axis=(1, 2)))
    size = np.sqrt((at_rest**2).mean(axis=(1, 2)))
    return tuple(_sentence(one, float(s), joints) for one, s in zip(effects, size, strict=True))


def _sentence(effects: Array, size: float, joints: Sequence[str]) -> str:
    kind, joint = divmod(int(np.argmax(effects)), effects.shape[1])
    if effects[kind, joint] <= 1e-9 * max(size, 1.0):
        return "record longer, in both directions of every joint, slowly and fast"
    name = joints[joint]
    return (
        f"move {name} in both directions, at low and at high speed",
        f"accelerate {name} harder, with frequent reversals",
        f"move {name} over more of its range, so that gravity and loads on it change",
    )[kind]
