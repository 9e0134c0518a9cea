# SPDX-License-Identifier: Apache-2.0
"""Identifiability of each parameter, the reason where it is poor, and motions that would improve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import draw_exciting_motion
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.parameters import BaseParameters

RANDOM_STATES = 40
"""Number of random states at which the columns are evaluated."""

INSEPARABLE_SHARE = 1e-3
"""Share of their size that is left of columns that cancel in every motion: rounded angles leave less."""

INSEPARABLE_PART = 0.1
"""Least part of a parameter in a direction in which columns cancel, of a unit vector."""

STRUCTURAL, GOOD, LEFT_OUT = "structural", "good", "left out"


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of one parameter of a link or of a term.

    Attributes:
        name: name of the parameter.
        status: `structural`: not identifiable (individually) by any motion; `not excited`, `weak`, `good`:
            identifiability from these data; `left out`: not essential, and set to zero.
        base: expression of the base parameter that contains it; empty if no torque depends on it.
        advice: motion that would improve the estimate; empty if it is good.
    """

    name: str
    status: str
    base: str
    advice: str


def assess_identifiability(
    regressor: Regressor, base: BaseParameters, names: Sequence[str], status: Sequence[str]
) -> tuple[Identifiability, ...]:
    """Identifiability of all c parameters of a regressor.

    Args:
        regressor: robot and terms.
        base: base parameters of the regressor.
        names: names of the estimated base parameters: all, or the essential ones.
        status: status of each estimated base parameter, as in a `ParameterSet`.
    """
    status_of_base = dict.fromkeys(base.names, LEFT_OUT) | dict(zip(names, status, strict=True))
    poor = [int(i) for i, name in zip(base.independent, base.names, strict=True) if status_of_base[name] != GOOD]
    advice = dict(zip([regressor.names[i] for i in poor], suggest_motions(regressor, poor), strict=True))
    alone = np.count_nonzero(base.mapping, axis=1) == 1
    found = []
    for column, name in enumerate(base.column_names):
        rows = np.flatnonzero(base.mapping[:, column])
        own = [row for row in rows if alone[row]] if len(rows) == 1 else []
        word = status_of_base[base.names[own[0]]] if own else STRUCTURAL
        best = next((int(row) for row in rows if base.names[row] == name), int(rows[0]) if len(rows) else None)
        expression = "" if best is None else base.expressions[best]
        motion = "" if best is None else advice.get(base.names[best], "")
        found.append(Identifiability(name, word, expression, motion))
    return tuple(found)


def suggest_motions(regressor: Regressor, columns: Sequence[int]) -> tuple[str, ...]:
    """Suggest the most informative motion for each column of a regressor.

    Perturbs each joint's velocity, acceleration and position in turn at random states; the largest change in the column
    indicates the most informative motion.

    Args:
        regressor: robot and terms.
        columns: numbers of the columns.

    Returns:
        One sentence for each column: the joint, and the kind of motion.
    """
    if not columns:
        return ()
    full = draw_exciting_motion(regressor, RANDOM_STATES)
    zeros = np.zeros_like(full.q)
    rest = replace(full, dq=zeros, ddq=zeros)
    joints = regressor.model.joint_names
    at_rest = regressor.dense(rest)[list(columns)]
    effects = np.zeros((len(columns), 3, len(joints)))
    for joint in range(len(joints)):
        only = np.zeros((len(joints), 1))
        only[joint] = 1.0
        perturbed = (
            replace(rest, dq=only * full.dq),
            replace(rest, ddq=only * full.ddq),
            replace(rest, q=(1.0 - only) * full.q),
        )
        for kind, motion in enumerate(perturbed):
            change = regressor.dense(motion)[list(columns)] - at_rest
            effects[:, kind, joint] = np.sqrt((change**2).mean(axis=(1, 2)))
    size = np.sqrt((at_rest**2).mean(axis=(1, 2)))
    return tuple(_word_advice(effect, float(s), joints) for effect, s in zip(effects, size, strict=True))


def _word_advice(effects: Array, size: float, joints: Sequence[str]) -> str:
    kind, joint = divmod(int(np.argmax(effects)), effects.shape[1])
    if effects[kind, joint] <= 1e-9 * max(size, 1.0):
        return "record longer, in both directions of every joint, slowly and fast"
    name = joints[joint]
    return (
        f"move {name} in both directions, at low and at high speed",
        f"accelerate {name} harder, with frequent reversals",
        f"move {name} over more of its range, so that gravity and loads on it change",
    )[kind]


def find_inseparable(regressor: Regressor, base: BaseParameters, names: Sequence[str]) -> tuple[str, ...]:
    """Parameters among some that hardly any motion separates from the others.

    Rounded angles of a robot description, such as 1.5708, leave parameters apart that are one for an exact right angle.
    Their columns cancel in every motion to a share that no data show.

    Args:
        regressor: robot and terms.
        base: base parameters.
        names: names of base parameters.
    """
    places = [place for place, name in enumerate(base.names) if name in set(names)]
    motion = draw_exciting_motion(regressor, RANDOM_STATES)
    columns = regressor.dense(motion)[base.independent[places]].reshape(len(places), -1)
    columns /= np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), np.finfo(float).tiny)
    _, sizes, directions = np.linalg.svd(columns.T, full_matrices=False)
    parts = np.abs(directions[sizes < INSEPARABLE_SHARE * sizes.max(initial=0.0)]).max(axis=0, initial=0.0)
    return tuple(base.names[place] for place, part in zip(places, parts, strict=True) if part > INSEPARABLE_PART)
