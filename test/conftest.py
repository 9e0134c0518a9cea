# SPDX-License-Identifier: Apache-2.0
"""DDS of the tests stays on this host, in a domain reserved for this process: no test meets a robot or another test."""

import gc
import os
import signal
import sys

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
    """Mark tests of running nodes: those that use the fixture `world`; others that start nodes have the mark already."""
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker("real_time")


@pytest.fixture
def world():
    from support.ros_world import World  # DDS reads the environment when it is loaded

    world = World()
    yield world
    world.close()
