# SPDX-License-Identifier: Apache-2.0
"""Friction that depends on the load, and presliding friction, of joints where they predict better.

Each is tried for all joints at once: the Gauss-Newton equations with it have to predict parts of the data that they
were not fitted to better than those without, and then the fit with it has to. Friction that does not depend on the load
is a start of friction that does. Presliding has none at a breakaway displacement of zero, where the derivatives jump:
simulations with the displacements of the term `dahl`, all else as it is, choose the start of each joint. What an
infinitesimal change of one parameter alone improves, it improves too where all others are fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.actuators.comparison import compare_fits
from robot_dyn_id.actuators.fit import ActuatorFit, LimbMotion, compute_errors, correct_steps, fit_actuators
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.terms import Dahl
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels.actuators import BREAKAWAY, KINDS, LOAD_COULOMB


@dataclass(frozen=True)
class Added:
    """Test of whether the joints of a robot have a kind of friction.

    Attributes:
        kind: the parameter, one of `KINDS`.
        joints: names of the joints that have it; empty: it is not a part of the model.
        gain: share of the weighted square errors that it removes, in parts of the data that it was not fitted to.
        deviation: standard error of the gain.
    """

    kind: str
    joints: tuple[str, ...]
    gain: float
    deviation: float


def fit_friction(
    measured: Sequence[LimbMotion], stretches: Sequence[LimbMotion], fit: ActuatorFit, block: float
) -> tuple[Sequence[LimbMotion], ActuatorFit, tuple[Added, ...]]:
    """The fit with the friction that its joints have.

    Args:
        measured: windows of the motions.
        stretches: the same with the errors of the time steps.
        fit: fitted actuators.
        block: length of the blocks of the normal equations [s].

    Returns:
        Windows and fit with what pays, and the tests.
    """
    tests = []
    for kind in (LOAD_COULOMB, BREAKAWAY):
        start = _start_displacements(stretches, fit) if kind == BREAKAWAY else np.zeros(len(fit.errors))
        joints = np.flatnonzero(start) if kind == BREAKAWAY else np.arange(len(start))
        found, chosen = Added(KINDS[kind], (), 0.0, 0.0), None
        if len(joints):
            with suppress(InputError):  # the simulation diverges
                found, chosen = _try(measured, stretches, fit, kind, start, joints, block)
        tests.append(found)
        stretches, fit = chosen or (stretches, fit)
    return stretches, fit, tuple(tests)


def _try(
    measured: Sequence[LimbMotion],
    stretches: Sequence[LimbMotion],
    fit: ActuatorFit,
    kind: int,
    start: Array,
    joints: Array,
    block: float,
) -> tuple[Added, tuple[Sequence[LimbMotion], ActuatorFit] | None]:
    """Test of a kind of friction, with windows and fit if it pays.

    Raises:
        InputError: a simulation diverges.
    """
    names, values, layout = fit.actuators.joint_names, fit.actuators.values, fit.layout
    values[kind] = start
    for joint in joints.tolist():
        layout = layout.add(kind, joint)
    wide = replace(fit, actuators=ActuatorModel.from_values(names, values), layout=layout)
    (tried,) = compare_fits([(stretches, fit), (stretches, wide)], block)
    if not tried.pays:
        return Added(KINDS[kind], (), tried.gain, tried.deviation), None
    wide = fit_actuators(stretches, wide.actuators, layout, block, fit.initial)
    none = wide.actuators.values[kind] == 0.0
    corrected, wide = correct_steps(measured, replace(wide, layout=wide.layout.without(kind, none)), 1, block)
    (tried,) = compare_fits([(stretches, fit), (corrected, wide)], block)
    having = tuple(name for name, absent in zip(names, none, strict=True) if tried.pays and not absent)
    return Added(KINDS[kind], having, tried.gain, tried.deviation), (corrected, wide) if having else None


def _start_displacements(stretches: Sequence[LimbMotion], fit: ActuatorFit) -> Array:
    """Breakaway displacement of each joint with the smallest errors of simulations [rad or m], 0 for none, shape (n,)."""
    displacements = [0.0, *Dahl().displacements.tolist()]
    errors = []
    for displacement in displacements:
        values = fit.actuators.values
        values[BREAKAWAY] = displacement
        try:
            errors.append(compute_errors(stretches, ActuatorModel.from_values(fit.actuators.joint_names, values), fit))
        except InputError:  # the simulation diverges
            errors.append(np.full(len(fit.errors), np.inf))
    return np.array(displacements)[np.argmin(errors, axis=0)]
