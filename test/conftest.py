# SPDX-License-Identifier: Apache-2.0
"""DDS of the tests stays on this host, in a domain reserved for this process: no test meets a robot or another test."""

import os
import re

import pytest

from robot_dyn_id.nodes.runtime.isolation import keep_to_this_host

# As the commands have it; and two test processes with threads on every core would stand in one another's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
keep_to_this_host(listen=False)


def pytest_ignore_collect(collection_path, config):
    """With `-m real_time`, do not even import a test file without such tests: each worker would, for a quarter minute."""
    if config.option.markexpr == "real_time" and collection_path.suffix == ".py":
        return re.search(r"\b(world|real_time)\b", collection_path.read_text(encoding="utf-8")) is None or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark tests of running nodes, whose deadlines need a computer with time to spare.

    They use the fixture `world`, or start processes and have the mark `real_time` of their own. Such a test is run
    again once if it fails, and pytest lists it as rerun; `make test` then runs what still fails alone.
    """
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker("real_time")
        if item.get_closest_marker("real_time") and config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture
def world():
    from support.ros_world import World  # DDS reads the environment when it is loaded

    world = World()
    yield world
    world.close()
