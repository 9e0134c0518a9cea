"""Errors of an arm with flexible joints identified step by step, over draws of sensor noise; and the plans."""

from __future__ import annotations

import numpy as np
from measuring import Goal, at_most, script

from robot_dyn_id.flexible import pseudo_plan
from robot_dyn_id.papers.flexible2r import ASKED, NAMES, SIDE_BY_SIDE
from robot_dyn_id.papers.flexible2r_arm import ORDERS, arm, experiments, noisy, true_values

DRAWS = 10
WIDTHS = (0.02, 0.002)
"""Velocity within which friction goes through zero [rad/s]."""

OURS = ("improved order", "at once")


def measure() -> list[Goal]:
    print(pseudo_plan(arm()), "\n")
    return [goal for width in WIDTHS for goal in of_width(width)]


def of_width(width: float) -> list[Goal]:
    """Errors of every order with one width of the friction's smoothing."""
    model = arm(width)
    truth, clean, goals = true_values(model), experiments(model), []
    real = np.flatnonzero(truth)
    recorded = [noisy(clean, seed) for seed in range(DRAWS)]
    rms: dict[str, dict[str, float]] = {}
    for order, find in ORDERS.items():
        exact = find(model, clean).values
        worst = 100 * np.max(np.abs(exact[real] / truth[real] - 1.0))
        found = [find(model, draw) for draw in recorded]
        squared = np.sqrt(np.mean([(one.values - truth) ** 2 for one in found], axis=0))
        rms[order] = {model.names[i]: 100 * squared[i] / abs(truth[i]) for i in real}
        print(f"{width:g} rad/s, {order}: worst without noise {worst:.3g} %; rms errors [%] "
              + ", ".join(f"{name} {rms[order][own]:.3g}" for name, own in NAMES.items()))  # fmt: skip
        if order not in OURS:
            continue
        scores = [(one.values - truth) / one.standard_deviations for one in found]
        what = f"{width:g} rad/s, {order}"
        goals += [
            at_most(f"{what}: worst parameter without noise [%]", worst, ASKED["no noise"]),
            *(
                at_most(f"{what}: {name}, rms error [%]", rms[order][own], ASKED[name])
                for name, own in NAMES.items()
                if name in ASKED
            ),
            *(
                at_most(f"{what}: {name} against the paper's order [%]", rms[order][NAMES[name]],
                        rms["paper's order"][NAMES[name]])
                for name in SIDE_BY_SIDE
            ),
            at_most(f"{what}: rms of error / sigma", float(np.sqrt(np.mean(np.square(scores)))), 1.3),
        ]  # fmt: skip
        print(f"{found[-1].plan}\n")
    return goals


if __name__ == "__main__":
    script(measure)
