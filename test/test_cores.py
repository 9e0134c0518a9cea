# SPDX-License-Identifier: Apache-2.0
"""Computations on several cores: the same results as on one, bit for bit, whatever happens to a helper."""

import ast
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.designs import LITTLE, PLANAR, plan
from support.linear_problems import arm_problem, noisy
from support.processes import HANG_S, child, run_python
from support.simulated import TERMS, Simulated

from robot_dyn_id import cores
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.estimators.bootstrap import bootstrap_estimate
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings

ROBOT = Simulated()

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@pytest.fixture
def workers(monkeypatch):
    """Sets the number of workers, also in a process whose test runner has threads."""

    def use(count):
        monkeypatch.setattr(cores, "count_workers", lambda: count)

    use(3)
    return use


def processes_of(function, items):
    return list(cores.map_in_order(lambda item: (os.getpid(), function(item)), items))


def children():
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return {int(one) for one in listed}


def test_results_are_in_the_order_of_the_items_and_several_processes_share_the_work(workers):
    def slow(item):
        time.sleep(0.05 if item % 3 else 0.001)
        return np.full(3, item)

    before = children()
    found = processes_of(slow, range(12))
    assert [int(values[0]) for _, values in found] == list(range(12))
    assert len({process for process, _ in found}) > 1
    assert children() == before


def test_more_items_than_a_pipe_holds(workers, monkeypatch):
    monkeypatch.setattr(cores, "MOST_ITEMS", 4)
    assert [value for _, value in processes_of(lambda item: item, range(11))] == list(range(11))


def test_results_larger_than_the_buffer_of_a_pipe(workers):
    for item, values in enumerate(cores.map_in_order(lambda item: np.full(100_000, item), range(6))):
        assert values.shape == (100_000,)
        assert np.all(values == item)


def test_an_exception_is_raised_in_the_place_of_its_result(workers):
    def function(item):
        if item in (2, 4):
            raise ValueError(f"item {item}")
        return item

    found, before = [], children()
    with pytest.raises(ValueError, match="item 2"):
        for value in cores.map_in_order(function, range(8)):
            found.append(value)
    assert found == [0, 1]
    assert children() == before, "helpers end with the first exception"


def test_what_a_lost_helper_had_taken_is_computed_again(workers):
    own = os.getpid()

    def function(item):
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return item

    assert list(cores.map_in_order(function, range(6))) == list(range(6))


def test_a_result_that_cannot_be_pickled_is_computed_again_in_this_process(workers):
    found = list(cores.map_in_order(lambda item: lambda: item, range(4)))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(found[0])
    assert [function() for function in found] == [0, 1, 2, 3]


def test_helpers_end_when_no_more_results_are_wanted(workers):
    before = children()
    results = cores.map_in_order(lambda item: time.sleep(0.01) or item, range(100))
    assert next(results) == 0
    assert children() > before
    results.close()
    assert children() == before


def test_a_process_uses_the_cores_that_it_may_use():
    script = (
        "import os; from robot_dyn_id import cores; print(cores.count_workers() == min(cores.count_cores(), 8));"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); print(cores.count_workers())"
    )
    done = run_python(script, check=True)
    assert done.stdout.split() == ["True", "1"]


@pytest.mark.parametrize(
    "start",
    [
        "_thread.start_new_thread(lock.acquire, ())",  # threading does not know it
        "os.environ['OPENBLAS_NUM_THREADS'] = '2'; import numpy",
    ],
    ids=["unknown", "BLAS"],
)
def test_threads_of_libraries_prevent_forks(start):
    script = f"""
import _thread, os, time
from robot_dyn_id import cores
cores.count_cores = lambda: 2
lock = _thread.allocate_lock()
lock.acquire()
print(cores.count_workers())
{start}
time.sleep(0.01)
print(len(os.listdir("/proc/self/task")), cores.count_workers())
"""
    done = run_python(script, check=True)
    alone, threads, others = done.stdout.split()
    if threads == "1" and "numpy" in start:
        pytest.skip("this BLAS has no threads")
    assert (alone, threads, others) == ("2", "2", "1")


