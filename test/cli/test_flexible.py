# SPDX-License-Identifier: Apache-2.0
"""The command `flexible` as a user gives it: results, files, messages, and every bad input."""

import importlib.util
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.recording_files import joint_state, write_bag

from robot_dyn_id.cli import main
from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.flexible import read_flexible, write_flexible
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.flexible import FlexibleJoint, FlexibleModel, FlexiblePlant, Noise
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.papers.flexible2r.arm import RATIO, list_true_values, make_arm, make_motion_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "flexible_recordings.py"
ROBOT, CONFIG = find_shared_file("urdf/flexible2r.urdf"), find_shared_file("config/identification/flexible2r.yaml")
JOINTS = ("joint1", "joint2")
MODEL = make_arm(0.02)
PLANT = FlexiblePlant(MODEL, list_true_values(MODEL))
POSES = np.reshape(np.meshgrid(np.linspace(0.6, 2.5, 5), np.linspace(-1.7, 1.7, 5)), (2, -1))
QUIET = Noise(q=1e-6, motor_q=1e-5, tau=0.01, motor_tau=1e-4)


def example():
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("flexible_recordings", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flexible")
    for experiment in example().recordings():
        example().write(folder, experiment)
    return folder


@pytest.fixture
def cli(capfd, tmp_path):
    """Run the command in this process on files: exit code, standard output, standard error."""

    def run(*words, config=CONFIG, out=tmp_path / "run"):
        capfd.readouterr()
        where = ("--out", out) if out else ()
        configured = ("--config", config) if config else ()
        code = main([str(word) for word in ("flexible", *words, "--robot", ROBOT, *configured, *where)])
        return code, *capfd.readouterr()

    return run


def trained(data):
    return [data / f"{name}.npz" for name in ("poses", "joint1", "joint2", "both")]


def codes(answer):
    """Codes of the findings of an answer."""
    return [one["code"] for one in answer["findings"]]


def scores(answer):
    """Errors by reported standard deviations."""
    truth = dict(zip(MODEL.names, list_true_values(MODEL), strict=True))
    return {
        one["name"]: (one["value"] - truth[one["name"]]) / one["standard_deviation"]
        for one in answer["parameters"]
        if one["value"] is not None
    }


def configured(folder, **changes):
    """The shipped configuration with changes of its section `flexible`."""
    content = yaml.safe_load(CONFIG.read_text())
    content["flexible"] |= changes
    (folder / "changed.yaml").write_text(yaml.safe_dump(content))
    return folder / "changed.yaml"


def saved(path, source, **changes):
    """A `.npz` with some arrays replaced; None leaves one out."""
    arrays = {**np.load(source), **changes}
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return path


@pytest.mark.slow
def test_known_parameters_come_back_and_hold_on_another_motion(data, cli, tmp_path):
    code, out, printed = cli(*trained(data), "--validate", data / "other.npz", "--json")
    answer = json.loads(out)
    assert (code, answer["verdict"], answer["reasons"], answer["warnings"]) == (0, "good", [], [])
    assert printed in ("", "identifying 24 parameters from 4 experiments\n"), "within a second, no progress is printed"
    errors = np.array(list(scores(answer).values()))
    assert len(errors) == 24
    assert np.abs(errors).max() < 4.5
    assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.4
    assert {one["equation"].split(": ")[1] for one in answer["held_out"]} == {
        f"{kind} of {name}" for kind in ("link", "spring", "motor") for name in JOINTS
    }
    assert max(one["nrmse"] for one in answer["held_out"]) < 0.005
    assert answer["page"] == str(tmp_path / "run" / "report.html")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Arm with flexible joints: good" in page and "Held-out experiments." in page
    assert page.count("data-plot=") == 2 * len(answer["held_out"])
    stored = read_flexible(answer["file"])
    assert [float(x) for x in stored.values] == [one["value"] for one in answer["parameters"]]
    assert stored.data_sources == tuple(str(path) for path in trained(data))
    assert stored.model(RobotDescription.from_file(ROBOT)).names == MODEL.names
    other = tmp_path / "other.urdf"
    other.write_text(ROBOT.read_text().replace('mass value="8"', 'mass value="9"'))
    with pytest.raises(InputError, match="names, inertias, joints or limits differ from those of the one given"):
        stored.model(RobotDescription.from_file(other))


def test_what_is_written_reads_back_to_the_last_bit(data, cli, tmp_path):
    silent = saved(tmp_path / "silent.npz", data / "both.npz", motor_tau=None)
    assert cli(data / "poses.npz", silent, "--validate", data / "other.npz")[0] == 0
    stored = read_flexible(tmp_path / "run" / "flexible.yaml")
    assert stored.unidentified
    assert np.isnan(stored.values).any()
    write_flexible(tmp_path / "again.yaml", stored)
    again = read_flexible(tmp_path / "again.yaml")
    for item in fields(stored):
        if item.name in ("fit", "held_out"):  # with NaN, which is unlike itself
            assert str(getattr(again, item.name)) == str(getattr(stored, item.name))
        else:
            np.testing.assert_equal(getattr(again, item.name), getattr(stored, item.name))
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "run" / "flexible.yaml").read_text()
    assert str(again.plan) == str(stored.plan)


