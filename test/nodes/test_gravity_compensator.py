# SPDX-License-Identifier: Apache-2.0
"""The gravity-compensating node with a simulated arm without torque sensors, over real DDS."""

import re
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from std_msgs.msg import Float64MultiArray, String
from support.lifecycle import ACTIVATE, CLEANUP, CONFIGURE, DEACTIVATE, change
from support.low_cost_arm import LowCostArm
from support.ros_world import ros_arguments
from support.simulated import ARM
from support.simulator_scene import Commander

from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.files.gravity import write_gravity
from robot_dyn_id.loads.gravity import calibrate_gravity
from robot_dyn_id.loads.holds import find_holds
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.gravity_compensator import CALIBRATION, GravityCompensator
from robot_dyn_id.nodes.runtime.robot_node import LATCHED, RELIABLE, SENSOR

MODEL = RobotModel.from_urdf(ARM)
TRUTH = LowCostArm(MODEL, seed=4)
NODE = "gravity_compensator"
PAGE = Path(__file__).parents[2] / "docs" / "gravity.md"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The URDF and a calibration of the simulated arm."""
    folder = tmp_path_factory.mktemp("calibrated")
    (folder / "arm.urdf").write_text(ARM)
    found = calibrate_gravity(MODEL, find_holds([TRUTH.record()], MODEL.joint_names))
    write_gravity(folder / "gravity.yaml", MODEL, found)
    return folder


def numbers(values):
    return f"[{', '.join(repr(float(value)) for value in values)}]"


class Arm(Commander):
    """The simulated arm of the calibration: it holds itself until the first effort command."""

    def __init__(self, world, files, **parameters):
        truth = {
            "mass_factors": numbers(TRUTH.bodies[:, 0] / MODEL.inertial_parameters.reshape(-1, 10)[:, 0]),
            "drive_gains": numbers(TRUTH.gains),
            "coulomb": numbers(TRUTH.friction),
            "backlash": f"[{TRUTH.backlash}]",
            "smoothing_width": "0.0",
            "resolution": f"{2 * np.pi / 4096}",
            "publish_rate": "50.0",
            "control": "either",
            "limit_effort": "false",
            "latency": "1.0",
            "initial_position": "[0.3, 0.4, -0.5]",
        }
        super().__init__(world, files / "arm.urdf", **{**truth, **parameters})
        self.efforts_heard = self.hear(Float64MultiArray, "effort_command", SENSOR)

    @property
    def effort(self):
        return np.array(self.efforts_heard[-1].data)

    @property
    def sizes(self):
        """Norms of all commands."""
        return np.array([np.linalg.norm(message.data) for message in self.efforts_heard])

    def level(self):
        statuses = [s for m in self.diagnostics for s in m.status if s.name == f"/{NODE}: condition"]
        return (statuses[-1].level, statuses[-1].message) if statuses else (None, "")

    def compensated(self, scale=1.0):
        """Whether the latest command is the true gravity effort at the position, to 5 % of its size."""
        true = scale * TRUTH.effort(self.position[:, None])[:, 0]
        return bool(self.efforts_heard) and np.allclose(self.effort, true, atol=0.05 * np.abs(true).max())


def set_scale(world, value):
    number = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    request = SetParameters.Request(parameters=[Parameter(name="scale", value=number)])
    return world.call(SetParameters, f"{NODE}/set_parameters", request).results[0]


def test_the_arm_stays_where_it_is_put_and_is_released_by_a_ramp(world, files):
    arm = Arm(world, files)
    begin = arm.position
    node = world.add(
        GravityCompensator, *ros_arguments(urdf=files / "arm.urdf", calibration=files / "gravity.yaml", latency=1.0)
    )
    world.until(arm.compensated, what="gravity in drive units")
    arm.passes(2.0)
    assert arm.compensated()
    assert np.abs(arm.position - begin).max() < 2e-3, "from position control on"
    world.until(lambda: arm.level()[0] == DiagnosticStatus.OK and "compensates gravity" in arm.level()[1], what="level")
    assert change(world, DEACTIVATE, NODE)
    assert not change(world, ACTIVATE, NODE), "the efforts still fade"
    world.until(lambda: not any(arm.effort), what="release")
    sizes = arm.sizes / arm.sizes.max()
    assert min(np.diff(sizes)) > -0.05, "the efforts shrink to zero"
    assert change(world, CLEANUP, NODE)
    assert node.lifecycle == "unconfigured"


def test_its_end_is_a_ramp_where_joint_states_have_another_name(world, files):
    """rclpy counts publishers of the name without remapping: none, and without joint states it must end at once."""
    arm = Arm(world, files, namespace="robot")
    given = ros_arguments(urdf=files / "arm.urdf", calibration=files / "gravity.yaml", latency=1.0)
    remappings = [word for name in ("joint_states", "effort_command") for word in ("-r", f"{name}:=robot/{name}")]
    node = world.add(GravityCompensator, *given, *remappings)
    world.until(arm.compensated, what="gravity in drive units")
    before = len(arm.efforts_heard)
    world.until(node.stop, what="the end of the node")
    sizes = arm.sizes[before:] / arm.sizes.max()
    assert len(sizes) > 10 and min(np.diff(sizes)) > -0.1, "the efforts shrink to zero"


def test_the_scale_can_be_changed_and_stale_states_end_the_efforts(world, files):
    arm = Arm(world, files)
    world.add(
        GravityCompensator,
        *ros_arguments(calibration=files / "gravity.yaml", ramp_time=0.2, effort_limit="[1e6]", scale=0.5),
    )
    world.until(lambda: arm.compensated(0.5), what="half of gravity")
    assert set_scale(world, 0.25).successful
    world.until(lambda: arm.compensated(0.25), what="a quarter of gravity")
    for wrong in (1.5, np.nan):
        assert not set_scale(world, wrong).successful
    world.remove(arm.node)
    world.until(lambda: not any(arm.effort), what="zero effort without joint states")
    world.until(lambda: "no joint states within 0.1 s" in arm.level()[1], what="stale")


def test_calibrations_come_by_topic_and_those_of_other_robots_are_refused(world, files):
    arm = Arm(world, files)
    text = (files / "gravity.yaml").read_text()
    calibrations = world.probe.create_publisher(String, CALIBRATION, LATCHED)
    world.add(GravityCompensator, *ros_arguments(latency=1.0))
    calibrations.publish(String(data=text.replace("urdf_sha256: ", "urdf_sha256: 0")))
    world.until(lambda: "another robot: another URDF" in arm.level()[1], what="another URDF")
    calibrations.publish(String(data="robot: none"))
    world.until(lambda: "not a gravity file" in arm.level()[1], what="another file")
    assert arm.level()[0] == DiagnosticStatus.ERROR and not arm.efforts_heard
    calibrations.publish(String(data=text))
    world.until(arm.compensated, what="gravity")
    calibrations.publish(String(data="robot: none"))
    world.until(lambda: arm.logged("calibration, the one in use stays"), what="refusal")
    assert arm.compensated()


@pytest.mark.parametrize(
    ("change", "given", "error", "words"),
    [
        (("name: small", "name: small"), {"joints": "[shoulder, elbow]"}, UsageError, "not the joints of the calib"),
        (("residual_rms: ", "residual_rms: 1000000"), {}, InputError, "as large as its gravity effort"),
        (("largest_effort", "size"), {}, InputError, "largest_effort is missing"),
        (("format_version: 1", "format_version: 9"), {}, InputError, "format_version is 9"),
        (("", ""), {"effort_limit": "[1.0]"}, InputError, "above the effort_limit 1"),
        (("", ""), {"urdf": "other"}, InputError, "another robot"),
    ],
    ids=["joints", "uncertain", "damaged", "version", "limit", "urdf"],
)
def test_what_cannot_be_used_ends_the_node(world, files, tmp_path, change, given, error, words):
    path = tmp_path / "gravity.yaml"
    path.write_text((files / "gravity.yaml").read_text().replace(*change))
    (tmp_path / "other.urdf").write_text(ARM.replace('mass value="', 'mass value="1', 1))
    urdf = tmp_path / "other.urdf" if given.get("urdf") else files / "arm.urdf"
    with pytest.raises(error, match=words):
        world.add(GravityCompensator, *ros_arguments(**{"calibration": path, **given, "urdf": urdf}))


def test_the_efforts_have_the_order_of_the_controller(world, files):
    arm = Arm(world, files, control="position")  # its commands are refused: the arm stays
    names = MODEL.joint_names[::-1]
    world.add(
        GravityCompensator,
        *ros_arguments(calibration=files / "gravity.yaml", joints=f"[{', '.join(names)}]", latency=1.0, ramp_time=0.05),
    )
    true = TRUTH.effort(arm.position[:, None])[::-1, 0]
    world.until(
        lambda: arm.efforts_heard and np.allclose(arm.effort, true, atol=0.05 * np.abs(true).max()), what="order"
    )


def test_a_calibration_that_is_refused_is_not_the_one_of_the_next_configuration(world, files):
    node = world.add(GravityCompensator, *ros_arguments(urdf=files / "arm.urdf"))
    text = (files / "gravity.yaml").read_text()
    node._take_calibration(String(data=text))
    node._take_calibration(String(data=re.sub("residual_rms: ", "residual_rms: 1000000", text)))
    assert "residual" in node.refusal
    for transition in (DEACTIVATE, CLEANUP, CONFIGURE, ACTIVATE):
        assert change(world, transition, NODE)
    assert node._control is not None and node._law.law.by_joint.any()


class Switched:
    """The controller that takes efforts as ros2_control has it: without a command the drives have no effort."""

    def __init__(self, world, arm):
        self.arm, self.effort, self.active = arm, [0.0] * 3, False
        world.probe.create_subscription(Float64MultiArray, "forward_effort_controller/commands", self.take, RELIABLE)

    def take(self, message):
        if self.active:
            self.arm.efforts.publish(message)
        self.effort = message.data

    def activate(self):
        self.active = True
        self.arm.efforts.publish(Float64MultiArray(data=self.effort))


def test_the_documented_order_does_not_let_the_arm_fall(world, files):
    arm = Arm(world, files)
    begin, controller = arm.position, Switched(world, arm)
    remapping = "effort_command:=forward_effort_controller/commands"
    given = ros_arguments(calibration=files / "gravity.yaml", latency=1.0, autostart="false")
    world.add(GravityCompensator, *given, "-r", remapping)
    steps = re.findall(r"^ *ros2 (?:control|lifecycle) .*", PAGE.read_text(), re.MULTILINE)
    for step in steps:
        if "switch_controllers" in step:
            controller.activate()
        else:
            assert change(world, {"configure": CONFIGURE, "activate": ACTIVATE}[step.split()[-1]], NODE)
        arm.passes(1.5)  # for longer than the efforts last
        assert np.abs(arm.position - begin).max() < 2e-3, step
    assert len(steps) == 3 and controller.active and any(controller.effort)
