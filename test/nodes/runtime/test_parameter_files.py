# SPDX-License-Identifier: Apache-2.0
"""Sections of nodes that were renamed after version 0.1.0, in files of ROS parameters."""

import pytest

from robot_dyn_id.errors import InputError
from robot_dyn_id.nodes.runtime.parameter_files import (
    RENAMED_NODES,
    refuse_renamed_section_of,
    refuse_renamed_sections,
)
from robot_dyn_id.nodes.runtime.ros_parameters import list_ros_parameters
from robot_dyn_id.nodes.tables import NODES

PARAMETERS = {node.NAME: [row.name for row in list_ros_parameters(node.SETTINGS)] for node in NODES}
CONTROLLER = "computed_torque_controller"


@pytest.fixture
def written(tmp_path):
    def write(text):
        file = tmp_path / "nodes.yaml"
        file.write_text(text)
        return file

    return write


@pytest.mark.parametrize(
    ("section", "present"),
    [
        ("controller: {ros__parameters: {effort_limit: [10.0], use_sim_time: true}}", f"section {CONTROLLER} "),
        ("/**/monitor: {ros__parameters: {rate: 50.0}}", r"section /\*\*/torque_residual_monitor "),
        ("left: {controller: {ros__parameters: {law: computed_torque}}}", f"section left/{CONTROLLER} "),
        ("/left/controller: {ros__parameters: {latency: 1.0}}", f"section /left/{CONTROLLER} "),
    ],
)
def test_a_section_of_a_renamed_node_is_refused_with_its_present_name(written, section, present):
    with pytest.raises(InputError, match=present):
        refuse_renamed_sections(written(f"recorder: {{ros__parameters: {{}}}}\n{section}\n"), PARAMETERS.__getitem__)


@pytest.mark.parametrize(
    "section",
    [
        "controller: {ros__parameters: {effort_limit: [10.0], joints: [a]}}",
        "controller: {ros__parameters: {use_sim_time: true}}",
        "controller: {ros__parameters: {}}",
        "controller_manager: {ros__parameters: {effort_limit: [10.0]}}",
        "/controller/driver: {ros__parameters: {latency: 1.0}}",
        f"{CONTROLLER}: {{ros__parameters: {{effort_limit: [10.0]}}}}",
    ],
)
def test_a_section_of_another_package_is_accepted(written, section):
    refuse_renamed_sections(written(section), PARAMETERS.__getitem__)


def test_a_node_refuses_its_own_former_section_alone(written):
    arguments = ["node", "--ros-args", "--params-file", str(written("controller: {ros__parameters: {law: a}}"))]
    with pytest.raises(InputError, match=f"now called {CONTROLLER}"):
        refuse_renamed_section_of(CONTROLLER, PARAMETERS[CONTROLLER], arguments)
    refuse_renamed_section_of("recorder", PARAMETERS["recorder"], arguments)
    refuse_renamed_section_of(CONTROLLER, PARAMETERS[CONTROLLER], [*arguments, "-r", "__node:=controller"])


def test_a_file_that_only_rcl_can_read_does_not_keep_a_node_from_starting(written):
    file = written("a: {ros__parameters: {rate: 1.0}}\na: {ros__parameters: {rate: 2.0}}")
    refuse_renamed_section_of(CONTROLLER, PARAMETERS[CONTROLLER], ["node", "--params-file", str(file)])


def test_present_names_are_those_of_nodes():
    assert set(RENAMED_NODES.values()) <= set(PARAMETERS)
    assert not set(RENAMED_NODES) & set(PARAMETERS)
