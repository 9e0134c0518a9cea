# SPDX-License-Identifier: Apache-2.0
"""Files that launch files and configurations name exist; genuine `ros2 launch` where launch_ros is installed."""

import ast
import importlib.util
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from support.processes import HANG_S

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.excitation import MotionLimits
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation.settings import ExcitationSettings
from robot_dyn_id.nodes.executables import split_command
from robot_dyn_id.nodes.launch_arguments import (
    ARGUMENTS,
    COMMON,
    RENAMED,
    check_names,
    read_boolean,
    warn_of_renamed_arguments,
)
from robot_dyn_id.nodes.runtime.parameter_files import check_parameter_file
from robot_dyn_id.nodes.runtime.ros_parameters import list_ros_parameters
from robot_dyn_id.nodes.tables import NODES

ROOT = Path(__file__).parents[2]
LAUNCH = sorted((ROOT / "launch").glob("*.launch.py"))
CONFIGURATIONS = sorted((ROOT / "config").glob("*.yaml"))
MOTION = ("trajectory", "speed_scale", "amplitude_scale", "dry_run")  # of excite.launch.py
BY_NAME = {node.NAME: node for node in NODES}


def name(path):
    return path.name


def calls(path, function):
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == function]


def parts(path):
    """The file and those that it includes."""
    return [path, *(path.parent / f"{call.args[0].value}.launch.py" for call in calls(path, "include_launch_file"))]


def everywhere(path, function):
    return [call for part in parts(path) for call in calls(part, function)]


def declared_in(path):
    """Arguments that a launch file declares, with those that it includes."""
    given = set(COMMON)
    for call in everywhere(path, "declare_arguments"):
        for argument in call.args:
            values = MOTION if isinstance(argument, ast.Starred) else [argument.value]
            given |= set(values)
        given |= {keyword.arg for keyword in call.keywords}
    return given


def passed_to(call):
    """Launch arguments that become parameters of the same name of a node."""
    parts = call.args[1].elts if len(call.args) > 1 else []
    return {name for part in parts for name in (MOTION if isinstance(part, ast.Starred) else [part.value])}


@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_a_launch_file_names_nodes_parameters_and_arguments_that_exist(path):
    given = declared_in(path)
    assert given <= set(ARGUMENTS)
    for call in everywhere(path, "start_node"):
        parameters = {row.name for row in list_ros_parameters(BY_NAME[call.args[0].value].SETTINGS)}
        assert passed_to(call) <= given & parameters
        own = {keyword.arg for keyword in call.keywords} - {"inner_namespace", "remappings"}
        assert own <= parameters


@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_every_argument_of_a_launch_file_has_an_effect(path):
    given = declared_in(path)
    used = set(COMMON)
    for call in everywhere(path, "start_node"):
        used |= passed_to(call)
        for constant in (n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)):
            used |= {argument for argument in given if f"{{{argument}}}" in constant}
    assert given == used


def test_launch_arguments_have_the_names_of_the_ecosystem_and_are_described():
    assert {"params_file", "namespace", "use_sim_time", "log_level"} <= set(COMMON)
    assert all(argument.description for argument in ARGUMENTS.values())
    assert not set(RENAMED) & set(ARGUMENTS)
    assert set(RENAMED.values()) <= set(ARGUMENTS)


@pytest.mark.parametrize("name", RENAMED)
def test_an_argument_that_was_renamed_is_refused_with_its_present_name(name):
    with pytest.raises(UsageError, match=f"write {RENAMED[name]}:=mine.yaml"):
        check_names([f"{name}:=mine.yaml"])
    check_names([f"{RENAMED[name]}:=mine.yaml"])


@pytest.mark.parametrize("name", RENAMED)
def test_a_former_name_that_an_including_file_passes_is_warned_of(name):
    new = RENAMED[name]
    (line,) = warn_of_renamed_arguments({name: "mine.yaml", new: ""}, [new])
    assert line == f"{name}='mine.yaml' has no effect here: the argument is now called {new}"
    assert not warn_of_renamed_arguments({name: "mine.yaml", new: "other.yaml"}, ["robot"])
    assert not warn_of_renamed_arguments({name: "", new: ""}, [new])


