"""DDS of the tests stays on this host, in a domain of this process: no test meets a robot or another test."""

import os

import pytest

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# Domain 0 is everybody's; above 101 the ports of DDS run into those that Linux hands out.
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)


@pytest.fixture
def world():
    from ros_world import World  # DDS reads the environment when it is loaded

    world = World()
    yield world
    world.close()
