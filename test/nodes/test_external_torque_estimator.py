# SPDX-License-Identifier: Apache-2.0
"""The node `external_torque_estimator` over real DDS: joint states whose stamps run faster than the clock."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from robot_dyn_id.msg import ExternalTorque
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from support.altered import altered
from support.model_nodes import NOISE, identified, message
from support.ros_world import ros_arguments
from support.simulated import ARM
from support.simulator_scene import DEEP

from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.model.kinematics import Kinematics, find_placement_of
from robot_dyn_id.nodes.external_torque_estimator import ExternalTorqueEstimator
from robot_dyn_id.nodes.messages.joint_state import convert_to_seconds
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, STREAM
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE, BATCH, QUIET, LINK = 100.0, 50, 12.0, "l3"
FORCE = np.array([0.0, 12.0, 5.0, 0.0, 0.0, 0.0])


class Stage:
    """An arm that repeats a motion; `play(end, push)` publishes its states until then, pushed at its last link."""

    def __init__(self, world, velocity=True):
        self.world, self.velocity = world, velocity
        self.states = world.probe.create_publisher(JointState, "joint_states", DEEP)
        self.models = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
        self.torques = world.heard(ExternalTorque, "external_torque", STREAM)
        self.wrenches = world.heard(WrenchStamped, "external_wrench", STREAM)
        self.diagnostics = world.heard(DiagnosticArray, "diagnostics", RELIABLE)
        regressor = Regressor.from_parameters(identified())
        motion, self.t, self.next = draw_random_fourier(regressor.model, 5), np.arange(round(40.0 * RATE)) / RATE, 0
        q, dq, ddq, _ = motion.evaluate(self.t % motion.period)
        columns = identified().base.independent.astype(np.int64)
        tau = regressor.torque(Motion(q, dq, ddq), identified().estimate.values, columns)
        tau += draw_colored_noise(np.full(3, NOISE), len(self.t), RATE, 0.1, np.random.default_rng(5))
        poses, at = Kinematics(regressor.model).poses(q), find_placement_of(regressor.model, LINK)
        self.pushes = np.array([FORCE @ poses.jacobian(at, k) for k in range(len(self.t))])
        self.rows = np.array((q, dq, tau)).transpose(2, 0, 1)

    def start(self, **parameters):
        node = self.world.add(
            ExternalTorqueEstimator,
            *ros_arguments(quiet=str(QUIET), latency="10.0", expected_moment="0.0", **parameters),
        )
        self.models.publish(message())
        self.world.until(lambda: self.states.get_subscription_count(), what="the estimator's topic")
        self.world.until(lambda: "no joint states" in self.status.message, what="parameters")
        return node

    def state(self, number, push=False):
        position, velocity, effort = self.rows[number]
        effort = effort - self.pushes[number] * push
        state = JointState(
            name=list(identified().robot.joint_names), position=position.tolist(), effort=effort.tolist()
        )
        state.velocity = velocity.tolist() if self.velocity else []
        state.header.stamp.sec, hundredth = divmod(number, round(RATE))
        state.header.stamp.nanosec = 10_000_000 * hundredth
        return state

    def play(self, end, push=False):
        while self.next < round(end * RATE):
            for number in range(self.next, self.next + BATCH):
                self.states.publish(self.state(number, push))
            self.next += BATCH
            if self.next > 2.0 * BATCH:  # the observer has settled
                self.world.until(self.answered, what=f"external torque at {self.t[self.next - 1]:g} s")

    def answered(self):
        return self.torques and convert_to_seconds(self.torques[-1].header.stamp) > self.t[self.next - 1] - 0.5 / RATE

    @property
    def status(self):
        return next(
            (
                s
                for m in reversed(self.diagnostics)
                for s in m.status
                if s.name == "/external_torque_estimator: condition"
            ),
            DiagnosticStatus(),
        )


@pytest.mark.parametrize("velocity", [True, False], ids=["measured", "derived"])
def test_a_push_is_a_contact_with_its_wrench_after_the_learning(world, velocity):
    stage = Stage(world, velocity)
    node = stage.start()
    stage.play(6.0)
    assert stage.torques[-1].learning > 0.0 and not stage.torques[-1].contact and not stage.wrenches
    assert np.isnan(stage.torques[-1].limit).all() and len(stage.torques[-1].unmeasured) == 6
    stage.play(14.0)
    assert stage.torques[-1].learning == 0.0
    world.until(lambda: stage.status.message == "no contact", what="thresholds")
    stage.models.publish(message())  # the same set again does not restart the learning
    stage.play(15.0)
    assert stage.torques[-1].learning == 0.0 and not any(one.contact for one in stage.torques)
    stage.play(16.0, push=True)
    last, wrench = stage.torques[-1], stage.wrenches[-1]
    assert last.contact and last.contact_joints and 0.9 < last.contact_duration <= 1.0
    assert last.header.frame_id == wrench.header.frame_id == LINK
    world.until(lambda: stage.status.message == "contact" and stage.status.level == DiagnosticStatus.WARN)
    np.testing.assert_allclose(last.torque, stage.pushes[stage.next - 1], atol=6.0 * max(last.standard_deviation))
    force, torque = wrench.wrench.force, wrench.wrench.torque
    shown = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
    covariance = np.array(last.wrench_covariance).reshape(6, 6)
    measured = np.isfinite(shown)
    assert measured[3:].all() and list(np.array(last.unmeasured)) == [
        name for name, flag in zip(("force x", "force y", "force z"), measured[:3], strict=True) if not flag
    ]
    np.testing.assert_array_equal(np.isinf(np.diag(covariance)), ~measured)
    error = (shown - FORCE)[:3][measured[:3]]
    assert np.all(np.abs(error) < 5.0 * np.sqrt(np.diag(covariance)[:3][measured[:3]]))
    stage.play(17.0)
    assert not stage.torques[-1].contact and stage.torques[-1].contact_duration == 0.0
    assert node.internal_errors == 0


def test_hostile_joint_states_a_new_model_and_a_reset(world):
    stage = Stage(world)
    node = stage.start()
    stage.play(14.0)
    for fields in ({"effort": [np.nan] * 3}, {"effort": [1e308] * 3}, {"position": [np.nan] * 3}, {"effort": []}):
        state, before = stage.state(stage.next), node.refused
        for name, value in fields.items():
            setattr(state, name, value)
        stage.states.publish(state)
        world.until(lambda before=before: node.refused > before, what=str(fields))
    stage.play(15.0)
    assert all(np.isfinite(one.torque).all() for one in stage.torques) and stage.torques[-1].learning == 0.0
    stage.play(15.5, push=True)
    assert stage.torques[-1].contact
    stage.models.publish(message(replace_values(identified(), 1.001 * identified().estimate.values)))
    world.until(lambda: stage.status.message.startswith("learning"), what="another model")
    stage.play(18.0)
    assert not stage.torques[-1].contact and stage.torques[-1].learning > 5.0
    stage.models.publish(message(altered(identified(), effort={"kind": "external", "robot_compensates": ("unknown",)})))
    world.until(lambda: "effort.kind" in {p.key: p.value for p in stage.status.values}["last refused"], what="refusal")
    answer = world.call(Trigger, "external_torque_estimator/reset")
    assert answer.success and answer.message == "learning restarts from 12 s of motion"
    assert node.end is None and node.internal_errors == 0


def test_states_that_stop_and_a_model_of_another_robot_are_reported(world):
    stage = Stage(world)
    node = world.add(ExternalTorqueEstimator, *ros_arguments(quiet="12.0", latency="0.1"))
    world.until(lambda: stage.status.message == "waiting for identified_parameters", what="waiting")
    assert not world.call(Trigger, "external_torque_estimator/reset").success
    stage.models.publish(message())
    world.until(lambda: stage.states.get_subscription_count(), what="the estimator's topic")
    world.until(lambda: "no joint states" in stage.status.message, what="parameters")
    stage.play(2.0)
    world.until(lambda: stage.status.message.startswith("joint states are older than 0.5 s"), what="silence")
    descriptions = world.probe.create_publisher(String, "robot_description", LATCHED)
    descriptions.publish(String(data=ARM.replace('effort="5"', 'effort="40"')))
    stage.play(3.0)
    descriptions.publish(String(data=ARM.replace('mass value="', 'mass value="1')))
    world.until(lambda: stage.status.level == DiagnosticStatus.ERROR, what="another robot")
    assert "another robot" in stage.status.message
    count = len(stage.torques)
    for number in range(stage.next, stage.next + BATCH):
        stage.states.publish(stage.state(number))
    world.until(lambda: len(stage.diagnostics) > 2)
    assert len(stage.torques) == count and node.internal_errors == 0
