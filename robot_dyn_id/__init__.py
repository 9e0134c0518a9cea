# SPDX-License-Identifier: Apache-2.0
"""Identification of robot dynamics from joint motion and torque, for ROS 2.

    import robot_dyn_id as rdi

    robot = rdi.load_robot("arm.urdf")
    result = rdi.identify(robot, rdi.open_recording("recording.mcap"))
    print(result)
    result.save("run")

Robot and model structure
    load_robot           load a URDF, xacro, MJCF or screws file
    RobotModel           kinematic tree, nominal inertias and limits of a robot
    Regressor            linear model of the torque: tau = Y(q, dq, ddq) pi
    compute_base_parameters      minimal set of identifiable combinations of pi
    TERMS                terms in addition to the rigid bodies, by name: friction, offset, rotor inertia, springs

Excitation
    design               motion that identifies a robot best within its limits
    FORMS                forms of excitation by name

Identification
    load_example         load a measured recording that comes with the package, and its robot
    open_recording       open a rosbag2, .mcap, .db3, .npz or .csv file
    identify             identify a robot and validate the model on held-out data
    Settings             choices of an identification: terms, estimator, filter, thresholds
    ESTIMATORS           estimators by name
    validate             evaluate an identified model on other recordings
    identify_actuators   identify drives from position commands, without torques
    DriveSettings        known gains, limits and motor types of such drives
    compare              compare identified models: parameters, torque and friction

The identified model
    ParameterSet         identified parameters with covariance, provenance and training range
    load_parameters      load parameters.yaml
    save_parameters      save parameters.yaml
    make_dynamics        inverse and forward dynamics of a parameter set
    Dynamics             inverse and forward dynamics, mass matrix, gravity, friction
    FeedForward          efforts to be commanded, without those that the driver adds
    load_trajectory      load a JointTrajectory from YAML or a bag, or a designed trajectory
    DriverCompensation   torque that the driver adds to a command, which a controller leaves out
    fill_efforts         fill the efforts of a trajectory and check torque limits
    predict              efforts along a recording
    simulate             motion along a trajectory, or under recorded efforts
    BatchSimulation      thousands of copies stepped at once, the estimate or drawn from its uncertainty
    CommandedSimulation  the same of robots whose drives follow position commands, with identified actuators
    RobotVectorEnv       Gymnasium vector environment of such copies (extra `gym`)
    Episodes             period, length and initial states of its episodes
    export_urdf          write a URDF with the identified inertias
    export_mjcf          write a MuJoCo model
    ContactMonitor       external joint torque and contacts while the robot works
    ResidualMonitor      residuals while the robot works, and changes in them

RobotDynIdError          base class of all errors
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
    from robot_dyn_id.dynamics.compensation import DriverCompensation
    from robot_dyn_id.dynamics.dynamics import Dynamics
    from robot_dyn_id.dynamics.regressor import Regressor
    from robot_dyn_id.dynamics.terms import TERMS
    from robot_dyn_id.errors import RobotDynIdError
    from robot_dyn_id.estimators import ESTIMATORS
    from robot_dyn_id.excitation.forms.registry import FORMS
    from robot_dyn_id.identification.prediction.feed_forward import FeedForward
    from robot_dyn_id.identification.settings import Settings
    from robot_dyn_id.model.robot import RobotModel
    from robot_dyn_id.online.contact import ContactMonitor
    from robot_dyn_id.online.monitoring import ResidualMonitor
    from robot_dyn_id.parameters import ParameterSet
    from robot_dyn_id.recordings import open_recording
    from robot_dyn_id.workflow.actuators import DriveSettings, identify_actuators
    from robot_dyn_id.workflow.batch_simulation import BatchSimulation
    from robot_dyn_id.workflow.commanded_simulation import CommandedSimulation
    from robot_dyn_id.workflow.comparison import compare
    from robot_dyn_id.workflow.examples import load_example
    from robot_dyn_id.workflow.excitation import design
    from robot_dyn_id.workflow.feed_forward import fill_efforts, load_trajectory
    from robot_dyn_id.workflow.files import export_mjcf, export_urdf, load_parameters, load_robot, save_parameters
    from robot_dyn_id.workflow.identification import identify, validate
    from robot_dyn_id.workflow.prediction import predict, simulate
    from robot_dyn_id.workflow.results import make_dynamics
    from robot_dyn_id.workflow.vector_environment import Episodes, RobotVectorEnv

from robot_dyn_id.version import __version__

# A source tree first on the path would hide the generated robot_dyn_id.msg of the installed package.
if not os.path.isdir(os.path.join(__path__[0], "msg")):
    __path__ = pkgutil.extend_path(__path__, __name__)

_EXPORTS = {
    "ESTIMATORS": "robot_dyn_id.estimators",
    "FORMS": "robot_dyn_id.excitation.forms.registry",
    "TERMS": "robot_dyn_id.dynamics.terms",
    "BatchSimulation": "robot_dyn_id.workflow.batch_simulation",
    "CommandedSimulation": "robot_dyn_id.workflow.commanded_simulation",
    "ContactMonitor": "robot_dyn_id.online.contact",
    "DriverCompensation": "robot_dyn_id.dynamics.compensation",
    "DriveSettings": "robot_dyn_id.workflow.actuators",
    "Dynamics": "robot_dyn_id.dynamics.dynamics",
    "Episodes": "robot_dyn_id.workflow.vector_environment",
    "FeedForward": "robot_dyn_id.identification.prediction.feed_forward",
    "ParameterSet": "robot_dyn_id.parameters",
    "Regressor": "robot_dyn_id.dynamics.regressor",
    "ResidualMonitor": "robot_dyn_id.online.monitoring",
    "RobotDynIdError": "robot_dyn_id.errors",
    "RobotModel": "robot_dyn_id.model.robot",
    "RobotVectorEnv": "robot_dyn_id.workflow.vector_environment",
    "Settings": "robot_dyn_id.identification.settings",
    "compute_base_parameters": "robot_dyn_id.dynamics.base_parameters",
    "compare": "robot_dyn_id.workflow.comparison",
    "design": "robot_dyn_id.workflow.excitation",
    "export_mjcf": "robot_dyn_id.workflow.files",
    "export_urdf": "robot_dyn_id.workflow.files",
    "fill_efforts": "robot_dyn_id.workflow.feed_forward",
    "identify": "robot_dyn_id.workflow.identification",
    "identify_actuators": "robot_dyn_id.workflow.actuators",
    "load_example": "robot_dyn_id.workflow.examples",
    "load_parameters": "robot_dyn_id.workflow.files",
    "load_robot": "robot_dyn_id.workflow.files",
    "load_trajectory": "robot_dyn_id.workflow.feed_forward",
    "make_dynamics": "robot_dyn_id.workflow.results",
    "open_recording": "robot_dyn_id.recordings",
    "predict": "robot_dyn_id.workflow.prediction",
    "save_parameters": "robot_dyn_id.workflow.files",
    "simulate": "robot_dyn_id.workflow.prediction",
    "validate": "robot_dyn_id.workflow.identification",
}
"""Public names and the modules that they are loaded from at first use (PEP 562)."""

__all__ = [  # as literals, for tools that do not run the module
    "ESTIMATORS",
    "FORMS",
    "TERMS",
    "BatchSimulation",
    "CommandedSimulation",
    "ContactMonitor",
    "DriveSettings",
    "DriverCompensation",
    "Dynamics",
    "Episodes",
    "FeedForward",
    "ParameterSet",
    "Regressor",
    "ResidualMonitor",
    "RobotDynIdError",
    "RobotModel",
    "RobotVectorEnv",
    "Settings",
    "__version__",
    "compare",
    "compute_base_parameters",
    "design",
    "export_mjcf",
    "export_urdf",
    "fill_efforts",
    "identify",
    "identify_actuators",
    "load_example",
    "load_parameters",
    "load_robot",
    "load_trajectory",
    "make_dynamics",
    "open_recording",
    "predict",
    "save_parameters",
    "simulate",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Load a public name at its first use.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names and those of the module itself."""
    return sorted({*globals(), *__all__})


