# SPDX-License-Identifier: Apache-2.0
"""`trajectory.yaml`: equal to the last bit when read back, and refused by name for another robot or a wrong content."""

from dataclasses import fields, replace

import numpy as np
import pytest
import yaml
from support.robots import panda_arm
from support.simulated import ARM, LIFT

from robot_dyn_id.errors import InputError, MotionError
from robot_dyn_id.excitation import FORMS, Demand, MotionLimits, make_excitation, make_parametrization
from robot_dyn_id.files.spelling import RENAMED
from robot_dyn_id.files.trajectory import StoredExcitation, read_trajectory, write_trajectory
from robot_dyn_id.model.robot import RobotModel

MODEL = panda_arm()
LIMITS = MotionLimits.from_model(MODEL, (15, 7.5, 10, 12.5, 15, 20, 20), 0.9, 0.05, jerk=(1000.0,))
ABOUT = "random motion\nof seed 1: ä"


def stored(form="fourier", model=MODEL, limits=LIMITS, **demand):
    excitation = make_excitation(form, limits, Demand(**{"period": 6.0, "periods": 2, **demand}))
    return StoredExcitation.from_excitation(model, limits, excitation, ABOUT)


def written(path, **options):
    write_trajectory(path, stored(**options))
    return path


def edited(path, change):
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_what_is_read_is_what_was_written_to_the_last_bit(tmp_path, form):
    given = stored(form)
    write_trajectory(tmp_path / "trajectory.yaml", given)
    read = read_trajectory(tmp_path / "trajectory.yaml")
    for one, other in ((read.cycle, given.cycle), (read.limits, given.limits)):
        assert type(one) is type(other)
        for item in fields(one):
            ours, theirs = getattr(one, item.name), getattr(other, item.name)
            assert type(ours) is type(theirs)
            assert np.array_equal(ours, theirs)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    for name in ("about", "robot_name", "urdf_sha256", "joint_names", "periods"):
        assert getattr(read, name) == getattr(given, name)
    t = np.linspace(0.0, given.excitation.duration, 500)
    assert read.excitation.duration == given.excitation.duration
    for ours, theirs in zip(read.excitation.evaluate(t), given.excitation.evaluate(t), strict=True):
        assert np.array_equal(ours, theirs)
    assert read.check_robot(MODEL, LIMITS) == ()


def test_a_person_can_read_it(tmp_path):
    text = written(tmp_path / "trajectory.yaml").read_text()
    assert text.startswith("# q_j(t) = center_j + sum_k a_jk sin(k w t) + b_jk cos(k w t), w = 2 pi / period; a row of")
    assert "form: fourier\n" in text
    assert "period: 6.0\n" in text
    assert "joint_names: [panda_joint1, " in text
    assert "  coefficients:\n  - [" in text
    assert "about: |-\n  random motion\n  of seed 1: ä\n" in text


def test_an_open_spline_and_odd_frequencies_are_kept(tmp_path):
    for form, demand in (
        ("bspline", {"closed": False, "degree": 4}),
        ("multisine", {"frequencies": (0.13, 0.31, 0.5)}),
    ):
        family = make_parametrization(form, LIMITS, Demand(**demand))
        cycle = family.trajectory(family.random(np.random.default_rng(1)))
        write_trajectory(tmp_path / form, StoredExcitation.from_excitation(MODEL, LIMITS, cycle, ""))
        again = read_trajectory(tmp_path / form)
        assert again.periods == 1
        assert np.array_equal(again.excitation.evaluate(np.ones(1)), cycle.evaluate(np.ones(1)))


def test_another_robot_is_refused_by_name_and_another_urdf_of_the_same_joints_is_reported(tmp_path):
    file = read_trajectory(written(tmp_path / "trajectory.yaml"))
    lift = RobotModel.from_urdf(LIFT)
    with pytest.raises(
        InputError,
        match=r"is for the robot panda with the joints panda_joint1, .* not for small with lift, turn: design",
    ):
        file.check_robot(lift, MotionLimits.from_model(lift, (1.0,)))
    commented = replace(MODEL, urdf=MODEL.urdf + "<!-- calibrated -->")
    assert file.check_robot(commented, LIMITS) == ()
    other = replace(MODEL, urdf=MODEL.urdf.replace('<mass value="', '<mass value="1', 1))
    assert other.urdf != MODEL.urdf
    assert [one.code for one in file.check_robot(other, LIMITS)] == ["trajectory_of_other_urdf"]
    slow = MotionLimits.from_model(other, (0.5,))
    with pytest.raises(
        InputError, match="another URDF of panda and does not fit this one: joint panda_joint1: the acc"
    ):
        file.check_robot(other, slow)
    with pytest.raises(MotionError, match=r"^joint panda_joint1: the acceleration"):
        file.check_robot(MODEL, slow)


def test_fewer_joints_of_the_same_robot_are_another_motion(tmp_path):
    file = read_trajectory(written(tmp_path / "trajectory.yaml"))
    two = RobotModel.from_urdf(MODEL.urdf, ["panda_joint1", "panda_joint2"])
    with pytest.raises(InputError, match="not for panda with panda_joint1, panda_joint2: design one for it, or choose"):
        file.check_robot(two, MotionLimits.from_model(two, (1.0,)))


def key(*path, value):
    def change(content):
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = value

    return change


def remove(*path):
    def change(content):
        for step in path[:-1]:
            content = content[step]
        del content[path[-1]]

    return change


OLD_CENTER = next(old for old, new in RENAMED.items() if new == "center")


