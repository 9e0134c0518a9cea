# SPDX-License-Identifier: Apache-2.0
"""Identification while the robot works: recursive estimates, and what has changed since the model was identified."""

from robot_dyn_id.online.changes import Change, Part, parts_of
from robot_dyn_id.online.recursion import RecursiveLeastSquares, information_root
from robot_dyn_id.online.watch import ModelWatch

__all__ = ["Change", "ModelWatch", "Part", "RecursiveLeastSquares", "information_root", "parts_of"]
