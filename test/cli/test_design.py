# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id design`: files, JSON, sequential design, wrong usage."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from robot_dyn_id.cli import main
from robot_dyn_id.excitation.design.torques import TorqueModel
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.model.robot import RobotModel

URDFS = Path(__file__).resolve().parents[2] / "urdf"
QUICK = {"search": {"draws": 10, "starts": 1, "finished": 1}, "acceleration": 8.0, "ground": False}
JOINTS = ("joint1", "joint2", "joint3")


def design(capsys, tmp_path, *words, demands=QUICK, robot="planar3r"):
    file = tmp_path / "design.yaml"
    file.write_text(yaml.safe_dump(demands))
    code = main(
        [
            "design",
            "--robot",
            str(URDFS / f"{robot}.urdf"),
            "--out",
            str(tmp_path / "out"),
            "--design",
            str(file),
            *map(str, words),
        ]
    )
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.slow
def test_a_motion_is_written_with_its_margins_and_a_page(capsys, tmp_path):
    code, out, err = design(capsys, tmp_path, "--json", "--verbose", "--periods", 3)
    answer = json.loads(out)
    assert code == 0 and answer["feasible"] and "search from random motions" in err
    assert answer["condition_number"]["scaling"] == "columns" and answer["condition_number"]["value"] > 1.0
    assert (
        answer["objective"]["name"] == "d_optimal" and answer["objective"]["value"] < answer["objective"]["best_random"]
    )
    assert {margin["name"] for margin in answer["margins"]} >= {"acceleration of joint1", "acceleration of joint3"}
    assert all(margin["margin"] >= -1e-9 for margin in answer["margins"])
    model = RobotModel.from_file(URDFS / "planar3r.urdf")
    stored = read_trajectory(answer["trajectory_file"])
    assert stored.periods == 3 and stored.excitation.duration == 30.0 and stored.limits.acceleration[0] == 8.0
    assert stored.check_robot(model, stored.limits) == ()
    page = Path(answer["preview_file"]).read_text()
    assert "planar3r" in page and not re.search(r'(?:src|href)="?http', page)


@pytest.mark.slow
def test_a_motion_for_actuators_has_sweeps_and_steps_and_its_options_remain(capsys, tmp_path):
    code, out, _ = design(capsys, tmp_path, "--json", "--for", "actuators", "--period", 15)
    answer = json.loads(out)
    assert code == 0 and answer["feasible"]
    stored = read_trajectory(answer["trajectory_file"])
    assert stored.excitation.name == "sweep_steps" and stored.excitation.duration == 15.0


@pytest.mark.slow
def test_only_the_named_joints_move(capsys, tmp_path):
    demands = QUICK | {"joints": ["joint1", "joint3"]}
    code, out, _ = design(capsys, tmp_path, "--json", demands=demands)
    assert code == 0
    assert read_trajectory(json.loads(out)["trajectory_file"]).joint_names == ("joint1", "joint3")
    code, _, err = design(capsys, tmp_path, "--force", demands=QUICK | {"joints": ["joint4"]})
    assert code == 3 and "joint4" in err


@pytest.mark.slow
def test_without_json_a_table_is_printed(capsys, tmp_path):
    code, out, _ = design(capsys, tmp_path)
    assert (
        code == 0 and "acceleration of joint2" in out and "random motions: best" in out and "unit-norm columns" in out
    )
    look, check, use = out.partition("\nnext:\n")[2].splitlines()[1::2]
    assert look.strip() == f"open {tmp_path / 'out' / 'preview.html'} in a browser"
    assert f"excite.launch.py params_file:=PARAMETERS.yaml urdf:={URDFS / 'planar3r.urdf'} trajectory:=" in check
    assert check.endswith("dry_run:=true") and f"identify RECORDING --robot {URDFS / 'planar3r.urdf'} --out" in use


