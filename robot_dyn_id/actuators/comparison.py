# SPDX-License-Identifier: Apache-2.0
"""Comparison of fits of different models of the same actuators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dyn_id.actuators.fit import ActuatorFit, LimbMotion, weigh_equations
from robot_dyn_id.actuators.spread import leave_out_parts
from robot_dyn_id.identification.selection.engine import Tried, weigh


def compare_equations(stretches: Sequence[LimbMotion], fit: ActuatorFit, wide: ActuatorFit, block: float) -> Tried:
    """Gain of a wider model that is not fitted, by its Gauss-Newton equations, see `compare_fits`.

    Args:
        stretches: windows.
        fit: fit of the narrower model.
        wide: actuators and layout of the wider one, all else as in `fit`.
        block: length of the blocks of the normal equations [s].
    """
    equations = weigh_equations(stretches, wide, block, fit.errors**-2.0)
    return weigh("actuators", "equations", leave_out_parts(fit.equations), leave_out_parts(equations))


def compare_fits(fits: Sequence[tuple[Sequence[LimbMotion], ActuatorFit]], block: float) -> list[Tried]:
    """Gains of fits against the first one in parts of the data that they were not fitted to, see `weigh`.

    Joints are weighted by their smallest errors of all fits. The loss is the ratio of the squared errors.

    Args:
        fits: windows and fits; the parameters without a part are those of the Gauss-Newton equations of each fit.
        block: length of the blocks of the normal equations [s].
    """
    weights = np.min([fit.errors for _, fit in fits], axis=0) ** -2.0
    before, *after = (leave_out_parts(weigh_equations(stretches, fit, block, weights)) for stretches, fit in fits)
    return [
        weigh("actuators", "fit", before, squares, len(after), float(squares.sum() / before.sum())) for squares in after
    ]
