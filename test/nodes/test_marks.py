# SPDX-License-Identifier: Apache-2.0
"""The mark `real_time`: tests of running nodes have it, all others do not."""

import inspect
import re


def test_a_test_without_a_running_node_is_not_marked(request):
    assert request.node.get_closest_marker("real_time") is None


def test_a_test_with_a_world_is_one_of_running_nodes(request, world):
    assert request.node.get_closest_marker("real_time")


def test_tests_that_start_processes_are_marked(request):
    """Check the tests that are collected together with this one."""
    here = [item for item in request.session.items if request.path.parent in item.path.parents]
    plain = [item for item in here if not item.get_closest_marker("real_time") and item.function.__module__ != __name__]
    starts = re.compile(r"subprocess\.|\b(child|run_program|run_python)\(")
    assert not [item.nodeid for item in plain if starts.search(inspect.getsource(item.function))]