@pytest.mark.slow
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
    demands |= {"velocity_scale": 1.0, "margin": 0.0}
    code, out, _ = design(capsys, tmp_path, "--json", "--limits", limits, demands=demands)
    reached = {margin["name"]: margin for margin in json.loads(out)["margins"]}
    assert code == 0
    assert reached["velocity of joint1"]["limit"] in (0.5, -0.5)
    assert reached["position of joint2"]["limit"] in (0.4, -0.5)
    assert abs(reached["acceleration of joint2"]["limit"]) == 3.0
    assert abs(reached["jerk of joint3"]["limit"]) == 50.0
    assert any("joint3: no acceleration limit given" in line for line in json.loads(out)["warnings"])


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
        ({"obstacles": [{"name": "x"}]}, 2, "obstacle x: needs `box`"),
        ({"effort_scale": 3}, 2, "effort_scale must be within 0 and 1"),
        ({"harmonics": 2.5}, 2, "harmonics: must be an integer"),
        ([1], 2, "must hold keys and values"),
    ],
)
def test_wrong_demands_are_refused(capsys, tmp_path, demands, code, words):
    got, out, err = design(capsys, tmp_path, demands=demands)
    assert got == code and words in err and not out
    assert not (tmp_path / "out" / "trajectory.yaml").exists()


@pytest.mark.slow
def test_a_second_motion_targets_what_the_first_one_identified_poorly(capsys, tmp_path):
    from support.parameter_sets import identified_lift

    from robot_dyn_id.files.parameters import write_parameters

    run = tmp_path / "run"
    run.mkdir()
    earlier = identified_lift()
    write_parameters(run / "parameters.yaml", earlier)
    robot = tmp_path / "robot.urdf"
    robot.write_text(earlier.robot.urdf)
    code = main(
        [
            "design",
            "--robot",
            str(robot),
            "--out",
            str(tmp_path / "out"),
            "--after",
            str(run),
            "--json",
            "--acceleration",
            "5",
            "--design",
            str(_quick(tmp_path)),
        ]
    )
    printed = capsys.readouterr()
    assert code == 0, printed.err
    answer = json.loads(printed.out)
    assert answer["objective"]["name"] == "a_optimal"
    assert 0 < len(answer["parameters"]) <= 10
    for row in answer["parameters"]:
        assert row["standard_deviation"] is None or 0.0 < row["predicted"] < row["standard_deviation"]
    demands = tmp_path / "others.yaml"
    demands.write_text(yaml.safe_dump({"joints": ["unheard_of"]}))
    assert (
        main(
            [
                "design",
                "--robot",
                str(robot),
                "--out",
                str(tmp_path / "other"),
                "--after",
                str(run),
                "--design",
                str(demands),
            ]
        )
        == 2
    )
    assert "joints: the earlier identification has " in capsys.readouterr().err
    other = main(["design", "--robot", str(URDFS / "arm7.urdf"), "--out", str(tmp_path / "other"), "--after", str(run)])
    assert other == 3 and "identified" in capsys.readouterr().err


def _quick(tmp_path):
    file = tmp_path / "quick.yaml"
    file.write_text(yaml.safe_dump({"search": QUICK["search"], "effort_scale": 0.0, "ground": False}))
    return file


@pytest.mark.slow
def test_what_cannot_be_kept_writes_nothing(capsys, tmp_path):
    room = {"link": "link3", "lower": [-9.0, 3.0, -9.0], "upper": [9.0, 4.0, 9.0]}
    little = {"search": {"draws": 2, "starts": 1, "finished": 1, "steps": 5}, "harmonics": 3, "effort_scale": 0.0}
    code, _, err = design(capsys, tmp_path, demands={**QUICK, **little, "workspace": room})
    assert code == 3 and "no feasible motion was found" in err
    assert not (tmp_path / "out" / "trajectory.yaml").exists()


# --- collisions, placeholders, margins ----------------------------------------------------------------------------


BARE = URDFS / "logistic2r.urdf"
"""Two joints and masses, but no shapes."""


def changed(tmp_path, old, new):
    text = BARE.read_text()
    assert text.count(old) > 0
    file = tmp_path / "changed.urdf"
    file.write_text(text.replace(old, new))
    return file


