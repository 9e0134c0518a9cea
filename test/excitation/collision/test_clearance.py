# SPDX-License-Identifier: Apache-2.0
"""Distances against coal itself, slopes against finite differences, figures that are known, and what is missing."""

import re
from functools import cache

import coal
import numpy as np
import pinocchio
import pytest
from support.robots import PLANAR3R, URDFS, panda_arm, robot

from robot_dyn_id.errors import InputError, ModelError, MotionError, UsageError
from robot_dyn_id.excitation.collision.clearance import Clearance
from robot_dyn_id.excitation.collision.obstacles import Scene, parse_obstacles
from robot_dyn_id.excitation.collision.shapes import read_collision_geometry
from robot_dyn_id.model.kinematics import Kinematics, link_placements
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.screw import compute_body_transforms

MESHES = [URDFS["panda"].parents[4]]
ARM7 = PLANAR3R.parent / "arm7.urdf"
CELL = [
    {"name": "ground", "height": -0.05},
    {"name": "table", "box": [0.5, 0.8, 0.3], "position": [0.6, 0.1, 0.1], "rpy": [0.1, 0.2, 0.3]},
]

SLIDERS = """<robot name="sliders"><link name="base"/>
<link name="a"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<link name="b"><collision><geometry><sphere radius="0.2"/></geometry></collision></link>
<link name="c"><collision><origin xyz="0 0 0.5"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
<joint name="x" type="prismatic"><parent link="base"/><child link="a"/><origin xyz="0 0 1"/><axis xyz="1 0 0"/>
  <limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="y" type="prismatic"><parent link="base"/><child link="b"/><origin xyz="1 0 1"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="z" type="prismatic"><parent link="base"/><child link="c"/><origin xyz="5 0 0"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>"""


@cache
def arm(name):
    return {
        "arm7": lambda: RobotModel.from_file(ARM7),
        "panda": panda_arm,
        "tiago": lambda: RobotModel.from_file(URDFS["tiago"], joints=[f"arm_{i}_joint" for i in range(1, 8)]),
    }.get(name, lambda: robot(name))()


def postures(model, count, seed=1):
    lower, upper = np.clip(model.limits.lower, -3, 3), np.clip(model.limits.upper, -3, 3)
    shares = np.random.default_rng(seed).random((len(lower), count))
    return lower[:, None] + (upper - lower)[:, None] * shares


def by_coal(model, clearance, obstacles, q):
    """Smallest distance of the shapes of each pair, one posture after the other, nothing left out."""
    shapes = read_collision_geometry(model, MESHES).shapes
    solids = {}
    for shape in shapes:
        if shape.vertices is not None:
            mesh = coal.BVHModelOBB()
            mesh.beginModel(0, len(shape.vertices))
            mesh.addVertices(shape.vertices)
            mesh.endModel()
            mesh.buildConvexHull(True, "Qt")
            form = mesh.convex
        else:
            form = getattr(coal, shape.kind.capitalize())(*shape.size)
        solids.setdefault(shape.link, []).append((form, shape.placement))
    truth = np.zeros((len(clearance.pairs), q.shape[1]))
    for k in range(q.shape[1]):
        placed = compute_body_transforms(model, model.coupling @ q[:, k] + model.offset)

        def place(at, placed=placed):
            world = np.eye(4) if at.body < 0 else placed[at.body]
            return coal.Transform3s(world[:3, :3] @ at.rotation, world[:3, :3] @ at.position + world[:3, 3])

        for row, pair in enumerate(clearance.pairs):
            first, second = pair.split(" and ")
            if second == "ground":
                others = [(coal.Halfspace(np.array([0, 0, 1.0]), -0.05), coal.Transform3s())]
            elif second == "table":
                box = obstacles[1]
                others = [(coal.Box(*box.size), coal.Transform3s(box.rotation, box.position))]
            else:
                others = [(form, place(at)) for form, at in solids[second]]
            truth[row, k] = min(
                coal.distance(form, place(at), other, there, coal.DistanceRequest(), coal.DistanceResult())
                for form, at in solids[first]
                for other, there in others
            )
    return truth


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm7", "panda", "tiago", "talos_left_arm", "xarm7"])
def test_distances_are_those_of_coal_and_pruning_changes_none(name):
    model, obstacles = arm(name), parse_obstacles(CELL)
    allowed = [(shape.link, o.name) for shape in read_collision_geometry(model, MESHES).shapes for o in obstacles]
    allowed = allowed if name != "arm7" and name != "panda" else []
    clearance = Clearance(model, Scene(obstacles, allowed=allowed), folders=MESHES, stand_ins=False)
    q = postures(model, 40)
    truth = by_coal(model, clearance, obstacles, q)
    assert clearance.distances(q) == pytest.approx(np.minimum(truth, clearance.within), abs=5e-6)
    everything = clearance.measure(q, np.inf)
    assert everything.values == pytest.approx(truth, abs=5e-6)
    assert np.isfinite(everything.values).all()
    distance, pair = clearance.smallest(q)
    assert distance == pytest.approx(np.minimum(truth.min(axis=0, initial=np.inf), clearance.within), abs=5e-6)
    rows = np.flatnonzero(distance < clearance.within)
    assert truth[pair[rows], rows] == pytest.approx(distance[rows], abs=5e-6)
    assert (truth < 0).any(), "no posture collides: the test does not cover depths"
    assert (truth > clearance.within).any()


