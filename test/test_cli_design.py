"""`robot-dyn-id design`: files, JSON, sequential design, wrong usage."""

import json
from pathlib import Path

import pytest
import yaml

from robot_dyn_id.cli import main
from robot_dyn_id.robot import RobotModel
from robot_dyn_id.trajectory_io import read_trajectory

URDFS = Path(__file__).resolve().parents[1] / "urdf"
QUICK = {"search": {"draws": 10, "starts": 1, "finished": 1}, "acceleration": 8.0, "clearance": 0.0}


def design(capsys, tmp_path, *words, demands=QUICK, robot="planar3r"):
    file = tmp_path / "design.yaml"
    file.write_text(yaml.safe_dump(demands))
    code = main(["design", "--robot", str(URDFS / f"{robot}.urdf"), "--out", str(tmp_path / "out"),
                 "--design", str(file), *map(str, words)])  # fmt: skip
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_motion_is_written_with_its_margins_and_a_page(capsys, tmp_path):
    code, out, err = design(capsys, tmp_path, "--json", "--periods", 3)
    answer = json.loads(out)
    assert code == 0 and answer["feasible"] and "start 1 of 1" in err
    assert answer["condition_number"]["scaling"] == "columns" and answer["condition_number"]["value"] > 1.0
    assert (
        answer["objective"]["name"] == "d_optimal" and answer["objective"]["value"] < answer["objective"]["best_random"]
    )
    assert {margin["name"] for margin in answer["margins"]} >= {"acceleration of joint1", "acceleration of joint3"}
    assert all(margin["margin"] >= -1e-9 for margin in answer["margins"])
    model = RobotModel.from_file(URDFS / "planar3r.urdf")
    stored = read_trajectory(answer["trajectory_file"])
    assert stored.periods == 3 and stored.excitation.duration == 30.0 and stored.limits.acceleration[0] == 8.0
    assert stored.matched(model, stored.limits) == ""
    page = Path(answer["preview_file"]).read_text()
    assert "planar3r" in page and "http" not in page.replace("http://www.w3.org", "")


def test_only_the_named_joints_move(capsys, tmp_path):
    demands = QUICK | {"joints": ["joint1", "joint3"]}
    code, out, _ = design(capsys, tmp_path, "--json", demands=demands)
    assert code == 0
    assert read_trajectory(json.loads(out)["trajectory_file"]).joint_names == ("joint1", "joint3")
    code, _, err = design(capsys, tmp_path, "--force", demands=QUICK | {"joints": ["joint4"]})
    assert code == 3 and "joint4" in err


def test_people_read_a_table(capsys, tmp_path):
    code, out, _ = design(capsys, tmp_path)
    assert (
        code == 0 and "acceleration of joint2" in out and "random motions: best" in out and "unit-norm columns" in out
    )


def test_limits_of_moveit_narrow_those_of_the_urdf(capsys, tmp_path):
    limits = tmp_path / "joint_limits.yaml"
    limits.write_text(
        "joint_limits:\n"
        "  joint1: {has_acceleration_limits: true, max_acceleration: 2.0, has_velocity_limits: true, max_velocity: 0.5}\n"
        "  joint2: {has_acceleration_limits: true, max_acceleration: 3.0, has_position_limits: true, min_position: -0.5,"
        " max_position: 0.4}\n"
        "  joint3: {has_acceleration_limits: false, max_acceleration: 9.0, has_jerk_limits: true, max_jerk: 50.0}\n"
        "  gripper: {has_velocity_limits: true, max_velocity: 0.1}\n"
    )
    demands = {key: value for key, value in QUICK.items() if key != "acceleration"}
    code, out, _ = design(capsys, tmp_path, "--json", "--limits", limits, demands=demands)
    reached = {margin["name"]: margin for margin in json.loads(out)["margins"]}
    assert code == 0
    assert reached["velocity of joint1"]["limit"] in (0.5, -0.5)
    assert reached["position of joint2"]["limit"] in (0.4, -0.5)
    assert abs(reached["acceleration of joint2"]["limit"]) == 3.0
    assert abs(reached["jerk of joint3"]["limit"]) == 50.0
    assert any("joint3: no acceleration limit is given" in line for line in json.loads(out)["warnings"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limits: {}", "holds no `joint_limits`"),
        ("joint_limits: {elbow: {}}", "limits none of the joints joint1, joint2, joint3"),
        ("joint_limits: {joint1: {max_speed: 1.0}}", "unknown key 'max_speed'"),
        ("joint_limits: {joint1: {has_velocity_limits: true}}", "max_velocity must be a number, not None"),
        ("joint_limits: {joint1: {has_velocity_limits: true, max_velocity: -1}}", "max_velocity must be positive"),
        (
            f"joint_limits: {{joint1: {{has_velocity_limits: true, max_velocity: {'9' * 400}}}}}",
            "max_velocity must be a number",
        ),
        ("{", "not a YAML file"),
    ],
)
def test_wrong_limits_are_refused(capsys, tmp_path, text, words):
    limits = tmp_path / "joint_limits.yaml"
    limits.write_text(text)
    code, _, err = design(capsys, tmp_path, "--limits", limits)
    assert code == 3 and words in err and str(limits) in err


