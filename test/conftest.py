# SPDX-License-Identifier: Apache-2.0
"""DDS of the tests stays on this host, in a domain reserved for this process: no test meets a robot or another test."""

import gc
import os
import signal
import sys
from itertools import groupby
from operator import itemgetter

import pytest

from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

# As the commands have it; and two test processes with threads on every core would stand in one another's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
keep_to_this_host(listen=False)

# A shell starts a job in the background with SIGINT and SIGQUIT ignored, nohup one with SIGHUP; the processes of the tests
# would inherit it, but have the default of what is handled here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)


def pytest_addoption(parser):
    parser.addoption("--no-processes", action="store_true", help="skip a test where it starts a program")


def pytest_configure(config):
    gc.disable()  # tests that are collected stay: to search them for cycles would take a sixth of the time until the first
    if config.option.no_processes:
        sys.addaudithook(skip_programs)


def skip_programs(event, _):
    """Audit hook: between tests, pytest-xdist starts its workers."""
    if event == "subprocess.Popen" and "PYTEST_CURRENT_TEST" in os.environ:
        pytest.skip("starts a program")


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests of running nodes, and spread their modules over the run.

    They use the fixture `world`; others that start nodes have the mark already. They mostly wait, and others compute
    meanwhile: each process has tests of both kinds from its first to its last.
    """
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker("real_time")
    waiting, computing = [], []
    for _, module in groupby(items, key=lambda item: item.path):
        module = list(module)
        waits = any(item.get_closest_marker("real_time") for item in module)
        (waiting if waits else computing).append(module)
    placed = [*list_places(waiting), *list_places(computing)]
    items[:] = [item for _, module in sorted(placed, key=itemgetter(0)) for item in module]


def list_places(modules):
    """Modules with the share of their tests that comes before the middle of each."""
    count, before = sum(map(len, modules)), 0
    for module in modules:
        yield (before + len(module) / 2) / count, module
        before += len(module)


@pytest.fixture
def world():
    from support.ros_world import World  # DDS reads the environment when it is loaded

    world = World()
    yield world
    world.close()