@pytest.mark.parametrize(("name", "tolerance"), [("arm7", 2e-3), ("panda", 1e-6), ("ur5_robot", 1e-6), ("xarm7", 1e-5)])
def test_slopes_are_those_of_finite_differences(name, tolerance):
    model = arm(name)
    clearance = Clearance(
        model,
        Scene(parse_obstacles(CELL[1:]), allowed=[("base_link", "table")] if name == "ur5_robot" else []),
        folders=MESHES,
    )
    q, step = postures(model, 30, seed=2), 1e-6
    found = clearance.measure(q)
    # depths are known to 1e-6 only
    inside = (found.values < clearance.within - 1e-4) & (found.values > 1e-4)
    assert inside.sum() > 20
    errors = []
    for joint in range(len(q)):
        shift = np.zeros_like(q)
        shift[joint] = step
        numeric = (clearance.distances(q + shift) - clearance.distances(q - shift)) / (2 * step)
        errors.append(np.abs(numeric - found.gradient[:, joint])[inside])
    assert np.max(errors) < tolerance
    assert np.median(errors) < 1e-8
    weights = np.random.default_rng(0).normal(size=found.values.shape)
    assert clearance.pull_back(q, weights) == pytest.approx(np.einsum("pjn,pn->jn", found.gradient, weights))


def test_the_same_postures_give_the_same_bits_whatever_was_computed_before():
    clearance = Clearance(RobotModel.from_file(ARM7), Scene(parse_obstacles(CELL)))
    q = postures(clearance.model, 50)
    before = clearance.measure(q)
    clearance.measure(q[:, ::-1] + 1e-6)
    after = clearance.measure(q)
    assert (before.values == after.values).all() and (before.slopes == after.slopes).all()


def test_the_bodies_are_where_the_product_of_exponentials_puts_them():
    for name in ("pr2", "panda", "talos_left_arm"):
        model = robot(name)
        q = postures(model, 3)
        poses = Kinematics(model).poses(q)
        for k in range(3):
            truth = compute_body_transforms(model, model.coupling @ q[:, k] + model.offset)
            assert poses.rotation[k, :-1] == pytest.approx(truth[:, :3, :3], abs=1e-12)
            assert poses.position[k, :-1] == pytest.approx(truth[:, :3, 3], abs=1e-12)


def test_links_are_where_pinocchio_puts_them():
    model = panda_arm()
    full = pinocchio.buildModelFromXML(model.urdf)
    data, q = full.createData(), postures(model, 1)[:, 0]
    configuration = pinocchio.neutral(full)
    configuration[:7] = q
    pinocchio.framesForwardKinematics(full, data, configuration)
    poses = Kinematics(model).poses(q[:, None])
    for link, at in link_placements(model).items():
        found = poses.points(np.array([at.body]), at.position[None])[0, 0]
        assert found == pytest.approx(data.oMf[full.getFrameId(link)].translation, abs=1e-12)


