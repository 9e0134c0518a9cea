# SPDX-License-Identifier: Apache-2.0
"""The robot model: what is read from a URDF or xacro, and what is refused in one line."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.processes import HANG_S, child
from support.robots import (
    LEFT_OUT,
    MIMICKING,
    MIMICS,
    MODELS,
    OBLIQUE,
    URDFS,
    Truth,
    joint,
    ratio,
    robot,
    urdf,
)

import robot_dyn_id.model.urdf as urdf_module
from robot_dyn_id.dynamics.base_parameters import draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.model import xacro_process
from robot_dyn_id.model.kinematics import link_placements
from robot_dyn_id.model.robot import RobotModel, _quiet_parser
from robot_dyn_id.model.urdf import URDF_LIMIT

XACRO = """<?xml version="1.0"?>
<robot name="small" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="2"/>
  <xacro:macro name="body" params="name">
    <link name="${name}"><inertial><mass value="${2 * mass}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  </xacro:macro>
  <link name="base"/>
  <xacro:body name="l1"/>
  <joint name="a" type="continuous"><parent link="base"/><child link="l1"/><axis xyz="0 0 ${-mass}"/></joint>
</robot>"""

ARM = urdf(joint("a", "base", "l1"), joint("b", "l1", "l2", axis="0 1 0"), links=2)


def same(one, other):
    """Whether two models are the same robot, apart from the text they came from."""
    names = ("name", "joint_names", "body_names", "held")
    arrays = ("parent", "rotation", "translation", "axis", "prismatic", "leader", "multiplier", "offset", "gravity")
    return all(getattr(one, name) == getattr(other, name) for name in names) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in (*arrays, "inertial_parameters")
    )


# --- Where the description comes from ----------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_urdf_file_and_its_text_are_the_same_robot(tmp_path, encoding):
    file = tmp_path / "small.urdf"
    file.write_text(OBLIQUE, encoding=encoding)
    expected = RobotModel.from_urdf(OBLIQUE)
    assert same(RobotModel.from_file(file), expected)
    assert same(RobotModel.from_file(str(file)), expected)
    assert same(RobotModel.from_urdf("\ufeff" + OBLIQUE), expected)
    assert RobotModel.from_urdf("\ufeff" + OBLIQUE).urdf == OBLIQUE
    assert same(RobotModel.from_urdf('<?xml version="1.0" encoding="utf-8"?>\n' + OBLIQUE), expected)


@pytest.fixture
def xacro(tmp_path):
    """A file with this text."""
    file = tmp_path / "robot.xacro"

    def written(text):
        file.write_text(text, encoding="utf-8")
        return file

    return written


def test_a_xacro_file_is_expanded(xacro, capfd):
    model = RobotModel.from_file(xacro(XACRO.replace("<link", "${xacro.message('noise') or ''}<link", 1)))
    assert model.inertial_parameters[0] == 4.0
    assert np.array_equal(model.axis, [[0, 0, -1]])
    assert "xacro:macro" not in model.urdf  # what is kept is what other programs read
    assert same(RobotModel.from_urdf(model.urdf), model)
    assert capfd.readouterr() == ("", "")


def test_a_xacro_file_finds_what_lies_in_its_folder(tmp_path):
    parts = XACRO.replace('<link name="base"/>', '<xacro:include filename="base.xacro"/>')
    (tmp_path / "robot.xacro").write_text(parts, encoding="utf-8")
    (tmp_path / "base.xacro").write_text('<robot><link name="base"/></robot>', encoding="utf-8")
    (tmp_path / "whole.xacro").write_text(XACRO, encoding="utf-8")
    assert same(*(RobotModel.from_file(tmp_path / name) for name in ("robot.xacro", "whole.xacro")))


def test_a_file_that_xacro_has_expanded_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(urdf_module, "expand", lambda *arguments: pytest.fail("a process was started"))
    text = ARM.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
    text = text.replace("<link", "<!-- <xacro:body name='${name}'/> --><gazebo a='$(find x)'>${y}</gazebo><link", 1)
    (tmp_path / "robot.urdf").write_text(text, encoding="utf-8")
    for model in (RobotModel.from_file(tmp_path / "robot.urdf"), RobotModel.from_urdf(text)):
        assert model.urdf == text


@pytest.mark.slow
def test_every_published_model_is_read_or_left_out_for_a_reason():
    assert len(URDFS) >= 69
    assert set(MODELS) | set(LEFT_OUT) == set(URDFS)
    for name in MODELS:
        assert robot(name).joint_names, name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ur3", "No name given for the robot"),
        ("iris_simple", "no joint moves"),
        ("quadrotor_base", "no joint moves"),
        ("alex_psyonic_hands", "joint Left_index_q2 mimics 'index_q1', which does not exist"),
    ],
)
def test_models_that_are_left_out_are_refused(name, why):
    assert name in LEFT_OUT
    assert why in refusal_of_file(URDFS[name])


# --- What is read ------------------------------------------------------------------------------------------------


def test_a_joint_with_the_name_of_a_link_can_be_locked():
    whole = RobotModel.from_file(URDFS["so100"])
    arm = RobotModel.from_file(URDFS["so100"], whole.joint_names[:-1])
    assert whole.joint_names[-1] == "gripper" and arm.joint_names == whole.joint_names[:-1]
    assert link_placements(arm)["gripper"].body == 4


def test_joints_of_every_kind_are_read():
    model = RobotModel.from_urdf(OBLIQUE)
    bodies = dict(zip(model.body_names, range(4), strict=True))
    assert set(bodies) == {"turn", "slide", "spin", "branch"}
    assert model.joint_names == model.body_names  # nothing mimics
    parents = {name: int(model.parent[i]) for name, i in bodies.items()}
    assert parents == {"turn": -1, "slide": bodies["turn"], "spin": bodies["slide"], "branch": bodies["turn"]}
    assert [name for name in model.body_names if model.prismatic[bodies[name]]] == ["slide"]
    assert model.slides.tolist() == [name == "slide" for name in model.joint_names]
    assert dict(zip(model.joint_names, model.effort_units, strict=True))["slide"] == "N"
    assert np.allclose(model.axis[bodies["turn"]], np.array([0.3, -0.5, 0.8]) / np.sqrt(0.98), atol=1e-15)
    assert np.allclose(model.axis[bodies["slide"]], np.array([-0.6, 0.2, 0.4]) / np.sqrt(0.56), atol=1e-15)
    assert np.allclose(model.translation, [0.1, -0.2, 0.3], atol=0)


def test_bodies_moved_by_currents_of_unknown_gain_have_no_kilograms():
    model = RobotModel.from_urdf(OBLIQUE)
    kilograms = ("kg", "kg m", "kg m^2")
    for drive, expected in (
        (
            "spin",
            {"turn": kilograms, "slide": kilograms, "branch": kilograms, "spin": ("A s^2/m^2", "A s^2/m", "A s^2")},
        ),
        ("slide", dict.fromkeys(("slide", "spin"), ("A s^2/m", "A s^2", "A s^2 m"))),
        ("turn", dict.fromkeys(model.body_names, ("A s^2/m^2", "A s^2/m", "A s^2"))),
    ):
        driven = replace(model, drive_units={drive: "A"})
        units = {name: driven.inertial_units[10 * body : 10 * body + 10] for body, name in enumerate(model.body_names)}
        for name, (mass, moment, inertia) in expected.items():
            assert units[name] == (mass, *(moment,) * 3, *(inertia,) * 6), name
        efforts = dict(zip(model.joint_names, driven.effort_units, strict=True))
        assert efforts == dict.fromkeys(model.joint_names, "N m") | {"slide": "N"} | {drive: "A"}


def test_inertial_parameters_are_those_of_the_joint_frame():
    upright = '<link name="l1"><inertial><origin xyz="1 2 3"/><mass value="2"/>'
    text = f'<robot name="r"><link name="base"/>{upright}<inertia ixx="10" ixy="0.1" ixz="0.2" iyy="20" iyz="0.3"'
    model = RobotModel.from_urdf(f'{text} izz="30"/></inertial></link>{joint("a", "base", "l1")}</robot>')
    expected = [2, 2, 4, 6, 10 + 2 * 13, 0.1 - 2 * 2, 20 + 2 * 10, 0.2 - 2 * 3, 0.3 - 2 * 6, 30 + 2 * 5]
    assert np.allclose(model.inertial_parameters, expected, rtol=0, atol=1e-13)


def test_links_behind_fixed_joints_are_lumped():
    fixed = urdf(joint("a", "base", "l1"), joint("weld", "l1", "l2", kind="fixed"), links=2)
    single = RobotModel.from_urdf(urdf(joint("a", "base", "l1"), links=1))
    both = RobotModel.from_urdf(fixed)
    assert both.joint_names == ("a",)
    assert both.inertial_parameters[0] == pytest.approx(single.inertial_parameters[0] + 2 * (0.5 + 0.6), abs=1e-15)


def test_limits_are_those_of_the_urdf_and_infinite_where_it_has_none(xacro):
    limits, names = RobotModel.from_urdf(OBLIQUE).limits, RobotModel.from_urdf(OBLIQUE).joint_names
    turn, spin = names.index("turn"), names.index("spin")
    assert [limits.lower[turn], limits.upper[turn], limits.velocity[turn], limits.effort[turn]] == [-2, 3, 4, 5]
    assert [limits.lower[spin], limits.upper[spin]] == [-np.inf, np.inf]
    unlimited = RobotModel.from_file(xacro(XACRO)).limits
    assert [*unlimited.velocity, *unlimited.effort] == [np.inf, np.inf]


def test_mimics_of_mimics_follow_their_first_leader():
    model = RobotModel.from_urdf(MIMICS)
    assert sorted(model.joint_names) == ["a", "d"]
    read = {
        name: (model.joint_names[model.leader[i]], model.multiplier[i], round(model.offset[i], 15))
        for i, name in enumerate(model.body_names)
    }
    assert read == {
        "a": ("a", 1.0, 0.0),
        "b": ("a", -1.5, 0.2),
        "c": ("a", -0.75, 0.0),  # 0.5 (-1.5 a + 0.2) - 0.1
        "d": ("d", 1.0, 0.0),
        "e": ("d", 1.0, 0.0),
        "f": ("d", 2.0, 0.0),
    }
    q = np.array([0.3, -0.7])
    full = model.coupling @ q + model.offset
    by_name = dict(zip(model.joint_names, q, strict=True))
    assert full == pytest.approx([read[n][1] * by_name[read[n][0]] + read[n][2] for n in model.body_names], abs=1e-15)


def test_the_models_that_mimic_are_the_listed_ones():
    assert tuple(name for name in MODELS if len(robot(name).body_names) > len(robot(name).joint_names)) == MIMICKING


# --- A part of the joints, the others held -----------------------------------------------------------------------


def test_joints_are_chosen_by_name_and_keep_the_order_of_the_robot():
    names = robot("panda").joint_names
    model = RobotModel.from_file(URDFS["panda"], joints=[names[4], names[1]])
    assert model.joint_names == model.body_names == (names[1], names[4])
    assert model.held == {
        **{name: 0.0 for name in names if name not in model.joint_names},
        "panda_finger_joint2": 0.0,  # mimics a joint that is held
    }


def test_held_joints_are_at_their_positions():
    held = {"turn": 0.4, "slide": -0.3}
    model = RobotModel.from_urdf(OBLIQUE, joints=["spin", "branch"], held=held)
    assert model.held == held
    motion = draw_random_motion(model, 20, seed=1)
    truth = Truth(model, held).regressor(motion)
    assert ratio(Regressor(model).dense(motion).transpose(2, 1, 0), truth) <= 1e-14


def test_a_continuous_joint_is_held_at_its_angle():
    held = {"spin": 2.5}
    model = RobotModel.from_urdf(OBLIQUE, joints=["turn", "slide", "branch"], held=held)
    motion = draw_random_motion(model, 20, seed=1)
    assert (
        ratio(Regressor(model).torque(motion, model.inertial_parameters).T, Truth(model, held).torque(motion)) < 1e-14
    )


def test_the_mimics_of_a_held_leader_are_held_where_they_follow_it():
    model = RobotModel.from_urdf(MIMICS, joints=["d"], held={"a": 0.4})
    assert set(model.body_names) == {"d", "e", "f"}
    assert model.held == pytest.approx({"a": 0.4, "b": -0.4, "c": -0.3}, abs=1e-15)
    motion = draw_random_motion(model, 20, seed=2)
    truth = Truth(model, {"a": 0.4, "b": -0.4, "c": -0.3})
    assert ratio(Regressor(model).dense(motion).transpose(2, 1, 0), truth.regressor(motion)) <= 1e-14


def test_positions_given_for_mimics_do_not_move_them():
    """A parameter set lists all held joints with their positions, and so can be read back."""
    model = RobotModel.from_urdf(MIMICS, joints=["d"], held={"a": 0.4})
    assert RobotModel.from_urdf(MIMICS, joints=["d"], held=model.held).held == model.held
    assert RobotModel.from_urdf(MIMICS, joints=["d"], held={"a": 0.4, "b": 1.0}).held == model.held


def test_a_mimic_of_a_fixed_joint_stands_at_its_offset():
    text = urdf(
        joint("a", "base", "l1", kind="fixed"),
        joint("b", "l1", "l2", mimic='joint="a" multiplier="3" offset="0.3"'),
        joint("c", "l2", "l3"),
        links=3,
    )
    model = RobotModel.from_urdf(text)
    assert (model.joint_names, model.body_names, model.held) == (("c",), ("c",), {"b": 0.3})


# --- Gravity -----------------------------------------------------------------------------------------------------


def test_gravity_is_that_of_pinocchio_by_default():
    assert np.array_equal(robot("panda").gravity, [0, 0, -9.81])
    assert np.array_equal(RobotModel.from_urdf(ARM, gravity=[1, 2, 3]).gravity, [1, 2, 3])


def test_an_arm_on_the_ceiling_carries_the_opposite_load():
    floor, ceiling = RobotModel.from_urdf(ARM), RobotModel.from_urdf(ARM, gravity=(0, 0, 9.81))
    still = draw_random_motion(floor, 5)
    still = type(still)(still.q, 0 * still.dq, 0 * still.ddq)
    load = Regressor(floor).torque(still, floor.inertial_parameters)
    assert np.abs(load).max() > 1
    assert np.array_equal(Regressor(ceiling).torque(still, ceiling.inertial_parameters), -load)


@pytest.mark.parametrize("gravity", [(0, -9.81), (0, 0, float("nan")), ()], ids=["two numbers", "nan", "none"])
def test_gravity_that_is_no_vector_is_refused(gravity):
    with pytest.raises(UsageError, match=r"gravity \[.*must be 3 numbers"):
        RobotModel.from_urdf(ARM, gravity=gravity)


def test_a_held_position_that_is_no_number_is_refused():
    with pytest.raises(UsageError, match=r"held positions \{'b': inf\}"):
        RobotModel.from_urdf(ARM, joints=["a"], held={"b": float("inf")})


# --- Refusals ----------------------------------------------------------------------------------------------------


def refusal(*arguments, **options):
    """The one line that refuses the text of a robot."""
    return refused(RobotModel.from_urdf, *arguments, **options)


def refusal_of_file(path):
    """The one line that refuses the file of a robot."""
    return refused(RobotModel.from_file, path)


def refused(read, *arguments, **options):
    with pytest.raises(ModelError) as caught:
        read(*arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert caught.value.exit_code == 3
    assert caught.value.__cause__ is None  # no foreign error is shown behind it
    return text


LOOP = joint("c", "l2", "l1")
LIGHT = """<link name="tool"><inertial><mass value="-0.1"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>"""
MIMICKED = joint("b", "l1", "l2", mimic='joint="ghost"')

BROKEN = {
    "broken XML": (ARM.replace("</robot>", ""), "broken XML", "line 1"),
    "other XML": ("<sdf version='1.6'/>", "not a URDF", "<sdf>"),
    "no links": ('<robot name="r"/>', "No link elements"),
    "no joints": ('<robot name="r"><link name="base"/></robot>', "no joint moves"),
    "only fixed joints": (ARM.replace("revolute", "fixed"), "no joint moves"),
    "floating joint": (ARM.replace("revolute", "floating", 1), "joint a is floating"),
    "planar joint": (ARM.replace("revolute", "planar", 1), "joint a is planar"),
    "unknown joint type": (ARM.replace("revolute", "spherical", 1), "[a]", "[spherical]"),
    "closed loop": (ARM.replace("</robot>", LOOP + "</robot>"), "closed loop: link l1 is the child of a and of c"),
    "loop apart": (urdf(joint("a", "base", "l1"), joint("b", "l3", "l2"), joint("c", "l2", "l3")), "its own ancestor"),
    "no parent": (ARM.replace('<parent link="l1"/>', ""), "joint b", "does not exist"),
    "unknown parent": (ARM.replace('parent link="l1"', 'parent link="l9"'), "joint b", "does not exist"),
    "two roots": (urdf(joint("a", "base", "l1"), links=2), "[base]", "[l2]"),
    "two joints of one name": (ARM.replace('name="b"', 'name="a"'), "'a' is not unique"),
    "axis of length zero": (ARM.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'), "joint b", "0 0 0"),
    "mass not a number": (ARM.replace('<mass value="', '<mass value="nan" was="', 1), "[l1]", "inertial"),
    "negative mass": (ARM.replace('<mass value="', '<mass value="-', 1), "link l1 has a negative mass (-"),
    "negative mass behind a fixed joint": (
        ARM.replace("</robot>", f"{joint('f', 'l2', 'tool', kind='fixed')}{LIGHT}</robot>"),
        "link tool has a negative mass (-0.1 kg)",
    ),
    "limits exchanged": (
        ARM.replace('lower="-2" upper="3"', 'lower="3" upper="-2"', 1),
        "limits of joint a are exchanged: lower 3, upper -2",
    ),
    "negative effort limit": (
        ARM.replace('effort="5"', 'effort="-5"', 1),
        "limits of joint a are negative: effort -5",
    ),
    "mimic of nothing": (urdf(joint("a", "base", "l1"), MIMICKED, links=2), "joint b mimics 'ghost'"),
    "mimic of itself": (urdf(joint("a", "base", "l1", mimic='joint="a"'), links=1), "joint a mimics itself"),
    "mimic factor no number": (ARM.replace("</joint>", '<mimic joint="b" multiplier="x"/></joint>', 1), "(x)"),
    "no XML": ("the robot\nis here", "broken XML (syntax error: line 1"),
    "name of a file": (str(URDFS["panda"]), "broken XML"),
    "nothing": ("", "broken XML (no element found"),
    "xacro": (XACRO, "holds xacro (xacro:property), which is expanded only in files"),
    "xacro attribute": (
        ARM.replace("<robot ", '<robot xmlns:xacro="http://any" xacro:x="1" '),
        "holds xacro (xacro:x)",
    ),
    "expression": (ARM.replace('mass value="', 'mass value="${1}', 1), "holds xacro (${1}"),
    "command": (ARM.replace('mass value="', 'mass value="$(eval 1)', 1), "holds xacro ($(eval 1)"),
    "document type": ('<!DOCTYPE robot [<!ENTITY a "b">]>' + ARM, "a document type is not allowed"),
    "surrogate": (ARM.replace("small", "\ud800"), "broken XML"),
    "null": (ARM.replace("small", "\0"), "broken XML"),
    "no text": (b"<robot/>", "expected the text of a URDF"),
    "too long": (ARM + " " * URDF_LIMIT, "longer than 16 million characters"),
    "too deep": (ARM.replace("</robot>", "<a>" * 300 + "</a>" * 300 + "</robot>"), "nested deeper than 200"),
    "too deep by far": ("<a>" * 1_000_000, "nested deeper than 200"),
    "too many elements": (ARM.replace("</robot>", "<a/>" * 60_000 + "</robot>"), "more than 50000 elements"),
    "too many materials": (
        ARM.replace("</robot>", "".join(f'<material name="m{k}"/>' for k in range(1001)) + "</robot>"),
        "1001 materials; at most 1000",
    ),
    "too many attributes": (
        ARM.replace("<link ", "<link " + " ".join(f'a{i}="1"' for i in range(1_000_000)) + " ", 1),
        "an element with more than 100 attributes",
    ),
    "too many links": (urdf(*(joint(f"j{i}", "base", f"l{i}") for i in range(1, 1002)), links=1001), "1002 links"),
}

BROKEN_XACRO = {
    "unknown macro": (XACRO.replace("<xacro:body ", "<xacro:boddy "), "xacro cannot expand it", "boddy"),
    "broken": (XACRO.replace("</robot>", ""), "broken XML", "line"),
    "value": (XACRO.replace("2 * mass", "mass / 0"), "xacro cannot expand it", "division by zero"),
    "missing file": (XACRO.replace("<link name=", '<xacro:include filename="gone"/><link name='), "gone"),
    "missing package": (XACRO.replace("2 * mass", "1}$(find gone)${1"), "needs the ROS package gone"),
    "recursion": (
        XACRO.replace('<link name="${name}">', '<xacro:body name="b"/><link name="${name}">'),
        "call themselves without an end",
    ),
    "memory": (XACRO.replace("2 * mass", "len([0] * 10**9)"), "it needs more than 1024 MiB of memory"),
    "output": (XACRO.replace("2 * mass", "'9' * 2 * 10**7"), "its output is longer than 16777216 characters"),
    "process": (XACRO.replace("2 * mass", "[x for x in range(10**12) if x == -1]"), "it takes longer than 2 s"),
    "computation": (XACRO.replace("2 * mass", "10 ** 10 ** 10"), "it takes longer than 2 s"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_description_is_refused_in_one_line(case, capfd):
    text, *parts = BROKEN[case]
    line = refusal(text)
    assert line.startswith("robot description: ")
    assert [part for part in parts if part not in line] == []
    assert capfd.readouterr() == ("", "")  # the C++ parser does not talk past us


def test_standard_error_stays_where_it_was_after_two_threads_have_read_a_model():
    """As two nodes of one process do, whose log would go to a file that is deleted."""
    entered, left, before = threading.Event(), threading.Event(), os.fstat(2)
    kept = os.dup(2)

    def read_first():
        with _quiet_parser():
            entered.set()
            time.sleep(0.1)
        left.set()

    def read_second():
        entered.wait()
        with _quiet_parser():
            left.wait()

    threads = [threading.Thread(target=read) for read in (read_first, read_second)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.path.samestat(before, os.fstat(2))
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_a_broken_file_is_named(tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text(BROKEN["floating joint"][0], encoding="utf-8")
    assert refusal_of_file(file).startswith(f"{file}: joint a is floating")


@pytest.mark.parametrize("case", BROKEN_XACRO)
def test_a_broken_xacro_file_is_refused_in_one_line(case, xacro, capfd, monkeypatch):
    monkeypatch.setattr(xacro_process, "TIME_LIMIT_S", 2.0 if "longer than 2 s" in BROKEN_XACRO[case][1] else 30.0)
    text, *parts = BROKEN_XACRO[case]
    file = xacro(text)
    line = refusal_of_file(file)
    assert line.startswith(f"{file}: ")
    assert [part for part in parts if part not in line] == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("handler", ["raises", "takes note"])
@pytest.mark.parametrize("delay", [0.0, 0.3])  # while it starts, and in the expression
def test_a_signal_ends_the_expansion_at_once(xacro, number, handler, delay):
    """Interrupt of the process alone, as `ros2 launch` sends it, with the handlers of commands and of nodes."""
    file = xacro(XACRO.replace("2 * mass", "10 ** 10 ** 10"))
    program = f"""
