# SPDX-License-Identifier: Apache-2.0
"""Layouts of Foxglove, PlotJuggler and RViz: every topic is one of the nodes', and every field one of its message."""

import importlib
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

from robot_dyn_id.nodes.runtime.robot_node import DIAGNOSTICS, PUBLISHES
from robot_dyn_id.nodes.tables import NODES

CONFIG = Path(__file__).resolve().parents[2] / "config"

TYPES = {
    "/" + interface.name.lstrip("/"): interface.type
    for node in NODES
    for interface in (*node.INTERFACES, DIAGNOSTICS)
    if interface.kind == PUBLISHES
}
"""Types of the published topics of a graph without namespace."""


def foxglove_paths():
    for panel in json.loads((CONFIG / "foxglove.json").read_text())["configById"].values():
        yield from (path["value"] for path in panel.get("paths", ()))


def plotjuggler_paths():
    tree = ElementTree.parse(CONFIG / "plotjuggler.xml")
    for curve in tree.iter("curve"):
        _, topic, field = curve.get("name").split("/", 2)
        yield f"/{topic}.{field.replace('/', '.')}"


def check_field(path):
    """A field of the message of a topic, down to a number."""
    topic, *fields = path.split(".")
    fields_of = TYPES[topic].get_fields_and_field_types()
    for position, field in enumerate(fields):
        name, index = re.fullmatch(r"(\w+)(\[\d+\])?", field).groups()
        kind = fields_of[name]
        assert ("sequence" in kind or "[" in kind) == (index is not None), path
        if position + 1 < len(fields):
            package, message = kind.split("/")
            fields_of = getattr(importlib.import_module(f"{package}.msg"), message).get_fields_and_field_types()
    assert re.match(r"(sequence<)?(double|float|boolean|u?int\d+)", kind), path


@pytest.mark.parametrize("paths", [foxglove_paths, plotjuggler_paths])
def test_every_curve_is_a_number_of_a_published_message(paths):
    found = list(paths())
    assert len(found) > 20
    for path in found:
        check_field(path)


def test_other_panels_of_foxglove_show_published_topics():
    layout = json.loads((CONFIG / "foxglove.json").read_text())
    panels = layout["configById"]
    topics = [
        value for panel in panels.values() for key, value in panel.items() if key in ("topicPath", "topicToRender")
    ]
    topics += [topic for panel in panels.values() for topic in panel.get("topics", {})]
    topics += [layer["topic"] for panel in panels.values() for layer in panel.get("layers", {}).values()]
    assert set(topics) <= set(TYPES)
    named = re.findall(r'"((?:Plot|RawMessages|3D|DiagnosticSummary)!\w+)"', json.dumps(panels["Tab!main"]))
    assert sorted(named) == sorted(name for name in panels if name != "Tab!main")
    assert layout["layout"] == "Tab!main"


def test_displays_of_rviz_show_published_topics():
    layout = yaml.safe_load((CONFIG / "robot.rviz").read_text())
    types = {"RobotModel": "String", "Wrench": "WrenchStamped", "MarkerArray": "visualization_msgs/msg/MarkerArray"}
    for display in layout["Visualization Manager"]["Displays"]:
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            kind = TYPES[topic["Value"]]
            assert types[display["Class"].partition("/")[2]] == (kind if isinstance(kind, str) else kind.__name__)