def rename(old, new, *path):
    def change(content):
        for step in path:
            content = content[step]
        content[new] = content.pop(old)

    return change


def of_version_0_1_0(content):
    del content["format_version"]
    content["format"] = "robot_dyn_id trajectory 1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (remove("format_version"), "format_version is missing, this version of robot_dyn_id reads 2: design the"),
        (of_version_0_1_0, "format_version is missing"),
        (key("format_version", value=3), "format_version is 3, this version of robot_dyn_id reads 2: design the"),
        (rename("center", OLD_CENTER, "motion"), f"motion.{OLD_CENTER}: is now spelled center"),
        (key("format", value="other"), "not a trajectory file of this tool"),
        (key("format", value=["other"]), "not a trajectory file of this tool"),
        (key("perods", value=3), "unknown key 'perods'; did you mean 'periods'?"),
        (key("motion", "peroid", value=3.0), "motion: unknown key 'peroid'; did you mean 'period'?"),
        (key("limits", "yerk", value=[1.0]), "limits: unknown key 'yerk'; did you mean 'jerk'?"),
        (remove("motion", "period"), "motion: period is missing"),
        (remove("robot_name"), "robot_name is missing"),
        (key("form", value="furier"), "form: unknown form of excitation 'furier'; did you mean 'fourier'?"),
        (key("form", value="polynomial"), "motion: unknown key 'period'; known are center, coefficients, length"),
        (key("periods", value=2.5), "periods: must be an integer, not 2.5"),
        (key("periods", value=0), "periods must be at least 1, not 0"),
        (key("motion", "period", value="long"), "motion.period: must be a number, not 'long'"),
        (key("motion", "period", value=-1.0), "a fourier motion needs a positive duration"),
        (key("motion", "period", value=0), "a fourier motion needs a positive duration"),
        (key("motion", "center", value=[0.0]), "coefficients have the shape (7, 10), expected (1, 10)"),
        (key("motion", "coefficients", value=[[0.0] * 10] * 7), "the motion moves no joint: its amplitude is 0"),
        (key("motion", "coefficients", 3, 2, value="much"), "motion.coefficients: must hold numbers, not 'much'"),
        (key("motion", "coefficients", 3, 2, value=True), "motion.coefficients: must hold numbers, not True"),
        (key("motion", "coefficients", 3, 2, value=float("nan")), "positions or derivatives that are not finite"),
        (key("motion", "coefficients", 3, value=[1.0]), "motion.coefficients: its rows have different lengths"),
        (key("motion", "center", 3, value=[0.0]), "motion.center: its rows have different lengths"),
        (
            key("motion", "coefficients", 3, 2, value=0.4),
            "joint panda_joint4: the motion does not begin and end without",
        ),
        (key("motion", value=[1.0]), "motion: must hold keys and values"),
        (key("joint_names", value=["a", "b"]), "one row for each of the 2 joint_names"),
        (key("joint_names", 0, value="a\nb"), "joint_names: 'a\\nb' is not the name of a joint"),
        (key("form", value=["fourier"]), "form: unknown form of excitation ['fourier']"),
        (key("joint_names", value="a"), "joint_names: must be a list, not 'a'"),
        (key("limits", "jerk", value=[1.0]), "one row for each of the 7 joint_names"),
        (key("limits", "prismatic", value=[0] * 7), "limits.prismatic: must hold true or false, not 0"),
    ],
)
def test_a_wrong_content_is_refused_with_the_file_the_key_and_the_reason(tmp_path, change, words):
    path = edited(written(tmp_path / "trajectory.yaml"), change)
    with pytest.raises(InputError) as caught:
        read_trajectory(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_file_of_an_earlier_version_is_refused_once_with_what_to_do(tmp_path):
    path = edited(written(tmp_path / "trajectory.yaml"), of_version_0_1_0)
    with pytest.raises(InputError, match=r"format_version is missing, .*: design the trajectory again"):
        read_trajectory(edited(path, rename("center", OLD_CENTER, "motion")))


def test_a_file_of_this_version_with_a_renamed_key_is_refused_with_the_new_name(tmp_path):
    path = edited(written(tmp_path / "trajectory.yaml"), rename("center", OLD_CENTER, "motion"))
    with pytest.raises(InputError, match=rf"motion\.{OLD_CENTER}: is now spelled center"):
        read_trajectory(path)


def test_a_file_whose_two_versions_contradict_each_other_is_refused(tmp_path):
    path = written(tmp_path / "trajectory.yaml")
    path.write_text(
        path.read_text().replace("format: robot_dyn_id trajectory\n", "format: robot_dyn_id trajectory 1\n")
    )
    with pytest.raises(InputError, match="not a trajectory file"):
        read_trajectory(path)


def test_what_is_no_such_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read the trajectory"):
        read_trajectory(tmp_path / "absent.yaml")
    (tmp_path / "broken.yaml").write_text("a: [")
    with pytest.raises(InputError, match="not a YAML file"):
        read_trajectory(tmp_path / "broken.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(InputError, match="not a trajectory file"):
        read_trajectory(tmp_path / "empty.yaml")
    with pytest.raises(InputError, match="cannot be written"):
        write_trajectory(tmp_path / "nowhere" / "trajectory.yaml", stored())
    arm = RobotModel.from_urdf(ARM)
    with pytest.raises(InputError, match="one row for each of the 3 joint_names"):
        StoredExcitation.from_excitation(arm, MotionLimits.from_model(arm, (1.0,)), stored().excitation, "")
