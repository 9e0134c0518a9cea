# SPDX-License-Identifier: Apache-2.0
"""The program around the commands: wrong words, interruptions, faults of the package, and closed outputs."""

import gc
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from tempfile import mkstemp

import numpy as np
import pytest
from support.commands import (
    COMMAND,
    ROBOT,
    SIMPLE_MODEL,
    check_error_line,
    check_error_object,
    check_unchanged,
    command,
)
from support.processes import HANG_S, child, run_program, run_python
from support.simulated import changed, save_npz

from robot_dyn_id import __version__, _installed_version, faults
from robot_dyn_id.cli import main, show_progress
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.progress import Stage


@pytest.mark.parametrize("words", [[], ["magic"], ["identify"], ["base"], ["base", "--robot"]], ids=str)
def test_half_a_command_is_wrong_usage(words, cli):
    code, stdout, err = cli(*words)
    assert (code, stdout) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("robot-dyn-id")


def test_an_option_before_the_command_is_named(cli):
    code, _, err = cli("-q", "identify", "a.npz")
    assert (code, err) == (2, "robot-dyn-id: -q comes after the command: robot-dyn-id identify -q ...\n")


def test_abbreviated_options_are_accepted(files, cli):
    assert cli("base", "--rob", files / "arm.urdf", "--js")[0] == 0


def test_the_version(cli):
    assert cli("--version") == (0, f"robot-dyn-id {__version__}\n", "")


@pytest.mark.slow
def test_a_process_of_its_own_answers_alike(files, tmp_path, cli):
    words = ["base", "--robot", files / "arm.urdf", "--json"]
    result = command(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == cli(*words)[1]
    assert result.stdout.count("\n") == 1
    result = command("identify", "none.npz", "--robot", files / "arm.urdf", "--out", tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert len(result.stderr.splitlines()) == 1
    check_error_line(result.stderr, "none.npz: no such file")


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    """Two hundred thousand samples: each stage takes a while, also where the model is not chosen from them."""
    short = ROBOT.record(duration=50.0, noise=0.1)
    samples = short.samples
    tiled = {name: np.tile(getattr(samples, name), (40, 1)) for name in ("q", "dq", "tau")}
    t = np.arange(40 * len(samples)) / 100.0
    return save_npz(tmp_path_factory.mktemp("long") / "long.npz", changed(short, t=samples.t), **{"t": t, **tiled})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "how"),
    [("surveying", signal.SIGINT), ("estimating", signal.SIGINT), ("cross-validating", signal.SIGTERM)],
    ids=["early", "late", "terminated"],
)
def test_ctrl_c(when, how, files, out, long_recording):
    words = ["identify", long_recording, "--robot", files / "arm.urdf", "--out", out, "--json", "--force", "--verbose"]
    words += SIMPLE_MODEL
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with child(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        output = ""
        for line in process.stderr:
            output += line
            if f"] {when}" in line:
                break
        time.sleep(0.1)
        process.send_signal(how)
        stdout, rest = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    check_error_line(output + rest, "interrupted, nothing was written")
    check_error_object(stdout, output + rest, 130)
    check_unchanged(out)


INTERRUPTED_WHILE_IT_FAILS = """import os, signal, sys
import robot_dyn_id.cli as cli
from robot_dyn_id.cli import terminal
print_error = terminal.print_error
def printed(text):
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    print_error(text)
terminal.print_error = printed
code = cli.run_process()
os.kill(os.getpid(), signal.SIGINT)
sys.exit(code)
"""


@pytest.mark.slow
def test_a_second_ctrl_c_keeps_message_and_exit_code():
    words = [sys.executable, "-c", INTERRUPTED_WHILE_IT_FAILS, "base", "--robot", "none.urdf"]
    found = run_program(*words)
    assert found.returncode == 3
    check_error_line(found.stderr, "none.urdf")


def test_a_calling_program_is_interrupted_again_after_a_failed_command(cli):
    assert cli("base", "--robot", "none.urdf")[0] == 3
    assert signal.getsignal(signal.SIGINT) != signal.SIG_IGN


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_bad_verdict(closed):
    for robot, code in ((find_shared_file("urdf/arm7.urdf"), 0), ("none.urdf", 3)):
        line = f"{shlex.join([*COMMAND, 'base', '--robot', str(robot)])} {closed}"
        assert subprocess.run(["sh", "-c", line], timeout=HANG_S, check=False, capture_output=True).returncode == code


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(cli, monkeypatch):
    def fails(*_):
        raise RuntimeError("no terminal")

    monkeypatch.setattr("robot_dyn_id.cli.terminal.print_error", fails)
    assert cli("base", "--robot", "none.urdf")[0] == 3
    monkeypatch.setattr("robot_dyn_id.cli._guarded", fails)
    assert cli("base", "--robot", "none.urdf")[0] == 4


def test_an_interrupted_try_says_what_stays(cli, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("robot_dyn_id.cli.try.identify_recordings", interrupted)
    code, _, err = cli("try", "franka", "--out", tmp_path)
    assert code == 130 and list(tmp_path.iterdir())
    check_error_line(err, "copies of the recording and of the robot stay")


def test_a_compiler_that_fails_because_its_callback_was_interrupted_is_an_interruption(files, cli, monkeypatch):
    class Callback:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)

    def compiled(*_):
        callback = Callback()
        del callback
        raise RuntimeError("no compiled object yet")

    printed = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)
    monkeypatch.setattr("robot_dyn_id.cli.base.compute_base_parameters", compiled)
    code, _, err = cli("base", "--robot", files / "arm.urdf")
    assert code == 130
    check_error_line(err, "interrupted, nothing was written")
    assert not printed  # no traceback of the callback
    assert sys.unraisablehook == printed.append


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_a_library_swallows_is_heeded_at_the_next_step():
    class Callback:
        def __del__(self):  # what is raised here Python only prints
            os.kill(os.getpid(), signal.SIGTERM)

    assert main(["--help"]) == 0
    callback = Callback()
    del callback
    with pytest.raises(KeyboardInterrupt):
        show_progress(Stage("writing"))
    assert main(["--help"]) == 0  # another command starts without the interruption
    show_progress(Stage("writing"))


