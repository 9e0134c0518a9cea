# SPDX-License-Identifier: Apache-2.0
"""The torque of a model by cause: parts that add up to it, each with the property that its name states."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots import MIMICS, OBLIQUE, PLANAR3R, ratio
from support.simulated import ARM, GRIPPER, LIFT

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters, draw_random_motion
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Coupling, Dahl, LoadCoulomb, Offset, RotorInertia, Spring, Viscous
from robot_dyn_id.dynamics.torque_parts import CAUSES, TorqueParts, list_merged_parameters
from robot_dyn_id.model.robot import RobotModel

ROBOTS = {
    "oblique tree": OBLIQUE,
    "planar": PLANAR3R.read_text(),
    "mimics": MIMICS,
    "arm": ARM,
    "prismatic": LIFT,
    "gripper": GRIPPER,
}
TERMS = (Viscous(), Coulomb(), Offset(), LoadCoulomb(), Dahl(), RotorInertia(), Spring())


def split(text, terms=TERMS, couplings=(), gravity=(1.0, -2.0, -9.0)):
    """Regressor, independent columns, values and a motion of a robot with random terms, and the torque by cause."""
    model = RobotModel.from_urdf(text, gravity=gravity)
    regressor = Regressor(model, place_terms_on_joints(model, terms, couplings))
    base = compute_base_parameters(regressor)
    rng = np.random.default_rng(3)
    full = np.append(model.inertial_parameters, rng.uniform(0.1, 2.0, len(regressor.term_columns)))
    values = base.mapping @ full
    motion = replace(draw_random_motion(model, 60, seed=5), states=regressor.random_states(rng, 60))
    return regressor, base, values, motion, TorqueParts.from_motion(regressor, base.independent, values, motion)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_parts_add_up_to_the_prediction(name):
    regressor, base, values, motion, parts = split(ROBOTS[name])
    assert ratio(parts.total, regressor.torque(motion, values, base.independent)) < 1e-13
    np.testing.assert_array_equal(parts.stacked, [getattr(parts, cause) for cause in CAUSES])


@pytest.mark.parametrize("name", ROBOTS)
def test_each_part_depends_on_the_motion_as_its_cause_does(name):
    regressor, base, values, motion, parts = split(ROBOTS[name])
    faster = replace(motion, dq=2.0 * motion.dq, ddq=3.0 * motion.ddq)
    other = TorqueParts.from_motion(regressor, base.independent, values, faster)
    np.testing.assert_array_equal(other.gravity, parts.gravity)
    assert ratio(other.inertia, 3.0 * parts.inertia) < 1e-12
    assert ratio(other.coriolis, 4.0 * parts.coriolis) < 1e-12
    weightless = replace(regressor, model=replace(regressor.model, gravity=np.zeros(3)))
    floating = TorqueParts.from_motion(weightless, base.independent, values, motion)
    assert not floating.gravity.any()
    assert ratio(floating.inertia, parts.inertia) < 1e-12
    assert ratio(floating.coriolis, parts.coriolis) < 1e-12


def test_offsets_are_friction_and_springs_and_rotors_are_the_rest():
    """With terms that no inertia can replace, each part is that of its terms alone."""
    regressor, _, _, motion, parts = split(ARM, terms=(Viscous(), Offset(), Spring()))
    fv, off, ks = np.random.default_rng(3).uniform(0.1, 2.0, 9).reshape(3, 3)[..., None]
    np.testing.assert_allclose(parts.friction, fv * motion.dq + off)
    np.testing.assert_allclose(parts.rest, ks * motion.q)
    assert regressor.model.joint_names == ("shoulder", "elbow", "wrist")


def test_terms_of_a_coupling_are_the_rest():
    coupling = Coupling("wrist_pair", (("elbow", 1.0), ("wrist", 1.0)), (Viscous(),))
    _, _, _, motion, parts = split(ARM, terms=(), couplings=(coupling,))
    assert not parts.friction.any()
    expected = np.random.default_rng(3).uniform(0.1, 2.0, 1) * (motion.dq[1] + motion.dq[2])
    np.testing.assert_allclose(parts.rest, [np.zeros(60), expected, expected])


def test_merged_parameters_are_those_of_links_and_terms_together():
    """The rotor of the first joint has the column of its link's inertia; viscous friction has one of its own."""
    regressor, base, *_ = split(ARM, terms=(Viscous(), RotorInertia()))
    merged = [base.expressions[number] for number in list_merged_parameters(regressor, base.independent, base.mapping)]
    assert any("Ir1" in expression and "Izz1" in expression for expression in merged)
    assert not any("fv" in expression for expression in merged)
    alone, base, *_ = split(ARM, terms=(Viscous(), Offset()))
    assert not len(list_merged_parameters(alone, base.independent, base.mapping))
