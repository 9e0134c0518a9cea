# SPDX-License-Identifier: Apache-2.0
"""The excitation publisher with a robot behind a trajectory controller, in one ROS world."""

from pathlib import Path

import numpy as np
from robot_dyn_id.msg import ExcitationStatus as Status
from std_srvs.srv import SetBool, Trigger

from robot_dyn_id.errors import DeadlineError
from robot_dyn_id.excitation.execution.latency import Latency
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.nodes.excitation_publisher import ExcitationPublisher
from robot_dyn_id.nodes.runtime.robot_node import LATCHED
from support.follower import Follower
from support.ros_world import ros_arguments

ARM = Path(__file__).resolve().parents[2] / "urdf" / "arm7.urdf"
NAMES = [f"joint{i}" for i in range(1, 8)]
START = np.full(7, 0.1)
ACCELERATION = 10.0
TIMEOUT_S = 0.5
"""Age of joint states at which the node stops, its latency [s]: far above the delays of a busy computer."""

HORIZON_S = Latency(TIMEOUT_S).horizon
"""Length of the segments of a motion [s]."""

QUICK = {
    **{"period": 1.0, "periods": 2, "acceleration": f"[{ACCELERATION}]", "amplitude_share": 0.3, "latency": TIMEOUT_S},
    "return_to_start": "false",
    "rehearsal": "false",
}


VELOCITY = RobotModel.from_file(ARM).limits.velocity


class Cell:
    """A follower and the node, by the clock of the world, and the statuses of the node."""

    def __init__(self, world, urdf=ARM, follower=True, namespace="", order=None, **parameters):
        self.world, self.prefix = world, f"{namespace}/" if namespace else ""
        self.follower = None
        if "use_sim_time" not in parameters:
            world.keep_time()
        if follower:
            self.follower = world.add(lambda **o: Follower(NAMES, START, order=order, **o), namespace=namespace)
        arguments = ros_arguments(**{"urdf": urdf, **QUICK, **parameters})
        self.node = world.add(ExcitationPublisher, *arguments, namespace=namespace)
        self.statuses = world.heard(Status, f"{self.prefix}excitation_status", LATCHED)

    @property
    def state(self):
        return self.statuses[-1].state if self.statuses else None

    @property
    def reason(self):
        return self.statuses[-1].reason if self.statuses else ""

    def until(self, state):
        try:
            self.world.until(lambda: self.state == state)
        except DeadlineError as error:
            raise AssertionError(f"{error}: state {self.state}, not {state}: {self.reason}") from None
        return self

    def within(self, seconds, state):
        """Until it is in a state, which must not take longer by the time of the world."""
        self.world.within(seconds, lambda: self.state == state, f"state {state}")
        return self

    def call(self, name, request=None):
        kind = Trigger if request is None else SetBool
        return self.world.call(kind, f"{self.prefix}excitation_publisher/{name}", request)

    def resume(self):
        """End a pause, as soon as the joint states that are on their way show the robot at rest."""
        self.world.until(lambda: self.call("pause", SetBool.Request(data=False)).success, what="the end of the pause")

    def start(self):
        """Start as soon as joint states show rest; returns the answer."""
        answer = self.call("start")
        while " moves at " in answer.message or "still moving" in answer.message:
            answer = self.call("start")
        return answer

    def running(self, progress=0.3):
        self.world.until(lambda: self.state in (Status.READY, Status.DONE))
        before = len(self.statuses)
        answer = self.start()
        assert answer.success and answer.message.startswith("approaches the excitation"), answer.message
        begun = (Status.APPROACHING, Status.RUNNING, Status.FAULT)  # the answer may come before the status
        self.world.until(lambda: any(one.state in begun for one in self.statuses[before:]))
        self.world.until(
            lambda: (
                self.state in (Status.FAULT, Status.DONE)
                or (self.state == Status.RUNNING and self.statuses[-1].elapsed > progress)
            )
        )
        assert self.state == Status.RUNNING, f"state {self.state}: {self.reason}"
        return self


MAIN = "import sys; from robot_dyn_id.nodes.executables import run_executable; sys.exit(run_executable('excitation_publisher'))"
