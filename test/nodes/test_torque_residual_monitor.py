# SPDX-License-Identifier: Apache-2.0
"""The node `torque_residual_monitor` over real DDS, stage joint states whose stamps run faster than the clock."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.model_nodes import COULOMB, NOISE, VISCOUS, identified, message
from support.ros_world import ros_arguments
from support.simulator_scene import DEEP

from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.nodes.messages.joint_state import convert_to_seconds
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, STREAM
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.simulation.sensors import draw_colored_noise

RATE, STEP, BATCH = 100.0, 34.0, 50


class Stage:
    """An arm that repeats a motion and takes up a load at `STEP`; `play(end)` publishes its states until then."""

    def __init__(self, world, velocity=None):
        self.world, self.velocity = world, velocity
        self.states = world.probe.create_publisher(JointState, "joint_states", DEEP)
        self.residuals = world.heard(TorqueResidual, "torque_residual", STREAM)
        self.diagnostics = world.heard(DiagnosticArray, "diagnostics", RELIABLE)
        self.sets = world.heard(ParameterSetMsg, "torque_residual_monitor/tracked_parameters", LATCHED)
        self.regressor = Regressor.from_parameters(identified())
        model, self.t, self.next = self.regressor.model, np.arange(round(40.0 * RATE)) / RATE, 0
        motion, n = draw_random_fourier(model, 5), len(model.joint_names)
        q, dq, ddq, _ = motion.evaluate(self.t % motion.period)
        states, late = Motion(q, dq, ddq), self.t >= STEP
        friction = np.full(n, VISCOUS), np.full(n, COULOMB), np.zeros(n)
        self.truth = np.concatenate([model.inertial_parameters, *friction])
        load = np.zeros_like(self.truth)
        load[[self.regressor.names.index(name) for name in ("m3", "mz3", "Ixx3", "Iyy3")]] = 0.8, 0.16, 0.032, 0.032
        tau = self.regressor.torque(states, self.truth)
        tau += draw_colored_noise(np.full(n, NOISE), len(self.t), RATE, 0.1, np.random.default_rng(5))
        tau[:, late] += self.regressor.torque(states.take(late), load)
        self.rows = np.array((q, dq, tau)).transpose(2, 0, 1).tolist()

    def play(self, end):
        while self.next < round(end * RATE):
            for number in range(self.next, self.next + BATCH):
                position, velocity, effort = self.rows[number]
                names = list(identified().robot.joint_names)
                velocity = velocity if self.velocity is None else self.velocity
                state = JointState(name=names, position=position, velocity=velocity, effort=effort)
                state.header.stamp.sec, hundredth = divmod(number, round(RATE))
                state.header.stamp.nanosec = 10_000_000 * hundredth
                self.states.publish(state)
            self.next += BATCH
            if self.next > RATE:  # the filter has settled
                self.world.until(self.answered, what=f"residual at {self.t[self.next - 1]:g} s")

    def answered(self):
        return (
            self.residuals and convert_to_seconds(self.residuals[-1].header.stamp) > self.t[self.next - 1] - 0.5 / RATE
        )

    @property
    def status(self):
        return next(
            (
                s
                for m in reversed(self.diagnostics)
                for s in m.status
                if s.name == "/torque_residual_monitor: condition"
            ),
            DiagnosticStatus(),
        )

    @property
    def changes(self):
        return {pair.key: pair.value for pair in self.status.values}.get("changes")


def test_a_payload_is_named_and_tracked_parameters_are_those_of_the_robot(world):
    stage = Stage(world)
    world.add(TorqueResidualMonitor, *ros_arguments(quiet="30.0", latency="10.0"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: stage.states.get_subscription_count(), what="monitor's topic")
    world.until(lambda: "no joint states" in stage.status.message, what="parameters")
    stage.play(STEP)
    world.until(lambda: stage.changes == "none", what="thresholds")
    world.until(lambda: stage.status.message.startswith("the model fits; far outside the training motion: wrist speed"))
    assert "not detected yet" not in stage.status.message and stage.status.level == DiagnosticStatus.OK
    stage.sets.clear()
    world.until(lambda: stage.sets, what="tracked parameters")
    tracked, model = ParameterSet.from_message(stage.sets[-1]), identified()
    assert (tracked.provenance.estimator, tracked.judgment.verdict) == (
        f"{model.provenance.estimator}, tracked",
        "suspect",
    )
    assert tracked.judgment.reasons[0].startswith("tracked while the robot works")
    assert np.all(
        np.abs(tracked.estimate.values - model.base.mapping @ stage.truth) < 4.0 * tracked.estimate.standard_deviations
    )
    assert (tracked.base.names, tracked.robot.urdf) == (model.base.names, model.robot.urdf)
    stage.play(STEP + 5.0)
    world.until(lambda: "since the identification: payload" in stage.status.message, what="payload")
    assert stage.status.level == DiagnosticStatus.WARN
    name, mass, _, sigma, unit = stage.changes.split(";")[0].split()
    assert (name, unit) == ("payload", "kg")
    assert abs(float(mass) - 0.8) < 4.0 * float(sigma) < 0.4
    answer = world.call(Trigger, "torque_residual_monitor/reset")
    assert answer.success and answer.message == "learning restarts from 30 s of motion"
    world.until(lambda: stage.changes == "thresholds need 30 s of motion", what="learning")
    assert stage.status.level == DiagnosticStatus.OK


@pytest.mark.parametrize("velocity", [[], [np.nan] * 3], ids=["none", "NaN"])
def test_joint_states_without_velocities_are_differentiated(world, velocity):
    stage = Stage(world, velocity)
    node = world.add(TorqueResidualMonitor, *ros_arguments(latency="10.0"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: stage.states.get_subscription_count(), what="monitor's topic")
    world.until(lambda: "no joint states" in stage.status.message, what="parameters")
    stage.play(4.0)
    assert node.refused == 0
    world.until(lambda: {p.key: p.value for p in stage.status.values}.get("velocities") == "differentiated positions")
    world.until(lambda: stage.status.message.startswith("the model fits"), what="verdict")
    residual = np.array([one.residual for one in stage.residuals])
    assert np.median(np.abs(residual)) < 3.0 * NOISE


def test_residuals_are_finite_on_both_sides_of_an_interruption_and_absent_in_it(world):
    """Five samples are lost, which is short; then a second is, after which the filters settle again."""
    stage = Stage(world)
    world.add(TorqueResidualMonitor, *ros_arguments(latency="10.0"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: stage.states.get_subscription_count(), what="monitor's topic")
    world.until(lambda: "no joint states" in stage.status.message, what="parameters")
    stage.play(3.0)
    stage.next += 5
    stage.play(5.0)
    stage.next += 100
    begun = stage.t[stage.next]
    stage.play(8.0)
    key = "interruptions of the joint states"
    world.until(lambda: {pair.key: pair.value for pair in stage.status.values}.get(key) == "1", what="count")
    stamps = np.array([convert_to_seconds(one.header.stamp) for one in stage.residuals])
    residual = np.array([one.residual for one in stage.residuals])
    assert np.isfinite(residual).all()
    assert not np.any((stamps > begun - 0.99) & (stamps < begun))
    assert np.any((stamps > 3.0) & (stamps < 3.2)), "a short gap does not interrupt"
    after = residual[(stamps > begun) & (stamps < begun + 0.5)]
    assert len(after)
    assert np.median(np.abs(after)) < 3.0 * NOISE


def test_hostile_joint_states_are_refused_and_the_monitor_goes_on(world):
    stage = Stage(world)
    node = world.add(TorqueResidualMonitor, *ros_arguments(latency="10.0"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: stage.states.get_subscription_count(), what="monitor's topic")
    world.until(lambda: "no joint states" in stage.status.message, what="parameters")
    stage.play(2.0)
    for fields in (
        {"effort": [1e308] * 3},
        {"position": [np.nan] * 3},
        {"velocity": [0.0]},
        {"effort": []},
        {"velocity": [np.inf, 0.0, 0.0]},
    ):
        position, velocity, effort = stage.rows[stage.next]
        state = JointState(
            name=list(identified().robot.joint_names), position=position, velocity=velocity, effort=effort
        )
        for name, value in fields.items():
            setattr(state, name, value)
        before = node.refused
        stage.states.publish(state)
        world.until(lambda before=before: node.refused > before, what=str(fields))
    stage.play(4.0)
    assert all(np.isfinite(one.residual).all() for one in stage.residuals)
    assert node.end is None and node.internal_errors == 0
