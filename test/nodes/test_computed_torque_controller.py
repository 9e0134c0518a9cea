# SPDX-License-Identifier: Apache-2.0
"""The controller and the monitor with the simulator, over real DDS, with the parameters identified from that plant."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from robot_dyn_id.msg import TorqueResidual
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from support.altered import altered
from support.lifecycle import ACTIVATE, ACTIVE_SHUTDOWN, CLEANUP, CONFIGURE, DEACTIVATE, change
from support.model_nodes import ARM, RATED, identified, impossible, message, presliding
from support.processes import HANG_S, child
from support.ros_world import ros_arguments
from support.simulator_scene import DEEP, RELIABLE, Commander, Scene, trajectory
from trajectory_msgs.msg import JointTrajectory

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.assembly import replace_values
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController, ComputedTorqueControllerSettings
from robot_dyn_id.nodes.runtime.diagnostics import STARTUP_TIME_S
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, SENSOR, STREAM
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.nodes.torque_residual_monitor import TorqueResidualMonitor
from robot_dyn_id.parameters import FitFor, urdf_hash
from robot_dyn_id.simulation.controllers import Gains

PATIENT = {"latency": "4.0", "clock": "true", "effort_wait": "0.02"}
"""Parameters of a simulator that waits for late efforts: feedback that is late on a busy computer is unstable."""

START = {"law": "computed_torque", "bandwidth": "5.0", "start_droop": "0.3", "latency": "1.0"}
"""Parameters of a controller that starts without a model."""

DEEP_SENSOR = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)


def other_robot():
    urdf = ARM.replace('name="small"', 'name="other"')
    return message(altered(identified(), robot={"urdf": urdf, "urdf_sha256": urdf_hash(urdf), "name": "other"}))


def test_gravity_compensation_floats_the_arm(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort", **PATIENT)
    limited = FitFor("gravity_compensation", "limited", 2.0, "N m", 1.0, ("held_out_error",), ("elbow",))
    scene.parameters.publish(message(altered(identified(), judgment={"fit_for": (limited,)})))
    world.add(ComputedTorqueController, *ros_arguments(latency="4.0", use_sim_time="true"))
    world.until(lambda: scene.logged("commands efforts by gravity_compensation"), what="controller")
    assert scene.logged("the model is fit for gravity_compensation: limited (elbow); see its report")

    begin = scene.position
    scene.passes(0.5)
    assert np.abs(scene.position - begin).max() < 2e-3
    expected = Dynamics.from_parameters(identified()).gravity(scene.position)
    assert np.allclose(scene.efforts_heard[-1].data, expected, atol=0.02 * np.abs(expected).max())


def unknown():
    return message(altered(identified(), effort={"robot_compensates": ("unknown",)}))


def test_the_arm_of_a_driver_that_adds_gravity_is_held_and_never_driven_upward(world, tmp_path):
    """Refused while it is not known what the driver adds; with a statement, only friction and offsets are commanded."""
    scene = Scene(world, tmp_path, control="effort", robot_compensates="[gravity]", **PATIENT)
    scene.parameters.publish(unknown())
    world.add(ComputedTorqueController, *ros_arguments(latency="4.0", use_sim_time="true"))
    world.until(lambda: scene.logged("parameters refused: it is not known whether"), what="refusal")
    world.until(lambda: scene.level("computed_torque_controller")[0] == DiagnosticStatus.ERROR, what="diagnosis")
    assert "set robot_compensates" in scene.level("computed_torque_controller")[1]
    assert not scene.efforts_heard
    begin = scene.position
    scene.parameters.publish(message(altered(identified(), effort={"robot_compensates": ("gravity",)})))
    world.until(lambda: scene.logged("commands efforts by gravity_compensation"), what="controller")
    scene.passes(1.0)
    assert np.abs(scene.position - begin).max() < 5e-3
    dynamics = Dynamics.from_parameters(identified())
    left = dynamics.friction(scene.position, np.zeros(3))
    world.until(lambda: np.allclose(scene.efforts_heard[-1].data, left, atol=1e-6), what="all of the effort")
    assert np.abs(dynamics.gravity(scene.position)).max() > 20.0 * np.abs(left).max()


def test_a_statement_about_the_driver_that_contradicts_the_parameters_is_refused(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort")
    scene.parameters.publish(message(altered(identified(), effort={"robot_compensates": ("gravity",)})))
    world.add(ComputedTorqueController, *ros_arguments(robot_compensates="[none]", latency="4.0"))
    world.until(lambda: scene.logged("robot_compensates is [none] here and [gravity] in the parameter set"), what="why")
    assert not scene.efforts_heard
    scene.parameters.publish(unknown())
    world.until(lambda: scene.efforts_heard, what="efforts as stated to the node")


def test_computed_torque_follows_a_trajectory(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort", **PATIENT)
    world.add(ComputedTorqueController, *ros_arguments(law="computed_torque", latency="4.0", use_sim_time="true"))
    scene.parameters.publish(message())
    world.until(lambda: scene.logged("commands efforts by computed_torque"), what="controller")
    publisher = world.probe.create_publisher(JointTrajectory, "computed_torque_controller/joint_trajectory", RELIABLE)
    world.until(lambda: publisher.get_subscription_count(), what="controller's topic")
    scene.passes(0.3)
    target = scene.position + np.array([0.4, -0.3, 0.5])
    publisher.publish(trajectory(["x", "y", "z"], target))
    world.until(lambda: scene.logged("refused: joint trajectory: joint x is not one of"), what="refusal")
    publisher.publish(trajectory(scene.names, target))
    world.until(lambda: np.abs(scene.position - target).max() < 0.02, what="target")
    scene.passes(0.5)
    assert np.abs(scene.position - target).max() < 0.02


def test_gains_are_given_by_a_bandwidth_or_for_each_joint():
    assert ComputedTorqueControllerSettings(bandwidth=5.0).gains == Gains.from_bandwidth(5.0)
    given = {"proportional": (150.0, 150.0, 120.0), "derivative": (30.0,), "exponent": 0.9}
    assert ComputedTorqueControllerSettings(**given).gains == Gains(given["proportional"], 30.0, exponent=0.9)


def test_parameters_that_do_not_belong_to_the_robot_are_refused_and_no_effort_is_commanded(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort")
    world.add(ComputedTorqueController, *ros_arguments(latency="4.0"))
    world.until(lambda: scene.logged("waiting for identified_parameters"), what="waiting")
    scene.parameters.publish(other_robot())
    world.until(
        lambda: scene.logged("parameters refused: the parameters are those of another URDF (other"), what="URDF"
    )
    world.until(lambda: scene.level("computed_torque_controller")[0] == DiagnosticStatus.ERROR, what="diagnosis")
    scene.parameters.publish(message(altered(identified(), judgment={"verdict": "bad", "reasons": ("nonsense",)})))
    world.until(lambda: scene.logged("the verdict on the parameters is bad (nonsense)"), what="verdict")
    broken = message()
    broken.estimate.covariance = broken.estimate.covariance[:-1]
    scene.parameters.publish(broken)
    world.until(lambda: scene.logged("covariance has"), what="broken set")
    assert not scene.efforts_heard
    scene.parameters.publish(message())
    world.until(lambda: scene.efforts_heard, what="efforts")


def test_without_a_usable_model_it_starts_by_the_urdf_and_reports_refusals(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort", brakes="true")
    scene.parameters.publish(other_robot())
    world.add(ComputedTorqueController, *ros_arguments(**START))
    refusal = "refused: identified_parameters, the model in use stays: the parameters are those of another URDF"
    world.until(lambda: scene.logged(refusal), what="a set of another robot that was there before")
    world.until(
        lambda: scene.level("computed_torque_controller")[1].startswith("commands efforts by the URDF's inertia"),
        what="start",
    )
    scene.parameters.publish(message(altered(identified(), judgment={"verdict": "bad", "reasons": ("nonsense",)})))
    world.until(lambda: scene.logged("stays: the verdict on the parameters is bad (nonsense)"), what="bad set")
    assert scene.level("computed_torque_controller")[0] == DiagnosticStatus.OK
    scene.parameters.publish(message())
    world.until(lambda: scene.logged("commands efforts by computed_torque"), what="model")


def test_a_start_without_a_model_reports_that_the_limit_leaves_out_the_friction_of_the_driver(world, tmp_path):
    scene = Scene(world, tmp_path, control="effort", brakes="true")
    arguments = ros_arguments(**START, robot_compensates="[friction]")
    world.add(ComputedTorqueController, *arguments)
    reported = "effort_limit leaves out the driver's friction"
    world.until(lambda: reported in scene.level("computed_torque_controller")[1], what="start")


@pytest.mark.parametrize("law", ["gravity_compensation", "computed_torque"])
def test_a_refused_set_does_not_make_a_working_controller_let_go_of_the_arm(world, tmp_path, law):
    scene = Scene(world, tmp_path, control="effort", **PATIENT)
    world.add(ComputedTorqueController, *ros_arguments(law=law, latency="4.0", use_sim_time="true"))
    scene.parameters.publish(message())
    world.until(lambda: scene.logged(f"commands efforts by {law}"), what="controller")
    broken = message()
    broken.estimate.covariance = broken.estimate.covariance[:-1]
    offers = [
        (other_robot(), "the parameters are those of another URDF"),
        (
            message(altered(identified(), judgment={"verdict": "bad", "reasons": ("nonsense",)})),
            "the verdict on the parameters is bad",
        ),
        (broken, ""),
    ]
    if law == "computed_torque":
        offers.append((message(impossible()), "the identified mass matrix is not positive definite"))
    world.until(lambda: scene.level("computed_torque_controller")[0] == DiagnosticStatus.OK, what="diagnosis")
    for count, (offer, words) in enumerate(offers, start=1):
        scene.parameters.publish(offer)
        refusal = f"refused: identified_parameters, the model in use stays: {words}"
        world.until(lambda refusal=refusal: scene.logged(refusal), what=refusal)
        world.until(
            lambda count=count: scene.values("computed_torque_controller").get("refused inputs") == str(count),
            what="count",
        )
        assert scene.level("computed_torque_controller") == (DiagnosticStatus.OK, f"commands efforts by {law}")
    heard = len(scene.efforts_heard)
    world.until(lambda: len(scene.efforts_heard) > heard + 30, what="efforts after them")
    assert all(np.any(command.data) for command in scene.efforts_heard[heard:])


def test_efforts_stop_when_joint_states_stop_or_are_not_numbers(world, tmp_path):
    log = world.heard(Log, "/rosout", DEEP)
    efforts = world.heard(Float64MultiArray, "effort_command", RELIABLE)  # as controllers of ros2_control subscribe
    states = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
    for topic, kind, content in (
        ("robot_description", String, String(data=ARM)),
        ("identified_parameters", ParameterSetMsg, message()),
    ):
        world.probe.create_publisher(kind, topic, LATCHED).publish(content)
    world.add(ComputedTorqueController)
    names = list(identified().robot.joint_names)
    good = JointState(name=names, position=[0.1] * 3, velocity=[0.0] * 3, effort=[0.0] * 3)
    bad = JointState(name=names, position=[np.nan] * 3, velocity=[0.0] * 3, effort=[0.0] * 3)

    def logged(words):
        return any(words in line.msg for line in log)

    timer = world.probe.create_timer(0.005, lambda: states.publish(good))
    world.until(lambda: len(efforts) > 3 and np.any(efforts[-1].data), what="efforts")
    timer.cancel()
    world.within(2.0, lambda: not np.any(efforts[-1].data), "zero effort")
    world.until(lambda: logged("no joint states within 0.05 s: no effort; joint_states has 1 publishers"), what="log")
    heard = len(efforts)
    states.publish(bad)
    world.until(lambda: logged("position of joint shoulder is not finite"), what="NaN")
    assert len(efforts) == heard
    timer.reset()
    world.until(lambda: np.any(efforts[-1].data), what="efforts again")


def test_the_simulator_simulates_identified_parameters(world, tmp_path):
    log, states = world.heard(Log, "/rosout", DEEP), world.heard(JointState, "joint_states", DEEP)
    publisher = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    node = world.add(Simulator, *ros_arguments(model="parameters", urdf=urdf))
    world.until(lambda: any("waiting for identified_parameters" in line.msg for line in log))
    publisher.publish(other_robot())
    world.until(lambda: any("refused: identified_parameters: the parameters are those of" in line.msg for line in log))
    publisher.publish(message(impossible()))
    world.until(lambda: any("the identified mass matrix is not positive definite" in line.msg for line in log))
    assert not states and node.end is None
    publisher.publish(message())
    world.until(lambda: states, what="joint states")
    assert tuple(states[0].name) == identified().robot.joint_names
    descriptions = world.heard(String, "robot_description", LATCHED)
    world.until(lambda: descriptions, what="description")
    assert descriptions[0].data == ARM
    world.remove(node)


def test_a_simulator_whose_own_parameters_do_not_fit_the_model_ends_with_the_reason(world):
    node = world.add(Simulator, *ros_arguments(model="parameters", effort_noise="[0.1, 0.1]"))
    world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED).publish(message())
    world.until(lambda: node.end is not None, what="end")
    assert str(node.end) == "effort_noise has 2 values, expected 1 or one for each of shoulder, elbow, wrist"


def test_the_monitor_sees_that_the_model_fits_and_when_it_does_not(world, tmp_path):
    scene = Scene(world, tmp_path, effort_noise="[0.05]")
    residuals = world.heard(TorqueResidual, "torque_residual", STREAM)
    world.add(TorqueResidualMonitor, *ros_arguments(latency="0.8"))
    world.until(
        lambda: scene.level("torque_residual_monitor")[1] == "waiting for identified_parameters", what="waiting"
    )
    assert scene.level("torque_residual_monitor")[0] == DiagnosticStatus.STALE
    scene.parameters.publish(message())
    world.until(lambda: "too little motion" in scene.level("torque_residual_monitor")[1], what="at rest")
    motion = draw_random_fourier(RobotModel.from_urdf(ARM), 5, period=4.0)
    t = np.linspace(0.0, 4.0, 81)
    q, dq, ddq, _ = motion.evaluate(t)
    dq[:, -1] = 0.0  # controllers refuse a trajectory that does not end at rest
    points = trajectory(scene.names, q[:, 0], 1.0)
    for k, time in enumerate(t + 1.5):
        points.points += trajectory(scene.names, q[:, k], time, velocities=dq[:, k], accelerations=ddq[:, k]).points
    scene.until_reported(points, "the model fits")
    assert scene.level("torque_residual_monitor")[0] == DiagnosticStatus.OK
    ratios = [value for key, value in scene.values("torque_residual_monitor").items() if "NRMSE" in key]
    assert len(ratios) == 3
    assert all(float(ratio.split("%")[0]) < 5.0 for ratio in ratios), ratios
    quiet = np.median(np.abs([message.residual for message in residuals]), axis=0)
    assert np.all(quiet < 0.1), "the noise is 0.05 N m"
    assert all(0 < s < 0.5 for s in residuals[-1].standard_deviation)
    wrong = replace_values(identified(), 0.5 * identified().estimate.values)
    scene.parameters.publish(message(wrong))
    scene.until_reported(points, "the model does not fit any more")
    scene.parameters.publish(message())
    world.remove(scene.node)
    world.until(lambda: scene.level("torque_residual_monitor")[0] == DiagnosticStatus.STALE, what="stale")
    assert "joint states are older than 4 s; joint_states has 0 publishers" in scene.level("torque_residual_monitor")[1]


def test_a_twin_with_presliding_friction_is_controlled_and_monitored(world, tmp_path):
    """Simulator, controller and monitor of one message with Dahl states: the arm is held and moved, the model fits."""
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    publisher = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    publisher.publish(message(presliding()))
    states = world.heard(JointState, "joint_states", DEEP)
    residuals, log = world.heard(TorqueResidual, "torque_residual", SENSOR), world.heard(Log, "/rosout", DEEP)
    simulator = {"model": "parameters", "control": "effort", "publish_rate": "100.0", **PATIENT}
    world.add(Simulator, *ros_arguments(urdf=urdf, **simulator))
    world.add(
        ComputedTorqueController,
        *ros_arguments(law="computed_torque", bandwidth="10.0", latency="4.0", use_sim_time="true"),
    )
    world.add(TorqueResidualMonitor, *ros_arguments(latency="10.0"))
    follower = world.probe.create_publisher(JointTrajectory, "computed_torque_controller/joint_trajectory", RELIABLE)
    ready = "commands efforts by computed_torque"
    world.until(lambda: residuals and any(ready in line.msg for line in log), what="nodes")
    world.until(lambda: follower.get_subscription_count(), what="controller's topic")
    # At rest the monitor cannot know the bristles that the arm started with; sliding identifies them.
    still = len(residuals)
    target = np.array(states[-1].position) + np.array([0.4, -0.3, 0.5])
    follower.publish(trajectory(states[-1].name, target))
    world.until(lambda: np.abs(np.array(states[-1].position) - target).max() < 0.02, what="target")
    moving = [np.abs(one.residual).max() for one in residuals[still:]]
    assert np.median(moving) < 0.05


def test_what_is_waited_for_is_a_warning_after_five_seconds_only(world):
    log = world.heard(Log, "/rosout", DEEP)
    node = world.add(TorqueResidualMonitor)

    def levels():
        return [line.level for line in log if line.msg == "waiting for identified_parameters"]

    world.until(lambda: levels() == [20], what="information")
    begin = world.time
    world.until(lambda: levels() == [20, 30], what="warning")
    assert world.time - begin < 8.0
    world.remove(node)


def test_a_model_that_has_a_publisher_is_waited_for_without_a_warning(world, tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    log = world.heard(Log, "/rosout", DEEP)
    publisher = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    nodes = [
        world.add(TorqueResidualMonitor),
        world.add(ComputedTorqueController, *ros_arguments(urdf=tmp_path / "arm.urdf")),
    ]

    def levels():
        return {line.level for line in log if line.msg == "waiting for identified_parameters"}

    world.until(lambda: 20 in levels() and all(node.is_awaited() for node in nodes), what="information")
    begin = world.time
    world.until(lambda: world.time - begin > STARTUP_TIME_S + 2.0, what="the time after which waiting is a warning")
    assert levels() == {20}
    world.probe.destroy_publisher(publisher)
    world.until(lambda: 30 in levels(), what="warning")


def test_joint_states_are_missed_only_when_a_model_has_waited_for_them(world):
    world.keep_time()
    log = world.heard(Log, "/rosout", DEEP)
    publisher = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
    world.add(TorqueResidualMonitor, *ros_arguments(latency="0.5"))
    publisher.publish(message(identified()))
    world.until(lambda: any("base parameters" in line.msg for line in log), what="the model")
    begin = world.time
    world.until(lambda: any("no joint states" in line.msg for line in log), what="the warning")
    assert world.time - begin > 0.5


def test_another_node_of_the_same_name_follows_without_a_warning(world, capfd):
    removed = []
    for _ in range(3):
        removed.append(world.add(TorqueResidualMonitor))
        world.wait(0.1)
        world.remove(removed[-1])
    assert "already registered" not in capfd.readouterr().err


@pytest.mark.real_time
def test_control_c_ends_both_with_0():
    for module in ("computed_torque_controller", "torque_residual_monitor"):
        code = f"import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('{module}'))"
        with child([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
            assert "waiting for" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANG_S)
        again = [line for line in err.splitlines() if "waiting for" not in line]  # a warning after five seconds
        assert (process.returncode, again) == (0, [])


class Still:
    """An arm that stands, by joint states that the test publishes, with its description and a set of parameters."""

    def __init__(self, world, parameters=None, period=0.005, process=False, description=ARM, **fields):
        self.world, self.stamp, self._dynamics = world, 0.0, {}
        if not process:  # a process has a clock of its own
            world.keep_time()
        self.efforts = world.heard(Float64MultiArray, "effort_command", DEEP_SENSOR)
        self.diagnostics = world.heard(DiagnosticArray, "diagnostics", RELIABLE)
        self.log = world.heard(Log, "/rosout", DEEP)
        self.states = world.probe.create_publisher(JointState, "joint_states", RELIABLE)
        world.probe.create_publisher(String, "robot_description", LATCHED).publish(String(data=description))
        self.parameters = world.probe.create_publisher(ParameterSetMsg, "identified_parameters", LATCHED)
        if parameters is not None:
            self.parameters.publish(message(parameters))
        self.position, self.fields, self.period = [0.1, 0.4, 0.2], fields, period
        self.timer = world.probe.create_timer(period, lambda: self.publish())  # rclpy looks at the signature

    def publish(self, **fields):
        self.stamp = max(self.stamp + 1e-4, self.world.now)
        state = JointState(name=list(identified().robot.joint_names), position=self.position, velocity=[0.0] * 3)
        for name, value in {**self.fields, **fields}.items():
            setattr(state, name, value)
        state.header.stamp.sec, state.header.stamp.nanosec = int(self.stamp), int(self.stamp % 1 * 1e9)
        self.states.publish(state)

    def logged(self, words):
        return any(words in line.msg for line in self.log)

    def status(self):
        found = [s for m in self.diagnostics for s in m.status if s.name == "/computed_torque_controller: condition"]
        return (found[-1].level, found[-1].message) if found else (None, "")

    def settled(self, parameters):
        if id(parameters) not in self._dynamics:  # making them takes longer than the period of the joint states
            self._dynamics[id(parameters)] = Dynamics.from_parameters(parameters)
        expected = self._dynamics[id(parameters)].gravity(np.array(self.position))
        return len(self.efforts) and np.allclose(self.efforts[-1].data, expected, rtol=1e-9)


def test_a_law_beyond_the_rating_is_limited_and_reported(world):
    """Computed torque far from its setpoint: something stronger than the motors pushes the arm away."""
    arm = Still(world, identified())
    world.add(
        ComputedTorqueController,
        *ros_arguments(law="computed_torque", bandwidth="100.0", latency="0.5", start_time="0.0"),
    )
    world.until(lambda: len(arm.efforts) > 10, what="efforts")
    angles = iter(np.linspace(0.4, 0.9, 100).tolist())
    world.probe.create_timer(arm.period, lambda: setattr(arm, "position", [0.1, next(angles, 0.9), 0.2]))
    world.until(lambda: "is limited to its rating, 40 N m" in arm.status()[1], what="message")
    assert arm.status()[0] == DiagnosticStatus.ERROR
    efforts = np.array([one.data for one in arm.efforts])
    assert np.abs(efforts).max() == RATED


HOSTILE_STATES = {
    "NaN": {"position": [0.1, float("nan"), 0.2]},
    "infinite": {"velocity": [0.0, float("inf"), 0.0]},
    "huge": {"velocity": [1e308, -1e308, 1e308]},
    "short": {"position": [0.1]},
    "long": {"position": [0.1] * 1000},
    "no velocity": {"velocity": []},
    "names twice": {"name": ["shoulder", "elbow", "elbow"]},
    "many strangers": {"name": [f"shoulder{i}" for i in range(10_000)] + ["elbow"], "position": [0.0] * 10_001},
}


def test_hostile_joint_states_are_refused_and_the_controller_goes_on(world):
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0"))
    world.until(lambda: arm.settled(identified()), what="efforts")
    for name, fields in HOSTILE_STATES.items():
        before = node.refused
        arm.publish(**fields)
        world.until(lambda before=before: node.refused > before, what=name)
    world.until(lambda: arm.settled(identified()), what="efforts after several in a row")
    heard = len(arm.efforts)
    world.until(lambda: len(arm.efforts) > heard + 20, what="efforts after them")
    expected = Dynamics.from_parameters(identified()).gravity(np.array(arm.position))
    assert all(np.allclose(one.data, expected) for one in arm.efforts[heard:])
    assert node.end is None and node.internal_errors == 0


def hostile_trajectories(names):
    """Trajectories that no robot can follow, with the reason of the refusal."""
    start = [0.1, 0.4, 0.2]
    wild = trajectory(names, start, 0.0, accelerations=[1e308] * 3)
    fast = trajectory(names, start, 0.0, accelerations=[0.0, 1e5, 0.0])
    fast.points += trajectory(names, start, 1.0).points
    unordered = trajectory(names, start, 2.0)
    unordered.points += trajectory(names, start, 1.0).points
    many = trajectory(names, start, 0.0)
    many.points *= 120_000
    return (
        (wild, "accelerations of joint shoulder is above"),
        (trajectory(names, start, 1.0, velocities=[float("nan")] * 3), "velocities of joint shoulder is not finite"),
        (trajectory(names, [0.1, 40.0, 0.2]), "is beyond its limits"),
        (fast, "between points 0 and 1 joint elbow passes"),
        (unordered, "point 1 is not later"),
        (many, "is larger than the"),
    )


def test_hostile_trajectories_are_refused_by_controller_and_simulator(world, tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    scene = Commander(world, tmp_path / "arm.urdf", "simulated")
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(law="computed_torque", latency="2.0"))
    publisher = world.probe.create_publisher(JointTrajectory, "computed_torque_controller/joint_trajectory", RELIABLE)
    world.until(lambda: publisher.get_subscription_count() and node._law.tracker is not None, what="controller")
    for one, words in hostile_trajectories(scene.names):
        for target, end in ((publisher, node), (scene.trajectories, scene.node)):
            before = end.refused
            target.publish(one)
            world.until(lambda before=before, end=end: end.refused > before, what=words)
            assert words in end.refusal
    efforts = np.array([command.data for command in arm.efforts])
    assert np.isfinite(efforts).all() and np.abs(efforts).max() <= RATED
    assert np.abs(scene.position).max() < 1e-3
    assert all(one.end is None and one.internal_errors == 0 for one in (node, scene.node))


def test_a_joint_without_a_rating_is_not_commanded_until_the_user_gives_one(world):
    unrated = ARM.replace(f'effort="{RATED}"', 'effort="0"')
    arm = Still(world, description=unrated)
    parameters = altered(identified(), robot={"urdf": unrated, "urdf_sha256": urdf_hash(unrated)})
    arm.parameters.publish(message(parameters))
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0"))
    world.until(lambda: arm.logged("joint shoulder has no effort limit in the URDF (0)"), what="refusal")
    assert not arm.efforts
    world.remove(node)
    world.add(ComputedTorqueController, *ros_arguments(latency="1.0", effort_limit="[30.0]"))
    world.until(lambda: arm.settled(parameters), what="efforts")


ENDS = {"SIGINT": (signal.SIGINT, 0), "SIGHUP": (signal.SIGHUP, 0), "exception": (None, 4)}


@pytest.mark.parametrize("way", ENDS)
def test_the_last_effort_is_zero_whichever_way_the_controller_ends(world, way):
    number, code = ENDS[way]
    arm = Still(world, identified(), process=True)
    broken = """
