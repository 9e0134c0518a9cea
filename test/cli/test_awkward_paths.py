# SPDX-License-Identifier: Apache-2.0
"""Names of files that are not plain text: an identification keeps its result."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
from support.altered import altered
from support.commands import SIMPLE_MODEL
from support.recording_files import joint_state, write_bag
from support.robots import joint, urdf
from support.simulated import Simulated, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.errors import make_storable
from robot_dyn_id.files.parameters import read_parameters
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import LONGEST_EXPRESSION, MOST_BODIES, ParameterSet

AWKWARD = {
    "spaces of typography": ("a\u00a0b\u3000c\u202fd", "a\u00a0b\u3000c\u202fd"),
    "bytes that are not UTF-8": (os.fsdecode(b"caf\xe9"), r"caf\udce9"),
    "line separators": ("a\u2028b\u2029c\nd", r"a\u2028b\u2029c\nd"),
    "controls": ("a\x1b[31m\x85b", r"a\x1b[31m\x85b"),
}
"""Names of a folder, and how they are stored."""

ONE = urdf(joint("only", "base", "l1", axis="0 1 0", rpy="0 0 0"), links=1)


def write_one_bag(path, recording):
    samples = recording.samples
    write_bag(
        path,
        [
            (round(t * 1e9), joint_state(round(t * 1e9), ["only"], q, dq, tau))
            for t, q, dq, tau in zip(samples.t + 100.0, samples.q, samples.dq, samples.tau, strict=True)
        ],
    )


def write_csv(path, recording):
    samples = recording.samples
    table = np.column_stack([samples.t, samples.q, samples.dq, samples.tau])
    np.savetxt(path, table, delimiter=",", header="t,q_only,dq_only,tau_only", comments="")


WRITERS = {"data.npz": save_npz, "data.csv": write_csv, "bag": write_one_bag}


@pytest.fixture(scope="module")
def recording():
    return Simulated(ONE).record(seed=1, duration=20.0, rate=50.0, noise=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", AWKWARD)
def test_recordings_in_any_folder_are_identified(name, kind, recording, tmp_path, capfd):
    given, stored = AWKWARD[name]
    folder = tmp_path / given
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system does not take the name")
    (tmp_path / "one.urdf").write_text(ONE)
    WRITERS[kind](folder / kind, recording)
    words = ["identify", str(folder / kind), "--robot", str(tmp_path / "one.urdf"), "--out", str(folder / "run")]
    code = main([*words, *SIMPLE_MODEL])
    out, err = capfd.readouterr()
    assert code < 2, err
    assert "run" in out
    parameters = read_parameters(folder / "run" / "parameters.yaml")
    assert parameters.provenance.sources == (f"{tmp_path}/{stored}/{kind}",)
    report = json.loads((folder / "run" / "report.json").read_text())
    assert report["sources"] == list(parameters.provenance.sources)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_pass_over_the_network(name):
    pytest.importorskip("rclpy", reason="rclpy is not installed: no ROS 2 here")

    from rclpy.serialization import deserialize_message, serialize_message
    from robot_dyn_id.msg import ParameterSet as ParameterSetMsg
    from support.model_nodes import identified

    from robot_dyn_id.nodes.messages.conversions import make_parameter_set_message

    stored = AWKWARD[name][1]
    known = altered(
        identified(),
        provenance={"sources": (stored,)},
        judgment={"reasons": (f"{stored}: at rest",), "verdict": "suspect"},
    )
    heard = deserialize_message(serialize_message(make_parameter_set_message(known)), ParameterSetMsg)
    assert ParameterSet.from_message(heard).provenance.sources == (stored,)
    assert ParameterSet.from_message(heard).judgment.reasons == known.judgment.reasons


@pytest.mark.parametrize("given", [given for given, _ in AWKWARD.values()] + ["x" * 10_000, "\udcff" * 10_000, "é"])
def test_what_is_storable_is_one_line_of_utf_8_and_stays_what_it_is(given):
    text = make_storable(given, 4096)
    assert len(text) <= 4096
    assert text.encode().decode().splitlines() == [text]
    assert make_storable(text, 4096) == text


@pytest.mark.slow
def test_expressions_of_the_largest_robot_are_within_the_limit():
    """As many bodies as a set may have, that slide and are turned by one joint: all count in the first base parameters."""
    links = ["base", *(f"l{k}" for k in range(1, MOST_BODIES + 1))]
    kinds = ["revolute", *["prismatic"] * (MOST_BODIES - 1)]
    chain = [
        joint(f"j{number}", *pair, kind=kind, axis="0.3 -0.5 0.8")
        for number, (pair, kind) in enumerate(zip(pairwise(links), kinds, strict=True))
    ]
    regressor = Regressor(RobotModel.from_urdf(urdf(*chain, links=len(chain))))
    longest = max(len(text) for text in compute_base_parameters(regressor).expressions)
    assert 4096 < longest <= LONGEST_EXPRESSION
