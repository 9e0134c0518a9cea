# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes: the only code that imports rclpy and messages."""
