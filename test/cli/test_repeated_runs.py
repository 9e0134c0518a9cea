# SPDX-License-Identifier: Apache-2.0
"""Identification in closed loop through the nodes, over real DDS: move, identify, take the model over, move again."""

import numpy as np
from robot_dyn_id.msg import ExcitationStatus, IdentificationReport
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from support.robots import joint, urdf
from support.ros_world import ros_arguments
from support.simulator_scene import Commander

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.computed_torque_controller import ComputedTorqueController
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.identifier import Identifier
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from robot_dyn_id.parameters import ParameterSet

TILTED = urdf(joint("one", "base", "l1", rpy="0.2 0 0"), joint("two", "l1", "l2", rpy="0 0 0"), links=2)
"""Its axes are nearly upright: a weak feedback carries it, and with friction bears the delays of a busy machine."""
RUNS = 2


def test_a_run_is_repeated_with_what_was_identified_from_the_one_before(world, tmp_path):
    """On the simulator's own slow clock: a busy machine makes pauses, which it leaves out instead of leaping."""
    file, config = tmp_path / "arm.urdf", tmp_path / "identification.yaml"
    file.write_text(TILTED)
    config.write_text("terms: {viscous: }\nestimator: consistent\n")
    status = world.heard(ExcitationStatus, "excitation_status", LATCHED)
    reports = world.heard(IdentificationReport, "identification_report", LATCHED)
    models = world.heard(ParameterSetMsg, "identified_parameters", LATCHED)
    plant = {
        "control": "effort",
        "brakes": "true",
        "limit_effort": "false",
        "latency": "1.0",
        "rate": "500.0",
        "publish_rate": "250.0",
        "viscous": "[2.0]",
    }
    scene = Commander(
        world, file, effort_noise="[0.02]", initial_position="[0.3, -0.2]", clock="true", real_time_factor=1.0, **plant
    )
    world.until(lambda: scene.logged("brakes closed until the first effort command"), what="brakes")
    assert np.array_equal(scene.position, [0.3, -0.2]), "only its brakes hold it"
    world.add(Identifier, *ros_arguments(use_sim_time="true", config=config, folder=tmp_path / "results"))
    world.add(
        ComputedTorqueController,
        *ros_arguments(
            use_sim_time="true",
            law="computed_torque",
            bandwidth=4.0,
            start_droop=0.3,
            latency=10.0,
            robot_compensates="[none]",
        ),
    )
    world.until(lambda: scene.logged("commands efforts by the URDF's inertia"), what="start without a model")
    motion = {"period": 2.5, "periods": 2, "harmonics": 3, "acceleration": "[4.0]", "return_to_start": "false"}
    motion["rehearsal"] = "false"
    watched = {
        "latency": 1.5,  # long segments, which a busy machine does not make late
        "tracking_error": "[1.0]",
        "effort_scale": 0.0,
        "command_topic": "computed_torque_controller/joint_trajectory",
    }
    world.add(ExcitationPublisher, *ros_arguments(use_sim_time="true", start="true", runs=RUNS, **motion, **watched))
    world.until(lambda: len(reports) == 1, what="first identification")
    world.until(lambda: scene.logged("commands efforts by computed_torque"), what="use of the model")
    world.until(lambda: len(reports) == RUNS, what="second identification")
    states = [message.state for message in status]
    assert ExcitationStatus.FAULT not in states, [message.reason for message in status]
    ends = [k for k, state in enumerate(states) if state == ExcitationStatus.DONE and states[k - 1] != state]
    assert len(ends) == RUNS
    errors = []
    for first, last in zip([0, *ends], ends, strict=False):
        run = [message.tracking_error for message in status[first:last] if message.state == ExcitationStatus.RUNNING]
        errors.append(np.median(np.abs(run)))
    assert errors[1] < 0.5 * errors[0], errors
    model = RobotModel.from_urdf(TILTED)
    truth = Dynamics.from_model(model)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
    found, true = Dynamics.from_parameters(ParameterSet.from_message(models[-1])).gravity(q), truth.gravity(q)
    assert np.abs(found - true).max() < 0.02 * np.abs(true).max()
