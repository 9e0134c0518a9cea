# SPDX-License-Identifier: Apache-2.0
"""Prior bodies and their scales."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
from support.robots import panda_arm
from support.simulated import ARM

from robot_dyn_id.dynamics.body_prior import BodyPrior, has_placeholder_masses, link_lengths
from robot_dyn_id.dynamics.consistency import is_consistent
from robot_dyn_id.model.robot import RobotModel


def test_scales_follow_the_size_of_the_robot():
    model = panda_arm()
    np.testing.assert_allclose(link_lengths(model)[[1, 3]], [0.316, 0.3928], atol=1e-3)
    lengths = link_lengths(model)
    assert np.all(lengths >= 0.09 * 0.87)
    prior = BodyPrior.from_model(model)
    assert prior.source == f"URDF of {model.name}"
    np.testing.assert_allclose(prior.scales[:, 4], prior.masses * prior.lengths**2)
    np.testing.assert_allclose(prior.scales[:, 3], prior.masses * prior.lengths)
    np.testing.assert_allclose(prior.scales[:, 0], prior.masses)


def test_scales_are_those_of_the_robot_wherever_it_stands():
    model = panda_arm()
    moved = model.translation.copy()
    moved[model.parent < 0] += [30.0, 40.0, 0.0]
    elsewhere = replace(model, translation=moved)
    np.testing.assert_array_equal(link_lengths(elsewhere), link_lengths(model))
    np.testing.assert_array_equal(BodyPrior.from_model(elsewhere).scales, BodyPrior.from_model(model).scales)


def test_a_urdf_without_masses_has_bodies_from_its_geometry():
    bare = "".join(part.partition("</inertial>")[2] or part for part in ARM.split("<inertial>"))
    model = RobotModel.from_urdf(bare)
    prior = BodyPrior.from_model(model)
    assert prior.source == f"geometry of {model.name}"
    assert is_consistent(prior.bodies.ravel())
    efforts = model.limits.effort
    np.testing.assert_allclose(prior.masses * 9.81 * prior.lengths, 0.1 * efforts)
    twice = RobotModel.from_urdf(bare.replace('effort="', 'effort="2'))
    assert np.all(BodyPrior.from_model(twice).masses > prior.masses)
    unlimited = RobotModel.from_urdf(bare.replace('effort="', 'effort="0" ignored="'))
    np.testing.assert_array_equal(BodyPrior.from_model(unlimited).masses, 1.0)


def test_placeholders_are_recognized_and_equal_links_are_not():
    def arm(mass, inertia):
        text = re.sub(r'<mass value="[^"]*"/>', mass, ARM)
        return RobotModel.from_urdf(re.sub(r"<inertia [^>]*>", inertia, text))

    ball = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    rod = '<inertia ixx="0.1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    none = '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/>'
    assert has_placeholder_masses(arm('<mass value="1"/>', ball))
    assert not has_placeholder_masses(arm('<mass value="1"/>', rod))
    assert has_placeholder_masses(arm('<mass value="0"/>', none))
    assert not has_placeholder_masses(RobotModel.from_urdf(ARM))


def test_links_stay_placeholders_where_joints_are_locked():
    """A locked joint makes one body of two links, which is heavier than the others."""
    tree = ElementTree.fromstring(ARM)
    for one in tree.iterfind("link/inertial"):
        one.find("mass").set("value", "1")
        one.find("inertia").attrib.update(
            {"ixx": "0.1", "iyy": "0.1", "izz": "0.1", "ixy": "0", "ixz": "0", "iyz": "0"}
        )
    text = ElementTree.tostring(tree, encoding="unicode")
    names = RobotModel.from_urdf(text).joint_names
    assert has_placeholder_masses(RobotModel.from_urdf(text))
    assert has_placeholder_masses(RobotModel.from_urdf(text, names[:-1]))
    assert not has_placeholder_masses(RobotModel.from_urdf(ARM, names[:-1]))
