# SPDX-License-Identifier: Apache-2.0
"""Friction that depends on the load, and presliding friction, of joints where they predict better.

Each is tried for all joints at once: the Gauss-Newton equations with it have to predict parts of the data that they
were not fitted to better than those without, and then those of the fit with it have to. Friction that does not depend
on the load is a start of friction that does. Presliding has none at a breakaway displacement of zero, where the
derivatives jump: simulations with displacements of the term `dahl`, all else as it is, choose the start of each joint.
What an infinitesimal change of one parameter alone improves, it improves too where all others are fitted.

A joint has a kind of friction only where the motion separates it from its other values, see `_find_inseparable`: a load
that hardly changes makes Coulomb friction and a factor of the load one value, whose shares errors of the model choose,
and which predict friction at other loads at random. Such joints keep the simpler model, and the rest is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.actuators.comparison import compare_equations
from robot_dyn_id.actuators.fit import ActuatorFit, LimbMotion, compute_errors, correct_steps, fit_actuators
from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.actuators.spread import CONFOUNDED, EstimateSpread, correlate
from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.dynamics.terms import Dahl
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.selection.engine import Tried
from robot_dyn_id.kernels.actuators import BREAKAWAY, KINDS, LOAD_COULOMB

DISPLACEMENTS = Dahl().displacements[::2]
"""Breakaway displacements that a fit may start from [rad or m]; it ends at any."""


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
    gain: float = 0.0
    deviation: float = 0.0


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
    tests, names = [], fit.actuators.joint_names
    for kind in (LOAD_COULOMB, BREAKAWAY):
        test = Added(KINDS[kind], ())
        with suppress(InputError):  # the simulation diverges
            wide, tried = _try(stretches, fit, _start(stretches, fit, kind), kind, block)
            if tried.pays:
                fit = wide
            joints = np.flatnonzero(fit.layout.index[kind] >= 0).tolist()
            test = Added(KINDS[kind], tuple(names[joint] for joint in joints), tried.gain, tried.deviation)
        tests.append(test)
    if tests[-1].joints:  # with presliding, errors of time steps are others
        stretches, fit = correct_steps(measured, fit, 1, block)
    return stretches, fit, tuple(tests)


def _start(stretches: Sequence[LimbMotion], fit: ActuatorFit, kind: int) -> ActuatorFit:
    """The fit with values of a kind that may be fitted."""
    values, layout = fit.actuators.values, fit.layout
    if kind == BREAKAWAY:
        values[kind] = _find_displacements(stretches, fit)
    for joint in np.flatnonzero((values[kind] > 0.0) | (kind != BREAKAWAY)).tolist():
        layout = layout.add(kind, joint)
    return replace(fit, actuators=ActuatorModel.from_values(fit.actuators.joint_names, values), layout=layout)


def _find_displacements(stretches: Sequence[LimbMotion], fit: ActuatorFit) -> Array:
    """Breakaway displacement of each joint with the least errors of simulations [rad or m], 0 for none, shape (n,)."""
    tried, errors = [0.0, *DISPLACEMENTS.tolist()], [fit.errors]
    for displacement in tried[1:]:
        values = fit.actuators.values
        values[BREAKAWAY] = displacement
        errors.append(compute_errors(stretches, ActuatorModel.from_values(fit.actuators.joint_names, values), fit))
    return np.asarray(np.array(tried)[np.argmin(errors, axis=0)])


def _try(
    stretches: Sequence[LimbMotion], fit: ActuatorFit, start: ActuatorFit, kind: int, block: float
) -> tuple[ActuatorFit, Tried]:
    """Fit of a kind of friction of the joints in which it is separable, and its gain.

    Args:
        stretches: windows of motions.
        fit: fit without it.
        start: the same with values and layout that the fit starts from.
        kind: the kind.
        block: length of the blocks of the normal equations [s].

    Raises:
        InputError: a simulation diverges.
    """
    tried = compare_equations(stretches, fit, start, block)
    while tried.pays:
        wide = fit_actuators(stretches, start.actuators, start.layout, block, fit.initial)
        wide = wide.without(kind, wide.actuators.values[kind] == 0.0)
        mixed = _find_inseparable(wide, kind)
        if not mixed.any():
            return wide, compare_equations(stretches, fit, wide, block)
        values = start.actuators.values
        values[kind, mixed] = fit.actuators.values[kind, mixed]
        actuators = ActuatorModel.from_values(fit.actuators.joint_names, values)
        start = replace(start, actuators=actuators, layout=start.layout.without(kind, mixed))
        tried = compare_equations(stretches, fit, start, block)
    return fit, tried


def _find_inseparable(fit: ActuatorFit, kind: int) -> Mask:
    """Joints whose motion does not separate a kind of friction from their other values, shape (n,).

    Its interval contains 0, or its correlation with another value of the joint is above `CONFOUNDED`.
    """
    index, values = fit.layout.index, fit.actuators.values
    half_width = EstimateSpread.from_equations(fit.equations).half_width
    linked = np.abs(correlate(fit.equations.matrix)) > CONFOUNDED
    mixed = np.zeros(index.shape[1], dtype=bool)
    for j in np.flatnonzero(index[kind] >= 0).tolist():
        number, own = index[kind, j], index[index[:, j] >= 0, j]
        mixed[j] = values[kind, j] <= half_width[number] or np.count_nonzero(linked[number, own]) > 1  # one is its own
    return mixed
