# SPDX-License-Identifier: Apache-2.0
"""Online identification: recursive estimation and detection of changes since the identification."""

from robot_dyn_id.online.changes import Change, Part, list_parts_of
from robot_dyn_id.online.recursion import RecursiveLeastSquares, compute_information_root
from robot_dyn_id.online.watch import ModelWatch, WatchSettings

__all__ = [
    "Change",
    "ModelWatch",
    "Part",
    "RecursiveLeastSquares",
    "WatchSettings",
    "compute_information_root",
    "list_parts_of",
]