def test_what_is_not_measured_is_named(data, cli, tmp_path):
    silent = saved(tmp_path / "silent.npz", data / "both.npz", motor_tau=None)
    half = np.load(data / "poses.npz")["motor_q"][:, :1]
    poses = saved(tmp_path / "p.npz", data / "poses.npz", motor_q=half, motor_tau=None, motor_joint_names=JOINTS[:1])
    one_motor = saved(
        tmp_path / "one.npz", silent, motor_q=np.load(silent)["motor_q"][:, :1], motor_joint_names=JOINTS[:1]
    )
    code, out, _ = cli(poses, one_motor, "--json")
    answer = json.loads(out)
    assert (code, answer["verdict"]) == (0, "suspect")
    assert answer["unidentified"] == {
        "motor of joint1": "the torque of its motor is not measured",
        "motor of joint2": "the angle of its motor is not measured",
        "spring of joint2": "the angle of its motor is not measured",
    }
    assert codes(answer) == ["nothing_held_out", *("group_not_identified",) * 3]
    assert {one["severity"] for one in answer["findings"]} == {"warning"}
    assert max(map(abs, scores(answer).values())) < 4.5
    assert {"K1", "mx1", "fv2"} <= scores(answer).keys()
    assert not {"K2", "Jm1"} & scores(answer).keys()


def test_a_joint_without_measured_torque_and_motor_is_named(data, cli, tmp_path):
    given = []
    for name in ("poses", "both"):
        arrays = np.load(data / f"{name}.npz")
        tau = np.where([True, False], np.nan, arrays["tau"])
        motor = {key: arrays[key][:, 1:] for key in ("motor_q", "motor_tau")}
        given.append(
            saved(tmp_path / f"{name}.npz", data / f"{name}.npz", tau=tau, motor_joint_names=JOINTS[1:], **motor)
        )
    code, out, _ = cli(*given, "--json")
    answer = json.loads(out)
    assert code == 0
    (finding,) = [one for one in answer["findings"] if one["code"] == "flexible_joint_not_identified"]
    assert (finding["severity"], finding["joints"]) == ("warning", ["joint1"])


def test_without_json_a_table_is_printed(data, cli):
    code, out, _ = cli(*trained(data), "--validate", data / "other.npz")
    assert code == 0
    lines = out.splitlines()
    assert "1. motor of joint1, motor of joint2" in lines
    assert any(line.startswith("K1 ") and line.endswith("N m/rad") for line in lines)
    assert any(line.startswith("other.npz: spring of joint2") and line.endswith("%") for line in lines)
    assert "verdict: good" in lines


def test_a_model_that_does_not_fit_another_recording_is_bad(data, cli, tmp_path):
    loaded = saved(tmp_path / "loaded.npz", data / "other.npz", tau=2.0 * np.load(data / "other.npz")["tau"])
    code, out, _ = cli(*trained(data), "--validate", loaded, "--json")
    answer = json.loads(out)
    assert (code, answer["verdict"]) == (1, "bad")
    errors = [one for one in answer["findings"] if one["severity"] == "error"]
    assert errors[0]["code"] == "held_out_error"
    assert errors[0]["message"].startswith("held-out error of the link equations is 5")


@pytest.mark.parametrize(
    ("lacks", "kinds"), [({"motor_tau": None}, ("motor",)), ({"motor_q": None, "motor_tau": None}, ("spring", "motor"))]
)
def test_parameters_without_a_held_out_equation_keep_the_verdict_from_good(data, cli, tmp_path, lacks, kinds):
    other = saved(tmp_path / "other.npz", data / "other.npz", **lacks)
    code, out, _ = cli(*trained(data), "--validate", other, "--json")
    answer = json.loads(out)
    assert (code, answer["verdict"]) == (0, "suspect")
    assert [(one["code"], one["message"]) for one in answer["findings"]] == [
        ("equations_not_validated", f"the held-out data determine no {kind} equation") for kind in kinds
    ]


