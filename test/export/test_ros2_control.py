# SPDX-License-Identifier: Apache-2.0
"""The plugins of `cpp/ros2_control`, built and run where ros2_control is installed: no package index has it."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.altered import scaled
from support.compiled_models import PANDA
from support.given_parameters import parameter_set
from support.processes import HANG_S

from robot_dyn_id.dynamics.terms import Offset, RotorInertia, Viscous
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.model.robot import RobotModel

SOURCE = Path(__file__).resolve().parents[2] / "cpp" / "ros2_control"
PREFIXES = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]


def installed(package):
    return any((prefix / "share" / package).is_dir() for prefix in PREFIXES)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Plugins and their programs, built against the installed packages."""
    folder = tmp_path_factory.mktemp("plugins")
    run("cmake", "-S", str(SOURCE), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON")
    run("cmake", "--build", str(folder))
    return folder


def arm():
    bodies = RobotModel.from_urdf(PANDA[0], joints=PANDA[1]).inertial_parameters
    terms, values = (Viscous(), RotorInertia(), Offset()), np.repeat([1.0, 0.1, 0.5], len(PANDA[1]))
    return parameter_set(*PANDA, terms=terms, inertial=bodies, values=values)


@pytest.mark.slow
@pytest.mark.skipif(not installed("inverse_dynamics_solver"), reason="inverse_dynamics_solver is not installed")
def test_the_solver_gives_the_torques_of_its_robot(build, tmp_path):
    """Loaded as a plugin; the program checks the refusals, and the torques against the header."""
    write_parameters(tmp_path / "model.yaml", arm())
    run(str(build / "run_solver"), str(build / "libidentified_dynamics_solver.so"), str(tmp_path / "model.yaml"))


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.skipif(not installed("controller_interface"), reason="controller_interface is not installed")
def test_the_controller_follows_a_reference(build, tmp_path):
    """Loaded as a plugin, with models over DDS; the program checks tracking, steps of the efforts and refusals."""
    write_parameters(tmp_path / "model.yaml", arm())
    write_parameters(tmp_path / "next.yaml", scaled(arm(), 1.05))
    files = [str(tmp_path / "model.yaml"), str(tmp_path / "next.yaml")]
    run(str(build / "run_controller"), str(build / "libidentified_model_controller.so"), *files)


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.skipif(not installed("controller_manager"), reason="controller_manager is not installed")
def test_the_controller_runs_in_a_controller_manager(build, tmp_path):
    """Found by its plugin description, with mock hardware; the program checks its states and efforts."""
    prefix = tmp_path / "prefix"
    run("cmake", "--install", str(build), "--prefix", str(prefix))
    write_parameters(tmp_path / "model.yaml", arm())
    folders = {"AMENT_PREFIX_PATH": prefix, "LD_LIBRARY_PATH": prefix / "lib"}
    paths = {name: f"{folder}{os.pathsep}{os.environ.get(name, '')}" for name, folder in folders.items()}
    program = [str(build / "run_manager"), str(tmp_path / "model.yaml"), str(tmp_path)]
    run(*program, env={**os.environ, **paths})
