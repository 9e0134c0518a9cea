"""The page about the nodes says what the nodes declare, and every node can be started."""

from pathlib import Path

import pytest

from robot_dyn_id.nodes.tables import NODES, markdown

ROOT = Path(__file__).parents[1]


def test_the_page_is_that_of_the_code():
    assert (ROOT / "docs" / "nodes.md").read_text() == markdown()


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.NAME)
def test_every_node_is_an_executable(node):
    module = node.__module__.split(".", 1)[1]
    line = f"install_executable({node.NAME} ${{PROJECT_NAME}}.{module})"
    assert line in (ROOT / "CMakeLists.txt").read_text().splitlines()
