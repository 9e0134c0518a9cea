# SPDX-License-Identifier: Apache-2.0
"""Execution of nodes: timers and services under the executor, signals, mistakes in one line."""

import os
import signal
import subprocess
import sys
from dataclasses import make_dataclass

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger
from support.processes import HANG_S, child, run_python

from robot_dyn_id.cli import demo
from robot_dyn_id.errors import InputError, InternalError, UsageError
from robot_dyn_id.nodes.runtime.robot_node import RELIABLE, RobotNode, serves, subscribes
from robot_dyn_id.nodes.runtime.running import refuse_other_words
from robot_dyn_id.nodes.starting import has_failed

pytestmark = pytest.mark.real_time

NODE = """
import sys
import time
from dataclasses import dataclass
from std_srvs.srv import Trigger
from robot_dyn_id.nodes.runtime.robot_node import RobotNode, serves
from robot_dyn_id.nodes.runtime.ros_parameters import ros_parameter
from robot_dyn_id.nodes.runtime.running import run

@dataclass(frozen=True)
class Settings:
    rate: float = ros_parameter(100.0, "Ticks per second", unit="Hz", minimum=1.0)
    busy: float = ros_parameter(0.0, "What a tick takes", unit="s", minimum=0.0)

class Ticker(RobotNode):
    NAME, PURPOSE, SETTINGS = "ticker", "Ticks", Settings
    INTERFACES = (serves("~/count", Trigger, "How often it ticked"),)

    def begin(self):
        self.ticks, self.stops = 0, 0
        self.create_timer(1.0 / self.settings.rate, self.tick)
        self.service("~/count", lambda request, answer: answer)
        print("ready", flush=True)

    def tick(self):
        self.ticks += 1
        if self.ticks == 6:
            print("works", flush=True)
        time.sleep(self.settings.busy)

    def stop(self):
        self.stops += 1
        if self.stops == 1:
            self.before = self.ticks
        if self.stops < 3 or self.ticks == self.before:
            return False
        print("rest", flush=True)
        return True

sys.exit(run(Ticker))
"""


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", NODE, "--ros-args", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_node_with_more_to_do_than_it_can_is_stopped_all_the_same():
    with start("-p", "rate:=1000.0", "-p", "busy:=0.005") as process:
        assert (process.stdout.readline(), process.stdout.readline()) == ("ready\n", "works\n")
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=HANG_S)[0] == "rest\n"
        finally:
            process.kill()
        assert process.returncode == 0


def test_a_node_is_stopped_while_it_still_works():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        with start() as process:
            assert (process.stdout.readline(), process.stdout.readline()) == ("ready\n", "works\n")
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG_S)
            assert (process.returncode, out) == (0, "rest\n"), err


def test_a_node_that_was_started_to_outlive_its_terminal_does():
    command = ["nohup", sys.executable, "-c", NODE]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == "works\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=HANG_S)[0] == "rest\n"
    assert process.returncode == 0


LOADING = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "rclpy":
            print("loading", flush=True)
            time.sleep(20.0)
