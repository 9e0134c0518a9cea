# SPDX-License-Identifier: Apache-2.0
"""Uses of a model, and the answers to whether it is fit for one."""

USES = (
    *("gravity_compensation", "feed_forward", "computed_torque"),
    *("forward_simulation", "collision_detection", "payload"),
)
"""Uses that a model may be fit for."""

MOTION_USES = ("feed_forward", "computed_torque", "forward_simulation")
"""Uses whose torques depend on velocity and acceleration."""

WEIGHT_USES = ("gravity_compensation", "forward_simulation", "payload")
"""Uses for which a model without gravity is not fit."""

ANSWERS = YES, LIMITED, NO = ("yes", "limited", "no")
"""Answers to whether a model is fit for a use, the best first."""

APART = "-"
"""Instead of an answer about a joint: the use does not rest on it."""