def test_boolean_arguments_are_read_as_such():
    rows = [row for node in NODES for row in list_ros_parameters(node.SETTINGS)]
    booleans = {row.name for row in rows if isinstance(row.default, bool)} | {"use_sim_time", "compensate", "composed"}
    assert {name for name, item in ARGUMENTS.items() if item.read is read_boolean} == booleans & set(ARGUMENTS)


@pytest.mark.parametrize("name", ["law", "recording"])
def test_choices_are_those_of_the_node(name):
    rows = [row for node in NODES for row in list_ros_parameters(node.SETTINGS) if row.name == name]
    assert {choice for choice in ARGUMENTS[name].choices if choice} == {c for row in rows for c in row.rule.choices}


OWN_DEFAULTS = {
    "actuators": {"recording", "require_effort"},
    "base_sensor": {"recording", "rehearsal", "robot", "start", "urdf"},
    "control": {"robot", "urdf"},
    "excite": {"recording"},
    "external_torque": {"rehearsal", "robot", "start", "urdf"},
    "gravity_calibration": {
        "latency",
        "compensate",
        "recording",
        "rehearsal",
        "robot",
        "start",
        "terms",
        "urdf",
        "use_sim_time",
    },
    "gravity_compensation": set(),
    "gravity_robot": {"recording"},
    "logistic2r": {"identification_config", "law", "recording", "rehearsal", "robot", "start", "urdf", "use_sim_time"},
    "offline": set(),
    "payload": {"link", "robot", "urdf"},
    "planar3r": {"identification_config", "robot", "trajectory"},
    "record": set(),
    "robot": {"recording"},
    "simulation": {"recording", "rehearsal", "robot", "start", "urdf"},
    "space6r": {"identification_config", "robot", "terms"},
    "twin": set(),
}
"""Arguments whose default differs from that of the table: a simulated robot, its motion, and published settings."""


def test_launch_files_differ_only_in_the_defaults_that_they_must():
    for path in LAUNCH:
        scenario = path.name.split(".")[0]
        (call,) = calls(path, "declare_arguments")
        own = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert set(own) == OWN_DEFAULTS[scenario]
        assert own.get("recording", "'required'") == "'required'", "what moves a robot moves it while it is recorded"
        assert own.get("start", "'true'") == "'true'" and ("start" in own) <= ("urdf" in own), "simulated arms alone"
        if "identification_config" in own:  # that of a published identification, which has settings of its own
            assert own["identification_config"] == f"share_path('config', 'identification', '{scenario}.yaml')"


def test_every_launch_file_identifies_with_the_automatic_model():
    """A robot, its simulation and its recordings are identified by the same choices."""
    assert ARGUMENTS["identification_config"].default == ""
    for path in LAUNCH:
        for call in calls(path, "start_node"):
            if call.args[0].value == "identifier" and "identification_config" in declared_in(path):
                own = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
                assert own.pop("config") == "'{identification_config}'"
                drives = {"remappings", "model", "joint_states_type"} if path.name == "actuators.launch.py" else set()
                assert own.keys() == drives
    for path in CONFIGURATIONS:
        parameters = yaml.safe_load(path.read_text()).get("/**/identifier", {}).get("ros__parameters", {})
        assert "config" not in parameters
    assert Settings().estimator == Consistent() and Settings().terms is None


def test_every_scenario_has_a_launch_file():
    assert [path.name.split(".")[0] for path in LAUNCH] == [
        "actuators",
        "base_sensor",
        "control",
        "excite",
        "external_torque",
        "gravity_calibration",
        "gravity_compensation",
        "gravity_robot",
        "logistic2r",
        "offline",
        "payload",
        "planar3r",
        "record",
        "robot",
        "simulation",
        "space6r",
        "twin",
    ]


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=name)
def test_a_configuration_sets_parameters_that_its_nodes_take(path, world):
    for key, content in yaml.safe_load(path.read_text()).items():
        node = BY_NAME[key.removeprefix("/**/")]
        rows = {row.name: row for row in list_ros_parameters(node.SETTINGS)}
        for parameter, value in content["ros__parameters"].items():
            assert parameter in rows, f"{key}: {parameter}"
            values = tuple(value) if isinstance(value, list) else value
            assert not rows[parameter].rule.refusal(values), f"{key}: {parameter}"


