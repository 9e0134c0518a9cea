# SPDX-License-Identifier: Apache-2.0
"""The small form of the fault suite (`make soak` is the large one): it finds faults, and finds none in the package."""

import sys
from pathlib import Path

import pytest
from support.processes import run_program, run_python

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"


HARMFUL = """
import os, signal, sys, time
from pathlib import Path
from faults import fuzz

def case(folder, rng):
    number = int((folder / "count").read_text())
    (folder / "count").write_text(str(number + 1))
    if number == 2:
        raise ValueError("undeclared")
    if number == 4:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number in (6, 12):  # a case that took too long is repeated once
        time.sleep(60.0)
    if number == 8:
        bytearray(2 * fuzz.MEMORY_B)
    if number == 10:
        from robot_dyn_id.errors import InputError
        raise InputError("declared")

folder = Path(sys.argv[1])
(folder / "count").write_text("0")
fuzz.HANG_S = 1.0
fuzz.TARGETS["harmful"] = fuzz.Target("harmful", case)
result, broken = fuzz.run("harmful", 12, folder)
print(result.runs, result.failures, result.verdict)
for number, text in sorted(broken.items()):
    print(number, text)
"""


def test_the_fuzzer_detects_every_kind_of_harm(tmp_path):
    done = run_python(HARMFUL, tmp_path, cwd=BENCHMARKS)
    assert done.stdout.splitlines() == [
        "12 4 BROKEN",
        "2 ValueError in <string>:10: 'undeclared'",
        "4 the process ended by signal 11",
        "6 took longer than 1 s",
        "8 MemoryError in <string>:16: ''",
    ], done.stderr


@pytest.mark.slow
def test_mutated_files_and_messages_cause_declared_errors_only():
    done = run_program(sys.executable, "-m", "faults.fuzz", "--cases", 40, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def kept(results):
    assert results
    for result in results:
        assert result.verdict == "kept", result


def test_a_robot_whose_excitation_publisher_is_killed_comes_to_rest(world, tmp_path):
    from faults import kills

    kept(kills.run(world, tmp_path, 1, ["excitation_publisher"], ["running"]))


def test_a_killed_recorder_leaves_a_bag_that_is_read_and_recovered(world, tmp_path):
    from faults import kills

    kept(kills.run(world, tmp_path, 1, ["recorder"], ["recording"]))


def test_faulty_joint_states_end_no_node_and_flood_no_log(world, tmp_path):
    """One start of all nodes for both faults; by the robot's time, which a busy computer slows down."""
    from faults import cell, streams

    with cell.cell(world, tmp_path, "streams", simulated_time=True) as nodes:
        trial = streams.Trial(nodes)
        for fault in ("joint states, NaN or infinity in each", "frozen stamps"):
            assert trial.run(streams.FAULTS[fault], 2.0) == "", fault
        assert not nodes.others_alive()
        trial.close()


def test_fuzzed_bytes_are_refused_on_every_subscription_of_nodes_that_move_a_robot(world, tmp_path):
    from faults import subscriptions

    chosen = ["computed_torque_controller", "gravity_compensator", "excitation_publisher"]
    results = subscriptions.run(world, tmp_path, 3, chosen)
    kept(results)
    live = {result.fault.rpartition(" ")[2] for result in results}
    for name in chosen:
        make, _ = subscriptions.nodes(tmp_path)[name]
        topics = {one.name.removeprefix("~/") for one in make.INTERFACES if one.kind == "subscribes"}
        assert all(any(topic.endswith(wanted) for topic in live) for wanted in topics)


def test_a_full_disk_ends_the_motion_and_no_node(world, tmp_path):
    from faults import disks

    kept(disks.run(world, tmp_path, 1, ["disk full while recording"]))