def test_known_distances():
    model = RobotModel.from_urdf(SLIDERS)
    clearance = Clearance(model, Scene(parse_obstacles([{"name": "ground", "height": 0.1}])), within=np.inf)
    assert clearance.pairs == ("a and b", "a and c", "b and c", "a and ground", "b and ground", "c and ground")
    q = np.array([[0.0, 0.4, 0.9], [0.0, 0.3, 0.0], [0.0, -0.1, -0.4]])
    values, gradient = clearance.measure(q).values, clearance.measure(q).gradient
    way = np.hypot(1.0 - q[0], q[1])
    assert values[0] == pytest.approx(way - 0.3, abs=1e-9)  # two spheres; the third posture is 0.2 deep
    assert gradient[0] == pytest.approx(np.array([-(1.0 - q[0]) / way, q[1] / way, 0.0 * way]), abs=1e-6)
    assert values[3] == pytest.approx(0.8, abs=1e-9)  # a sphere above the ground
    assert values[5] == pytest.approx(0.3 + q[2], abs=1e-9)  # a box that goes down on it, and into it
    assert gradient[5, 2] == pytest.approx(1.0)
    assert clearance.notes == ()


def test_adjacent_links_and_permanent_contacts_are_left_out_and_noted():
    clearance = Clearance(panda_arm(), folders=MESHES)
    assert not any("panda_link1 and panda_link2" in pair for pair in clearance.pairs)
    assert "panda_link5 and panda_link7: touch in the neutral configuration; not checked" in clearance.notes
    assert "panda_link5 and panda_link7" not in clearance.pairs


@pytest.mark.parametrize(("margin", "added"), [(0.5, 0.0), (1.2, 1.2)])
def test_contact_is_avoided_where_no_motion_keeps_the_margin(margin, added):
    """Distances of a and b are below 1.1 m; also margins beyond the distance at which others saturate are compared."""
    model = RobotModel.from_urdf(SLIDERS.replace('lower="-2" upper="2"', 'lower="-0.1" upper="0.8"'))
    clearance = Clearance(model, Scene(ground=False, margin=margin), stand_ins=False, within=2.0)
    note = f"a and b: closer than {margin:g} m in every configuration; only contact is avoided"
    assert (note in clearance.notes) == (added > 0.0)
    distances = clearance.distances(np.array([[0.7, 0.0, 0.0], [0.0, 0.0, 0.0]]).T)
    np.testing.assert_allclose(distances[clearance.pairs.index("a and b")], added + np.array([0.0, 0.7]), atol=1e-9)
    t, q = np.arange(3.0), np.array([[0.5, 0.8, 0.75], np.zeros(3), np.zeros(3)])
    (contact,) = clearance.encounters(t, q)
    assert (contact.pair, contact.begin, contact.end, contact.time) == ("a and b", 1.0, 2.0, 1.0)
    assert contact.distance == pytest.approx(-0.1, abs=1e-9)
    nearest = clearance.find_nearest(q)
    assert (nearest.pair, nearest.number, nearest.least) == ("a and b", 1, 0.0 if added else margin)
    assert nearest.distance == pytest.approx(-0.1, abs=1e-9)


@pytest.mark.parametrize("name", ["ground", "plate"])
def test_contact_with_surroundings_that_are_always_near_is_avoided(name):
    """A ball on an eccentric, 7 to 13 mm above them."""
    model = RobotModel.from_urdf(
        """<robot name="eccentric"><link name="base"/><link name="ball">
        <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><origin xyz="0.003 0 0"/><geometry><sphere radius="0.05"/></geometry></collision></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="ball"/><axis xyz="0 1 0"/>
        <origin xyz="0 0 0.06"/><limit velocity="1" effort="1"/></joint></robot>"""
    )
    scene = Scene(parse_obstacles([{"name": name, "height": 0.0}]), ground=False, margin=0.02)
    clearance = Clearance(model, scene)
    assert f"ball and {name}: closer than 0.02 m in every configuration; only contact is avoided" in clearance.notes
    nearest = clearance.find_nearest(np.linspace(-3.0, 3.0, 101)[None])
    assert (nearest.pair, nearest.least) == (f"ball and {name}", 0.0)
    assert nearest.distance == pytest.approx(0.007, abs=1e-5)


