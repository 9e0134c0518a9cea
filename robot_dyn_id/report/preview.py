# SPDX-License-Identifier: Apache-2.0
"""The preview of a motion: one page that needs nothing else, with the robot in motion and every joint at its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import UNCHECKED, Clearance
from robot_dyn_id.excitation.collision.obstacles import HalfSpace, Obstacle
from robot_dyn_id.excitation.collision.shapes import read_visual_geometry
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.model.kinematics import Kinematics
from robot_dyn_id.model.quaternions import convert_to_quaternions
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.assets import make_page_environment
from robot_dyn_id.report.interactive import PlotSheet, escape_script
from robot_dyn_id.report.margins import PlannedMotion, limit_rows
from robot_dyn_id.report.plots import limit_plot
from robot_dyn_id.report.solids import STAND_IN, draw_shapes
from robot_dyn_id.text.files import write_atomically

FRAMES = 600
"""Postures that the animation is made of, at most; between them it interpolates."""

POSES = 9000
"""Poses of bodies that a page holds, at most."""

POINTS = 500
"""Points of a plotted curve."""

DIGITS = 6
"""Decimal places of what the page holds: micrometres and microradians."""


@dataclass(frozen=True)
class PreviewOptions:
    """Contents of the page besides the motion.

    Attributes:
        limits: limits that the motion is compared with; None: those of the URDF.
        title: title of the page; empty: the robot's name.
        obstacles: obstacles that are shown, in the base frame; ignored if there is a `clearance`, which has its own.
        folders: folders that are searched for meshes of `package://` and relative names.
        clearance: collision check that is applied to the motion.
        margin: distance that the motion has to keep then [m].
        words: result of the collision check in words; empty: that of `clearance`.
        usage: shares of the limits that the motion may use, in words.
    """

    limits: MotionLimits | None = None
    title: str = ""
    obstacles: Sequence[Obstacle] = ()
    folders: Sequence[str | Path] = ()
    clearance: Clearance | None = None
    margin: float = 0.0
    words: str = ""
    usage: str = ""


def write_preview(
    path: Path, model: RobotModel, motion: PlannedMotion, options: PreviewOptions = PreviewOptions()
) -> None:
    """Write the page.

    Args:
        path: path of the file.
        model: robot model.
        motion: motion of its independent joints.
        options: further contents.

    Raises:
        UsageError: the motion has another number of joints than the model.
        InputError: the file cannot be written.
    """
    clearance = options.clearance
    if len(motion.q) != len(model.joint_names):
        raise UsageError(f"motion: {len(motion.q)} joints, {model.name} has {', '.join(model.joint_names)}")
    geometry = read_visual_geometry(model, options.folders)
    stand_ins = tuple(shape for shape in clearance.shapes if shape.stand_in) if clearance else ()
    around = clearance.obstacles if clearance else tuple(options.obstacles)
    rows = limit_rows(model, motion, options.limits)
    notes = (*geometry.notes, *(clearance.notes if clearance else ()))
    shapes = (*geometry.shapes, *stand_ins)
    bodies = {shape.placement.body for shape in shapes}
    encounters, closest = _distances(motion, clearance, options.margin)
    each = len(rows) // len(model.joint_names)
    shown = np.unique(np.linspace(0, len(motion.t) - 1, POINTS).astype(np.int64))
    template, sheet = make_page_environment().get_template("preview.html.j2"), PlotSheet()
    page = template.render(
        title=options.title or f"Motion of {model.name}",
        model=model,
        units=model.position_units,
        rows=rows,
        too_far=[row for row in rows if row.exceeded],
        encounters=encounters,
        closest=closest,
        checked=clearance is not None and bool(clearance.pairs),
        words=options.words or (clearance.note if clearance else UNCHECKED),
        usage=options.usage,
        stand_ins=clearance.stand_ins if clearance else (),
        stand_in_color=f"rgb{STAND_IN}",
        unchecked=clearance is not None and bool(clearance.notes),
        notes=list(dict.fromkeys(notes)),
        bones=not bodies.issuperset(range(len(model.body_names))),
        curves=[
            (
                model.joint_names[i // each],
                [sheet.add(f"limit-{i + k}", limit_plot(motion.t, rows[i + k], shown)) for k in range(each)],
            )
            for i in range(0, len(rows), each)
        ],
        sheet=sheet,
        drawn=len(shown),
        samples=len(motion.t),
        data=escape_script(make_scene(model, motion, around, draw_shapes(shapes, around))),
    )
    write_atomically(path, page)


def _distances(motion: PlannedMotion, clearance: Clearance | None, margin: float) -> tuple[list[str], str]:
    """Pairs that come closer than a minimum distance [m], or else the one with the least to spare, in words."""
    if clearance is None or not clearance.pairs:
        return [], ""
    encounters = clearance.encounters(motion.t, motion.q, margin)
    if encounters:
        return [str(found) for found in encounters], ""
    count, found = len(clearance.pairs), clearance.find_nearest(motion.q)
    if not found.pair:
        return [], f"all {count} checked pairs stay {clearance.within:.3g} m or more apart"
    nearest = f"{found.pair}, {found.distance:.2g} m apart at {motion.t[found.number]:.2f} s"
    return [], f"of {count} checked pairs the one with the least to spare is {nearest}"


def make_scene(
    model: RobotModel, motion: PlannedMotion, obstacles: Sequence[Obstacle], shapes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Content of the animation.

    `t` and `q` of every frame; `poses`: position [m] and orientation (quaternion x y z w) of every body's frame in the
    base frame; `parents` of the bodies; `shapes` in the bodies' frames; `planes`; `center` and `radius` of it all [m].
    """
    count = max(100, min(FRAMES, POSES // len(model.body_names)))
    frames = np.unique(np.linspace(0, len(motion.t) - 1, count).round().astype(np.int64))
    poses = Kinematics(model).poses(motion.q[:, frames])
    rotation, position = poses.rotation[:, :-1], poses.position[:, :-1]
    corners = [position.reshape(-1, 3), np.zeros((1, 3))]
    for shape in shapes:
        local = np.array(shape["vertices"]).reshape(-1, 3)
        few = range(0, len(frames), max(1, len(frames) // 12))
        corners += [local @ poses.rotation[k, shape["body"]].T + poses.position[k, shape["body"]] for k in few]
    everything = np.concatenate(corners)
    low, high = everything.min(axis=0), everything.max(axis=0)
    planes = [
        {"normal": o.normal.tolist(), "height": o.height, "solid": True} for o in obstacles if isinstance(o, HalfSpace)
    ]
    return {
        "t": np.round(motion.t[frames], DIGITS).tolist(),
        "q": np.round(motion.q[:, frames].T, DIGITS).tolist(),
        "joints": list(model.joint_names),
        "bodies": list(model.body_names),
        "parents": model.parent.tolist(),
        "poses": np.round(np.concatenate([position, convert_to_quaternions(rotation)], axis=-1), DIGITS).tolist(),
        "shapes": shapes,
        "planes": planes or [{"normal": [0.0, 0.0, 1.0], "height": 0.0, "solid": False}],
        "center": np.round((low + high) / 2.0, 4).tolist(),
        "radius": max(0.05, round(float(np.linalg.norm(high - low)) / 2.0, 4)),
    }
