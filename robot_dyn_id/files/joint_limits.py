# SPDX-License-Identifier: Apache-2.0
"""`joint_limits.yaml` as MoveIt has it: limits of a robot that its URDF does not hold, or that are narrower."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.errors import InputError, suggest_known
from robot_dyn_id.excitation.placeholders import find_placeholder_limits
from robot_dyn_id.model.robot import Limits, RobotModel
from robot_dyn_id.text.yaml import read_yaml

KINDS = ("position", "velocity", "acceleration", "jerk", "effort")

KEYS = tuple(
    key
    for kind in KINDS
    for key in (f"has_{kind}_limits", f"max_{kind}", *(("min_position",) if kind == "position" else ()))
)


ROUNDED = 1e-3
"""Relative difference up to which two limits are the same one, rounded: 3.1416 and pi."""


@dataclass(frozen=True)
class JointLimitsFile:
    """Limits by kind (`max_velocity`, `min_position`, ...) and joint name; only those that the file switches on."""

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, float]:
        """Those of one kind, such as `max_acceleration`."""
        return dict(self.values.get(kind, {}))

    def narrowed(self, model: RobotModel) -> RobotModel:
        """The robot with limits of position, velocity and effort that are the narrower ones of URDF and file.

        A limit of the file takes the place of a placeholder of the URDF, see `find_placeholder_limits`.
        """
        given = model.limits

        unknown = {(one.joint, one.kind) for one in find_placeholder_limits(model, {})}

        def both(key: str, own: Any, narrower: Any) -> Any:
            file = [self.of(key).get(name) for name in model.joint_names]
            kind = key.removeprefix("min_").removeprefix("max_")
            return np.array(
                [
                    o if f is None else (f if (name, kind) in unknown else narrower(o, f))
                    for name, o, f in zip(model.joint_names, own, file, strict=True)
                ]
            )

        limits = Limits(
            both("min_position", given.lower, max),
            both("max_position", given.upper, min),
            both("max_velocity", given.velocity, min),
            both("max_effort", given.effort, min),
        )
        return replace(model, limits=limits)

    def list_wider(self, model: RobotModel) -> list[str]:
        """Limits that are wider than those of the URDF, which count, one line by kind; not those that are rounded."""
        kept = self.narrowed(model).limits
        values = {
            ("min_position", "lower position"): kept.lower,
            ("max_position", "upper position"): kept.upper,
            ("max_velocity", "velocity"): kept.velocity,
            ("max_effort", "effort"): kept.effort,
        }
        lines = []
        for (key, kind), limits in values.items():
            wider = [
                f"{name} {limit:g} (not {given:g})"
                for name, limit in zip(model.joint_names, limits.tolist(), strict=True)
                if not math.isclose(given := self.of(key).get(name, limit), limit, rel_tol=ROUNDED)
            ]
            if wider:
                lines.append(
                    f"{kind} limits of the URDF count, which are narrower than those given: {', '.join(wider)}"
                )
        return lines

    def extended(self, **more: Mapping[str, float]) -> JointLimitsFile:
        """The same with further limits by kind; of two limits of a joint the smaller one counts."""
        values = {kind: dict(limits) for kind, limits in self.values.items()}
        for kind, limits in more.items():
            known = values.setdefault(kind, {})
            known |= {name: min(value, known.get(name, value)) for name, value in limits.items()}
        return JointLimitsFile(values)

    @property
    def known(self) -> dict[str, frozenset[str]]:
        """By kind (`velocity`), the joints that have a limit here."""
        return {kind: frozenset(self.of(f"max_{kind}")) for kind in KINDS}


def read_joint_limits(path: str | Path, model: RobotModel) -> JointLimitsFile:
    """Read the file; joints that the robot does not have, such as those of a gripper, are left out.

    Raises:
        InputError: not readable, no `joint_limits`, an unknown key, a value that is not a number or not positive where
            it must be, or none of the robot's joints.
    """
    content = read_yaml(path, "joint limits")
    joints = content.get("joint_limits") if isinstance(content, dict) else None
    if not isinstance(joints, dict):
        raise InputError(f"{path}: holds no `joint_limits`")
    values: dict[str, dict[str, float]] = {}
    for name in (name for name in model.joint_names if name in joints):
        for kind, value in _of_joint(joints[name], f"{path}: {name}").items():
            values.setdefault(kind, {})[name] = value
    if not values:
        raise InputError(f"{path}: limits none of the joints {', '.join(model.joint_names)}")
    return JointLimitsFile(values)


def _of_joint(entry: Any, label: str) -> dict[str, float]:
    if not isinstance(entry, dict):
        raise InputError(f"{label}: must be keys and values, not {entry!r}")
    for key in entry:
        if key not in KEYS:
            raise InputError(f"{label}: unknown key {key!r}; {suggest_known(str(key), KEYS)}")
    found = {}
    for kind in KINDS:
        if entry.get(f"has_{kind}_limits", False) is not True:
            continue
        for key in (("min_position",) if kind == "position" else ()) + (f"max_{kind}",):
            value = entry.get(key)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
                raise InputError(f"{label}: {key} must be a number, not {value!r}")
            if kind != "position" and not value > 0.0:
                raise InputError(f"{label}: {key} must be positive, not {value:g}")
            found[key] = float(value)
    return found