def test_an_obstacle_that_the_robot_cannot_reach_is_noted():
    """Millimeters in place of meters make a wall far away, and a check that it passes."""
    wall = {"name": "wall", "box": [0.6, 0.2, 0.8], "position": [0.0, 0.7, 0.4]}
    far = {**wall, "box": [600, 200, 800], "position": [0, 700, 400]}
    near, beyond = (Clearance(panda_arm(), Scene(parse_obstacles([one])), folders=MESHES) for one in (wall, far))
    assert not any("wall: at least" in note for note in near.notes)
    (note,) = [note for note in beyond.notes if "wall: at least" in note]
    assert "at least 600 m from the base" in note and "in m" in note
    reach = float(re.search(r"reaches ([\d.]+) m", note).group(1))
    poses = Kinematics(panda_arm()).poses(postures(panda_arm(), 200))
    farthest = np.linalg.norm(poses.points(np.array([6]), np.zeros((1, 3)))[:, 0], axis=1).max()
    assert farthest < reach < 2.0 * farthest
    behind = parse_obstacles([{"name": "rear", "height": -3.0, "normal": [0.0, 1.0, 0.0]}])
    assert behind[0].distance_from_base() == 3.0


def test_a_link_that_is_always_in_an_obstacle_is_an_error_unless_it_is_allowed():
    model = RobotModel.from_file(ARM7)
    floor = parse_obstacles([{"name": "floor", "height": 0.2}])
    with pytest.raises(UsageError, match=r"link1 is inside the obstacle floor in every configuration"):
        Clearance(model, Scene(floor))
    allowed = Clearance(model, Scene(floor, allowed=[("floor", "link1")]))
    assert "link1 and floor" not in allowed.pairs and "link2 and floor" in allowed.pairs
    with pytest.raises(UsageError, match="allowed pair: lnk1 is not a link or obstacle"):
        Clearance(model, Scene(floor, allowed=[("lnk1", "floor")]))
    with pytest.raises(UsageError, match="obstacle link3: the name is already used"):
        Clearance(model, Scene(parse_obstacles([{"name": "link3", "height": -1.0}])))


def test_a_srdf_disables_pairs(tmp_path):
    file = tmp_path / "arm7.srdf"
    file.write_text('<robot name="arm7"><disable_collisions link1="link2" link2="link0" reason="Never"/></robot>')
    model = RobotModel.from_file(ARM7)
    assert set(Clearance(model).pairs) - set(Clearance(model, srdf=file).pairs) == {"link0 and link2"}
    file.write_text("<robot")
    with pytest.raises(InputError, match=r"arm7.srdf: broken XML"):
        Clearance(model, srdf=file)
    with pytest.raises(InputError, match=r"none.srdf: cannot read the SRDF \(No such file"):
        Clearance(model, srdf=tmp_path / "none.srdf")


def mesh_arm(mesh, others=""):
    return RobotModel.from_urdf(
        SLIDERS.replace(
            '<link name="a"><collision><geometry><sphere radius="0.1"/></geometry></collision>',
            f'<link name="a"><collision><geometry><mesh filename="{mesh}" scale="0.1 0.1 0.1"/></geometry></collision>'
            + others,
        )
    )


SPHERE = '<geometry><sphere radius="0.1"/></geometry>'


def test_a_missing_mesh_is_named_and_what_stands_for_it():
    nothing = Clearance(mesh_arm("package://gone/a.stl"))
    missing = "link a: package://gone/a.stl: not found or broken (no folder given); it has no shape"
    assert nothing.notes[0] == missing
    assert not any("a and" in pair for pair in nothing.pairs)
    assert (nothing.basis, nothing.lacking) == ("not_checked", ("a",))  # neither mass nor reach: no capsule either
    assert nothing.note == "NOT CHECKED FOR COLLISIONS: no shapes of a"
    searched = Clearance(mesh_arm("package://gone/a.stl"), folders=["/one", "/two"]).notes[0]
    assert "(searched in /one, /two)" in searched
    rest = Clearance(mesh_arm("package://gone/a.stl", f"<collision>{SPHERE}</collision>"))
    assert rest.notes[0].endswith("; the rest of its collision geometry is used")
    visual = Clearance(mesh_arm("package://gone/a.stl", f"<visual>{SPHERE}</visual>"), within=np.inf)
    assert visual.notes[0].endswith("; its visual geometry is used") and visual.basis == "shapes"
    assert visual.distances(np.zeros((3, 1)))[0, 0] == pytest.approx(0.7)


