"""Conversion between ROS messages and values."""