import sys
from robot_dyn_id.nodes.executables import run_executable
from robot_dyn_id.simulation.model_law import ModelLaw
right = ModelLaw.effort
count = 0
def wrong(self, *state):
    global count
    count += 1
    if count > 100:
        raise ZeroDivisionError("injected")
    return right(self, *state)
if sys.argv.pop() == "exception":
    ModelLaw.effort = wrong
sys.exit(run_executable("computed_torque_controller"))
"""
    with child([sys.executable, "-c", broken, way], stderr=subprocess.PIPE, text=True) as process:
        try:
            world.until(lambda: arm.settled(identified()), what="efforts")
            if number is not None:
                process.send_signal(number)
            world.until(lambda: process.poll() is not None, what="end")
        finally:
            process.kill()
    assert process.returncode == code
    world.within(2.0, lambda: not np.any(arm.efforts[-1].data), what="last effort")


def test_a_node_that_was_at_rest_commands_nothing_at_its_end(world):
    """Another one may command the robot by then; a node that commands ends with zero, twice."""
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0"))
    world.until(lambda: arm.settled(identified()), what="efforts")
    assert not node.stop() and node.stop()
    world.until(lambda: len(arm.efforts) > 1 and not np.any([arm.efforts[-2].data, arm.efforts[-1].data]), what="zero")
    published = []
    node._commands.publish = published.append
    assert node.stop() and not published


# --- lifecycle ---------------------------------------------------------------------------------------------------

CONTROLLER = ComputedTorqueController.NAME


def test_no_effort_is_commanded_before_the_controller_is_active(world):
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0", autostart="false"))
    world.until(lambda: "unconfigured: no effort before the node is activated" in arm.status()[1], what="waiting")
    assert change(world, CONFIGURE, CONTROLLER)
    world.until(lambda: "inactive: no effort before the node is activated" in arm.status()[1], what="inactive")
    world.until(lambda: node._law.dynamics is not None, what="model")
    world.wait(1.5)  # longer than the search for namesakes
    assert not arm.efforts
    assert change(world, ACTIVATE, CONTROLLER)
    world.until(lambda: arm.settled(identified()), what="efforts")
    first = np.array(arm.efforts[0].data)
    assert not first.any(), "it begins at zero"


@pytest.mark.parametrize(
    ("last", "law"),
    [("deactivate", "computed_torque"), ("cleanup", "gravity_compensation"), ("shutdown", "computed_torque")],
)
def test_an_inactive_controller_fades_its_effort_out_and_commands_no_more(world, law, last):
    arm = Still(world, identified())
    weight = Dynamics.from_parameters(identified()).gravity(np.array(arm.position))
    assert np.abs(weight).max() > 1.0, "an arm without weight shows no jump"
    world.add(ComputedTorqueController, *ros_arguments(law=law, latency="1.0", start_time="0.4"))

    def holds():
        return len(arm.efforts) and np.allclose(arm.efforts[-1].data, weight, atol=0.02 * np.abs(weight).max())

    world.until(holds, what="the weight is carried")
    begin = len(arm.efforts)
    assert change(world, ACTIVE_SHUTDOWN if last == "shutdown" else DEACTIVATE, CONTROLLER)
    if last == "cleanup":
        assert change(world, CLEANUP, CONTROLLER)
    world.until(lambda: not np.any(arm.efforts[-1].data), what="zero effort")
    fading = np.array([one.data for one in arm.efforts])[begin - 1 :]
    largest = np.abs(weight).argmax()
    assert len(np.unique(fading[:, largest])) > 4, "no jump to zero; test_effort_control.py measures the steps"
    count = len(arm.efforts)
    world.wait(0.5)
    assert len(arm.efforts) == count, "no command after the zero effort"
    label = {"deactivate": "inactive", "cleanup": "unconfigured", "shutdown": "finalized"}[last]
    world.until(lambda: arm.status()[1].startswith(label), what="state")
    if last == "shutdown":
        return
    if last == "cleanup":
        assert change(world, CONFIGURE, CONTROLLER)
    assert change(world, ACTIVATE, CONTROLLER)
    world.until(holds, what="the weight is carried again")
    assert not np.any(arm.efforts[count].data), "it begins at zero again"


def test_no_transition_lets_go_of_the_arm_in_one_step_while_the_effort_fades(world):
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0", start_time="1.5"))
    weight = Dynamics.from_parameters(identified()).gravity(np.array(arm.position))
    largest = np.abs(weight).argmax()
    world.until(lambda: arm.settled(identified()), what="efforts")
    begin = len(arm.efforts)
    assert change(world, DEACTIVATE, CONTROLLER)
    assert not change(world, ACTIVATE, CONTROLLER)
    assert change(world, CLEANUP, CONTROLLER)
    assert not change(world, CONFIGURE, CONTROLLER)
    world.until(lambda: not (node._control and node._control.releasing), what="zero effort")
    world.until(lambda: not np.any(arm.efforts[-1].data), what="zero effort")
    fading = np.array([one.data[largest] for one in arm.efforts])[begin - 1 :]
    assert np.abs(np.diff(fading)).max() < 0.25 * np.abs(weight[largest])
    assert change(world, CONFIGURE, CONTROLLER) and change(world, ACTIVATE, CONTROLLER)
    world.until(lambda: arm.settled(identified()), what="efforts again")


def test_a_controller_that_is_configured_for_another_robot_uses_nothing_of_the_one_before(world):
    """Neither its model nor its rating: the parameters of the first robot do not move the second."""
    arm = Still(world, identified())
    node = world.add(ComputedTorqueController, *ros_arguments(latency="1.0"))
    world.until(lambda: arm.settled(identified()), what="efforts")
    assert change(world, DEACTIVATE, CONTROLLER) and change(world, CLEANUP, CONTROLLER)
    world.until(lambda: not np.any(arm.efforts[-1].data) and node._law.dynamics is None, what="zero effort")
    count = len(arm.efforts)
    description = world.probe.create_publisher(String, "robot_description", LATCHED)
    urdf = ARM.replace('name="small"', 'name="other"').replace(f'effort="{RATED}"', 'effort="30.0"')
    description.publish(String(data=urdf))
    world.until(lambda: node._description == urdf, what="description")
    assert change(world, CONFIGURE, CONTROLLER) and change(world, ACTIVATE, CONTROLLER)
    world.until(
        lambda: "parameters refused: the parameters are those of another URDF" in arm.status()[1], what="refusal"
    )
    world.wait(0.3)
    assert len(arm.efforts) == count
    other = altered(identified(), robot={"urdf": urdf, "urdf_sha256": urdf_hash(urdf), "name": "other"})
    arm.parameters.publish(message(other))
    world.until(lambda: arm.settled(other), what="efforts of the other robot")
    assert np.array_equal(node._control.efforts.rated, [30.0] * 3)
