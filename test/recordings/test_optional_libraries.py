# SPDX-License-Identifier: Apache-2.0
"""Without the libraries that no distribution packages: everything works but for `.mcap` files and compressed bags."""

import json

import numpy as np
from support.processes import run_python
from support.recording_files import joint_state, write_bag, write_mcap

PROGRAM = """
import importlib.abc, json, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcap", "lz4", "zstandard", "rosbags"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import robot_dyn_id as rdi
from robot_dyn_id.recordings.bag_writer import BagWriter

found = {}
for path in sys.argv[1:-1]:
    try:
        found[path] = sum(len(chunk.t) for chunk in rdi.open_recording(path).chunks(("a",)))
    except rdi.RobotDynIdError as error:
        found[path] = str(error)
try:
    BagWriter(sys.argv[-1])
except rdi.RobotDynIdError as error:
    found["written"] = str(error)
print(json.dumps(found))
"""


def test_without_them_other_recordings_are_read(tmp_path):
    stamps = 10**9 + 10**7 * np.arange(100)
    messages = [(int(stamp), joint_state(int(stamp), ["a"], [0.1], [0.2], [0.3])) for stamp in stamps]
    bag = write_bag(tmp_path / "bag", messages)
    stored = write_mcap(tmp_path / "bag.mcap", messages)
    table = tmp_path / "table.npz"
    np.savez(table, t=np.arange(50) / 100.0, q=np.zeros((50, 1)), tau=np.zeros((50, 1)), joint_names=np.array(["a"]))
    packed = tmp_path / "packed.db3.zstd"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    done = run_python(PROGRAM, bag, table, stored, packed, tmp_path / "new")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[str(bag)] == 100 and found[str(table)] == 50
    assert "needs the package" in found[str(stored)] and "pip install mcap" in found[str(stored)]
    assert "needs the package zstandard" in found[str(packed)]
    assert "pip install mcap" in found["written"] and not (tmp_path / "new").exists()
