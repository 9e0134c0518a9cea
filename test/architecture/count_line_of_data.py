# SPDX-License-Identifier: Apache-2.0
"""Follow the training recordings through `identify`: modules entered, stays and returns, counted from calls.

Run in the root of a tree: `python test/architecture/count_line_of_data.py`. A call counts if one of its arguments leads
to the training recording, through containers, attributes, bound methods or closures. Generators count once, when they
are called first. Calls one after another in the same module are one stay; a return is a stay in `pipeline.py` after one
elsewhere, that is, a call from `identify` and its helpers that follows work in another module.

It runs with version 0.1.0 too, for comparison. (Structure of the tests: this is a script, not a test.)
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, FunctionType, GeneratorType, MethodType
from typing import Any

import numpy as np

sys.path[:0] = [".", "test"]

DEPTH = 6


def leads_to(value: Any, target: Any, depth: int = DEPTH) -> bool:
    """Whether a value holds the target."""
    if value is target:
        return True
    if depth == 0 or value is None or isinstance(value, str | bytes | int | float | np.ndarray | type):
        return False
    if isinstance(value, MethodType):
        return leads_to(value.__self__, target, depth - 1)
    if isinstance(value, FunctionType):
        parts = [cell.cell_contents for cell in value.__closure__ or () if cell != type(cell)()]
    elif isinstance(value, GeneratorType):
        parts = list(value.gi_frame.f_locals.values()) if value.gi_frame else []
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)[:50]
    elif type(value).__module__.startswith("robot_dyn_id"):
        parts = list(getattr(value, "__dict__", {}).values())
    else:
        return False
    return any(leads_to(part, target, depth - 1) for part in parts)


class Follower:
    """Profile function that notes the module of every call that holds the recording, and the module it came from."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("robot_dyn_id.") or frame.f_lasti > 4:
            return
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [frame.f_locals.get(one) for one in (*names, *code.co_freevars)]
        if not any(leads_to(value, self.target) for value in values):
            return
        caller = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
        self.calls.append((name.removeprefix("robot_dyn_id."), caller.removeprefix("robot_dyn_id.")))


def count(calls: list[tuple[str, str]]) -> dict[str, int]:
    """Stays, modules, and calls made by the pipeline itself after work elsewhere."""
    stays = [name for place, (name, _) in enumerate(calls) if place == 0 or calls[place - 1][0] != name]
    returns = 0
    away = False
    for name, caller in calls:
        if caller.endswith("pipeline") and away:
            returns += 1
        away = not name.endswith("pipeline")
    return {"stays": len(stays), "modules": len(set(stays)), "returns": returns}


def main() -> None:
    """Identify a simulated arm with one training and one held-out recording, and print the figures."""
    if Path("robot_dyn_id/identification").exists():
        from support.simulated import Simulated

        from robot_dyn_id.identification import pipeline
        from robot_dyn_id.identification.settings import Settings
    else:  # 0.1.0
        from robot_dyn_id.settings import Settings
        from simulated import Simulated

        from robot_dyn_id import pipeline
    robot = Simulated()
    training, held_out = robot.record(duration=30.0), robot.record(seed=2, duration=20.0)
    follower = Follower(training)
    sys.setprofile(follower)
    try:
        pipeline.identify([training], [held_out], robot.model, Settings(), "test")
    finally:
        sys.setprofile(None)
    print(count(follower.calls))
    for module in dict.fromkeys(name for name, _ in follower.calls):
        print(" ", module)


if __name__ == "__main__":
    main()