def test_a_real_so101_gets_no_parameter_that_only_its_simulator_may_have():
    """Long timeouts and no check of efforts belong to the launch file of the simulated arm."""
    for key, content in yaml.safe_load((ROOT / "config" / "so101.yaml").read_text()).items():
        if key != "/**/simulator":
            assert content["ros__parameters"].keys().isdisjoint({"latency", "effort_scale"})


@pytest.mark.parametrize("name", ["iiwa", "panda", "planar3r", "ur"])
def test_what_is_designed_for_a_robot_is_within_the_limits_of_the_node_that_runs_it(name):
    node = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())["/**/excitation_publisher"]["ros__parameters"]
    joints = node.get("joints") or RobotModel.from_file(ROOT / "urdf" / f"{name}.urdf").joint_names
    run, designed = ExcitationSettings(**node), read_design_settings(ROOT / "config" / "design" / f"{name}.yaml")
    most = run.acceleration if len(run.acceleration) > 1 else [*run.acceleration] * len(joints)
    wanted = designed.acceleration
    assert {*wanted, *designed.posture, *designed.noise} <= {*joints, "all"}
    assert all(wanted.get(joint, wanted.get("all")) <= limit for joint, limit in zip(joints, most, strict=True))
    assert designed.velocity_scale <= run.velocity_scale
    assert designed.margin >= run.position_margin


def test_only_simulated_robots_have_the_limits_of_the_demo_arm_by_default():
    with_default = [path.name for path in LAUNCH if "arm7" in path.read_text()]
    assert with_default == [
        "base_sensor.launch.py",
        "control.launch.py",
        "external_torque.launch.py",
        "payload.launch.py",
        "simulation.launch.py",
    ]
    needy = [path.name for path in LAUNCH if "require_parameters()" in path.read_text()]
    assert needy == ["actuators.launch.py", "excite.launch.py", "gravity_robot.launch.py", "robot.launch.py"], (
        "those that move a real arm"
    )


def test_a_scenario_names_files_that_are_there_and_its_motion_fits_its_robot():
    for path in LAUNCH:
        for call in calls(path, "share_path"):
            names = [part.value for part in call.args]
            assert ROOT.joinpath(*names).exists()
    given = yaml.safe_load((ROOT / "config" / "planar3r.yaml").read_text())["/**/excitation_publisher"]
    model = RobotModel.from_file(ROOT / "urdf" / "planar3r.urdf")
    limits = MotionLimits.from_model(model, given["ros__parameters"]["acceleration"])
    for file in (ROOT / "config" / "trajectories").glob("planar3r_*.yaml"):
        assert read_trajectory(file).check_robot(model, limits) == ()


genuine = pytest.mark.skipif(importlib.util.find_spec("launch_ros") is None, reason="launch_ros is not installed")


def launch(path, *arguments):
    """`ros2 launch` of a file in a process of its own."""
    code = (
        "import sys; from ros2launch.api import launch_a_launch_file as launch\n"
        "sys.exit(launch(launch_file_path=sys.argv[1], launch_file_arguments=sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def readable(path, words):
    """Whether a file can be read and holds the words."""
    try:
        return words in path.read_text(errors="replace")
    except OSError:
        return False


@genuine
def test_the_exit_code_of_a_launch_is_that_of_a_node_that_failed():
    with launch(ROOT / "launch" / "record.launch.py", "bag:=/proc/none") as process:
        output = process.communicate(timeout=HANG_S)[0]
    assert process.returncode == 1
    assert "recorder: /proc/none: cannot be created" in output
    assert "recorder-1 has failed with exit code 3" in output


@genuine
def test_a_launch_that_is_interrupted_has_not_failed(tmp_path):
    with launch(ROOT / "launch" / "record.launch.py", f"bag:={tmp_path / 'bag'}") as process:
        output = [next(line for line in process.stdout if "recording joint_states" in line)]
        process.send_signal(signal.SIGINT)
        output += process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0, output


@genuine
def test_a_node_that_is_interrupted_before_its_launch_has_not_failed(tmp_path):
    with launch(ROOT / "launch" / "record.launch.py", f"bag:={tmp_path / 'bag'}") as process:
        started = next(line for line in process.stdout if "process started with pid" in line)
        node = started.split("[")[-1].split("]")[0]
        while process.poll() is None and not readable(Path("/proc", node, "maps"), "rclpy"):
            time.sleep(0.01)  # until Python has started, and loads the node
        os.kill(int(node), signal.SIGINT)
        output = process.communicate(timeout=HANG_S)[0]
    assert "Caught exception" not in output
    assert process.returncode == 0, output


@genuine
@pytest.mark.parametrize("given", ["use_sim_time:=yes_please", "start:=[", "start:=1"])
def test_a_truth_value_that_is_none_ends_the_launch_before_any_node(given, monkeypatch):
    monkeypatch.setenv("LAUNCHED_BY", name := f"test_{os.getpid()}_{given}")
    with launch(ROOT / "launch" / "simulation.launch.py", given) as process:
        output = process.communicate(timeout=HANG_S)[0]
    assert process.returncode == 1
    assert f"{given}: " in output
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if readable(path, f"LAUNCHED_BY={name}")]


