# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id base`."""

import json

from support.commands import JOINTS
from support.simulated import Simulated


def test_base(files, cli):
    code, out, _ = cli("base", "--robot", files / "arm.urdf", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer) >= {"count", "parameters", "unidentifiable", "joints"}
    assert answer["count"] == len(answer["parameters"]) == len(Simulated(terms=()).base.names)
    assert all(set(one) == {"name", "expression", "unit"} for one in answer["parameters"])
    assert answer["joints"] == list(JOINTS)