def test_the_plan_before_anything_is_recorded(cli, tmp_path):
    code, out, _ = cli("--plan", "--json", out=None)
    answer = json.loads(out)
    assert code == 0
    assert answer["plan"]["unidentifiable"] == []
    groups = {group for step in answer["plan"]["steps"] for group in step["groups"]}
    assert groups == {group.name for group in MODEL.groups}
    assert {"static", "all joints moving"} <= set(answer["experiments"])
    assert answer["least_experiments"] == ["all joints moving"]
    code, out, _ = cli("--plan", "--limit", "inf", out=None)
    assert code == 0
    assert "\n2. " not in out
    assert "experiments of this plan: static; joint1 moving; joint2 moving; all joints moving" in out


def cut_out(name, fast, begin, count, step):
    """A part of a motion that rests at neither end, not periodic, from samples at 5 kHz."""
    part = slice(begin, begin + count * step, step)
    sides = (getattr(fast, side)[:, part] for side in ("q", "tau", "motor_q", "motor_tau"))
    return replace(
        PLANT.poses(name, np.zeros((2, 1))),
        **dict(zip(("q", "tau", "motor_q", "motor_tau"), sides, strict=True)),
        rate=5000.0 / step,
    )


@pytest.fixture(scope="module")
def fast():
    return PLANT.along("fast", make_motion_of(JOINTS), 5.0, 5000.0)


def recorded(path, experiment, later=None):
    """A part of a motion as a table, or as a bag: motors report currents, 0.3 ms after the joints, on their own topic."""
    t = np.arange(experiment.q.shape[1]) / experiment.rate
    if path.suffix == ".csv":
        header = ",".join(
            ["t", *(f"{side}_{name}" for side in ("q", "tau", "motor_q", "motor_tau") for name in JOINTS)]
        )
        table = np.vstack([t, experiment.q, experiment.tau, experiment.motor_q, experiment.motor_tau]).T
        np.savetxt(path, table, "%.17g", ",", header=header, comments="")
        return path
    stamps = [int(1e9 * x) + 10**18 for x in t]
    links = [
        (stamp, joint_state(stamp, JOINTS, q, effort=tau))
        for stamp, q, tau in zip(stamps, experiment.q.T, experiment.tau.T, strict=True)
    ]
    motors = [
        (stamp + 300_000, joint_state(stamp + 300_000, JOINTS[::-1], q[::-1], effort=tau[::-1] / 0.05))
        for stamp, q, tau in zip(stamps, later.motor_q.T, later.motor_tau.T, strict=True)
    ]
    return write_bag(path, links, others=[("/motors", "sensor_msgs/msg/JointState", motors)])


def test_motors_recorded_like_further_joints(data, cli, tmp_path):
    names = {"joint1": "motor_a", "joint2": "motor_b"}
    joints = {name: {"ratio": 101, "motor": motor} for name, motor in names.items()}
    paths = []
    for name in ("poses", "both"):
        arrays = dict(np.load(data / f"{name}.npz"))
        for side in ("q", "tau"):
            arrays[side] = np.column_stack(
                [arrays[side][:, 0], arrays.pop(f"motor_{side}")[:, ::-1], arrays[side][:, 1]]
            )
        arrays["joint_names"] = np.array(["joint1", "motor_b", "motor_a", "joint2"])
        np.savez(tmp_path / f"{name}.npz", **arrays)
        paths.append(tmp_path / f"{name}.npz")
    code, out, _ = cli(*paths, "--json", config=configured(tmp_path, joints=joints))
    answer = json.loads(out)
    assert (code, answer["unidentified"], codes(answer)) == (0, {}, ["nothing_held_out"])
    apart = data / "poses.npz", data / "both.npz", "--json"  # under the names of their joints: as good
    for out, config in (("a", CONFIG), ("b", configured(tmp_path, joints=joints))):
        there = json.loads(cli(*apart, out=tmp_path / out, config=config)[1])
        assert answer["parameters"] == there["parameters"]


