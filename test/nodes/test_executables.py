# SPDX-License-Identifier: Apache-2.0
"""Several nodes in one process: its command line, names and parameters of each, and an end that is that of all."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from robot_dyn_id.msg import RecordingStatus
from support.processes import HANG_S, child

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.nodes.executables import split_command
from robot_dyn_id.nodes.runtime.robot_node import LATCHED

ARM = Path(__file__).resolve().parents[2] / "urdf" / "arm7.urdf"
COMPOSED = "from robot_dyn_id.nodes.starting import start; start('composed')"


def test_words_before_the_first_node_are_those_of_the_process():
    own, parts = split_command(
        [
            "composed",
            "--ros-args",
            "--log-level",
            "info",
            "--node",
            "simulator",
            "--ros-args",
            "-p",
            "a:=1",
            "--node",
            "recorder",
        ]
    )
    assert own == ["composed", "--ros-args", "--log-level", "info"]
    assert parts == [("simulator", ["--ros-args", "-p", "a:=1"]), ("recorder", [])]


@pytest.mark.parametrize("words", [[], ["--node"], ["--node", "robot"], ["--node", "recorder", "--node"]])
def test_a_node_that_does_not_exist_is_refused(words):
    with pytest.raises(UsageError, match="name one of excitation_publisher, simulator"):
        split_command(["composed", *words])


def start(*words):
    command = [sys.executable, "-c", COMPOSED, "--ros-args", "--log-level", "info", *map(str, words)]
    return child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_nodes_of_a_process_have_names_parameters_and_remappings_of_their_own_and_end_together(world, tmp_path):
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("/**/simulator: {ros__parameters: {publish_rate: 50.0}}\n")
    left = ("--ros-args", "-r", "__ns:=/left", "--params-file", parameters)
    right = (
        "--ros-args",
        "-r",
        "__ns:=/right",
        "-r",
        "joint_states:=/left/joint_states",
        "-p",
        f"folder:={tmp_path / 'bag'}",
    )
    status = world.heard(RecordingStatus, "/right/recording_status", LATCHED)
    with start("--node", "simulator", *left, "-p", f"urdf:={ARM}", "--node", "recorder", *right) as process:
        names = lambda: set(world.probe.get_node_names_and_namespaces())  # noqa: E731
        world.until(lambda: {("simulator", "/left"), ("recorder", "/right")} <= names(), what="the nodes")
        world.until(lambda: status and sum(status[-1].counts) > 50, what="messages in the bag")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    assert (tmp_path / "bag" / "metadata.yaml").exists(), "the bag was finished"
    rate = float(re.search(r"/left/joint_states: \d+ messages, ([\d.]+) Hz", err)[1])
    assert 10.0 < rate < 60.0, "that of the file; by default it is 1000 Hz"


@pytest.mark.slow
def test_the_process_ends_with_the_first_node_and_names_it():
    with start("--node", "simulator", "--ros-args", "-p", f"urdf:={ARM}", "--node", "recorder") as process:
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == UsageError.exit_code
    assert err.splitlines()[-1] == "recorder: parameter folder is empty: name the bag folder to record into"
    wrong = ("--node", "marker_publisher", "--node", "simulator", "--ros-args", "-p", "urdf:=/none.urdf")
    with start(*wrong) as process:
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == InputError.exit_code
    assert "simulator: /none.urdf: cannot read the robot description" in err.splitlines()[-1]
