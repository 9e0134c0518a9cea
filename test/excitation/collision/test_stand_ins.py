# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for missing shapes: what they cover, against the true shapes of published robots; ground and paths."""

import time
from pathlib import Path

import numpy as np
import pytest
from support.robots import URDFS, panda_arm, robot, urdf

from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.collision.clearance import Clearance, choose_path_times
from robot_dyn_id.excitation.collision.obstacles import Scene, Surroundings, parse_obstacles
from robot_dyn_id.excitation.collision.stand_ins import find_capsule_radius
from robot_dyn_id.excitation.execution.approach import PointToPoint
from robot_dyn_id.model.robot import RobotModel

MESHES = [URDFS["panda"].parents[4]]
ARM7 = Path(__file__).resolve().parents[3] / "urdf" / "arm7.urdf"
TABLE = parse_obstacles([{"name": "table", "height": -0.01}])
BOX = parse_obstacles([{"name": "box", "box": [0.3, 0.3, 0.3], "position": [0.5, 0.0, 0.6]}])


def shapeless(model):
    text = model.urdf
    for word in ("collision", "visual"):
        text = (
            text.replace(f"<{word}>", "<ignored>").replace(f"<{word} ", "<ignored ").replace(f"</{word}>", "</ignored>")
        )
    return RobotModel.from_urdf(text, joints=model.joint_names, gravity=model.gravity)


def postures(model, count):
    lower, upper = np.clip(model.limits.lower, -3.1, 3.1), np.clip(model.limits.upper, -3.1, 3.1)
    shares = np.random.default_rng(1).random((len(lower), count))
    return lower[:, None] + (upper - lower)[:, None] * shares