sys.meta_path.insert(0, Slow())
from robot_dyn_id.nodes.starting import start
sys.exit(start("torque_residual_monitor"))
"""


def test_an_exit_code_that_was_lost_while_a_launch_ends_is_not_a_failure():
    for code in (0, 130, -signal.SIGINT):
        assert not has_failed(code, launch_ends=False)
    for code in (1, 2, 3, 4, -signal.SIGSEGV, -signal.SIGKILL):
        assert has_failed(code, launch_ends=True)
    assert has_failed(255, launch_ends=False)
    assert not has_failed(255, launch_ends=True)


def test_a_node_that_still_loads_ends_quietly():
    with child([sys.executable, "-c", LOADING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (130, "")


def test_a_wrong_parameter_is_one_line_and_the_exit_code_of_wrong_usage():
    with start("-p", "rate:=0.1") as process:
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (2, "")
    assert err == "ticker: parameter rate must be at least 1 [Hz], not 0.1\n"


def test_a_wrong_parameter_names_the_file_that_sets_it(tmp_path):
    files = [tmp_path / name for name in ("first.yaml", "second.yaml", "launch_params_1")]
    for file, values in zip(files, ("rate: 0.2", "rate: 0.1", "use_sim_time: false"), strict=True):
        file.write_text(f"/**/ticker:\n  ros__parameters:\n    {values}\n")
    with start(*(word for file in files for word in ("--params-file", str(file)))) as process:
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (2, "")
    assert err == f"ticker: parameter rate must be at least 1 [Hz], not 0.1 (set in {files[1]})\n"


def test_a_file_with_the_former_name_of_a_node_is_refused_when_it_starts(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/**/controller:\n  ros__parameters:\n    effort_limit: [10.0]\n")
    code = "from robot_dyn_id.nodes.starting import start; start('computed_torque_controller')"
    done = run_python(code, "--ros-args", "--params-file", file)
    assert done.returncode == InputError.exit_code, done.stderr
    assert f"{file}: /**/controller: this node is now called computed_torque_controller" in done.stderr


def test_a_node_ends_by_itself_with_a_code_or_a_reason():
    for how, code, words in (("4", 4, ""), ("UsageError('no such thing')", 2, "ticker: no such thing\n")):
        source = "from robot_dyn_id.errors import UsageError\n" + NODE.replace(
            "self.ticks += 1", f"self.ticks, self.end = self.ticks + 1, {how}"
        )
        with child([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True) as process:
            _, err = process.communicate(timeout=HANG_S)
        assert (process.returncode, err) == (code, words)


def run_failing(place, text, folder):
    """The node of these tests with something else at one place: exit code, output, and lines of its errors."""
    assert place in NODE
    with child(
        [sys.executable, "-c", NODE.replace(place, text), "--ros-args", "-p", "rate:=1000.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as process:
        if '"ready"' not in place:
            assert process.stdout.readline() == "ready\n"
            if "ticks" not in place:
                assert process.stdout.readline() == "works\n"
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
    return process.returncode, out, err


def test_a_fault_while_a_node_starts_is_one_line_with_a_file_and_an_exit_code_of_its_own(tmp_path):
    code, out, err = run_failing('print("ready", flush=True)', "raise KeyError('oh')", tmp_path)
    (file,) = tmp_path.glob("robot-dyn-id-fault-*.txt")
    assert (code, out) == (4, "")
    assert err == f"ticker: internal error (KeyError: 'oh'); the traceback is in {file}: please report it\n"
    assert "in begin" in file.read_text() and "command: " in file.read_text()


def test_a_node_whose_way_to_rest_fails_is_brought_to_rest_all_the_same(tmp_path):
    text = "self.stops += 1\n        if self.stops == 2: raise KeyError('oh')"
    code, out, err = run_failing("self.stops += 1", text, tmp_path)
    assert (code, out) == (4, "rest\n"), err
    assert "internal error: KeyError: 'oh'" in err


BROKEN_FILES = {
    "not YAML": ("a: [b\n", "Sequences can only be values"),
    "no nodes": ("x: {y: 1}\n", "Cannot have a value before ros__parameters"),
    "missing": (None, "Error opening YAML file"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file_of_parameters_is_one_line_that_names_it(name, tmp_path):
    text, words = BROKEN_FILES[name]
    file = tmp_path / "broken.yaml"
    if text is not None:
        file.write_text(text)
    with start("--params-file", str(file)) as process:
        out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (2, "")
    line = err.splitlines()[-1]
    assert line.startswith("ticker: cannot start with these ROS arguments: ")
    assert str(file) in line and words in line and ".c:" not in line
    assert "Traceback" not in err


def test_a_mistake_in_another_file_is_not_blamed_on_the_file_of_parameters(tmp_path):
    """An unknown key of the configuration of an identification may be the name of a parameter of the node."""
    parameters, settings = tmp_path / "nodes.yaml", tmp_path / "settings.yaml"
    parameters.write_text("/**/identifier:\n  ros__parameters:\n    listen: true\n")
    settings.write_text("listen: [joint_1]\n")
    code = (
        "import sys\nfrom robot_dyn_id.nodes.executables import run_executable\nsys.exit(run_executable('identifier'))"
    )
    found = run_python(
        code,
        "--ros-args",
        "--params-file",
        parameters,
        "-p",
        f"config:={settings}",
        "-p",
        f"folder:={tmp_path / 'run'}",
    )
    assert found.returncode == 2
    line = found.stderr.splitlines()[-1]
    assert line.startswith(f"identifier: {settings}: unknown key 'listen'")
    assert str(parameters) not in line


def test_the_world_of_the_tests_serves(world):
    world.probe.create_service(Trigger, "answer", lambda request, answer: Trigger.Response(success=True))
    assert world.call(Trigger, "answer").success
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


class Fragile(RobotNode):
    """Callbacks that raise what they are given."""

    NAME, PURPOSE = "fragile", "Raises exceptions"
    SETTINGS = make_dataclass("Settings", [])
    INTERFACES = (
        subscribes("input", String, "The exception", RELIABLE),
        serves("~/ask", Trigger, "Raises"),
    )

    def begin(self):
        self.error, self.heard, self.ticks = None, 0, 0
        self.subscription("input", self.receive)
        self.service("~/ask", self.answer)
        self.create_timer(0.01, self.tick)

    def receive(self, message):
        self.heard += 1
        raise InputError(message.data) if message.data else ZeroDivisionError("by nothing")

    def answer(self, request, answer):
        raise KeyError("wrist")

    def tick(self):
        self.ticks += 1


class Moving(Fragile):
    ENDS_ON_FAULT = True


def test_an_exception_in_a_callback_is_logged_once_diagnosed_and_ends_no_node(world):
    world.faults_expected = True
    everything = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    log, health = world.heard(Log, "/rosout", everything), world.heard(DiagnosticArray, "diagnostics", RELIABLE)
    node = world.add(Fragile)
    publisher = world.probe.create_publisher(String, "input", RELIABLE)
    world.until(lambda: publisher.get_subscription_count())
    publisher.publish(String(data="joint elbow is unknown"))
    world.until(lambda: node.heard == 1)
    assert node.internal_errors == 0
    for count in range(2, 12):
        publisher.publish(String())
        world.until(lambda count=count: node.heard == count)
    answer = world.call(Trigger, "fragile/ask")
    assert (answer.success, answer.message) == (False, "internal error: KeyError: 'wrist'")
    ticks = node.ticks
    world.until(lambda: node.ticks > ticks + 5, what="the timer to go on")
    assert (node.internal_errors, node.end) == (11, None)
    world.until(lambda: health and health[-1].status[0].message == "internal error: KeyError: 'wrist'")
    assert health[-1].status[0].level == DiagnosticStatus.ERROR
    world.until(lambda: any("KeyError" in line.msg for line in log))
    lines = [line.msg for line in log if line.name == "fragile"]
    assert lines.count("refused: joint elbow is unknown") == 1
    assert len([line for line in lines if line.startswith("internal error: ZeroDivisionError: by nothing\n")]) == 1


def test_a_node_that_moves_a_robot_ends_with_exit_code_4_after_an_exception(world):
    world.faults_expected = True
    node = world.add(Moving)
    world.call(Trigger, "fragile/ask")
    assert node.end == 4


def test_the_demo_ends_with_the_internal_error_of_a_node():
    with demo.make_composition() as ros:
        ros.add(Fragile)
        with pytest.raises(InternalError, match="/fragile: internal error: KeyError: 'wrist'"):
            ros.call(Trigger, "fragile/ask")


@pytest.mark.parametrize("place", ["self.ticks += 1", 'print("ready", flush=True)'])
def test_an_exception_ends_the_process_in_order_with_exit_code_4(place):
    source = NODE.replace(place, "raise KeyError('wrist')").replace(
        "    def begin", "    ENDS_ON_FAULT = True\n\n    def begin"
    )
    with child([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True) as process:
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 4
    assert "internal error" in err and "KeyError: 'wrist'" in err


def test_words_that_ros_would_ignore_are_refused_with_the_line_to_copy():
    refuse_other_words("recorder", ["recorder", "--ros-args", "-p", "folder:=bag", "-r", "__ns:=/arm"])
    with pytest.raises(UsageError, match="recorder --ros-args -p folder:=bag"):
        refuse_other_words("recorder", ["recorder", "-p", "folder:=bag"])
