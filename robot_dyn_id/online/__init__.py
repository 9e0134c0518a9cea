# SPDX-License-Identifier: Apache-2.0
"""Online identification: recursive estimation and detection of changes since the identification."""

from robot_dyn_id.online.changes import Change, Part, parts_of
from robot_dyn_id.online.recursion import RecursiveLeastSquares, information_root
from robot_dyn_id.online.watch import ModelWatch, WatchSettings

__all__ = ["Change", "ModelWatch", "Part", "RecursiveLeastSquares", "WatchSettings", "information_root", "parts_of"]
