"""A simulator of the identified model beside the robot (or a bag that is played), following the same trajectories."""

from launch import LaunchDescription

from robot_dyn_id.launching import TRAJECTORY, arguments, node


def generate_launch_description():
    return LaunchDescription(
        [
            *arguments("robot", "config", "namespace", "use_sim_time", "parameters", "folder", "controller"),
            node("identifier", ["parameters", "folder"], listen=False),
            node(
                "simulator",
                inside="twin",
                model="parameters",
                remappings=[
                    ("identified_parameters", "{root}/identified_parameters"),
                    (TRAJECTORY, "{root}/{controller}/joint_trajectory"),
                ],
            ),
            node("monitor"),
        ]
    )