@pytest.mark.parametrize("kind", [".csv", ""], ids=["csv", "bag"])
def test_other_formats_and_motions_that_rest_at_neither_end(fast, cli, tmp_path, kind):
    """2.1 s from the middle of a motion, at 500 Hz; poses from a table that the configuration says to be static."""
    parts = [QUIET.added(cut_out("part", fast, begin, 1050, 10), 1) for begin in (5000, 5003)]
    motion = recorded(tmp_path / f"motion{kind}", *(parts if not kind else parts[:1]))
    poses = replace(QUIET.added(PLANT.poses("poses", POSES), 2), rate=1.0)
    recorded(tmp_path / "poses.csv", poses)
    joints = {name: {"ratio": RATIO, **({} if kind else {"torque_constant": 0.05})} for name in JOINTS}
    config = configured(tmp_path, joints=joints, motor_topic="/motors", experiments={"poses.csv": {"static": True}})
    topic = () if kind else ("--topic", "/joint_states")
    code, out, _ = cli(tmp_path / "poses.csv", motion, *topic, "--json", config=config)
    answer = json.loads(out)
    assert (code, answer["unidentified"], codes(answer)) == (0, {}, ["nothing_held_out"])
    found = {one["name"]: one["value"] for one in answer["parameters"]}
    truth = dict(zip(MODEL.names, list_true_values(MODEL), strict=True))
    for name in ("mx1", "mx2", "K1", "K2", "fv1", "fv2", "fc1", "fc2", "Jm1", "Jm2", "Izz1", "Izz2", "fvm1", "fcm2"):
        assert found[name] == pytest.approx(truth[name], rel=0.02), name
    assert max(map(abs, scores(answer).values())) < 6.0


def test_motion_in_one_direction_separates_offsets_and_friction_poorly(fast, cli, tmp_path):
    poses = replace(PLANT.poses("poses", POSES), rate=1.0)
    recorded(tmp_path / "poses.csv", QUIET.added(poses, 2))
    recorded(tmp_path / "upward.csv", QUIET.added(cut_out("part", fast, 2500, 1050, 10), 1))
    config = configured(tmp_path, experiments={"poses.csv": {"static": True}})
    code, out, _ = cli(tmp_path / "poses.csv", tmp_path / "upward.csv", "--json", config=config)
    answer = json.loads(out)
    assert (code, answer["verdict"]) == (0, "suspect")
    found = [one["message"] for one in answer["findings"] if one["code"] == "condition_number_high"]
    assert any(message.startswith("motor of joint1: ") for message in found)
    assert max(map(abs, scores(answer).values())) < 4.5


def test_a_gap_makes_two_experiments_of_a_recording(data, fast, cli, tmp_path):
    part = QUIET.added(cut_out("part", fast, 5000, 1050, 10), 1)
    channels = {side: getattr(part, side).T for side in ("q", "tau", "motor_q", "motor_tau")}
    t = np.arange(1050) / 500.0
    t[600:] += 3.0
    np.savez(tmp_path / "torn.npz", t=t, joint_names=np.array(JOINTS), **channels)
    code, out, _ = cli(data / "poses.npz", tmp_path / "torn.npz", "--json")
    answer = json.loads(out)
    assert code == 0
    (finding,) = [one for one in answer["findings"] if one["code"] == "clock_gaps"]
    assert (finding["severity"], finding["message"]) == ("info", "torn.npz: 2 pieces, as its clock has gaps")
    assert {one["equation"].partition(":")[0] for one in answer["fit"]} >= {"torn.npz [1]", "torn.npz [2]"}


def test_unused_configuration_entries_are_reported(data, cli, tmp_path):
    config = configured(tmp_path, experiments={"Both.npz": {"periodic": True}})
    config.write_text(config.read_text() + "estimator: ols\n")
    code, out, _ = cli(*trained(data), "--json", config=config)
    assert code == 0
    messages = [one["message"] for one in json.loads(out)["findings"] if one["code"] == "configuration_unused"]
    assert messages == [
        "the configuration's estimator: not used for flexible joints",
        "flexible.experiments: Both.npz: not among the data",
    ]


def slow(folder):
    """Both joints move no faster than the smoothing width."""
    shown = PLANT.along("lazy", draw_random_fourier(MODEL.model, 3, period=10.0, share=0.005), 10.0, 100.0)
    np.savez(folder / "lazy.npz", t=np.arange(1000) / 100.0, q=shown.q.T, tau=shown.tau.T, joint_names=np.array(JOINTS))
    return folder / "lazy.npz"