@pytest.mark.parametrize(
    ("demands", "code", "words"),
    [
        ({"perod": 3.0}, 2, "unknown key 'perod'; did you mean 'period'?"),
        ({"period": "long"}, 2, "period: must be a number, not 'long'"),
        ({"obstacles": [{"name": "x"}]}, 2, "obstacle x: neither `box`"),
        ({"effort_scale": 3}, 2, "effort_scale must be within 0 and 1"),
        ({"harmonics": 2.5}, 2, "harmonics: must be a whole number"),
        ([1], 2, "must hold keys and values"),
    ],
)
def test_wrong_demands_are_refused(capsys, tmp_path, demands, code, words):
    got, out, err = design(capsys, tmp_path, demands=demands)
    assert got == code and words in err and not out
    assert not (tmp_path / "out" / "trajectory.yaml").exists()


def test_a_second_motion_is_for_what_the_first_one_told_badly(capsys, tmp_path):
    from test_parameter_io import identified

    from robot_dyn_id.parameter_io import write_parameters

    run = tmp_path / "run"
    run.mkdir()
    earlier = identified()
    write_parameters(run / "parameters.yaml", earlier)
    robot = tmp_path / "robot.urdf"
    robot.write_text(earlier.urdf)
    code = main(["design", "--robot", str(robot), "--out", str(tmp_path / "out"), "--after", str(run), "--json",
                 "--acceleration", "5", "--clearance", "0", "--design", str(_quick(tmp_path))])  # fmt: skip
    told = capsys.readouterr()
    assert code == 0, told.err
    answer = json.loads(told.out)
    assert answer["objective"]["name"] == "a_optimal"
    assert 0 < len(answer["parameters"]) <= 10
    for row in answer["parameters"]:
        assert row["standard_deviation"] is None or 0.0 < row["predicted"] < row["standard_deviation"]
    demands = tmp_path / "others.yaml"
    demands.write_text(yaml.safe_dump({"joints": ["unheard_of"]}))
    assert main(["design", "--robot", str(robot), "--out", str(tmp_path / "other"), "--after", str(run),
                 "--design", str(demands)]) == 2  # fmt: skip
    assert "joints: the earlier identification has " in capsys.readouterr().err
    other = main(["design", "--robot", str(URDFS / "arm7.urdf"), "--out", str(tmp_path / "other"), "--after", str(run)])
    assert other == 3 and "identified" in capsys.readouterr().err


def _quick(tmp_path):
    file = tmp_path / "quick.yaml"
    file.write_text(yaml.safe_dump({"search": QUICK["search"], "effort_scale": 0.0}))
    return file


def test_what_cannot_be_kept_writes_nothing(capsys, tmp_path):
    room = {"link": "link3", "lower": [-9.0, 3.0, -9.0], "upper": [9.0, 4.0, 9.0]}
    code, _, err = design(capsys, tmp_path, demands={**QUICK, "harmonics": 3, "effort_scale": 0.0, "workspace": room})
    assert code == 3 and "no motion that keeps to everything was found" in err
    assert not (tmp_path / "out" / "trajectory.yaml").exists()
