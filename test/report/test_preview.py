# SPDX-License-Identifier: Apache-2.0
"""The preview: one page that loads nothing, whose figures are those of forward kinematics and of the motion."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.html_page import Page, plots_of
from support.robots import PLANAR3R, URDFS, panda_arm, robot

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.meshes import simplify
from robot_dyn_id.excitation.collision.obstacles import Scene, parse_obstacles
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.screw import compute_body_transforms
from robot_dyn_id.report.margins import PlannedMotion, limit_rows
from robot_dyn_id.report.preview import PreviewOptions, write_preview

MESHES = [URDFS["panda"].parents[4]]
CELL = [{"name": "ground", "height": -0.4}, {"name": "table <1>", "box": [0.2, 0.2, 0.2], "position": [2, 0, 0]}]


def planned(model, effort=False, samples=1001):
    limits = MotionLimits.from_model(model, (10.0,))
    t = np.linspace(0.0, 10.0, samples)
    q, dq, ddq, _ = make_excitation("fourier", limits, Demand(share=0.5)).evaluate(t)
    return PlannedMotion(t, q, dq, ddq, 0.1 * ddq if effort else None), limits


def page_of(folder, model, motion, **options):
    path = folder / "preview.html"
    write_preview(path, model, motion, PreviewOptions(**options))
    return path.read_text(encoding="utf-8")


def scene_of(text):
    return json.loads(re.search(r'<script type="application/json" id="motion">(.*?)</script>', text, re.S)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm7", "panda", "ur5_robot"])
def test_the_page_is_one_file_that_loads_nothing(name, tmp_path):
    model = {"arm7": lambda: RobotModel.from_file(PLANAR3R.parent / "arm7.urdf"), "panda": panda_arm}.get(
        name, lambda: robot(name)
    )()
    motion, limits = planned(model, effort=True)
    text = page_of(tmp_path, model, motion, limits=limits, folders=MESHES, obstacles=parse_obstacles(CELL))
    page = Page(text)
    assert [file.name for file in tmp_path.iterdir()] == ["preview.html"]
    assert len(text) < 3e6
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "data"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#") and tag not in ("link", "iframe", "object")
    assert not re.search(r"(src|href|url\(|import|fetch|XMLHttp)\W*https?:", text)
    assert page.count("canvas") == 1 and len(plots_of(text)) == 4 * len(model.joint_names)
    for joint in model.joint_names:
        assert joint in page.text
    for word in ("position", "velocity", "acceleration", "effort"):
        assert page.text.count(word) >= len(model.joint_names)


@pytest.mark.slow
def test_its_figures_are_those_of_forward_kinematics(tmp_path):
    model = panda_arm()
    motion, _ = planned(model, samples=3001)
    scene = scene_of(page_of(tmp_path, model, motion, folders=MESHES))
    assert scene["t"][0] == 0.0 and scene["t"][-1] == 10.0 and len(scene["t"]) <= 600
    assert scene["joints"] == list(model.joint_names)
    rows = [int(np.argmin(np.abs(motion.t - t))) for t in scene["t"]]
    assert np.array(scene["q"]) == pytest.approx(motion.q[:, rows].T, abs=1e-6)
    for frame in range(0, len(rows), 37):
        truth = compute_body_transforms(model, model.coupling @ motion.q[:, rows[frame]] + model.offset)
        for pose, placed in zip(scene["poses"][frame], truth, strict=True):
            assert pose[:3] == pytest.approx(placed[:3, 3], abs=1e-6)
            x, y, z, w = pose[3:]
            first = [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)]
            assert first == pytest.approx(placed[:3, 0], abs=1e-5)


def test_faces_of_closed_shapes_look_outwards(tmp_path):
    model = RobotModel.from_file(PLANAR3R.parent / "arm7.urdf")
    motion, _ = planned(model)
    shapes = scene_of(page_of(tmp_path, model, motion, obstacles=parse_obstacles(CELL)))["shapes"]
    assert {shape["link"] for shape in shapes} == {*(f"link{i}" for i in range(8)), "table <1>"}
    for shape in shapes:
        corners = np.array(shape["vertices"]).reshape(-1, 3)
        assert shape["closed"]
        for a, b, c, *_ in shape["faces"]:
            normal = np.cross(corners[b] - corners[a], corners[c] - corners[a])
            assert normal @ (corners[a] - corners.mean(axis=0)) > 0.0


@pytest.mark.slow
def test_a_missing_mesh_is_reported_and_the_joints_are_drawn(tmp_path):
    model = panda_arm()
    motion, _ = planned(model)
    text = page_of(tmp_path, model, motion)
    assert "link panda_link3: package://example-robot-data/robots/panda_description/meshes" in Page(text).text
    assert re.search(r'id="bones" type="checkbox" checked', text)
    assert not re.search(r'id="bones" type="checkbox" checked', page_of(tmp_path, model, motion, folders=MESHES))


@pytest.mark.slow
def test_violated_limits_are_reported_first(tmp_path):
    model = panda_arm()
    motion, limits = planned(model)
    clear = Clearance(model, folders=MESHES)
    good = Page(page_of(tmp_path, model, motion, limits=limits, folders=MESHES))
    assert "NOT CHECKED FOR COLLISIONS" in good.text and "fits" not in good.text
    assert "nothing was checked for collisions" in good.text
    assert good.count("div", "suspect") == 1 and good.count("div", "good") == 0
    fast = PlannedMotion(motion.t, motion.q, 3.0 * motion.dq, motion.ddq)
    bad = Page(page_of(tmp_path, model, fast, limits=limits, folders=MESHES, clearance=clear))
    assert "does not fit" in bad.text and re.search(r"joint panda_joint\d: velocity is [\d.]+ rad/s beyond", bad.text)
    worst = [row for row in limit_rows(model, fast, limits) if row.exceeded]
    assert worst and all(row.margin == pytest.approx(row.upper - np.abs(row.values).max()) for row in worst)
    row = max(limit_rows(model, motion, limits), key=lambda one: one.quantity == "velocity")
    for beyond, exceeded in ((1e-7, False), (1e-5, True)):  # peaks between the samples of a design's search
        assert replace(row, values=np.array([row.upper * (1.0 + beyond)])).exceeded == exceeded
    wall = parse_obstacles([{"name": "wall", "height": -0.05, "normal": [-1, 0, 0]}])
    hit = Clearance(model, Scene(wall, allowed=[("panda_link1", "wall"), ("panda_link0", "wall")]), folders=MESHES)
    text = Page(page_of(tmp_path, model, motion, limits=limits, folders=MESHES, clearance=hit)).text
    assert re.search(r"panda_hand and wall overlap by [\d.]+ m at [\d.]+ s", text)


@pytest.mark.slow
def test_the_smallest_distance_and_its_pair_are_stated(tmp_path):
    model = robot("planar3r")
    motion, limits = planned(model)
    floors = [{"name": "floor", "height": -0.05 * step} for step in range(60, 0, -1)]
    scenes = (Clearance(model, Scene(parse_obstacles([floor]), ground=False)) for floor in floors)
    near = next(one for one in scenes if 0.0 < one.smallest(motion.q, 0.0)[0].min() < one.within)
    distance, pair = near.smallest(motion.q, 0.0)
    at = int(np.argmin(distance))
    text = Page(page_of(tmp_path, model, motion, limits=limits, clearance=near)).text
    stated = f"of {len(near.pairs)} checked pairs the one with the least to spare is {near.pairs[pair[at]]}, "
    stated += f"{distance[at]:.2g} m apart"
    assert f"{stated} at {motion.t[at]:.2f} s" in text and "than 0 m" not in text
    far = Clearance(model, Scene(parse_obstacles([{"name": "floor", "height": -9.0}]), ground=False))
    still = replace(motion, q=0.0 * motion.q)
    assert far.smallest(still.q, 0.0)[1][0] == -1
    text = Page(page_of(tmp_path, model, still, limits=limits, clearance=far)).text
    assert f"all {len(far.pairs)} checked pairs stay {far.within:.3g} m or more apart" in text


def test_markup_in_names_is_text(tmp_path):
    model = RobotModel.from_urdf(PLANAR3R.read_text().replace('"joint1"', '"&lt;/script&gt;&lt;b&gt;"'))
    motion, _ = planned(model)
    text = page_of(tmp_path, model, motion, title="<i>&", obstacles=parse_obstacles(CELL))
    assert Page(text).count("b") == 0 and Page(text).count("i") == 0
    assert scene_of(text)["joints"][0] == "</script><b>"


def test_wrong_motions_are_refused(tmp_path):
    model = robot("planar3r")
    motion, _ = planned(model)
    with pytest.raises(UsageError, match="dq has shape"):
        PlannedMotion(motion.t, motion.q, motion.dq[:2], motion.ddq)
    with pytest.raises(UsageError, match="holds values that are not finite"):
        PlannedMotion(motion.t, motion.q * np.nan, motion.dq, motion.ddq)
    with pytest.raises(UsageError, match="each later than the one before"):
        PlannedMotion(motion.t[::-1], motion.q, motion.dq, motion.ddq)
    with pytest.raises(UsageError, match="3 joints, panda has panda_joint1"):
        write_preview(tmp_path / "p.html", panda_arm(), motion)
    with pytest.raises(InputError, match="cannot be written"):
        write_preview(tmp_path / "no" / "p.html", model, motion)


def test_a_simplified_mesh_stays_near():
    steps = np.linspace(0, 2 * np.pi, 61)[:-1]
    u, v = (grid.reshape(-1) for grid in np.meshgrid(steps, steps))
    torus = np.column_stack([(1 + 0.3 * np.cos(v)) * np.cos(u), (1 + 0.3 * np.cos(v)) * np.sin(u), 0.3 * np.sin(v)])
    number = np.arange(3600).reshape(60, 60)
    a, b, c, d = (np.roll(number, shift, (0, 1)).reshape(-1) for shift in ((0, 0), (0, -1), (-1, -1), (-1, 0)))
    triangles = np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    vertices, kept = simplify(torus, triangles, 900)
    assert 450 < len(kept) <= 900 and kept.max() < len(vertices)
    nearest = np.linalg.norm(vertices[:, None] - torus[None], axis=2).min(axis=1)
    assert nearest.max() < 0.1
    same = simplify(torus, triangles, 10_000)
    assert same[0] is torus and same[1] is triangles