# The ROS 2 wheels identify their distribution by the major version of rclpy only.
_RCLPY_MAJOR = {"7": "jazzy", "9": "kilted"}


def _running_distribution() -> str | None:
    """Return the ROS 2 distribution that is sourced, else that of the installed wheels."""
    if "ROS_VERSION" in os.environ:  # set by nothing but the setup script of a distribution
        return os.environ.get("ROS_DISTRO")
    version = _installed_version("ros_rclpy")
    return version and _RCLPY_MAJOR.get(version.partition(".")[0], f"the distribution of ros-rclpy {version}")


def _installed_version(package: str) -> str | None:
    """Version of a wheel that is installed, by the name of its folder: `importlib.metadata` takes 30 ms to import."""
    start, end = f"{package}-", ".dist-info"
    for folder in sys.path:
        try:
            found = [name for name in os.listdir(folder or ".") if name.startswith(start) and name.endswith(end)]
        except OSError:  # a zip file, or nothing there
            continue
        if found:
            return found[0].removeprefix(start).removesuffix(end)
    return None


def _warn_of_other_distribution() -> None:
    """Warn if the messages were built for another distribution than the running one.

    It is not an error, since identification from files does not need ROS.
    """
    try:
        from robot_dyn_id._built_for import DISTRIBUTION as built_for  # written by the build
    except ImportError:
        return
    running = _running_distribution()
    if running and built_for and running != built_for:
        import logging

        logging.getLogger(__name__).warning(
            "robot_dyn_id was built for ROS 2 %s, but ROS 2 %s is running: its messages may not load; "
            "install it again with ROS_DISTRO set to the latter (docs/installation.md)",
            built_for,
            running,
        )


_warn_of_other_distribution()
