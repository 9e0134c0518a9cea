# SPDX-License-Identifier: Apache-2.0
"""Files of the front door: robots, parameter sets and exported models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.export import Exported, export_model
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.model.robot import STANDARD_GRAVITY, RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.text.files import write_atomically


def load_robot(
    path: str | Path,
    joints: Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    packages: Sequence[str | Path] = (),
    xacro: Mapping[str, str] | None = None,
) -> RobotModel:
    """Load a robot from a URDF, xacro, MJCF or screws file.

    Example:
        ```python
        robot = rdi.load_robot("arm.urdf")
        print(robot.joint_names)
        ```

    Args:
        path: the file.
        joints: joints to identify; all others are fixed. By default all that move and are not in `fixed`.
        fixed: positions of fixed joints [rad or m]; 0 where not given.
        gravity: gravity vector in the base frame [m/s^2].
        packages: folders of ROS packages that a xacro file needs (`$(find NAME)`), or that contain some. The package of
            the file, those next to it, and those of `ROS_PACKAGE_PATH` are found without being given.
        xacro: values of the arguments of a xacro file, such as `{"ur_type": "ur5e"}`.

    Raises:
        MissingPackageError: a xacro file needs a ROS package that is not found.
        MissingArgumentError: a xacro file needs an argument that is not given.
        ModelError: the file cannot be read, or describes a robot that is not a tree of revolute and prismatic joints.
    """
    description, fixed = RobotDescription.from_file(path, packages, xacro), dict(fixed or {})
    if joints is None and fixed:
        whole = RobotModel.from_description(description, gravity=gravity)
        joints = [name for name in whole.joint_names if name not in fixed]
    return RobotModel.from_description(description, joints, fixed, gravity)


def load_parameters(path: str | Path, term_classes: Sequence[type[Term]] = ()) -> ParameterSet:
    """Load an identified parameter set from `parameters.yaml`, or from the folder that `identify` wrote it to.

    Example:
        ```python
        parameters = rdi.load_parameters("run/parameters.yaml")
        mass_matrix = rdi.make_dynamics(parameters).mass_matrix(q)
        ```

    Args:
        path: the file, or the folder with `parameters.yaml`.
        term_classes: classes of terms in it that are not part of this package.

    Raises:
        InputError: the file cannot be read, or is not a parameter set.
    """
    return read_parameters(Path(path).expanduser(), term_classes)


def save_parameters(parameters: ParameterSet, path: str | Path) -> None:
    """Save a parameter set, complete: `load_parameters` gives the same values to the last bit.

    Example:
        ```python
        rdi.save_parameters(result.parameters, "arm.yaml")
        ```

    Args:
        parameters: the parameter set.
        path: the file; it is replaced if it exists.

    Raises:
        InputError: the file cannot be written.
    """
    make_output_folder(Path(path).parent)
    write_parameters(path, parameters)


def export_urdf(parameters: ParameterSet, path: str | Path, allow_bad_verdict: bool = False) -> Exported:
    """Write the robot's URDF with the identified inertias and friction.

    Example:
        ```python
        exported = rdi.export_urdf(result.parameters, "arm_identified.urdf")
        print(exported.warnings)
        ```

    Args:
        parameters: the identified model.
        path: the file; it is replaced if it exists.
        allow_bad_verdict: also export a model with the verdict bad, which must command no torques.

    Returns:
        The text, and warnings about terms that a URDF cannot carry.

    Raises:
        InputError: a bad verdict, or parameters that a URDF cannot carry.
    """
    return _export("urdf", parameters, path, allow_bad_verdict)


def export_mjcf(parameters: ParameterSet, path: str | Path, allow_bad_verdict: bool = False) -> Exported:
    """Write a MuJoCo model with the identified inertias and friction.

    Example:
        ```python
        consistent = rdi.Settings(estimator=rdi.ESTIMATORS["consistent"]())  # MuJoCo refuses impossible inertias
        result = rdi.identify(robot, recording, consistent)
        exported = rdi.export_mjcf(result.parameters, "arm_identified.xml")
        ```

    Args:
        parameters: the identified model.
        path: the file; it is replaced if it exists.
        allow_bad_verdict: also export a model with the verdict bad, which must command no torques.

    Returns:
        The text, and warnings about terms that MJCF cannot carry.

    Raises:
        InputError: a bad verdict, or parameters that MJCF cannot carry.
    """
    return _export("mjcf", parameters, path, allow_bad_verdict)


def _export(name: str, parameters: ParameterSet, path: str | Path, allow_bad_verdict: bool) -> Exported:
    exported = export_model(name, parameters, allow_bad_verdict)
    make_output_folder(Path(path).parent)
    write_atomically(Path(path), exported.text)
    return exported