def visit(path, **given):
    """The nodes that the genuine launch would start with these arguments."""
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    description = get_launch_description_from_python_launch_file(str(path))
    assert all(argument.description for argument in description.get_launch_arguments())
    return visit_description(description, **given)


def visit_description(description, **given):
    """The nodes that a launch description would start with these arguments."""
    from launch import LaunchContext
    from launch_ros.actions import Node

    context = LaunchContext(argv=[f"{name}:={text}" for name, text in given.items()])
    waiting = list(description.entities)
    started = []
    context.launch_configurations.update(given)
    while waiting:
        entity = waiting.pop(0)
        if isinstance(entity, Node):
            entity._perform_substitutions(context)  # what it would be started with
            started.append(entity)
        else:
            waiting = [*(entity.visit(context) or []), *waiting]
    return started


@genuine
@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_the_genuine_launch_makes_the_nodes_of_a_launch_file(path):
    started = visit(path, robot="planar3r", parameters="some.yaml")
    assert sorted(node.node_executable for node in started) == sorted(
        n.args[0].value for n in everywhere(path, "start_node")
    )


def words_of(node):
    """Words of the command line of a node that is started."""
    return ["".join(part.text for part in word) for word in node.cmd if all(hasattr(part, "text") for part in word)]


@genuine
@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_composed_the_same_nodes_are_in_one_process_with_the_same_parameters(path):
    given = {
        "robot": "planar3r",
        "parameters": "some.yaml",
        "namespace": "left",
        "log_level": "debug",
        "latency": "0.7",
    }
    alone, (together,) = visit(path, **given), visit(path, **given, composed="true")
    own, parts = split_command(words_of(together))
    assert together.node_executable == "composed" and own[-2:] == ["--log-level", "debug"]
    assert [name for name, _ in parts] == [node.node_executable for node in alone]
    for node, (_, words) in zip(alone, parts, strict=True):
        options = list(pairwise(words))
        assert ("-r", f"__ns:={node.expanded_node_namespace}") in options
        for old, new in node.expanded_remapping_rules or ():
            assert ("-r", f"{old}:={new}") in options
        file = ROOT / "config" / "planar3r.yaml"
        assert [Path(word).name for option, word in options if option == "--params-file"] == [file.name]
        given_to = {"".join(part.text for part in key) for key in node._Node__parameters[-1]}
        assert {word.partition(":=")[0] for option, word in options if option == "-p"} == given_to
    assert any("latency:=0.7" in word for _, words in parts for word in words) == ("latency" in declared_in(path))


@genuine
@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_a_configuration_that_is_not_there_ends_the_launch_before_any_node(path, tmp_path):
    with pytest.raises(InputError, match=r"params_file:=/none.yaml: there is no such file"):
        visit(path, params_file="/none.yaml")
    with pytest.raises(
        InputError, match=r"robot:=absent: there is no .*absent.yaml; give params_file:=FILE, or one of"
    ):
        visit(path, robot="absent")
    if calls(path, "require_parameters"):
        with pytest.raises(InputError, match=r"no parameters for your robot: give params_file:=FILE"):
            visit(path)
    else:
        assert visit(path)