def run(capsys, tmp_path, robot, *words, demands=None):
    file = tmp_path / "design.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "search": {"draws": 3, "starts": 1, "finished": 1, "steps": 8},
                "harmonics": 3,
                "period": 20.0,
                **(demands or {}),
            }
        )
    )
    given = ["design", "--robot", str(robot), "--out", str(tmp_path / "out"), "--design", str(file)]
    code = main([*given, *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


DEEP = {"ground": -3.0}
"""Ground that the arm can just reach."""


@pytest.mark.slow
def test_a_robot_without_shapes_is_checked_with_stand_ins_and_says_so(capsys, tmp_path):
    code, out, _ = run(capsys, tmp_path, BARE, "--json", demands=DEEP)
    answer = json.loads(out)
    assert (code, answer["feasible"], answer["collision_check"]) == (0, True, "stand_ins")
    assert answer["stand_ins"] == ["link1", "link2"]
    assert answer["warnings"][0].startswith("CHECKED WITH STAND-INS for link1, link2")
    stored = read_trajectory(answer["trajectory_file"])
    assert stored.collision_check == "stand_ins" and stored.surroundings.ground == -3.0
    page = Path(answer["preview_file"]).read_text()
    assert "CHECKED WITH STAND-INS for link1" in page and '"stand_in":true' in page and '"solid":true' in page


@pytest.mark.slow
def test_without_stand_ins_a_robot_without_shapes_is_not_feasible(capsys, tmp_path):
    code, out, _ = run(capsys, tmp_path, BARE, "--stand-ins", "none", "--json", demands=DEEP)
    answer = json.loads(out)
    assert (code, answer["feasible"], answer["collision_check"], answer["stand_ins"]) == (1, False, "not_checked", [])
    assert answer["warnings"][0].startswith("NOT CHECKED FOR COLLISIONS: no shapes of link1")
    assert read_trajectory(answer["trajectory_file"]).collision_check == "not_checked"
    assert "NOT CHECKED FOR COLLISIONS" in Path(answer["preview_file"]).read_text()
    code, out, _ = run(capsys, tmp_path, BARE, "--clearance", "0", "--force", demands=DEEP)
    assert code == 1 and "NOT CHECKED FOR COLLISIONS: the clearance is 0" in out and "next:" not in out


def test_wrong_stand_ins_and_grounds_are_wrong_usage(capsys, tmp_path):
    assert run(capsys, tmp_path, BARE, "--stand-ins", "nonsense")[0] == 2
    for demands in ({"stand_ins": "nonsense"}, {"ground": "yes"}, {"allowed": ["link1"]}, {"ground": None}):
        code, _, err = run(capsys, tmp_path, BARE, demands=demands)
        assert code == 2 and next(iter(demands)) in err


SPEED = 'velocity="0.5235987755982988" effort="50"'
PLACEHOLDERS = [
    (SPEED, 'velocity="10" effort="50"', "velocity 10 rad/s of joint2", "has_velocity_limits: true\n    max_velocity:"),
    ('effort="50"', 'effort="1000"', "effort 1000 N m of joint2", "has_effort_limits: true\n    max_effort:"),
    (SPEED, 'velocity="0" effort="50"', "velocity 0 rad/s of joint2", "    max_velocity:   # [rad/s]"),
    ('effort="50"', 'effort="0"', "effort 0 N m of joint2", "    max_effort:   # [N m]"),
]


@pytest.mark.parametrize(("old", "new", "words", "lines"), PLACEHOLDERS)
def test_placeholder_limits_are_refused_with_the_lines_to_fill_in(capsys, tmp_path, old, new, words, lines):
    robot = changed(tmp_path, old, new)
    code, out, err = run(capsys, tmp_path, robot, demands=DEEP)
    assert code == 3 and not out and words in err and lines in err and "joint_limits:\n  joint2:\n" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("period", ["0.01", "1e9"])
def test_a_period_that_no_recording_shows_is_wrong_usage(capsys, tmp_path, period):
    code, _, err = run(capsys, tmp_path, BARE, "--period", period, demands=DEEP)
    assert code == 2 and "choose a longer" in err and not (tmp_path / "out").exists()


def test_a_configuration_of_a_robot_brings_its_demands(capsys, tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump({"design": {**QUICK, "seed": 4}, "identification": {"identify": ["joint1"]}}))
    words = ["design", "--robot", str(URDFS / "planar3r.urdf"), "--config", str(file), "--out", str(tmp_path / "out")]
    code = main([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0 and list(answer["posture"]) == ["joint1"] and answer["velocity_scale"] == 0.5
    assert read_trajectory(answer["trajectory_file"]).limits.acceleration.tolist() == [8.0]
    assert main([*words[:-3], "ur5f", *words[-2:]]) == 2 and "no robot of that name" in capsys.readouterr().err


@pytest.mark.slow
def test_a_design_file_replaces_the_demands_of_a_robot_key_by_key(capsys, tmp_path):
    robot, file = tmp_path / "robot.yaml", tmp_path / "own.yaml"
    demands = {**QUICK, "velocity_limit": {"joint1": 1.0, "joint2": 1.2}, "posture": dict.fromkeys(JOINTS, 0.3)}
    robot.write_text(yaml.safe_dump({"design": demands, "identification": {"identify": list(JOINTS)}}))
    file.write_text(yaml.safe_dump({"velocity_limit": {"joint1": 0.8}, "acceleration": {"joint3": 2.0}}))
    words = ["design", "--robot", str(URDFS / "planar3r.urdf"), "--config", str(robot), "--design", str(file)]
    code = main([*words, "--out", str(tmp_path / "out"), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0 and answer["posture"] == dict.fromkeys(JOINTS, 0.3)
    limits = read_trajectory(answer["trajectory_file"]).limits
    assert limits.acceleration.tolist() == [8.0, 8.0, 2.0] and limits.velocity[:2].tolist() == [0.4, 0.6]


@pytest.mark.slow
def test_placeholder_limits_are_cured_by_a_file_or_the_design(capsys, tmp_path):
    robot = changed(tmp_path, SPEED, 'velocity="10" effort="50"')
    limits = tmp_path / "joint_limits.yaml"
    limits.write_text("joint_limits: {joint2: {has_velocity_limits: true, max_velocity: 10.0}}\n")
    assert run(capsys, tmp_path, robot, "--limits", limits, demands=DEEP)[0] == 0  # as the user says so
    demands = {**DEEP, "velocity_limit": {"joint2": 1.5}}
    code, out, _ = run(capsys, tmp_path, robot, "--json", "--force", demands=demands)
    assert code == 0
    assert read_trajectory(json.loads(out)["trajectory_file"]).limits.velocity[1] == pytest.approx(0.5 * 1.5)
    zero = changed(tmp_path, 'effort="50"', 'effort="0"')
    assert run(capsys, tmp_path, zero, "--force", demands={**DEEP, "effort_limit": {"joint2": 60.0}})[0] == 0
    assert run(capsys, tmp_path, zero, "--force", demands={**DEEP, "effort_scale": 0.0})[0] == 0
    assert run(capsys, tmp_path, zero, "--force", demands={**DEEP, "effort_limit": {"joint2": -1.0}})[0] == 2


OWN = {name: {"ground": False} for name in ("logistic2r", "space6r")}
"""Robots that do not stand on ground: a planar arm, and one on a satellite."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic2r", "arm7", "space6r"])
def test_what_is_designed_by_default_is_taken_by_the_executor_by_default(capsys, tmp_path, name):
    from robot_dyn_id.nodes.excitation.settings import ExcitationSettings, make_plan

    robot = URDFS / f"{name}.urdf"
    code, out, err = run(capsys, tmp_path, robot, "--json", demands=OWN.get(name))
    assert code == 0, err
    answer = json.loads(out)
    model = RobotModel.from_file(robot)
    plan = make_plan(model, ExcitationSettings(urdf=str(robot), trajectory=answer["trajectory_file"]))
    t = np.arange(0.0, plan.excitation.duration, 1e-3)
    q, dq, _, _ = plan.excitation.evaluate(t)
    assert (np.abs(dq).max(axis=1) <= 0.5 * model.limits.velocity * (1.0 + 1e-5)).all()
    motion = plan.excitation.evaluate(t)
    needed = np.abs(TorqueModel.from_model(model, 0.1).torque(motion)).max(axis=1)
    assert (needed <= 0.7 * model.limits.effort * (1.0 + 1e-4)).all()
    assert (q.min(axis=1) >= model.limits.lower + 0.05 - 1e-6).all()
    assert (q.max(axis=1) <= model.limits.upper - 0.05 + 1e-6).all()
