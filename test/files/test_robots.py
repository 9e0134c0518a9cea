# SPDX-License-Identifier: Apache-2.0
"""Configurations of common robots: by name, for their joints, and a motion within their limits."""

import numpy as np
import pytest
from support.robots import URDFS

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import UsageError
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS, SearchEffort
from robot_dyn_id.excitation.design.planning import list_given_limits, make_design_task
from robot_dyn_id.excitation.design.search import design
from robot_dyn_id.files.configuration import read_configuration
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.joint_limits import JointLimitsFile
from robot_dyn_id.files.shared import is_of_robot, list_robot_names, resolve_robot
from robot_dyn_id.model.robot import RobotModel

PUBLISHED = {
    **{"ur3": "ur3_robot", "ur5": "ur5_robot", "ur10": "ur10_robot", "panda": "panda", "xarm7": "xarm7"},
    **{"z1": "z1", "so101": "so101"},
}
"""Robots whose URDF is published in example-robot-data."""


def limited(name):
    """The published robot with the joints and the limits of its configuration."""
    settings, joints = read_design_settings(name), read_configuration(name).identify
    model = RobotModel.from_file(URDFS[PUBLISHED[name]], joints)
    limits = JointLimitsFile().extended(
        max_velocity=list_given_limits(settings.velocity_limit, model, "velocity_limit"),
        max_effort=list_given_limits(settings.effort_limit, model, "effort_limit"),
    )
    return settings, limits.narrowed(model)


@pytest.mark.parametrize("name", list_robot_names())
def test_every_configuration_names_the_same_joints_everywhere(name):
    settings, configuration = read_design_settings(name), read_configuration(resolve_robot(name))
    for values in (settings.posture, settings.velocity_limit, settings.effort_limit, settings.noise):
        assert not values or tuple(values) == configuration.identify
    assert set(settings.acceleration) <= {*configuration.identify, "all"} and settings.acceleration
    assert settings.velocity_limit and is_of_robot(name)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_joints_are_those_of_the_published_robot(name):
    settings, model = limited(name)
    assert model.joint_names == read_configuration(name).identify
    given = np.array([settings.velocity_limit[joint] for joint in model.joint_names])
    assert (model.limits.velocity <= given).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5", "panda", "xarm7", "z1", "so101"])
def test_a_motion_of_a_published_robot_is_within_its_limits(name):
    settings, model = limited(name)
    task = make_design_task(settings, model, Regressor(model))
    search = SearchEffort(draws=1, starts=1, finished=1, steps=1)
    found = design(task.problem, OPTIMIZERS["gradient"], 1, search)
    assert found.feasible and task.collision_check != "not_checked"
    t = np.linspace(0.0, found.excitation.duration, 2001)
    speeds = np.abs(found.excitation.evaluate(t)[1]).max(axis=1)
    assert (speeds <= settings.velocity_scale * np.array(list(settings.velocity_limit.values())) * 1.0001).all()


def test_a_name_of_no_robot_is_refused_with_the_nearest_one():
    for read in (read_configuration, read_design_settings, is_of_robot):
        with pytest.raises(UsageError, match="did you mean 'xarm7'"):
            read("xarm77")


def test_a_plain_configuration_is_not_that_of_a_robot(tmp_path):
    file = tmp_path / "plain.yaml"
    file.write_text("cutoff: 5.0\n")
    assert not is_of_robot(file) and read_configuration(file).settings.cutoff == 5.0
    file.write_text("design: {period: 7.0}\nidentification: {cutoff: 6.0}\n")
    assert is_of_robot(file) and read_configuration(file).settings.cutoff == 6.0
    assert read_design_settings(file).demand.period == 7.0


def test_later_design_files_take_precedence_key_by_key(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        "{acceleration: 3.0, velocity_limit: {a: 1.0, b: 2.0}, effort_limit: {a: 5.0}, seed: 7, period: 8.0}"
    )
    second.write_text("{acceleration: {b: 1.0}, velocity_limit: {a: 0.5}, effort_limit: 9.0, period: 6.0}")
    found = read_design_settings(first, None, second, velocity_limit={"b": 1.5})
    assert found.acceleration == {"all": 3.0, "b": 1.0} and found.velocity_limit == {"a": 0.5, "b": 1.5}
    assert found.effort_limit == {"all": 9.0} and found.seed == 7 and found.demand.period == 6.0
    assert read_design_settings(second).seed == 1
    first.write_text("{perio: 8.0}")
    with pytest.raises(UsageError, match=r"first\.yaml: unknown key 'perio'"):
        read_design_settings(first, second)
