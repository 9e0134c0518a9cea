# SPDX-License-Identifier: Apache-2.0
"""A motion in pieces from the excitation publisher to the simulator over real DDS, by a clock of others and by the simulator's own."""

from pathlib import Path

import pytest
from rcl_interfaces.msg import Log
from robot_dyn_id.msg import ExcitationStatus as Status
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR
from robot_dyn_id.nodes.simulator import Simulator

ARM = Path(__file__).resolve().parents[2] / "urdf" / "arm7.urdf"


@pytest.mark.parametrize(
    ("simulator", "publisher"),
    [
        ({}, {}),
        # what stamps and points are cut from grows in steps of 5 ms
        ({"clock": True}, {"use_sim_time": True, "rate": 200.0}),
    ],
    ids=["clock of others", "coarse clock"],
)
def test_an_excitation_in_pieces_is_followed_to_its_end(world, simulator, publisher):
    """Slowly, in long pieces: a busy computer may hold the node up for seconds."""
    if "clock" not in simulator:
        world.keep_time()
    statuses = world.heard(Status, "excitation_status", LATCHED)
    log = world.heard(Log, "/rosout", RELIABLE)
    states = world.heard(JointState, "joint_states", SENSOR)
    world.add(Simulator, parameters={"urdf": str(ARM), "rate": 200.0, "publish_rate": 200.0, **simulator})
    world.add(
        ExcitationPublisher,
        parameters={
            "urdf": str(ARM),
            "rehearsal": False,
            "period": 4.0,
            "velocity_scale": 0.05,
            "latency": 2.0,
            "acceleration": [10.0],
            **publisher,
        },
    )
    world.until(lambda: statuses and statuses[-1].state == Status.READY)
    world.until(lambda: world.call(Trigger, "excitation_publisher/start").success, what="start")
    world.until(lambda: statuses[-1].state in (Status.DONE, Status.FAULT), what="end of the excitation")
    assert statuses[-1].state == Status.DONE, statuses[-1].reason
    world.until(lambda: max(abs(speed) for speed in states[-1].velocity) < 0.01)
    # a message that a busy computer brings too late is rightly refused, and the one before it holds the way
    refused = [message.msg for message in log if "refused" in message.msg and "in the past" not in message.msg]
    assert not refused
