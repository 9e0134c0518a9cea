# SPDX-License-Identifier: Apache-2.0
"""Calls at a high rate, which the loop around an executor makes."""

import time
from contextlib import contextmanager

import pytest
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from robot_dyn_id.nodes.runtime.pacing import PacedCall
from robot_dyn_id.nodes.runtime.running import PATIENCE, make_executor, spin

PERIOD_S = 0.002


def test_calls_stay_on_their_grid_and_late_ones_are_left_out():
    made = []
    call = PacedCall(0.25, lambda: made.append(True))
    call.due = 1.0
    for now, count, due in ((0.9, 0, 1.0), (1.0, 1, 1.25), (1.2, 1, 1.25), (1.3, 2, 1.5), (2.6, 3, 2.75)):
        call.make(now)
        assert (len(made), call.due) == (count, due), now


@contextmanager
def node_in(make):
    context = Context()
    context.init()
    node, executor = Node("plain", context=context), make(context=context)
    executor.add_node(node)
    yield node, executor
    executor.shutdown()
    node.destroy_node()
    context.shutdown()


@pytest.mark.real_time
@pytest.mark.parametrize("make", [SingleThreadedExecutor, make_executor])
def test_callbacks_and_paced_calls_take_turns_until_a_call_ends_them(make):
    with node_in(make) as (node, executor):
        calls, ticks, begin = [], [], time.monotonic()

        def call():
            calls.append(time.monotonic())
            if len(calls) == 100:
                node.paced_call.cancel()

        node.create_timer(0.02, lambda: ticks.append(True))
        node.paced_call = PacedCall(PERIOD_S, call)
        assert spin(executor, lambda: len(calls) == 100 and len(ticks) > 5, PATIENCE)
        assert calls[-1] - begin >= 100 * PERIOD_S
        spin(executor, lambda: False, 0.1)
        assert len(calls) == 100


@pytest.mark.real_time
def test_an_executor_that_has_always_something_to_do_makes_paced_calls():
    with node_in(make_executor) as (node, executor):
        calls = []
        node.create_timer(1e-4, lambda: time.sleep(1e-3))
        node.paced_call = PacedCall(PERIOD_S, lambda: calls.append(True))
        assert spin(executor, lambda: len(calls) > 2, PATIENCE)
