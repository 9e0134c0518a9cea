# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id doctor` and `robot-dyn-id watch`, with the middleware."""

import json
import subprocess
import time

import pytest
from support.commands import COMMAND
from support.processes import HANG_S, child
from support.simulator_scene import DEEP

from robot_dyn_id.cli import doctor

AREAS = {
    *("Python", "computer", "packages", "optional packages", "compiled functions", "ROS 2", "middleware", "multicast"),
    *("shared memory", "self-test", "time sync", "clocks", "settings", "terminal"),
}


@pytest.mark.real_time
def test_every_area_is_checked_and_the_exit_code_follows(cli, monkeypatch):
    monkeypatch.setattr(doctor, "EXCHANGE_TIMEOUT_S", HANG_S)
    code, out, _ = cli("doctor", "--json")
    answer = json.loads(out)
    assert {check["name"] for check in answer["checks"]} == AREAS
    assert {check["status"] for check in answer["checks"]} <= {"ok", "warn", "problem"}
    assert (code == 0) == answer["usable"] == (answer["counts"]["problem"] == 0)
    assert all(check["action"] for check in answer["checks"] if check["status"] == "problem")
    (self_test,) = (check for check in answer["checks"] if check["name"] == "self-test")
    assert "arrived after" in self_test["text"]


def test_a_missing_package_is_a_problem_with_its_cure(cli, monkeypatch):
    monkeypatch.setattr(doctor, "REQUIRED", {**doctor.REQUIRED, "no_such_package": "no-such-package"})
    monkeypatch.setattr(doctor, "_self_test", lambda: doctor.Check("self-test", "warn", "not run"))
    code, out, _ = cli("doctor")
    assert code == 3
    assert "no-such-package is not installed" in out and "-> pip install no-such-package" in out


def test_a_check_that_fails_does_not_end_the_others(cli, monkeypatch):
    def broken():
        raise OSError("no answer")

    monkeypatch.setattr(doctor, "_kernel_clock", broken)
    monkeypatch.setattr(doctor, "_self_test", lambda: doctor.Check("self-test", "ok", "not run"))
    code, out, _ = cli("doctor", "--json")
    assert code == 0
    assert any(
        check["status"] == "warn" and check["text"] == "cannot be checked: no answer"
        for check in json.loads(out)["checks"]
    )


def test_a_read_only_folder_of_machine_code_names_the_variable(monkeypatch, tmp_path):
    from robot_dyn_id.kernels import stored

    monkeypatch.setattr(stored, "find_stored_kernels", lambda: stored.StoredKernels(5, 0, tmp_path))
    assert "nothing" in doctor._kernels().action and doctor._kernels().status == "warn"
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert "NUMBA_CACHE_DIR" in doctor._kernels().action


def test_watch_prints_one_snapshot_of_a_running_graph(world):
    from sensor_msgs.msg import JointState

    publisher = world.probe.create_publisher(JointState, "/arm/joint_states", DEEP)
    world.probe.create_timer(0.02, lambda: publisher.publish(JointState(name=["a"], position=[0.0])))
    command = [*COMMAND, "watch", "--once", "--json", "--wait", "6", "--namespace", "/arm"]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + HANG_S
        while process.poll() is None and time.monotonic() < end:
            world.wait(0.2)
        out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    (states,) = json.loads(out)["joint_states"]
    assert states["topic"] == "/arm/joint_states" and states["rate"] > 5.0


@pytest.mark.parametrize("words", [["--wait", "0"], ["--namespace", "arm"]])
def test_wrong_options_of_watch_are_refused(words, cli):
    assert cli("watch", *words)[0] == 2