def test_a_fault_of_the_tool_is_one_line_with_a_file_and_an_exit_code_of_its_own(files, cli, monkeypatch, tmp_path):
    def broken(*_):
        raise ZeroDivisionError("no\nmore")

    monkeypatch.setattr("robot_dyn_id.cli.base.compute_base_parameters", broken)
    monkeypatch.setattr(faults, "mkstemp", lambda **given: mkstemp(**given, dir=tmp_path))
    monkeypatch.setenv("SECRET_TOKEN", "a secret")
    rclpy_version = _installed_version("ros_rclpy")
    code, stdout, err = cli("base", "--robot", files / "arm.urdf", "--json")
    assert code == 4
    error = check_error_object(stdout, err, 4)
    (file,) = tmp_path.iterdir()
    assert err == (
        f"robot-dyn-id: internal error (ZeroDivisionError: no more); the traceback is in {file}: please report it\n"
    )
    assert error["code"] == "internal"
    text = file.read_text()
    assert "Traceback (most recent call last)" in text and "in broken" in text
    assert f"robot_dyn_id {__version__}" in text and "numpy " in text
    assert not rclpy_version or f"rclpy {rclpy_version}\n" in text
    assert f"command: robot-dyn-id base --robot {files / 'arm.urdf'} --json" in text
    assert "a secret" not in text
    code, stdout, _ = cli("base", "--robot", files / "arm.urdf")
    assert (code, stdout) == (4, "")


def test_the_traceback_is_on_standard_error_where_no_file_can_be_written(capsys, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        error = faults.report_fault(ZeroDivisionError("no more"), ["robot-dyn-id", "base"])
    assert "no folder for temporary files can be written to: the traceback is above" in str(error)
    assert "ZeroDivisionError: no more" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--js"],
        ["magic", "--json"],
        ["identify", "--json"],
        ["base", "--json", "--robot"],
        ["base", "--robot", "", "--json"],
        ["base", "--robot=", "--json"],
    ],
    ids=str,
)
def test_usage_errors_are_objects_as_well(words, cli):
    code, stdout, err = cli(*words)
    assert code == 2
    assert check_error_object(stdout, err, 2)["code"] == "usage"
    assert len(err.splitlines()) == 1


def test_every_error_has_a_code_and_an_action():
    def below(kind):
        return [kind, *(one for sub in kind.__subclasses__() for one in below(sub))]

    kinds = below(RobotDynIdError)
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        summary = {"code": kind.code, "message": "x", "action": kind.advice, "exit_code": kind.exit_code}
        assert {key: kind("x").summary()[key] for key in summary} == summary
        assert kind.code.replace("_", "").isalpha() and kind.advice and kind.exit_code in (2, 3, 4, 130)
        assert kind("x", "do y").action == "do y"


WITHOUT_ROS = """
import sys
sys.modules["rclpy"] = None
from robot_dyn_id.{module}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("cli import main; sys.exit(main(['demo', '--out', sys.argv[1], '--json']))", "robot-dyn-id: "),
        (
            "nodes.starting import start; start('torque_residual_monitor')",
            "torque_residual_monitor: ",
        ),
    ],
    ids=["demo", "a node"],
)
def test_without_ros_2_the_reason_is_one_line(module, words, tmp_path):
    code = WITHOUT_ROS.format(module=module)
    found = run_python(code, tmp_path / "run")
    assert found.returncode == 3, found.stderr
    assert found.stderr.splitlines() == [found.stderr.strip()]
    assert found.stderr.startswith(f"{words}the Python package rclpy is not installed or not on the path: source the ")
    assert not found.stdout or json.loads(found.stdout)["error"]["code"] == "input"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["--json"], []], ids=str)
def test_a_full_disk_behind_standard_output_is_bad_input_and_not_a_fault(words, files):
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, "base", "--robot", str(files / "arm.urdf"), *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_S,
            check=False,
        )
    assert found.returncode == 3
    assert found.stderr == (
        "robot-dyn-id: standard output or a file: cannot be read or written (No space left on device)\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--json"], []], ids=str)
def test_a_reader_that_has_gone_ends_the_command_quietly(words, files):
    with child(
        [*COMMAND, "base", "--robot", str(files / "arm.urdf"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (141, "")


class _Gone(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def test_a_reader_of_an_object_without_file_descriptor_may_go_as_well(files, monkeypatch):
    monkeypatch.setattr(sys, "stdout", _Gone())
    assert main(["base", "--robot", str(files / "arm.urdf"), "--json"]) == 141


def test_the_search_for_cycles_of_a_calling_program_stays_as_it_is():
    before = gc.get_threshold()
    assert main(["--version"]) == 0
    assert gc.get_threshold() == before
