# SPDX-License-Identifier: Apache-2.0
"""The SROS2 policy of `config/` is that of the declared interfaces, and running nodes need nothing else."""

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.commanded import save_actuators

from robot_dyn_id.actuators.model import ActuatorModel
from robot_dyn_id.kernels.actuators import KINDS
from robot_dyn_id.nodes.access_policy import ENCLAVES, make_policy
from robot_dyn_id.nodes.payload.drivers import DRIVERS
from robot_dyn_id.nodes.payload_identifier import PayloadIdentifier
from robot_dyn_id.nodes.runtime.robot_node import RELIABLE
from robot_dyn_id.nodes.tables import NODES

ROOT = Path(__file__).resolve().parents[2]
ARM = ROOT / "urdf" / "arm7.urdf"
NAMESPACE = "/secured"


def test_the_policy_is_the_generated_one():
    assert (ROOT / "config" / "sros2_policy.xml").read_text() == make_policy()


def test_the_documentation_makes_an_enclave_for_every_node():
    page = (ROOT / "docs" / "security.md").read_text()
    (listed,) = re.findall(r"^for node in (.*?); do$", page, re.DOTALL | re.MULTILINE)
    assert sorted(listed.replace("\\\n", "").split()) == sorted(node.NAME for node in NODES)


def test_each_rule_gives_one_permission_and_no_name_is_a_pattern():
    root = ElementTree.fromstring(make_policy())
    assert (root.tag, root.get("version")) == ("policy", "0.2.0")
    assert [enclave.get("path") for enclave in root.iter("enclave")] == [f"{ENCLAVES}/{node.NAME}" for node in NODES]
    for profile in root.iter("profile"):
        for rules in profile:
            assert len(rules.attrib) == 1
            assert set(rules.attrib.values()) == {"ALLOW"}
            assert not any("*" in name.text for name in rules)


def allowed(name):
    """Full names by permission, as SROS2 resolves those of the profile."""
    (profile,) = (p for p in ElementTree.fromstring(make_policy(NAMESPACE)).iter("profile") if p.get("node") == name)
    prefix = profile.get("ns")
    found = {}
    for rules in profile:
        (permission,) = rules.attrib
        for text in (rule.text for rule in rules):
            full = text if text.startswith("/") else f"{prefix}/{text.replace('~', name, 1)}"
            found.setdefault(permission, set()).add(full)
    return found


def needs(world, name):
    """Interfaces of a running node by permission; parts of actions stand for the action."""
    graph = world.probe
    names = {
        "publish": graph.get_publisher_names_and_types_by_node(name, NAMESPACE),
        "subscribe": graph.get_subscriber_names_and_types_by_node(name, NAMESPACE),
        "reply": graph.get_service_names_and_types_by_node(name, NAMESPACE),
        "request": graph.get_client_names_and_types_by_node(name, NAMESPACE),
    }
    found = {}
    for kind, entries in names.items():
        for full, _ in entries:
            permission = kind
            stem, part, _ = full.partition("/_action/")
            if part:
                permission = "execute" if permission in ("publish", "reply") else "call"
            found.setdefault(permission, set()).add(stem)
    return found


ACTIONS = importlib.util.find_spec("control_msgs") is not None

# what a node sets up depends on its parameters: with files and without, by topics and by actions
VARIANTS = {
    "excitation_publisher": (
        {"urdf": str(ARM), "start": True, "runs": 2},
        {"urdf": str(ARM), "dry_run": True},
        {"mode": "action"} if ACTIONS else {},
    ),
    "simulator": (
        {"urdf": str(ARM)},
        {},
        {"model": "parameters"},
        {"model": "actuators"},
        {"urdf": str(ARM), "clock": True},
        {"urdf": str(ARM), "payload": "body.yaml"},
        {"urdf": str(ARM), "actuators": "actuators.yaml"},
        {"urdf": str(ARM), "base_wrench": True},
    ),
    "recorder": ({"start": True, "folder": "bag"},),
    "identifier": ({"urdf": str(ARM)}, {}, {"model": "actuators"}),
    "payload_identifier": (
        {"urdf": str(ARM), "link": "link7"},
        {"link": "link7"},
        *(
            {"link": "link7", "driver": driver}
            for driver in ("ur", "franka")
            if importlib.util.find_spec(DRIVERS[driver].package)
        ),
    ),
    "computed_torque_controller": ({"urdf": str(ARM)}, {}),
    "marker_publisher": ({},),
    "torque_residual_monitor": ({},),
    "external_torque_estimator": ({},),
    "gravity_calibrator": ({"urdf": str(ARM)}, {}),
    "gravity_compensator": ({},),
}


SELDOM = (
    *(f"{name}/{verb}" for name in PayloadIdentifier.COMPANIONS for verb in ("start", "rehearse")),
    *("io_and_status_controller/set_payload", "service_server/set_load", "identifier_recording_status"),
)
"""Services of nodes that are there during a motion, and of drivers whose packages may not be installed."""

BODY = "{link: link7, mass: 1.0, center_of_mass: [0, 0, 0], inertia: {ixx: 1, ixy: 0, iyy: 1, ixz: 0, iyz: 0, izz: 1}}"


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.NAME)
def test_running_nodes_need_no_more_than_the_policy_allows(world, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body.yaml").write_text(BODY)
    drives = ActuatorModel.from_values([f"joint{number}" for number in range(1, 8)], np.ones((len(KINDS), 7)))
    save_actuators(tmp_path / "actuators.yaml", drives, ARM.read_text())
    world.probe.create_publisher(JointState, f"{NAMESPACE}/joint_states", RELIABLE)
    used = {}
    for parameters in VARIANTS[kind.NAME]:
        node = world.add(kind, parameters=parameters, namespace=NAMESPACE)
        node.namesakes._listen()  # as when another node of its name is in the graph
        world.until(lambda: len(needs(world, kind.NAME).get("publish", ())) > 2)
        world.wait(0.3)
        for permission, names in needs(world, kind.NAME).items():
            used.setdefault(permission, set()).update(names)
        world.remove(node)
        world.until(lambda: (kind.NAME, NAMESPACE) not in world.probe.get_node_names_and_namespaces())
    permitted = allowed(kind.NAME)
    for permission, names in used.items():
        assert names <= permitted.get(permission, set()), permission
    # and least: what is allowed is used, but for what only some distributions or simulated time bring
    seldom = {*(f"{NAMESPACE}/{text}" for text in SELDOM), "/clock", f"{NAMESPACE}/{kind.NAME}/get_type_description"}
    if not ACTIONS:
        seldom.add(f"{NAMESPACE}/joint_trajectory_controller/controller_state")
    for permission, names in permitted.items():
        if permission in ("call", "execute") and not ACTIONS:
            continue
        assert names - seldom <= used.get(permission, set()), permission