def test_meshes_are_found_scaled_and_taken_as_their_hulls(tmp_path, monkeypatch):
    # a unit cube that lacks all sides but two: its hull is the cube
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = [(1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6)]
    (tmp_path / "pack" / "meshes").mkdir(parents=True)
    text = "".join("v {} {} {}\n".format(*c) for c in corners) + "".join("f {} {} {}\n".format(*f) for f in faces)
    (tmp_path / "pack" / "meshes" / "a.obj").write_text(text)
    model = mesh_arm("package://pack/meshes/a.obj")
    for folder in (tmp_path, tmp_path / "pack"):
        clearance = Clearance(model, folders=[folder], within=np.inf)
        assert not any("a.obj" in note for note in clearance.notes)
        assert clearance.distances(np.zeros((3, 1)))[0, 0] == pytest.approx(1.0 - 0.1 - 0.2, abs=1e-6)
    manifest = tmp_path / "pack" / "package.xml"
    manifest.write_text("<package><name>another</name></package>")  # the name of the folder counts as well
    assert not any("a.obj" in note for note in Clearance(model, folders=[tmp_path / "pack"]).notes)
    manifest.unlink()
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert not any("a.obj" in note for note in Clearance(model).notes)
    (tmp_path / "pack" / "meshes" / "a.obj").write_text("not a mesh")
    assert "not found or broken" in Clearance(model).notes[0]


def test_a_flat_mesh_is_a_thin_body(tmp_path):
    (tmp_path / "flat.obj").write_text("v 0 -1 -1\nv 0 1 -1\nv 0 1 1\nv 0 -1 1\nf 1 2 3\nf 1 3 4\n")
    clearance = Clearance(mesh_arm("flat.obj"), folders=[tmp_path], within=np.inf)
    assert clearance.distances(np.zeros((3, 1)))[0, 0] == pytest.approx(1.0 - 0.2, abs=1.1e-3)


def test_a_broken_size_or_origin_is_an_error():
    with pytest.raises(ModelError, match=r"link a: the size -0.1 of its sphere"):
        Clearance(RobotModel.from_urdf(SLIDERS.replace('radius="0.1"', 'radius="-0.1"')))
    broken = RobotModel.from_urdf(SLIDERS)
    object.__setattr__(broken, "urdf", SLIDERS.replace('xyz="0 0 0.5"', 'xyz="0 0 nan"'))
    with pytest.raises(ModelError, match=r"link c: xyz '0 0 nan' must be 3 numbers"):
        read_collision_geometry(broken)


def test_a_robot_without_shapes_is_noted():
    bare = RobotModel.from_urdf(SLIDERS.replace("collision", "ignored"))
    clearance = Clearance(bare)
    assert clearance.lacking == ("a", "b", "c") and clearance.basis == "not_checked"
    assert clearance.pairs == () and clearance.notes[-1].startswith("no pair of links or obstacles can be checked")
    assert clearance.distances(np.zeros((3, 4))).shape == (0, 4)
    distance, pair = clearance.smallest(np.zeros((3, 4)))
    assert (distance == clearance.within).all() and (pair == -1).all()


def test_a_colliding_motion_is_reported_with_time_pair_and_depth():
    model = RobotModel.from_urdf(SLIDERS)
    clearance = Clearance(model)
    t = np.linspace(0.0, 4.0, 4001)
    q = np.array([0.8 * np.sin(np.pi * t / 4.0) ** 2, 0.0 * t, 0.0 * t])  # 0.2 from center to center at 2 s
    (found,) = clearance.encounters(t, q)
    assert found.pair == "a and b" and found.time == pytest.approx(2.0) and found.distance == pytest.approx(-0.1)
    touching = 4.0 / np.pi * np.arcsin(np.sqrt(0.7 / 0.8))
    assert (found.begin, found.end) == pytest.approx((touching, 4.0 - touching), abs=2e-3)
    with pytest.raises(MotionError, match=r"a and b overlap by 0.1000 m at 2.000 s"):
        clearance.check(t, q)
    clearance.check(t, 0.8 * q, margin=0.05)  # comes to 0.06 m
    with pytest.raises(MotionError, match=r"a and b are 0.0600 m apart at 2.000 s"):
        clearance.check(t, 0.8 * q, margin=0.07)


def test_no_answer_of_coal_is_taken_on_trust():
    """Depths of cylinders in a box, which coal does not always find: all are finite, and none below its bound."""
    clearance = Clearance(RobotModel.from_file(ARM7), Scene(parse_obstacles(CELL)))
    values = clearance.distances(postures(clearance.model, 2000, seed=3))
    assert np.isfinite(values).all() and values.min() > -0.5