DEPTHS = {"ur10_robot": (0.02, 0.001), "ur5_robot": (0.03, 0.001), "panda": (0.02, 0.02), "so101": (0.02, 0.02)}
"""Depths that the true shapes may have where stand-ins are free [m]: of any pair, and of links in obstacles."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPTHS)
def test_what_stand_ins_pass_is_nearly_free_with_the_true_shapes_and_something_is_passed(name):
    model = panda_arm() if name == "panda" else robot(name)
    true = Clearance(model, Scene(BOX), folders=MESHES)
    stand_ins = Clearance(shapeless(model), Scene(BOX, margin=0.02))
    assert (true.basis, stand_ins.basis) == ("shapes", "stand_ins")
    q = postures(model, 1500)
    passed = (stand_ins.distances(q) >= 0.0).all(axis=0)
    truth = true.distances(q)
    free = (truth >= 0.0).all(axis=0)
    outside = np.array([pair.endswith(("ground", "box")) for pair in true.pairs])
    assert truth[:, passed].min() >= -DEPTHS[name][0]
    assert truth[outside][:, passed].min() >= -DEPTHS[name][1]
    assert (truth[outside] < -0.1).any(), "nothing collides: the test shows nothing"
    assert passed.sum() > 0.3 * free.sum(), "stand-ins so fat that nothing moves"


def test_an_upper_arm_close_to_the_table_is_still_checked_against_it():
    """Its capsule is in the table at the shoulder whatever the posture: it is thinner there."""
    for name in ("ur10_robot", "ur5_robot", "ur3_robot"):
        clearance = Clearance(shapeless(robot(name)), Scene(TABLE, ground=False, margin=0.03))
        assert "upper_arm_link and table" in clearance.pairs
        down = np.zeros((6, 1))
        down[1] = 0.8  # the elbow far below the table
        distance = clearance.distances(down)[clearance.pairs.index("upper_arm_link and table"), 0]
        assert distance < -0.1
        up = np.zeros((6, 1))
        up[1] = -np.pi / 2
        assert clearance.distances(up)[clearance.pairs.index("upper_arm_link and table"), 0] > 0.03


def test_only_what_is_missing_is_replaced_and_named():
    text = ARM7.read_text()
    assert Clearance(RobotModel.from_urdf(text)).stand_ins == ()
    at = text.index('<link name="link3"')
    end = text.index("</link>", at)
    part = text[at:end].replace("collision>", "ignored>").replace("visual>", "other>")
    one = Clearance(RobotModel.from_urdf(text[:at] + part + text[end:]))
    assert (one.basis, one.stand_ins, one.lacking) == ("stand_ins", ("link3",), ())
    assert one.note == "CHECKED WITH STAND-INS for link3"
    assert "no collision geometry: stand-ins for link3" in one.notes
    none = Clearance(RobotModel.from_urdf(text[:at] + part + text[end:]), stand_ins=False)
    assert (none.basis, none.stand_ins, none.lacking) == ("not_checked", (), ("link3",))
    assert none.note == "NOT CHECKED FOR COLLISIONS: no shapes of link3"


def test_a_missing_mesh_is_replaced_and_the_folders_are_named():
    clearance = Clearance(panda_arm(), folders=["/nowhere"])
    assert clearance.basis == "stand_ins" and "panda_link3" in clearance.stand_ins
    first, others = (note for note in clearance.notes if "not found or broken" in note)
    assert "link0.stl" in first and "(searched in /nowhere" in first and first.endswith("a stand-in is added")
    assert "stand-ins for panda_link1, panda_link2, panda_link3" in others


def test_a_robot_of_frames_alone_has_no_stand_ins():
    model = RobotModel.from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    clearance = Clearance(model)
    assert (clearance.basis, clearance.lacking) == ("not_checked", ("b",))


def test_a_radius_follows_from_mass_and_length_within_bounds():
    mass, length, reach = 12.9, 0.612, 1.7
    radius = find_capsule_radius(mass, length, reach) - 0.03
    assert np.pi * radius**2 * (length + 4.0 / 3.0 * radius) == pytest.approx(mass / 500.0)
    assert find_capsule_radius(1e6, length, reach) == pytest.approx(0.15 * reach)
    assert find_capsule_radius(1e-9, length, reach) == pytest.approx(0.05 * reach)
    assert find_capsule_radius(0.0, length, reach) == pytest.approx(0.1 * reach)
    assert find_capsule_radius(0.0, length, 0.0) == 0.0


# --- ground ------------------------------------------------------------------------------------------------------


def test_the_ground_is_an_obstacle_by_default():
    model = RobotModel.from_file(ARM7)
    assert "link7 and ground" in Clearance(model).pairs
    assert not any("ground" in pair for pair in Clearance(model, Scene(ground=False)).pairs)
    assert Clearance(model).obstacles[0].height == 0.0
    assert Clearance(model, Scene(ground=-0.4)).obstacles[0].height == -0.4
    named = parse_obstacles([{"name": "ground", "height": -0.2}])
    assert [obstacle.height for obstacle in Clearance(model, Scene(named)).obstacles] == [-0.2]
    for wrong in ("yes", float("nan"), None):
        with pytest.raises(UsageError, match="ground: must be true, false or a height"):
            Surroundings(wrong)


def test_a_pedestal_below_the_base_frame_moves_the_ground_down():
    text = ARM7.read_text().replace(
        '<link name="link0">',
        '<link name="link0"><collision><origin xyz="0 0 -0.4"/><geometry><box size="0.1 0.1 0.8"/></geometry></collision>',
    )
    clearance = Clearance(RobotModel.from_urdf(text))
    assert clearance.obstacles[0].height == pytest.approx(-0.8)
    assert any(note.startswith("ground: assumed at z = ") for note in clearance.notes)


def test_gravity_does_not_move_the_surface_that_a_base_is_mounted_on():
    (surface,) = Clearance(RobotModel.from_file(ARM7, gravity=(0.0, 0.0, 9.81))).obstacles
    assert (surface.name, surface.height, surface.normal.tolist()) == ("ground", 0.0, [0.0, 0.0, 1.0])


# --- paths -------------------------------------------------------------------------------------------------------


def test_the_path_to_a_start_is_looked_at_everywhere_and_quickly():
    model = panda_arm()
    clearance = Clearance(shapeless(model), Scene(margin=0.02))
    above = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.8, 0.0])
    clear = PointToPoint(above, above + 0.05, 1.0)
    assert clearance.obstruction(clear) == ""
    through = PointToPoint(above, np.array([0.0, 1.6, 0.0, -0.5, 0.0, 1.8, 0.0]), 2.0)
    began = time.process_time()
    hit = clearance.obstruction(through)
    assert time.process_time() - began < 0.5
    assert " and ground overlap by " in hit
    steps = np.abs(np.diff(through.evaluate(choose_path_times(through, model))[0], axis=1)).max()
    assert steps < 0.02


def test_what_overlaps_where_the_robot_stands_may_not_come_deeper():
    """It does stand there: the stand-in is larger than the link. Out of it is allowed, deeper into it is not."""
    model = shapeless(panda_arm())
    clearance = Clearance(model, Scene(margin=0.02))
    low = np.array([0.0, 1.45, 0.0, -0.9, 0.0, 1.8, 0.0])
    assert (clearance.distances(low[:, None]) < 0.0).any()
    up, down = low.copy(), low.copy()
    up[1] -= 0.8
    down[1] += 0.2
    assert clearance.obstruction(PointToPoint(low, up, 1.0)) == ""
    assert " and ground overlap by " in clearance.obstruction(PointToPoint(low, down, 1.0))
    assert clearance.collision(PointToPoint(low, up, 1.0)) != ""


def test_the_small_urdf_of_the_tests_gets_capsules_of_its_masses():
    from support.robots import joint

    model = RobotModel.from_urdf(urdf(joint("a", "base", "l1"), joint("b", "l1", "l2"), links=2))
    clearance = Clearance(model)
    assert clearance.stand_ins == ("base", "l1", "l2") and clearance.lacking == ()
