# SPDX-License-Identifier: Apache-2.0
"""The payload identifier with a simulated arm that carries a brick, in one ROS world."""

from functools import cache
from pathlib import Path

import numpy as np
from robot_dyn_id.action import IdentifyPayload
from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
from std_srvs.srv import SetBool

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, Viscous
from robot_dyn_id.estimators import GeneralizedLeastSquares
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.files.payload import write_payload
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.payload import Payload
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.payload_identifier import PayloadIdentifier
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from robot_dyn_id.nodes.simulator import Simulator
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording
from support.goal_client import GoalClient
from support.robots import brick
from support.ros_world import ros_arguments

ARM = Path(__file__).resolve().parents[2] / "urdf" / "arm7.urdf"
LINK = "link7"
VISCOUS, COULOMB = (3.0, 2.6, 2.2, 1.8, 1.4, 1.0, 0.6), (2.5, 2.2, 1.8, 1.5, 1.2, 0.8, 0.5)
NOISE = np.array([0.3, 0.6, 0.4, 0.4, 0.1, 0.1, 0.05])
START = [0.1, 0.5, 0.2, 0.8, 0.3, 0.9, 0.2]
UPRIGHT = [0.0] * 7
BRICK = brick(1.5, (0.03, -0.02, 0.1), (0.1, 0.14, 0.12))
TASKS = IdentifyPayload.Goal
RESULT = IdentifyPayload.Result

SIMULATED = {
    **{"urdf": ARM, "rate": 200.0, "publish_rate": 100.0, "smoothing_width": 0.02, "seed": 3},
    **{"viscous": list(VISCOUS), "coulomb": list(COULOMB), "effort_noise": NOISE.tolist()},
    **{"position_noise": 1e-5, "velocity_noise": 1e-3},
}
QUICK = {
    **{"urdf": ARM, "link": LINK, "period": 2.0, "warm_up": 2.0, "duration": 8.0},
    **{"acceleration": "[15.0]", "latency": 2.0, "tracking_error": "[0.5]"},
    **{"allow_unchecked_collisions": "true"},
}

PACE = 5.0
"""Speed of the time of a cell: a step of the clock is still a period of the supervision of a goal."""


@cache
def arm():
    """The bare arm, identified from a noisy motion of all joints."""
    model = RobotModel.from_file(ARM)
    regressor = Regressor(model, place_terms_on_joints(model, (Viscous(), Coulomb(0.02), Offset())))
    truth = np.concatenate([model.inertial_parameters, VISCOUS, COULOMB, np.zeros(7)])
    motion = draw_random_fourier(model, 5, period=10.0)
    times = sample_times(20.0, 100.0)
    recording = simulate_recording(regressor, truth, motion, times, Sensors(NOISE, 1e-5, 1e-3), 5)
    settings = Settings(estimator=GeneralizedLeastSquares())
    return identify([recording], [recording], model, settings, "test").parameters


class PayloadCell:
    """Simulator, payload identifier and a client of its action.

    Attributes:
        loaded: models of the arm with a payload that were published.
    """

    def __init__(self, world, folder, start=START, model=True, simulator=True, wait=True, **parameters):
        self.world = world
        world.keep_time(PACE)
        write_payload(folder / "brick.yaml", Payload(LINK, BRICK, np.zeros((10, 10)), BRICK))
        if model:
            write_parameters(folder / "arm.yaml", arm())
        if simulator:
            options = {**SIMULATED, "payload": folder / "brick.yaml", "initial_position": list(start)}
            self.simulator = world.add(Simulator, *ros_arguments(**options))
        given = {**QUICK, "folder": folder / "out", **({"parameters": folder / "arm.yaml"} if model else {})}
        self.node = world.add(PayloadIdentifier, *ros_arguments(**{**given, **parameters}))
        self.loaded = world.heard(ParameterSetMsg, "payload_identifier/loaded_parameters", LATCHED)
        self.client = GoalClient(world, IdentifyPayload, "payload_identifier/identify_payload")
        if simulator and wait:
            world.until(lambda: self.node._inputs.position is not None, what="joint states")

    def send(self, task=TASKS.IDENTIFY, **fields):
        return self.client.send(task=task, **fields)

    def run(self, task=TASKS.IDENTIFY, **fields):
        """Result of a goal, and the stages that it reported."""
        goal = self.send(task, **fields)
        _, result = goal.end()
        return result, list(dict.fromkeys(message.stage for message in goal.feedback))

    def rejection(self, task=TASKS.IDENTIFY):
        """Reason why a goal is rejected."""
        assert self.client.is_rejected(task=task)
        return self.node.refusal

    def until_stage(self, goal, stage):
        def reached():
            return any(message.stage == stage for message in goal.feedback)

        self.world.until(lambda: goal.done or reached(), what=f"stage {stage}")
        assert reached(), goal.end()[1].message

    def drop(self):
        assert self.world.call(SetBool, "simulator/carry_payload", SetBool.Request(data=False)).success
