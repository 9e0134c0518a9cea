# SPDX-License-Identifier: Apache-2.0
"""Identified models in the formats of other tools: the same torque there, and losses are reported."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pinocchio
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.robots import MIMICS, OBLIQUE, PLANAR3R, URDFS, Truth, joint, link, ratio, urdf
from support.sdf_reader import urdf_of
from support.simulated import ARM

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import TERMS, Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import InputError
from robot_dyn_id.export import make_mjcf as to_mjcf
from robot_dyn_id.export import make_sdf as to_sdf
from robot_dyn_id.export import make_urdf as to_urdf
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.model.robot import RobotModel

GRIPPED = urdf(
    joint("a", "base", "l1", axis="0.3 -0.5 0.8"),
    joint("plate", "l1", "l2", kind="fixed"),
    joint("b", "l2", "l3", kind="prismatic", axis="1 0 0"),
    joint("wrist", "l3", "l4", axis="0 1 0"),
    joint("slide", "l4", "l5", kind="prismatic", axis="0 1 1"),
    joint("glass", "l5", "l6", kind="fixed"),
    links=6,
)
"""Two joints with fixed links behind them, then one that turns and one that slides, which may be held."""

STATES = 1000

ROBOTS = {
    "oblique": (OBLIQUE, None, {}),
    "planar3r": (PLANAR3R.read_text(), None, {}),
    "mimics": (MIMICS, None, {}),
    "held tool": (GRIPPED, ("a", "b"), {"wrist": 0.7, "slide": -0.1}),
    "held in between": (GRIPPED, ("a", "wrist"), {"b": 0.4, "slide": 0.2}),
    "panda": (URDFS["panda"].read_text(), tuple(f"panda_joint{i}" for i in range(1, 8)), {"panda_finger_joint1": 0.03}),
    "ur5": (URDFS["ur5_robot"].read_text(), None, {}),
    "talos arm": (URDFS["talos_left_arm"].read_text(), None, {}),
}


def rigid_torque(parameters, motion):
    """Torque of the identified bodies alone, shape (N, n)."""
    regressor = Regressor.from_parameters(parameters)
    return Regressor(regressor.model).torque(motion, parameters.bodies.standard_parameters).T


@pytest.mark.parametrize("name", ROBOTS)
def test_a_written_urdf_reloads_with_the_same_torque(name):
    text, joints, held = ROBOTS[name]
    parameters = parameter_set(text, joints, held)
    assert parameters.bodies.physically_consistent
    exported = to_urdf(parameters)
    model = RobotModel.from_urdf(exported.text, joints=joints, held=held)
    motion = draw_random_motion(model, STATES)
    assert ratio(Truth(model, model.held).torque(motion), rigid_torque(parameters, motion)) < 1e-9
    assert is_consistent(model.inertial_parameters)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_written_sdf_describes_the_same_robot(name):
    """By our own reading of the format: no consumer of it is installed."""
    text, joints, held = ROBOTS[name]
    parameters = parameter_set(text, joints, held, (Viscous(), Coulomb()), gravity=(1.0, -2.0, -9.0))
    read, gravity = urdf_of(to_sdf(parameters).text)
    model = RobotModel.from_urdf(read, joints=list(parameters.robot.joint_names), gravity=gravity)
    assert (model.joint_names, model.body_names) == (parameters.robot.joint_names, parameters.robot.body_names)
    motion = draw_random_motion(Regressor.from_parameters(parameters).model, STATES)
    assert ratio(Truth(model).torque(motion), rigid_torque(parameters, motion)) < 1e-9
    given = Regressor.from_parameters(parameters).model.limits
    np.testing.assert_array_equal(model.limits.lower, given.lower)
    rated = np.isfinite(given.effort) & (given.effort > 0.0)
    np.testing.assert_array_equal(model.limits.effort[rated], given.effort[rated])
    bodies = len(parameters.robot.body_names)
    dynamics = {one.get("name"): one.find("dynamics").attrib for one in ElementTree.fromstring(read).iter("joint")}
    for number, body in enumerate(parameters.robot.body_names):
        assert float(dynamics[body]["damping"]) == parameters.terms.values[number]
        assert float(dynamics[body]["friction"]) == parameters.terms.values[bodies + number]


def test_names_that_sdf_reserves_or_has_twice_are_replaced_and_reported():
    text = ARM
    for old, new in zip(parameter_set(ARM).robot.joint_names, ("base", "x::y", "__r__"), strict=True):
        text = text.replace(f'<joint name="{old}"', f'<joint name="{new}"')
    exported = to_sdf(parameter_set(text))
    model = ElementTree.fromstring(exported.text).find("world/model")
    names = [one.get("name") for one in model if one.tag in ("link", "joint")]
    assert len(names) == len(set(names)) == 8
    assert not [name for name in names if "::" in name or (name.startswith("__") and name.endswith("__"))]
    (found,) = [one for one in exported.findings if one.code == "name_not_exported"]
    assert found.joints == ("base", "x::y", "__r__")
    read, gravity = urdf_of(exported.text)
    motion = draw_random_motion(RobotModel.from_urdf(text), STATES)
    torque = Truth(RobotModel.from_urdf(read, gravity=gravity)).torque(motion)
    assert ratio(torque, rigid_torque(parameter_set(text), motion)) < 1e-9


def test_a_link_of_sdf_has_another_name_than_every_joint():
    text = ARM
    for old, new in zip(parameter_set(ARM).robot.joint_names, ("a", "a_link", "fixed_to_world"), strict=True):
        text = text.replace(f'<joint name="{old}"', f'<joint name="{new}"')
    model = ElementTree.fromstring(to_sdf(parameter_set(text)).text).find("world/model")
    names = [one.get("name") for one in model if one.tag in ("link", "joint")]
    assert len(names) == len(set(names)) == 8


def test_a_tilted_base_is_reported_where_the_format_has_no_gravity():
    tilted, level = (parameter_set(ARM, gravity=vector) for vector in ((1.0, 0.0, -9.75), (0.0, 0.0, -9.81)))
    for form, expected in ((to_urdf, True), (to_mjcf, False), (to_sdf, False)):
        assert ("gravity_not_exported" in {one.code for one in form(tilted).findings}) == expected
        assert "gravity_not_exported" not in {one.code for one in form(level).findings}


def test_everything_else_in_a_urdf_is_kept():
    text = ARM.replace('<link name="base"/>', '<!-- ours --><link name="base"/><material name="red"/><gazebo a="1"/>')
    parameters = parameter_set(text, terms=(Viscous(), Coulomb()))
    before, after = ElementTree.fromstring(text), ElementTree.fromstring(to_urdf(parameters).text)
    assert "<!-- ours -->" in to_urdf(parameters).text
    for root in (before, after):
        for element in [*root.iter("link"), *root.iter("joint")]:
            for part in [part for part in element if part.tag in ("inertial", "dynamics")]:
                element.remove(part)
    same = (ElementTree.canonicalize(ElementTree.tostring(root), strip_text=True) for root in (before, after))
    assert next(same) == next(same)


def test_held_joints_keep_their_own_links():
    text, joints, held = ROBOTS["held tool"]
    exported = to_urdf(parameter_set(text, joints, held))
    ours, theirs = (RobotModel.from_urdf(source) for source in (exported.text, text))
    for name in ("wrist", "slide"):
        body = slice(10 * ours.body_names.index(name), 10 * ours.body_names.index(name) + 10)
        np.testing.assert_array_equal(ours.inertial_parameters[body], theirs.inertial_parameters[body])
    assert exported.findings == ()


def test_held_links_that_weigh_more_than_all_that_was_found_are_emptied_and_named():
    text, joints, held = ROBOTS["held tool"]
    light = 0.1 * RobotModel.from_urdf(text, joints=joints, held=held).inertial_parameters
    parameters = parameter_set(text, joints, held, inertial=light)
    exported = to_urdf(parameters)
    (finding,) = [one for one in exported.findings if one.code == "held_links_emptied"]
    assert finding.joints[1:] == ("wrist", "slide")
    model = RobotModel.from_urdf(exported.text, joints=joints, held=held)
    motion = draw_random_motion(model, 20)
    assert ratio(Truth(model, model.held).torque(motion), rigid_torque(parameters, motion)) < 1e-9


def test_friction_goes_into_dynamics_and_the_rest_is_named():
    values = np.array([1.5, 0.1, 0.25, 2.0, 1.0 / 3.0, -0.5, *range(6)], dtype=float)
    exported = to_urdf(parameter_set(ARM, terms=(Viscous(), Coulomb(), Offset(), RotorInertia()), values=values))
    dynamics = {j.get("name"): j.find("dynamics").attrib for j in ElementTree.fromstring(exported.text).iter("joint")}
    assert float(dynamics["elbow"]["damping"]) == 0.1
    assert float(dynamics["elbow"]["friction"]) == 1.0 / 3.0
    assert "friction" not in dynamics["wrist"]
    joints = {one.message.split()[0]: one.joints for one in exported.findings if one.code == "term_not_exported"}
    assert joints == {
        "coulomb": ("wrist",),
        "offset": ("elbow", "wrist"),  # that of the shoulder is 0
        "rotor_inertia": ("shoulder", "elbow", "wrist"),
    }
    assert "smoothing_not_exported" in {one.code for one in exported.findings}
    reloaded = pinocchio.buildModelFromXML(exported.text)
    np.testing.assert_array_equal(reloaded.damping, [1.5, 0.1, 0.25])


def test_presliding_friction_with_a_negative_level_is_written_with_its_sum():
    """Levels of one friction may be negative; only a sum below zero would drive the joint."""
    levels = np.array([0.8, -0.5, 0.3, 0.0, 0.4, -0.2])
    values = np.concatenate([[0.2, 0.2, -0.9], np.tile(levels, 3)])
    exported = to_urdf(parameter_set(ARM, terms=(Coulomb(), TERMS["dahl"]()), values=values))
    found = [float(holder.get("friction")) for holder in ElementTree.fromstring(exported.text).iter("dynamics")]
    np.testing.assert_allclose(found, [0.2 + levels.sum()] * 2)  # the wrist has none
    (lost,) = (one for one in exported.findings if one.code == "term_not_exported")
    assert lost.joints == ("wrist",)


def test_presliding_friction_is_written_with_its_torque_in_sliding():
    """In a long motion the exported friction is that of the model; what a reversal loses is reported."""
    terms = (Viscous(), Coulomb(), TERMS["dahl"](), TERMS["load_dahl"](), TERMS["saturating_viscous"]())
    levels = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    values = np.concatenate([np.full(3, 0.7), np.full(3, 0.2), np.tile(levels, 3), np.full(18, 0.01), np.full(9, 0.3)])
    parameters = altered(
        parameter_set(ARM, terms=terms, values=values), ranges={"q_max": np.ones(3), "dq_max": np.full(3, 4.0)}
    )
    dynamics = Dynamics.from_parameters(parameters)
    for form, attribute in ((to_urdf, "friction"), (to_mjcf, "frictionloss")):
        exported = form(parameters)
        root = ElementTree.fromstring(exported.text)
        holders = [*root.iter("dynamics")] if form is to_urdf else [*root.iter("joint")]
        found = [float(holder.get(attribute)) for holder in holders]
        np.testing.assert_allclose(found, 0.2 + levels.sum())
        findings = {one.code: one for one in exported.findings}
        assert findings["presliding_not_exported"].joints == ("shoulder", "elbow", "wrist")
        lost = [one for one in exported.findings if one.code == "term_not_exported"]
        assert [one.message.split()[0] for one in lost] == ["load_dahl", "saturating_viscous"]
        share = re.search(r"shoulder \(up to ([0-9.]+) N m", lost[1].message).group(1)
        assert float(share) == pytest.approx(0.3 * (2.0 + 4.0 ** (1 / 3) + np.arctan(40.0)), rel=0.05)
    speed = np.array([2.0, 2.0, 2.0])
    kept = 0.7 * speed + 0.2 + levels.sum()
    left = dynamics.friction(np.zeros(3), speed) - kept
    assert np.all(left > 0.3 * (2.0**0.5 + 2.0 ** (1 / 3)))


class TestInconsistent:
    """Sets of plain least squares: representatives with zeros in most columns."""

    def parameters(self, change=0.0):
        """The base parameters of a real robot, of which one standard deviation too many is taken away."""
        sound = parameter_set(ARM)
        full = np.zeros_like(sound.bodies.standard_parameters)
        full[sound.base.independent] = sound.estimate.values
        full[9] -= change
        return parameter_set(ARM, inertial=full)

    def test_a_urdf_has_the_same_torque_with_masses_near_the_old_ones(self):
        parameters = self.parameters(10.0)
        assert not parameters.bodies.physically_consistent
        exported = to_urdf(parameters)
        assert exported.findings[0].code == "inertia_not_physical"
        assert "joint shoulder" in exported.findings[0].message
        model = RobotModel.from_urdf(exported.text)
        motion = draw_random_motion(model, 20)
        assert ratio(Truth(model).torque(motion), rigid_torque(parameters, motion)) < 1e-9

    def test_mujoco_gets_none(self):
        with pytest.raises(InputError, match=r"MuJoCo refuses .*joint shoulder.*estimator: consistent"):
            to_mjcf(self.parameters(10.0))
        with pytest.raises(InputError, match=r"Gazebo refuses .*joint shoulder.*estimator: consistent"):
            to_sdf(self.parameters(10.0))

    def test_a_link_without_mass_is_named(self):
        massless = ARM
        for name in ("l1", "l2", "l3"):
            massless = re.sub(rf'<link name="{name}">.*?</link>', f'<link name="{name}"/>', massless)
        for form in (to_urdf, to_mjcf, to_sdf):
            with pytest.raises(InputError, match=r"joint \w+: the parameters give its link no mass"):
                form(parameter_set(massless, inertial=np.zeros(30)))


class TestMujoco:
    """Our MJCF as MuJoCo compiles it."""

    @pytest.mark.parametrize("name", ["oblique", "planar3r", "mimics", "held tool", "panda", "ur5"])
    def test_mass_matrix_and_bias_are_ours(self, name):
        mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
        text, joints, held = ROBOTS[name]
        terms = (Viscous(), Coulomb(), RotorInertia())
        parameters = parameter_set(text, joints, held, terms, gravity=(1.0, -2.0, -9.0))
        model = mujoco.MjModel.from_xml_string(to_mjcf(parameters).text)
        data, regressor = mujoco.MjData(model), Regressor.from_parameters(parameters)
        coupling, offset = regressor.model.coupling, regressor.model.offset
        order = [model.joint(name).dofadr[0] for name in parameters.robot.body_names]
        bodies = len(parameters.robot.body_names)
        np.testing.assert_array_equal(model.dof_damping[order], parameters.terms.values[:bodies])
        np.testing.assert_array_equal(model.dof_frictionloss[order], parameters.terms.values[bodies : 2 * bodies])
        rotors = parameters.terms.values[2 * bodies :]
        motion, theirs = draw_random_motion(regressor.model, STATES), []
        for q, dq, ddq in zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True):
            data.qpos[order], data.qvel[order] = coupling @ q + offset, coupling @ dq
            mujoco.mj_forward(model, data)
            accelerated, inertial = np.zeros(model.nv), np.zeros(model.nv)
            accelerated[order] = coupling @ ddq
            mujoco.mj_mulM(model, data, inertial, accelerated)
            torque = inertial[order] + data.qfrc_bias[order]
            theirs.append(coupling.T @ (torque - rotors * (coupling @ ddq)))
        assert ratio(np.array(theirs), rigid_torque(parameters, motion)) < 1e-9

    def test_friction_and_motors_act_as_identified(self):
        """Damping and armature exactly, dry friction as far as MuJoCo's soft constraints allow, and rated efforts."""
        mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
        parameters = parameter_set(ARM, terms=(Viscous(), Coulomb(smoothing_width=0.0), RotorInertia()))
        model = mujoco.MjModel.from_xml_string(to_mjcf(parameters).text)
        data, dynamics = mujoco.MjData(model), Dynamics.from_parameters(parameters)
        motion = draw_random_motion(dynamics.regressor.model, STATES)
        dry = parameters.terms.values[3:6]
        smooth, whole = [], []
        for q, dq, ddq in zip(motion.q.T, motion.dq.T, motion.ddq.T, strict=True):
            data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
            model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
            mujoco.mj_inverse(model, data)
            smooth.append(data.qfrc_inverse.copy())
            model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_LIMIT
            mujoco.mj_inverse(model, data)
            whole.append(data.qfrc_inverse.copy())
        expected = dynamics.inverse_dynamics(motion.q.T, motion.dq.T, motion.ddq.T)
        sliding = dry * np.sign(motion.dq.T)
        assert ratio(np.array(smooth), expected - sliding) < 1e-9
        added, speeds = np.array(whole) - np.array(smooth), motion.dq.T
        assert np.all(np.abs(added) <= dry * (1.0 + 1e-9))
        fast = np.abs(speeds) > 0.5 * np.abs(speeds).max(axis=0)
        assert fast.any(axis=0).all()
        assert np.all((added * np.sign(speeds) >= 0.9 * dry)[fast])
        assert [model.actuator(name).ctrlrange.tolist() for name in parameters.robot.joint_names] == [[-5.0, 5.0]] * 3

    def test_ranges_and_followers(self):
        mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
        model = mujoco.MjModel.from_xml_string(to_mjcf(parameter_set(MIMICS)).text)
        assert model.joint("a").range.tolist() == [-2.0, 3.0]
        assert not model.jnt_limited[model.joint("b").id]
        assert model.neq == len(RobotModel.from_urdf(MIMICS).body_names) - len(RobotModel.from_urdf(MIMICS).joint_names)


