# SPDX-License-Identifier: Apache-2.0
"""Conversion between ROS messages and values."""