def test_threads_prevent_forks_except_a_companion_which_waits_for_them():
    """The thread of a progress bar: no fork is made while it draws."""
    script = """
import os, threading, time
from robot_dyn_id import cores
cores.count_cores = lambda: 2
ended, drawn = threading.Event(), []
def draw():
    while not ended.wait(0.001):
        with cores.fork_lock:
            drawn.append(os.getpid())
            time.sleep(0.02)
thread = threading.Thread(target=ended.wait)
thread.start()
print(cores.count_workers())
ended.set()
thread.join()
while cores.count_workers() == 1:  # joined before the system has ended it
    time.sleep(0.001)
ended.clear()
companion = cores.Companion(target=draw)
companion.start()
found = list(cores.map_in_order(lambda item: (time.sleep(0.05), cores.fork_lock.locked() and os.getpid())[1], range(8)))
print(cores.count_workers())
ended.set()
companion.join()
print(len({process for process in found if process != os.getpid() and process}), len(drawn) > 2)
"""
    done = run_python(script, check=True)
    assert done.stdout.split() == ["1", "2", "0", "True"]


ORPHANS = """
import os, sys, time
from robot_dyn_id import cores
cores.count_workers = lambda: 3
print("begun", flush=True)
def function(item):
    if os.getpid() != parent:
        with open(sys.argv[1] + "/" + str(os.getpid()), "w"):
            pass
        time.sleep(60)
    time.sleep(0.01)
    return item
parent = os.getpid()
for number in cores.map_in_order(function, range(100)):
    pass
"""


def test_helpers_end_with_this_process_and_hold_none_of_its_streams(tmp_path):
    with child([sys.executable, "-c", ORPHANS, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "begun\n"
        deadline = time.monotonic() + HANG_S
        while len(list(tmp_path.iterdir())) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        helpers = [int(one.name) for one in tmp_path.iterdir()]
        streams = [os.readlink(f"/proc/{one}/fd/{number}") for one in helpers for number in (1, 2)]
        assert streams == [os.devnull] * 4
        parent.kill()
        parent.wait()
        while any(is_running(one) for one in helpers):
            assert time.monotonic() < deadline, "helpers outlive their parent"
            time.sleep(0.02)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_helper_that_ends_while_another_process_holds_its_pipe_is_noticed(workers, monkeypatch):
    monkeypatch.setattr(cores, "CHECK_MS", 50)
    own = os.getpid()

    def function(item):
        if os.getpid() != own:
            if os.fork() == 0:
                time.sleep(20.0)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return item

    begun = time.monotonic()
    assert list(cores.map_in_order(function, range(6))) == list(range(6))
    assert time.monotonic() - begun < 15.0


def test_helpers_that_wait_forever_are_ended_and_their_items_computed_here(workers, monkeypatch):
    """As after a fork while another thread holds a lock."""
    monkeypatch.setattr(cores, "CHECK_MS", 20)
    monkeypatch.setattr(cores, "PATIENCE_S", 0.2)
    own, before, lock = os.getpid(), children(), threading.Lock()

    def function(item):
        if os.getpid() != own:
            with lock:
                lock.acquire()
        time.sleep(0.01)
        return item

    def stop(number, frame):
        raise TimeoutError("it waits forever, too")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    try:
        assert list(cores.map_in_order(function, range(6))) == list(range(6))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert children() == before


def test_helpers_whose_items_take_long_are_not_ended(workers, monkeypatch):
    monkeypatch.setattr(cores, "CHECK_MS", 20)
    monkeypatch.setattr(cores, "PATIENCE_S", 0.0)
    own = os.getpid()
    found = processes_of(lambda item: time.sleep(0.1 if os.getpid() == own else 0.3), range(4))
    assert len({process for process, _ in found}) == 3


class OnlyHere:
    """A result that only one process can restore."""

    def __init__(self, process):
        self.process = process

    def __reduce__(self):
        return restore, (self.process,)


def restore(process):
    if process != os.getpid():
        raise ValueError("of another process")
    return OnlyHere(process)


def test_a_result_that_cannot_be_restored_is_computed_again_in_this_process(workers):
    def function(item):
        time.sleep(0.02)
        return OnlyHere(os.getpid())

    assert {one.process for one in cores.map_in_order(function, range(6))} == {os.getpid()}


def test_quotas_of_control_groups_limit_the_cores(tmp_path, monkeypatch):
    own = tmp_path / "a" / "b"
    own.mkdir(parents=True)
    membership = tmp_path / "membership"
    membership.write_text("0::/a/b\n", encoding="utf-8")
    assert cores._quotas(tmp_path, membership) == []
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="utf-8")
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n", encoding="utf-8")
    (own / "cpu.max").write_text("20000 100000\n", encoding="utf-8")
    assert sorted(cores._quotas(tmp_path, membership)) == [1, 2]
    (tmp_path / "cpu.max").write_text("50000 100000\n", encoding="utf-8")
    monkeypatch.setattr(cores, "CONTROL_GROUPS", tmp_path)
    assert cores.count_cores() == 1


def test_many_cores_are_not_all_used_and_rclpy_prevents_forks():
    script = (
        "import sys; from robot_dyn_id import cores; cores.count_cores = lambda: 64; print(cores.count_workers());"
        "sys.modules['rclpy'] = sys; print(cores.count_workers()); del sys.modules['rclpy'];"
        "cores.use_one_core(); print(cores.count_workers())"
    )
    done = run_python(script, check=True)
    assert done.stdout.split() == ["8", "1", "1"]


def test_progress_of_a_bootstrap_is_reported_in_this_process(workers):
    problem, processes = arm_problem(noisy(1)), []
    estimator = WeightedLeastSquares(autoregressive_order=0)
    bootstrap_estimate(estimator, problem, estimator.fit(problem), 20, lambda stage: processes.append(os.getpid()))
    assert processes == [os.getpid()] * 21


def test_helpers_do_not_wait_for_a_stream_that_is_locked(workers):
    def function(item):
        print(item, file=sys.stderr)
        return item

    assert list(cores.map_in_order(function, range(6))) == list(range(6))


def test_a_thread_computes_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(cores.count_workers()))
    thread.start()
    thread.join()
    assert found == [1]


