# SPDX-License-Identifier: Apache-2.0
"""Flexible joints: links, springs and motors of an arm with joint and motor encoders and torque sensors.

    python examples/9_flexible_joints.py [FOLDER]

The same data as files, for `robot-dyn-id flexible`: flexible_recordings.py.
"""

import sys
from pathlib import Path

import flexible_recordings
from flexible_recordings import WIDTH

from robot_dyn_id.flexible import identify_flexible
from robot_dyn_id.papers.flexible2r.arm import list_true_values, make_arm
from robot_dyn_id.signals.filtering import LowPass

CUTOFF_HZ = 8.0
"""Cutoff frequency of the zero-phase low-pass [Hz]."""


def main(folder: Path) -> dict[str, tuple[float, float]]:
    """Identify the arm, and return the identified and true value of every parameter."""
    model = make_arm(WIDTH)
    *experiments, _ = flexible_recordings.recordings()
    found = identify_flexible(model, experiments, LowPass(CUTOFF_HZ))
    values = dict(zip(model.names, zip(found.solution.values, list_true_values(model), strict=True), strict=True))
    for (name, (value, true)), unit in zip(values.items(), model.units, strict=True):
        print(f"{name:<12} {value:>12.6g} (true {true:.6g}) {unit}")
    return values


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "example"))