@pytest.mark.slow
def test_motions_that_are_too_slow_say_which_speed_is_needed(data, cli, tmp_path):
    code, _, printed = cli(slow(tmp_path))
    assert code == 3
    assert "every motion is too slow for its friction to be known" in printed
    assert "lazy.npz: link of joint1 reaches" in printed
    assert "0.06/s (3 smoothing widths)" in printed
    assert "3 standard deviations of the velocity's noise" in printed
    code, out, _ = cli(data / "poses.npz", slow(tmp_path), "--json")
    assert code == 0
    assert json.loads(out)["unidentified"]["friction of joint1"].startswith(
        "too slow: lazy.npz: link of joint1 reaches"
    )


def broken(data, folder):
    """Files that cannot be used, and a word of why not."""
    both, n = data / "both.npz", len(np.load(data / "both.npz")["t"])
    half = {key: value[: n // 3] for key, value in np.load(both).items() if value.ndim and len(value) == n}
    alone = np.load(both)["motor_q"][:, :1]
    return {
        "open": (saved(folder / "open.npz", both, **half), "open.npz: is "),
        "unnamed": (
            saved(folder / "unnamed.npz", both, motor_q=alone, motor_tau=alone),
            "add the key motor_joint_names",
        ),
        "shape": (saved(folder / "shape.npz", both, motor_tau=alone), "motor_tau has shape"),
        "strange": (
            saved(folder / "strange.npz", both, motor_joint_names=np.array(["a", "b"])),
            "none is one of a flexible joint",
        ),
        "blind": (saved(folder / "blind.npz", both, motor_q=None), "no key motor_q"),
        "flag": (saved(folder / "flag.npz", both, periodic=np.array("yes")), "periodic must be True or False"),
        "mover": (saved(folder / "mover.npz", both, moving=np.array(["joint9"])), "joint9 moves"),
        "short": (
            saved(folder / "short.npz", both, periodic=None, **{k: v[:40] for k, v in half.items()}),
            "too short",
        ),
        "still": (saved(folder / "still.npz", both, tau=None, motor_tau=None), "no torque is measured"),
        "ampere": (
            saved(folder / "ampere.npz", both, motor_tau=None, motor_current=np.load(both)["motor_q"]),
            "torque_constant",
        ),
        "stop": (saved(folder / "stop.npz", data / "poses.npz", moving=np.array(JOINTS)), "is static"),
        "gone": (folder / "gone.npz", "no such file"),
    }


BROKEN = (
    *("open", "unnamed", "shape", "strange", "blind", "flag", "mover", "short", "still", "ampere", "stop", "gone"),
)


@pytest.mark.parametrize("what", BROKEN)
def test_files_that_cannot_be_used(data, cli, tmp_path, what):
    path, expected_words = broken(data, tmp_path)[what]
    code, out, printed = cli(path)
    assert (code, out) == (2 if what == "stop" else 3, "")
    (line,) = [line for line in printed.splitlines() if not line.startswith("identifying")]
    assert path.name in line
    assert expected_words in line
    assert not (tmp_path / "run").exists()


WRONG = {
    "ratio": (
        {"joints": {"joint1": {"ratio": 101}, "joint2": {"ratio": 50}}},
        3,
        "times as far as the joint, and its ratio is 50",
    ),
    "sign": ({"joints": {"joint1": {"ratio": -101}, "joint2": {"ratio": 101}}}, 3, "its ratio is -101"),
    "joint": ({"joints": {"jiont1": {"ratio": 101}}}, 2, "did you mean 'joint1'?"),
    "key": ({"smoothing": 0.1}, 2, "flexible: unknown key 'smoothing'; did you mean 'smoothing_width'?"),
    "static": ({"experiments": {"both.npz": {"static": True}}}, 2, "is static, poses at rest"),
    "poses": ({"experiments": {"poses.npz": {"static": False}}}, 3, "poses.npz: has no time stamps"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_configurations(data, cli, tmp_path, what):
    changes, code, expected_words = WRONG[what]
    found = cli(data / "poses.npz", data / "both.npz", config=configured(tmp_path, **changes))
    assert found[0] == code
    assert expected_words in found[2]
    assert len(found[2].strip().splitlines()) == 1


def test_wrong_usage(data, cli, tmp_path):
    both = data / "both.npz"
    (tmp_path / "held.yaml").write_text("joints: {joint1: {held: 0}}\nflexible: {joints: {joint1: {ratio: 101}}}\n")
    (tmp_path / "one.yaml").write_text("identify: [joint1]\nflexible: {joints: {joint2: {ratio: 101}}}\n")
    for words, options, expected_words in (
        ((both,), {"config": None}, "the section flexible names the flexible joints"),
        ((both,), {"out": None}, "give DATA and --out DIR"),
        ((), {}, "give DATA and --out DIR"),
        ((both, "--plan"), {}, "leave DATA and --out out"),
        ((both, "--validate", both), {}, "identified from and validated on"),
        ((both, "--limit", "0.1"), {}, "limit must be 1 or more"),
        ((both, "--cutoff", "300"), {}, "too high for data at 500 Hz"),
        ((both,), {"config": tmp_path / "held.yaml"}, "joint joint1 is both held and flexible"),
        ((both,), {"config": tmp_path / "one.yaml"}, "joint2 is flexible, and not in every file"),
    ):
        code, _, printed = cli(*words, **options)
        assert code == 2, expected_words
        assert expected_words in printed.splitlines()[-1]
    code, _, printed = cli(both, both)
    assert (code, "is given twice" in printed) == (3, True)
    assert cli(data / "poses.npz", both)[0] == 0
    code, _, printed = cli(data / "poses.npz", both)
    assert (code, "--force" in printed) == (2, True)
    assert cli(data / "poses.npz", both, "--force")[0] == 0


@pytest.mark.parametrize(
    ("change", "expected_words"),
    [
        (lambda content: content | {"format": "1"}, "not a flexible file of this tool"),
        (lambda content: content | {"format_version": 1}, "format_version is 1, this version .* identify the flexible"),
        (lambda content: {k: v for k, v in content.items() if k != "plan"}, "plan is missing"),
        (lambda content: content | {"values": ["a"]}, "values: must hold numbers, not 'a'"),
        (lambda content: content | {"names": content["names"][1:]}, "entries for 23 names"),
        (lambda content: content | {"joints": [{"name": "joint1", "ratio": 0.0}]}, "gear ratio"),
    ],
)
def test_files_of_results_that_are_damaged(data, cli, tmp_path, change, expected_words):
    assert cli(data / "poses.npz", data / "both.npz")[0] == 0
    path = tmp_path / "run" / "flexible.yaml"
    path.write_text(yaml.safe_dump(change(yaml.safe_load(path.read_text()))))
    with pytest.raises(InputError, match=expected_words):
        read_flexible(path)


def test_a_rigid_joint_with_a_current_and_a_flexible_one_without_a_torque_sensor(cli, tmp_path):
    """The motor turns against its joint; the order of the motors is the configuration's."""
    joints = FlexibleJoint("joint1", 101.0), FlexibleJoint("joint2", -100.0)
    plant = FlexiblePlant(FlexibleModel(MODEL.model, joints, 0.02), list_true_values(MODEL))
    for name, one in (
        ("poses", plant.poses("poses", POSES)),
        ("both", plant.along("both", make_motion_of(JOINTS), 5.0, 500.0)),
    ):
        one = QUIET.added(one, 3)
        time = {"t": np.arange(2500) / 500.0, "periodic": np.array(True)} if one.rate else {}
        current = one.tau.T / [-5.0, 1.0]
        motor = {"motor_q": one.motor_q[1:].T, "motor_tau": one.motor_tau[1:].T}
        np.savez(tmp_path / f"{name}.npz", q=one.q.T, current=current, joint_names=np.array(JOINTS), **motor, **time)
    config = tmp_path / "arm.yaml"
    config.write_text(
        "joints: {joint1: {gain: 5, sign: -1}}\nflexible: {joints: {joint2: {ratio: -100, torque_sensor: false}}}\n"
    )
    code, out, _ = cli(tmp_path / "poses.npz", tmp_path / "both.npz", "--json", config=config)
    answer = json.loads(out)
    assert (code, answer["unidentified"]) == (0, {})
    found = {one["name"]: one for one in answer["parameters"]}
    truth = dict(zip(MODEL.names, list_true_values(MODEL), strict=True))
    assert {"K2", "Jm2", "fvm2", "fcm2", "off1", "preload2"} <= found.keys()
    assert not {"off2", "offm2", "K1"} & found.keys()
    for name, one in found.items():
        assert abs(one["value"] - truth[name]) < 5.0 * one["standard_deviation"], name
