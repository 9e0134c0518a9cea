# SPDX-License-Identifier: Apache-2.0
"""The whole command `identify` against FIGAROH, each from the same file to parameters in a process of its own.

FIGAROH runs its own class `BaseIdentification` with its defaults: median and Butterworth filter of positions and
velocities, accelerations by differences, a stacked regressor of all samples, decimation of its columns by ten, base
parameters by QR, weighted least squares with standard deviations. It writes no report and does not validate; reading
the file and importing are counted for both, as a user has them.
"""

from __future__ import annotations

from measuring import Goal, at_least, one_thread, script, skipped

if __name__ == "__main__":
    one_thread()

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from robot_dyn_id.bench.commands import PINNED, RATE, START_SAMPLES, run_command, write_recording
from robot_dyn_id.files.shared import find_shared_file

SAMPLES, RATIO = 100_000, 20.0
NAME = f"end to end, {SAMPLES} samples: identify against FIGAROH"

PEER = """
import sys
from types import SimpleNamespace
import numpy as np
import pinocchio as pin
from figaroh.identification.base_identification import BaseIdentification

class Identification(BaseIdentification):
    def load_param(self, config_file, setting_type="identification"):
        joints = list(range(self.model.nv))
        self.identif_config = {
            "act_idxq": joints, "act_idxv": joints, "active_joints": list(self.model.names[1:]),
            "is_joint_torques": True, "is_external_wrench": False, "has_friction": True, "has_joint_offset": True,
            "has_actuator_inertia": False, "fv": [0.0] * self.model.nv, "fs": [0.0] * self.model.nv,
            "offset": [0.0] * self.model.nv, "robot_name": "arm",
        }
        self.filter_config = {
            "differentiation_method": "gradient",
            "filter_params": {"nbutter": 4, "f_butter": 5, "med_fil": 5, "f_sample": float(sys.argv[3])},
        }

    def load_trajectory_data(self, data_source=None):
        data = np.load(sys.argv[2])
        return {
            "timestamps": data["t"], "positions": data["q"], "velocities": data["dq"], "accelerations": None,
            "torques": data["tau"],
        }

model = pin.buildModelFromUrdf(sys.argv[1])
robot = SimpleNamespace(
    model=model, data=model.createData(), q0=pin.neutral(model), v0=np.zeros(model.nv), name="arm"
)
one = Identification(robot)
one.initialize()
one.solve(plotting=False, wls=True)
print(len(one.phi_base), "base parameters, RMS error", one.rms_error)
"""


def measure() -> list[Goal]:
    """Both on the same recording; the smaller of two runs of `identify`, the first of which may compile kernels."""
    robot = find_shared_file("urdf/arm7.urdf")
    with tempfile.TemporaryDirectory(prefix="robot_dyn_id_end_to_end_") as scratch:
        folder = Path(scratch)
        short, data, out = folder / "short.npz", folder / "data.npz", folder / "run"
        write_recording(short, START_SAMPLES, RATE)
        write_recording(data, SAMPLES, RATE)

        def identify(recording: Path) -> float:
            words: list[str | Path] = ["identify", recording, "--robot", robot, "--out", out, "--force", *PINNED]
            return run_command(words).seconds

        start, ours = (min(identify(recording) for _ in range(2)) for recording in (short, data))
        theirs = _figaroh(robot, data)
    if isinstance(theirs, str):
        return [skipped(NAME, RATIO, theirs)]
    return [at_least(NAME, theirs / ours, RATIO, ours_s=ours, peer_s=theirs, ours_start_s=start)]


def _figaroh(robot: Path, data: Path) -> float | str:
    """CPU time of FIGAROH [s], or why it does not run."""
    with tempfile.TemporaryFile("w+") as text:
        command = [sys.executable, "-c", PEER, str(robot), str(data), str(RATE)]
        process = subprocess.Popen(command, stdout=text, stderr=text)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text.seek(0)
        lines = text.read().splitlines() or [""]
    if process.returncode:
        return f"FIGAROH ended with {process.returncode}: {lines[-1][-200:]}"
    print(lines[-1])
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    script(measure)
