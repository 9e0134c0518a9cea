"""ROS 2 nodes: the only code that imports rclpy and messages."""
