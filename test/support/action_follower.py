# SPDX-License-Identifier: Apache-2.0
"""The robot of `follower.py` behind the action FollowJointTrajectory; importing it needs control_msgs.

Like joint_trajectory_controller: a new goal replaces the one before, which ends as aborted; a goal that is canceled or
given up leaves the robot where it is.
"""

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future

from support.follower import Follower

Result = FollowJointTrajectory.Result


class ActionFollower(Follower):
    """The robot.

    Attributes:
        accepts: takes a trajectory and returns whether its goal is accepted.
        canceled: number of goals that were canceled on request.
    """

    def __init__(self, *arguments, **options):
        self.accepts, self.canceled = lambda trajectory: True, 0
        self.goal, self.end = None, Future()
        super().__init__(*arguments, topic="joint_trajectory_controller/follow_joint_trajectory", **options)

    def come(self):
        self.server = ActionServer(
            self,
            FollowJointTrajectory,
            self.topic,
            self.execute,
            goal_callback=lambda goal: GoalResponse.ACCEPT if self.accepts(goal.trajectory) else GoalResponse.REJECT,
            handle_accepted_callback=self.take,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )

    def leave(self):
        if self.server is not None:
            self.server.destroy()
            self.server = None

    def destroy_node(self):
        self.leave()  # rclpy leaves it in the graph
        super().destroy_node()

    def take(self, goal):
        self.finish(Result.INVALID_GOAL, "Current goal cancelled due to new incoming action.")
        self.goal, self.end = goal, Future()
        self.follow(goal.request.trajectory)
        goal.execute()

    async def execute(self, goal):
        result = await self.end
        if goal.is_cancel_requested:
            self.canceled += 1
            self.hold()
            goal.canceled()
        elif result.error_code == Result.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
        return result

    def finish(self, code=Result.SUCCESSFUL, text=""):
        """End the goal under way, if there is one."""
        if self.goal is not None:
            self.goal = None
            self.end.set_result(Result(error_code=code, error_string=text))

    def give_up(self, code, text):
        """Abort, as a controller may do at any time, and stay."""
        self.hold()
        self.finish(code, text)

    def hold(self):
        self.points, self.dq, self.ddq = [], 0.0 * self.dq, 0.0 * self.ddq

    def tick(self):
        super().tick()
        if (self.goal is not None and self.goal.is_cancel_requested) or (
            self.points and self.now() > self.points[-1][0]
        ):
            self.finish()