import signal, sys
from robot_dyn_id.model.urdf import RobotDescription
signals = []
def handler(number, frame):
    signals.append(number)
    if {handler == "raises"}:
        raise KeyboardInterrupt
signal.signal({int(number)}, handler)
print("begun", flush=True)
try:
    RobotDescription.from_file({str(file)!r})
except KeyboardInterrupt:
    sys.exit(7 if signals == [{int(number)}] else 0)
"""
    with child([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (expansion := children.read_text().strip()):
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(number)
        assert process.wait(HANG_S) == 7, "the interruption, and not the time limit, ended it"
    assert not Path(f"/proc/{expansion}").exists()


def test_an_unreadable_file_is_named(tmp_path):
    assert refusal_of_file(tmp_path / "gone.urdf") == (
        f"{tmp_path / 'gone.urdf'}: cannot read the robot description (No such file or directory); check the path"
    )
    assert refusal_of_file(tmp_path) == f"{tmp_path}: cannot read the robot description (Is a directory)"
    binary = tmp_path / "mesh.urdf"
    binary.write_bytes(bytes(range(256)))
    assert (
        refusal_of_file(binary)
        == f"{binary}: cannot read the robot description (not a text file; give a file with a robot description)"
    )
    binary.write_bytes(b"")
    assert refusal_of_file(binary).startswith(f"{binary}: broken XML")


def test_what_never_ends_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.urdf")
    for path in ("/dev/zero", tmp_path / "pipe.urdf"):
        assert "cannot read the robot description (not a regular file" in refusal_of_file(path)
    large = tmp_path / "large.urdf"
    with large.open("wb") as file:
        file.truncate(2**40)
    assert refusal_of_file(large) == f"{large}: cannot read the robot description (larger than 16 MiB)"
    for path in ("\0", "~no_such_user/robot.urdf"):
        assert "not the name of a file" in refusal_of_file(path)


def test_unknown_joints_are_refused_with_the_known_ones():
    assert refusal(ARM, joints=["a", "elbow"]).endswith(
        "joint elbow is not a moving joint of the robot; its joints are a, b"
    )
    assert "joint elbow is not a moving joint" in refusal(ARM, held={"elbow": 1.0})
    assert "joint b mimics a" in refusal(MIMICS, joints=["a", "b"])
    assert "no joint moves" in refusal(ARM, joints=[])