@genuine
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [b", "not a YAML file"),
        ("[1, 2]", "it must map node names to ros__parameters"),
        ("", "it must map node names to ros__parameters"),
        ("controller: {ros__parameters: {effort_limit: [9.0]}}", "name the section computed_torque_controller"),
        ("cutoff: 4.0", "cutoff is not the name of a node with ros__parameters; is this the configuration of an"),
    ],
    ids=["broken", "a list", "empty", "of 0.1.0", "of an identification"],
)
def test_a_configuration_that_is_broken_ends_the_launch_before_any_node(text, words, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        visit(ROOT / "launch" / "simulation.launch.py", params_file=str(file))
    assert str(file) in str(error.value) and words in str(error.value) and "\n" not in str(error.value)


@genuine
@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_every_launch_file_refuses_a_renamed_argument_and_sets_the_log_level(path):
    with pytest.raises(UsageError, match="config:= is now params_file:="):
        visit(path, config="mine.yaml")
    started = visit(path, robot="planar3r", parameters="some.yaml", log_level="debug")
    for node in started:
        words = [getattr(part[0], "text", "") for part in node.cmd]
        assert words[words.index("--log-level") + 1] == "debug"


@genuine
@pytest.mark.parametrize("path", LAUNCH, ids=name)
def test_an_including_launch_file_that_passes_a_former_name_gets_a_warning(path, tmp_path, monkeypatch):
    from launch import LaunchDescription
    from launch.actions import IncludeLaunchDescription

    from robot_dyn_id.nodes import launching

    lines = []
    monkeypatch.setattr(launching, "get_logger", lambda name: SimpleNamespace(warning=lines.append))
    given = {"config": "mine.yaml", "settings": "mine.yaml", "robot": "planar3r", "parameters": "some.yaml"}
    including = IncludeLaunchDescription(str(path), launch_arguments=given.items())
    visit_description(LaunchDescription([including]))
    assert {line.partition("=")[0] for line in lines} == {
        old for old, new in RENAMED.items() if new in declared_in(path)
    }
    lines.clear()
    present = {new: str(ROOT / "config" / "planar3r.yaml") for new in RENAMED.values()}
    visit_description(
        LaunchDescription([IncludeLaunchDescription(str(path), launch_arguments={**given, **present}.items())])
    )
    assert not lines


@genuine
def test_an_argument_that_is_broken_is_named():
    with pytest.raises(UsageError, match=r"topics:=\['a: not valid YAML \(Topics to record"):
        visit(ROOT / "launch" / "record.launch.py", topics="['a")


def test_every_configuration_of_the_package_passes_the_check_of_the_launch():
    for path in CONFIGURATIONS:
        check_parameter_file(path)
    with pytest.raises(InputError, match="is not the name of a node"):
        check_parameter_file(ROOT / "config" / "identification" / "planar3r.yaml")


@genuine
def test_the_space_manipulator_has_its_friction_and_a_twin():
    nodes = visit(ROOT / "launch" / "space6r.launch.py")
    simulators = [node for node in nodes if node.node_executable == "simulator"]
    assert [node.expanded_node_namespace for node in simulators] == ["/", "/twin"]
    given = ["".join(part.text for key in node._Node__parameters[-1] for part in key) for node in simulators]
    assert ["terms" in names for names in given] == [True, False]


@genuine
def test_a_twin_has_a_namespace_of_its_own():
    path = ROOT / "launch" / "twin.launch.py"
    assert [node.node_executable for node in visit(path)] == ["simulator", "torque_residual_monitor"]
    for node in visit(path, namespace="left", parameters="some.yaml"):
        assert node.expanded_node_namespace == "/left/twin"
        to = dict(node.expanded_remapping_rules or [])
        assert "identified_parameters" not in to, "the file's model is the twin's alone"
        if node.node_executable == "torque_residual_monitor":
            assert to == {"joint_states": "/left/joint_states"}
        if node.node_executable == "simulator":
            assert list(to.values()) == ["/left/joint_trajectory_controller/joint_trajectory"]