def test_helpers_and_limited_processes_compute_alone(workers):
    own, count = os.getpid(), cores._one_core.get
    slow = [(os.getpid(), count()) for _ in cores.map_in_order(time.sleep, [0.0])]
    assert slow == [(own, False)]
    found = processes_of(lambda item: (time.sleep(0.2), count())[1], range(8))
    assert {limited for process, limited in found if process != own} == {True}
    assert {limited for process, limited in found if process == own} == {False}


def numbers_of_design():
    found = design(plan(PLANAR).problem, OPTIMIZERS["gradient"], 1, SearchEffort(**{**LITTLE, "finished": 2}))
    return found.coefficients, found.history, found.evaluations, found.objective_value


def numbers_of_bootstrap():
    problem = arm_problem(noisy(1))
    estimate = WeightedLeastSquares().fit(problem)
    drawn = bootstrap_estimate(WeightedLeastSquares(autoregressive_order=0), problem, estimate, 20)
    return drawn.standard_deviations, drawn.intervals, drawn.covariance


def numbers_of_identification(settings):
    found = identify([ROBOT.record(duration=24.0, noise=0.5)], (), ROBOT.model, settings, "test")
    parameters = found.parameters
    return (
        parameters.estimate.values,
        parameters.estimate.covariance,
        np.array([joint.nrmse for joint in found.evaluation.held_out.joints]),
        [] if found.selection is None else [(row.name, row.loss, row.chosen) for row in found.selection.tried],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers",
    [
        numbers_of_design,
        numbers_of_bootstrap,
        lambda: numbers_of_identification(Settings(terms=TERMS, estimator=WeightedLeastSquares())),
        lambda: numbers_of_identification(Settings()),
    ],
    ids=["design", "bootstrap", "pinned_model", "chosen_model"],
)
def test_results_on_two_cores_are_those_on_one_bit_for_bit(numbers, workers):
    workers(1)
    alone = numbers()
    workers(2)
    together = numbers()
    assert pickle.dumps(together) == pickle.dumps(alone)


def test_linear_algebra_stays_in_its_thread_inside_the_block_alone():
    """Counted by another library, in a process whose BLAS has threads."""
    script = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "2"
import scipy.linalg, threadpoolctl
from robot_dyn_id.cores import one_blas_thread

def counts():
    return [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["internal_api"] == "openblas"]

print(counts())
with one_blas_thread():
    print(counts())
print(counts())
"""
    done = run_python(script, check=True)
    before, inside, after = (ast.literal_eval(line) for line in done.stdout.splitlines())
    if 2 not in before:
        pytest.skip("this BLAS has no threads")
    assert inside == [1] * len(before) and after == before


@pytest.mark.slow
def test_the_linear_algebra_of_a_node_has_no_threads():
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    script = (
        "import os\nfrom robot_dyn_id.nodes import executables, starting\n"
        "executables.run_executable = lambda name: print(name, os.environ['OPENBLAS_NUM_THREADS']) or 0\n"
        "starting.start('recorder')"
    )
    done = run_python(script, env=environment, check=True)
    assert done.stdout.split() == ["recorder", "1"]
