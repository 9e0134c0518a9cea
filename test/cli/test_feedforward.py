# SPDX-License-Identifier: Apache-2.0
"""`feedforward`: efforts of trajectories from every source, limits, and wrong inputs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.commands import check_error_line
from support.joint_trajectories import NAMES, message_of, rows
from support.model_nodes import ARM, identified

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.files.joint_trajectory import read_joint_trajectory, write_joint_trajectory
from robot_dyn_id.files.parameters import write_parameters
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.recordings.bag_writer import BagWriter
from robot_dyn_id.recordings.joint_trajectories import TYPE_NAME


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("feedforward")
    (folder / "arm.urdf").write_text(ARM)
    write_parameters(folder / "p.yaml", altered(identified(), effort={"robot_compensates": ("unknown",)}))
    write_joint_trajectory(folder / "t.yaml", rows())
    write_joint_trajectory(folder / "fast.yaml", rows(duration=0.15, size=1.0))
    with BagWriter(folder / "bag") as bag:
        bag.write("/t", TYPE_NAME, 1, message_of(rows()))
    with BagWriter(folder / "two") as bag:
        for number, duration in enumerate((2.0, 4.0)):
            bag.write("/t", TYPE_NAME, number, message_of(rows(duration)))
    return folder


@pytest.fixture
def fill(folder, tmp_path, cli):
    """Run the command: exit code, answer, and the trajectory that it writes."""

    def run(motion, *words, compensates=("none",)):
        out = tmp_path / "out.yaml"
        stated = ("--robot-compensates", *compensates) if compensates else ()
        given = ("--robot", folder / "arm.urdf", "--parameters", folder / "p.yaml", "--out", out, *stated)
        code, stdout, err = cli("feedforward", folder / motion, *given, *words, "--json", "--force")
        return code, json.loads(stdout), err, read_joint_trajectory(out) if code < 2 else None

    return run


def test_every_source_gives_the_same_efforts(fill, folder):
    code, answer, _, filled = fill("t.yaml")
    assert code == 0 and answer["violations"] == [] and answer["speed"] == 1.0
    assert replace(filled, efforts=rows().efforts) == rows()  # nothing but the efforts is added
    dynamics = Dynamics.from_parameters(identified())
    assert np.allclose(filled.efforts[-1], dynamics.gravity(filled.positions[-1]), atol=1e-9)
    assert fill("bag")[3] == filled
    assert fill("two", "--message", 1)[3] == filled
    assert [finding["code"] for finding in answer["findings"]] == ["trajectory_without_accelerations"]


def test_what_the_driver_adds_is_subtracted(fill):
    whole, part = fill("t.yaml")[3], fill("t.yaml", compensates=("gravity",))
    assert part[1]["robot_compensates"] == ["gravity"]
    dynamics, rest = Dynamics.from_parameters(identified()), np.zeros((9, len(NAMES)))
    gravity = dynamics.gravity(whole.positions) - dynamics.friction(whole.positions, rest)
    assert np.allclose(np.array(whole.efforts) - part[3].efforts, gravity, atol=1e-9)


def test_joints_in_another_order(fill, folder):
    order = [2, 0, 1]
    other = replace(
        rows(),
        joint_names=tuple(NAMES[k] for k in order),
        positions=tuple(tuple(row[k] for k in order) for row in rows().positions),
        velocities=tuple(tuple(row[k] for k in order) for row in rows().velocities),
    )
    write_joint_trajectory(folder / "other_order.yaml", other)
    ours, theirs = fill("t.yaml")[3], fill("other_order.yaml")[3]
    assert np.allclose(np.array(theirs.efforts), np.array(ours.efforts)[:, order], atol=1e-12)


@pytest.mark.slow
def test_a_designed_trajectory_is_sampled(fill, folder):
    model = RobotModel.from_urdf(ARM)
    motion = draw_random_fourier(model, 1)
    limits = MotionLimits.from_model(model, acceleration=(50.0,))
    write_trajectory(folder / "trajectory.yaml", StoredExcitation.from_excitation(model, limits, motion, "test"))
    code, _, _, filled = fill("trajectory.yaml")
    assert code in (0, 1)
    t = np.array(filled.times) * 1e-9
    q, dq, ddq, _ = motion.evaluate(np.minimum(t, motion.duration))
    assert np.allclose(filled.positions, q.T, atol=1e-6) and len(t) >= 100 * motion.duration
    expected = Dynamics.from_parameters(identified()).inverse_dynamics(q.T, dq.T, ddq.T)
    assert np.allclose(filled.efforts, expected, atol=1e-4 * np.abs(expected).max())


def test_a_limit_that_may_be_exceeded_is_named_and_kept_on_request(fill):
    code, answer, err, _ = fill("fast.yaml")
    assert code == 1
    for violation in answer["violations"]:
        assert violation["bound"] > violation["limit"] and 0.0 <= violation["time"] <= 0.15
        assert f"joint {violation['joint']} needs" in err and f"{violation['time']:.3f} s" in err
    assert "effort_above_limit" in {finding["code"] for finding in answer["findings"]}
    code, answer, _, slowed = fill("fast.yaml", "--scale-to-limits")
    assert code == 0 and 0.0 < answer["speed"] < 1.0 and answer["violations"] == []
    assert slowed.times[-1] == pytest.approx(0.15e9 / answer["speed"], rel=1e-6)
    assert fill("t.yaml", "--scale-to-limits")[1]["speed"] == 1.0


@pytest.mark.parametrize(
    ("motion", "words", "code", "names"),
    [
        ("t.yaml", {"compensates": ()}, 3, ["robot_compensates is unknown", "set robot_compensates"]),
        ("t.yaml", {"compensates": ("none", "gravity")}, 2, ["none and other words"]),
        ("t.yaml", {"more": ("--topic", "/t")}, 2, ["t.yaml", "those of a bag"]),
        ("t.yaml", {"more": ("--message", "-1")}, 2, ["--message -1"]),
        ("two", {}, 3, ["one message", "it holds 2"]),
        ("two", {"more": ("--message", "5")}, 3, ["message 5", "it holds 2"]),
        ("bag", {"more": ("--topic", "/other")}, 3, ["/other", "it holds /t"]),
        ("none.yaml", {}, 3, ["none.yaml"]),
        ("p.yaml", {}, 3, ["p.yaml", "joint_names and points"]),
        ("arm.urdf", {}, 3, ["arm.urdf"]),
        ("cut.yaml", {}, 3, ["cut off", "--full-length"]),
        ("missing.yaml", {}, 3, ["missing.yaml", f"joint {NAMES[2]} is missing"]),
        ("late.yaml", {}, 3, ["late.yaml", "point 1 is not later"]),
        ("text.yaml", {}, 3, ["text.yaml", "points[0].positions"]),
    ],
    ids=str,
)
def test_wrong_inputs_are_one_line(motion, words, code, names, folder, fill):
    write_joint_trajectory(folder / "missing.yaml", rows(names=NAMES[:2]))
    write_joint_trajectory(folder / "late.yaml", replace(rows(), times=(0,) * 9))
    text = (folder / "t.yaml").read_text()
    (folder / "cut.yaml").write_text(text.replace("positions: [", "positions: ['...', ", 1))
    (folder / "text.yaml").write_text(text.replace("positions: [", "positions: [x, ", 1))
    found, _, err, _ = fill(motion, *words.get("more", ()), compensates=words.get("compensates", ("none",)))
    assert found == code, err
    for name in names:
        check_error_line(err, name)
