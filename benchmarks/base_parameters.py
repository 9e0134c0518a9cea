# SPDX-License-Identifier: Apache-2.0
"""Goal 7: the base parameters of a 7-axis arm, from its model to names, mapping and expressions.

FIGAROH up to 0.2 finds them by a pivoted QR of a stacked regressor with the whole of Q, written out here where that
version is not installed; later versions let Q be thin. Its regressor is given: only the decomposition is measured, ours
with everything.
"""

from __future__ import annotations

from measuring import Goal, at_least, at_most, interleaved, one_thread, script

if __name__ == "__main__":
    one_thread()

from collections.abc import Callable

import arms
import numpy as np
from scipy import linalg

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.base_parameters import (
    compute_base_parameters,
    count_sufficient_samples,
    draw_random_motion,
    stack_regressor,
)
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.parameters import BaseParameters

ARM, SAMPLES, MILLISECONDS, FULL_Q, EQUAL = "panda", 200, 5.0, 15.0, 1e-8
TOLERANCE = 1e-8


def measure() -> list[Goal]:
    """With and without friction."""
    return [*_measure(ARM, Regressor(arms.model(ARM))), *_measure(f"{ARM} with friction", arms.with_friction(ARM))]


def _measure(name: str, regressor: Regressor) -> list[Goal]:
    stack = stack_regressor(regressor, draw_random_motion(regressor.model, SAMPLES, seed=1))
    short = stack_regressor(regressor, draw_random_motion(regressor.model, count_sufficient_samples(regressor), seed=1))
    found: dict[str, BaseParameters] = {}
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: found.update(ours=compute_base_parameters(regressor)),
        "ours, qr": lambda: found.update(qr=compute_base_parameters(regressor, pivots="qr")),
        "full Q": lambda: pivoted_qr(stack, regressor.names, "full"),
        "full Q, as few samples as ours": lambda: pivoted_qr(short, regressor.names, "full"),
        "thin Q": lambda: pivoted_qr(stack, regressor.names, "economic"),
    }
    ms = {contender: 1e3 * seconds for contender, seconds in interleaved(contenders, repeats=15).items()}
    rank, _ = pivoted_qr(stack, regressor.names, "full")
    base = found["ours"]
    title = f"base parameters {name} ({len(base.names)})"
    return [
        at_most(f"{title}: milliseconds", ms["ours"], MILLISECONDS, with_qr_pivots_ms=ms["ours, qr"]),
        at_least(
            f"{title}: pivoted QR with full Q, {SAMPLES} samples",
            ms["full Q"] / ms["ours"],
            FULL_Q,
            peer_ms=ms["full Q"],
            thin_q_ms=ms["thin Q"],
            our_samples=count_sufficient_samples(regressor),
            full_q_of_as_many_ms=ms["full Q, as few samples as ours"],
        ),
        at_most(f"{title}: difference of the ranks", abs(rank - len(base.names)), 0.0),
        at_most(f"{title}: share of the regressor that ours leave unexplained", _unexplained(base, stack), EQUAL),
    ]


def pivoted_qr(stack: Array, names: tuple[str, ...], mode: str) -> tuple[int, list[str]]:
    """FIGAROH's algebra: columns that are zero go, pivoted QR, rank by R's diagonal, combinations, expressions.

    Returns:
        Rank and expressions.
    """
    live = np.flatnonzero(np.diag(stack.T @ stack) >= 1e-6)
    q, r, order = linalg.qr(stack[:, live], pivoting=True, mode=mode)
    rank = int(np.count_nonzero(np.abs(np.diag(r)) > TOLERANCE))
    first, second = r[:rank, :rank], r[:rank, rank:]
    combinations = np.around(np.linalg.inv(first) @ second, 6)
    q[:, :rank] @ first  # the base regressor that it returns
    ordered = [names[column] for column in live[order]]
    expressions = [
        " + ".join([name, *(f"{number}*{other}" for number, other in zip(row, ordered[rank:], strict=True) if number)])
        for name, row in zip(ordered[:rank], combinations, strict=True)
    ]
    return rank, expressions


def _unexplained(base: BaseParameters, stack: Array) -> float:
    """W = W_base mapping on states that the base parameters were not found with."""
    rest = stack - stack[:, base.independent] @ base.mapping
    return float(np.abs(rest).max() / np.abs(stack).max())


if __name__ == "__main__":
    script(measure)
