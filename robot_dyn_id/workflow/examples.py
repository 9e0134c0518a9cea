# SPDX-License-Identifier: Apache-2.0
"""Measured recordings that come with the package, each with the description of its robot."""

from __future__ import annotations

import contextlib
import os
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from robot_dyn_id.data.recording import Recording
from robot_dyn_id.errors import RobotDynIdError, UsageError, suggest_known
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically

MASS_PACKAGE = "example-robot-data"
"""Package with robot descriptions that masses are taken from, where it is installed."""

NO_MASSES = ""
"""Origin of the masses of a description without any."""


@dataclass(frozen=True)
class Example:
    """A measured recording that comes with the package, and the robot that it is of.

    Attributes:
        name: name of the example.
        title: one line on robot and recording.
        recording_file: the recording.
        license_file: license of the recording.
        description: the robot; its kinematics and limits are the published ones.
        masses: origin of the robot's masses; empty if it has none.
    """

    name: str
    title: str
    recording_file: Path
    license_file: Path
    description: RobotDescription = field(repr=False)
    masses: str

    @property
    def robot(self) -> RobotModel:
        """The robot."""
        return RobotModel.from_description(self.description)

    @property
    def recording(self) -> Recording:
        """The recording."""
        return open_recording(self.recording_file)

    @property
    def file_names(self) -> tuple[str, str, str]:
        """Names of the recording, the robot description and the license in a folder."""
        return self.recording_file.name, f"{self.name}.urdf", f"LICENSE.{self.recording_file.stem}"

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Copy the recording with its license, and write the robot description, for commands that read files.

        Args:
            folder: the folder, created if needed; files of these names are replaced.

        Returns:
            Paths of the recording and of the robot description.

        Raises:
            InputError: the folder cannot be written to.
        """
        recording, robot, terms = (make_output_folder(folder) / name for name in self.file_names)
        shutil.copyfile(self.recording_file, recording)
        shutil.copyfile(self.license_file, terms)
        write_atomically(robot, self.description.text)
        return recording, robot


@dataclass(frozen=True)
class _Source:
    """Files of an example in the shared folder, and where masses of its robot may be.

    Attributes:
        title: one line on robot and recording.
        recording: the recording.
        license: its license.
        robot: the robot description, without masses.
        masses: robot description of `MASS_PACKAGE`.
        links: its links, by the names of ours; their frames are the same.
    """

    title: str
    recording: str
    license: str
    robot: str
    masses: str
    links: Mapping[str, str]


EXAMPLES: Mapping[str, _Source] = {
    "franka": _Source(
        title="24 s of a Franka arm at 30 Hz (Automatic Control Group, University of Salerno; BSD-3-Clause)",
        recording="data/franka/panda_exciting_trajectory.db3",
        license="data/franka/LICENSE",
        robot="urdf/franka.urdf",
        masses="panda_description/urdf/panda.urdf",
        links={**{f"link{number}": f"panda_link{number}" for number in range(1, 8)}, "hand": "panda_hand"},
    ),
}
"""Examples by name."""


def load_example(name: str, with_masses: bool = False) -> Example:
    """Load a measured recording that comes with the package, and the robot that it is of.

    Example:
        ```python
        example = rdi.load_example("franka")
        print(example.title, example.robot.joint_names)
        recording_file, robot_file = example.save("franka")
        ```

    Args:
        name: `franka`.
        with_masses: take the masses and inertias of the links from the package example-robot-data, where it is
            installed; by default the links have none, and an identification starts from the geometry alone.

    Raises:
        UsageError: there is no such example.
        InputError: its files are not installed with this package.
    """
    if name not in EXAMPLES:
        raise UsageError(f"{name}: no such example; {suggest_known(name, list(EXAMPLES))}")
    source = EXAMPLES[name]
    file = find_shared_file(source.robot)
    description, masses = RobotDescription.from_file(file), NO_MASSES
    reference = _file_with_masses(source.masses) if with_masses else None
    if reference is not None:
        try:
            description = _with_masses(description, RobotDescription.from_file(reference), source.links)
            masses = MASS_PACKAGE
        except RobotDynIdError:  # a description of another release, which is not read as ours
            masses = NO_MASSES
    return Example(
        name=name,
        title=source.title,
        recording_file=find_shared_file(source.recording),
        license_file=find_shared_file(source.license),
        description=description,
        masses=masses,
    )


def _file_with_masses(name: str) -> Path | None:
    """File of `MASS_PACKAGE`, from a wheel or from a ROS 2 distribution; None where it is not installed."""
    folders = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    with contextlib.suppress(metadata.PackageNotFoundError):
        folders.append(Path(str(metadata.distribution(MASS_PACKAGE).locate_file("cmeel.prefix"))))
    files = [folder / "share" / MASS_PACKAGE / "robots" / name for folder in folders]
    return next((file for file in files if file.is_file()), None)


def _with_masses(
    description: RobotDescription, reference: RobotDescription, links: Mapping[str, str]
) -> RobotDescription:
    """The robot with the masses and inertias of another description of it; links without any there stay without."""
    root = description.root()
    inertials = {link.get("name"): link.find("inertial") for link in reference.root().iter("link")}
    for link in root.iter("link"):
        inertial = inertials.get(links.get(link.get("name", ""), ""))
        if inertial is not None:
            link.insert(0, inertial)
    ElementTree.indent(root)
    return RobotDescription(ElementTree.tostring(root, encoding="unicode") + "\n", description.source)
