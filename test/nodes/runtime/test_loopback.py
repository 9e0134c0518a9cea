# SPDX-License-Identifier: Apache-2.0
"""The self-test of the middleware in the domain of the tests."""

import pytest

from robot_dyn_id.nodes.runtime import loopback
from robot_dyn_id.nodes.runtime.loopback import exchange_message


@pytest.mark.real_time
def test_a_message_arrives_and_nothing_stays_in_the_graph(world):
    found = exchange_message(10.0)
    assert found.seconds is not None and 0.0 < found.seconds < 10.0
    assert found.middleware.startswith("rmw_")
    assert not any("doctor" in name for name in found.others)
    world.wait(0.5)
    assert exchange_message(10.0).seconds is not None  # it can be repeated in one process


def test_a_part_that_cannot_be_made_leaves_no_other_behind(monkeypatch):
    ended = []

    def fails(**_):
        raise RuntimeError("no executor")

    monkeypatch.setattr(loopback, "SingleThreadedExecutor", fails)
    shutdown = loopback.rclpy.try_shutdown
    monkeypatch.setattr(
        loopback.rclpy, "try_shutdown", lambda context: ended.append(context) or shutdown(context=context)
    )
    with pytest.raises(RuntimeError, match="no executor"):
        exchange_message(1.0)
    assert len(ended) == 1 and not ended[0].ok()
