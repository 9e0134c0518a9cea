"""Errors of an arm with flexible joints identified step by step, over draws of sensor noise; and the plans."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import Goal, at_most, script

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from flexible_arm import experiments, flexible_model, true_values

from robot_dyn_id.flexible import Noise, identify_flexible, pseudo_plan

DRAWS, PERIODS = 10, 10
LIMITS = {"stepwise": 10.0, "at once": np.inf}
ASKED = {"fv": 2.0, "fc": 2.0, "K": 0.1, "mx": 0.2, "Jm": 2.0, "Izz": 8.0}
PAPER_ORDER = {"Izz1": 11.4, "Izz2": 17.1, "mx1": 7.2, "mx2": 1.6, "off1": 93.0, "off2": 10.8}
"""What the paper's own order reached under this noise, on an arm of other parameters [%]."""


def measure() -> list[Goal]:
    model = flexible_model()
    truth, clean = true_values(model), experiments(model)
    root = np.sqrt(PERIODS)
    moving = Noise(q=2e-5 / root, motor_q=1e-4 / root, tau=0.3 / root, motor_tau=3e-3 / root)
    resting = replace(moving, tau=0.03)
    print(pseudo_plan(model), "\n")
    goals = []
    for how, limit in LIMITS.items():
        exact = identify_flexible(model, clean, limit=limit).solution.values
        worst = np.max(np.abs(exact[truth != 0.0] / truth[truth != 0.0] - 1.0))
        goals.append(at_most(f"{how}: worst parameter without noise [%]", 100 * worst, 0.1))
        errors, scores = [], []
        for seed in range(DRAWS):
            noisy = [
                (moving if one.rate else resting).added(one, 100 * seed + number) for number, one in enumerate(clean)
            ]
            found = identify_flexible(model, noisy, limit=limit).solution
            errors.append(found.values - truth)
            scores.append(errors[-1] / found.standard_deviations)
        print(f"{how}, last draw\n{found.plan}\n")
        squared = np.sqrt(np.mean(np.square(errors), axis=0))
        rms = {name: 100 * e / abs(t) for name, e, t in zip(model.names, squared, truth, strict=True) if t}
        goals += [
            at_most(f"{how}: {symbol}{joint}, rms error [%]", rms[f"{symbol}{joint}"], most)
            for symbol, most in ASKED.items()
            for joint in "12"
        ]
        goals += [
            at_most(f"{how}: {name} against the paper's order [%]", rms[name], most)
            for name, most in PAPER_ORDER.items()
        ]
        goals.append(at_most(f"{how}: rms of error / sigma", float(np.sqrt(np.mean(np.square(scores)))), 1.3))
    return goals


if __name__ == "__main__":
    script(measure)
