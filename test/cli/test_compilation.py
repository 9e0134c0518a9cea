# SPDX-License-Identifier: Apache-2.0
"""Compilation in a second process."""

import importlib
import multiprocessing
import os
import time

import pytest
from support.processes import HANG_S
from support.second_process import FILE, fail, report, report_and_stay

from robot_dyn_id.cli import compilation
from robot_dyn_id.cli.compilation import LOWER_PRIORITY, announce_compilation, compiling
from robot_dyn_id.kernels.compiled import COMPILED

LOWEST_PRIORITY = 19
"""Lowest priority that a process can have."""


@pytest.fixture
def written(tmp_path, monkeypatch):
    path = tmp_path / "process"
    monkeypatch.setenv(FILE, str(path))
    monkeypatch.setattr(compilation, "count_cores", lambda: 2)
    return path


def wait_for(path):
    end = time.monotonic() + HANG_S
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    number, nice = path.read_text().split()
    return int(number), int(nice)


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_another_process_compiles_and_gives_way_to_this_one(written):
    with compiling(report):
        number, nice = wait_for(written)
    assert number != os.getpid() and nice == min(os.nice(0) + LOWER_PRIORITY, LOWEST_PRIORITY)


@pytest.mark.slow
def test_it_ends_with_the_command(written):
    with pytest.raises(KeyboardInterrupt), compiling(report_and_stay):
        number, _ = wait_for(written)
        assert is_alive(number)
        raise KeyboardInterrupt
    assert not is_alive(number)


@pytest.mark.slow
def test_a_failure_there_is_not_one_of_the_command(written, capfd):
    with compiling(report, fail):
        wait_for(written)
        (process,) = multiprocessing.active_children()
        process.join(HANG_S)
        assert process.exitcode == 0
    assert capfd.readouterr().err == ""


def test_on_one_core_there_is_none(written, monkeypatch):
    monkeypatch.setattr(compilation, "count_cores", lambda: 1)
    with compiling(report):
        assert not multiprocessing.active_children()


KERNEL = "from robot_dyn_id.kernels.compiled import compiled\n\n\n@compiled\ndef twice(x):\n    return 2.0 * x\n"


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
def test_what_is_compiled_first_is_announced_once(tmp_path, monkeypatch, capfd):
    (tmp_path / "one_kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = importlib.import_module("one_kernel").twice
    announce_compilation(kernel)
    assert "are compiled, once" in capfd.readouterr().err
    assert kernel(1.5) == 3.0
    announce_compilation(kernel)
    assert capfd.readouterr().err == ""
