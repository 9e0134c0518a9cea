# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled when the package is built are those that an identification calls."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM, Simulated

import robot_dyn_id as rdi
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.kernels.compiled import COMPILED, is_on_disk
from robot_dyn_id.kernels.precompiled import SIGNATURES, list_argument_types
from robot_dyn_id.model.robot import RobotModel

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed")


def kernel_of(name):
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"robot_dyn_id.kernels.{module}"), function)


@pytest.mark.slow
def test_an_identification_calls_the_kernels_with_the_types_that_are_compiled_before(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    rdi.identify(rdi.load_robot(tmp_path / "arm.urdf"), Simulated().record(duration=20.0, rate=50.0, noise=0.05))
    called = {name: kernel_of(name).signatures for name in SIGNATURES}
    listed = {name: list_argument_types(name) for name in SIGNATURES}
    assert not [name for name, arguments in listed.items() if arguments not in called[name]]
    assert all(is_on_disk(kernel_of(name)) for name in SIGNATURES)


def test_a_gravity_vector_that_cannot_be_written_compiles_nothing_again():
    """Such as that of a parameter set."""
    gravity = np.array([0.0, 0.0, -9.81])
    gravity.flags.writeable = False
    model = replace(RobotModel.from_urdf(ARM), gravity=gravity)
    Dynamics.from_model(model).inverse_dynamics(*np.zeros((3, 1, len(model.joint_names))))
    assert all("readonly" not in str(types) for types in kernel_of("dynamics.dynamics_tiles").signatures)
