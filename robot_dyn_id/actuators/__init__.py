# SPDX-License-Identifier: Apache-2.0
"""Actuators under position commands: armature, friction, gains, delay, offset and saturation without torque sensors."""
