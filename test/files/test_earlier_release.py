# SPDX-License-Identifier: Apache-2.0
"""Files of version 0.1.0: each is read with equal values, or refused with what to do; docs/installation.md has the list."""

from pathlib import Path

import numpy as np
import pytest

from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.flexible import read_flexible
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.files.payload import read_declared, read_payload
from robot_dyn_id.files.trajectory import read_trajectory
from robot_dyn_id.nodes.runtime.parameter_files import refuse_renamed_sections
from robot_dyn_id.nodes.runtime.ros_parameters import list_ros_parameters
from robot_dyn_id.nodes.tables import NODES
from robot_dyn_id.recordings import open_recording

FILES = Path(__file__).parent / "release_0_1_0"


@pytest.mark.parametrize("name", ["motion.npz", "motion.csv", "bag", "bag/bag_0.mcap"])
def test_recordings_are_read_with_equal_values(name):
    written = np.load(FILES / "motion.npz")
    recording = open_recording(FILES / name)
    assert set(recording.joint_names) == set(written["joint_names"])
    chunks = list(recording.chunks([str(joint) for joint in written["joint_names"]]))
    for channel in ("q", "dq", "tau"):
        found = np.concatenate([getattr(chunk, channel) for chunk in chunks])
        np.testing.assert_array_equal(found, written[channel])
    np.testing.assert_allclose(np.concatenate([chunk.t for chunk in chunks]), written["t"], atol=1e-9)  # stamps in ns


def test_drive_gains_and_configurations_are_read_with_equal_values():
    drives = read_configuration(FILES / "gains.yaml").settings.drives
    assert {name: (drive.gain, drive.sign) for name, drive in drives.items()} == {
        "shoulder": (9.99599207917937, 1),
        "elbow": (7.997252937329582, -1),
        "wrist": (5.00249314199562, 1),
    }
    settings = read_configuration(FILES / "configuration.yaml").settings
    assert (settings.estimator.name, settings.reversal_speed) == ("stepwise", 0.15)
    assert [term.name for term in settings.terms] == ["viscous", "coulomb"]
    assert settings.terms[1].smoothing_width == 0.005
    demands = read_design_settings(FILES / "design.yaml")
    demand = demands.demand
    assert (demands.form, demand.harmonics, demand.period, demand.periods) == ("fourier", 5, 8.0, 2)
    assert (demands.margin, demands.clearance) == (0.05, 0.0)


@pytest.mark.parametrize(
    ("read", "remedy"),
    [
        (read_parameters, "identify the robot again with this version"),
        (read_trajectory, "design the trajectory again with this version"),
        (read_payload, "identify the payload again with this version"),
        (lambda file: read_declared(file, "l3"), "identify the payload again with this version"),
        (read_flexible, "identify the flexible joints again with this version"),
    ],
    ids=["parameters", "trajectory", "payload", "payload as declared", "flexible"],
)
def test_results_are_refused_with_what_to_do(read, remedy, request):
    file = FILES / f"{request.node.callspec.id.split()[0]}.yaml"
    with pytest.raises(RobotDynIdError) as error:
        read(file)
    assert f"{file}: format_version is missing" in error.value.message
    assert remedy in error.value.message
    assert error.value.action.startswith(remedy)


def test_names_that_have_changed_are_refused_with_the_present_ones():
    with pytest.raises(RobotDynIdError, match=r"known_payload\.yaml: \w+: is now spelled center_of_mass"):
        read_payload(FILES / "known_payload.yaml")
    parameters = {node.NAME: [row.name for row in list_ros_parameters(node.SETTINGS)] for node in NODES}
    refuse_renamed_sections(FILES / "nodes.yaml", parameters.__getitem__)  # its sections have kept their names