class TestCommand:
    """`robot-dyn-id export`."""

    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "arm.urdf").write_text(ARM)
        write_parameters(tmp_path / "parameters.yaml", parameter_set(ARM, terms=(Viscous(), Offset())))
        return tmp_path

    def words(self, folder, **changed):
        options = {
            "robot": folder / "arm.urdf",
            "parameters": folder / "parameters.yaml",
            "format": "urdf",
            "out": folder / "new" / "model",
        } | changed
        return ["export", *(str(word) for key, value in options.items() for word in (f"--{key}", value)), "--json"]

    @pytest.mark.parametrize(("form", "root"), [("urdf", "robot"), ("mjcf", "mujoco"), ("sdf", "sdf")])
    def test_a_file_is_written(self, folder, capfd, form, root):
        assert main(self.words(folder, format=form)) == 0
        answer = json.loads(capfd.readouterr().out)
        assert answer["file"] == str(folder / "new" / "model")
        assert "term_not_exported" in {one["code"] for one in answer["findings"]}
        assert ElementTree.parse(folder / "new" / "model").getroot().tag == root

    def test_bad_inputs_are_one_line_and_write_nothing(self, folder, capfd):
        (folder / "other.urdf").write_text(ARM.replace(link("l1", 0.8), link("l1", 0.9)))
        (folder / "empty.yaml").write_text("")
        for changed, code, words in (
            ({"robot": folder / "other.urdf"}, 3, "another robot than small"),
            ({"parameters": folder / "none.yaml"}, 3, "cannot read the parameters"),
            ({"parameters": folder / "empty.yaml"}, 3, "not a parameters file"),
            ({"format": "step"}, 2, "invalid choice: 'step'"),
            ({"out": folder / "arm.urdf" / "model"}, 3, "is a file; give a folder"),
        ):
            assert main(self.words(folder, **changed)) == code
            printed = capfd.readouterr()
            assert json.loads(printed.out)["error"]["exit_code"] == code
            assert words in printed.err
            assert len(printed.err.splitlines()) == 1
        assert not (folder / "new").exists()
