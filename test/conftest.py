"""DDS of the tests stays on this host, in a domain of this process: no test meets a robot or another test."""

import os

import pytest

# As the commands have it; and two test processes with threads on every core would stand in one another's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# Domain 0 is everybody's; above 101 the ports of DDS run into those that Linux hands out.
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """What a running node does in time is a truth only of a computer that gives it the time.

    A test that fails on a computer held up by others is run again, twice at most, and pytest lists it as rerun.
    """
    for item in items:
        if "world" in getattr(item, "fixturenames", ()):
            item.add_marker("real_time")
        if item.get_closest_marker("real_time") and config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture
def world():
    from ros_world import World  # DDS reads the environment when it is loaded

    world = World()
    yield world
    world.close()
