# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes: the only code that imports rclpy and messages."""

NODES = (
    *("excitation_publisher", "simulator", "recorder", "identifier", "payload_identifier"),
    *("computed_torque_controller", "gravity_calibrator", "gravity_compensator"),
    *("torque_residual_monitor", "external_torque_estimator", "marker_publisher"),
)
"""Names of the nodes; a test compares them with the nodes that the package installs."""
