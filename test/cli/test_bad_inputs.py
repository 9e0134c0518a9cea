# SPDX-License-Identifier: Apache-2.0
"""Unusable input of estimators: too little motion, budgets that are too small, priors of another robot."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.commands import SIMPLE_MODEL
from support.encoder_loop import IDEAL, loop_problem, recorded
from support.encoder_loop import robot as two_axes
from support.linear_problems import arm, arm_problem, every_estimator, noisy
from support.simulated import ARM, SMALL, Simulated, changed, estimator_of, save_npz

from robot_dyn_id.cli import main
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import ConvergenceError, UsageError
from robot_dyn_id.estimators import ESTIMATORS, PRIOR_USERS, ClosedLoopOutputError
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel


@cache
def one_joint_moves(noise):
    """The wrist of the arm moves, and nothing else."""
    robot, _ = arm()
    motion, t = draw_random_fourier(robot.model, 1), np.arange(3500) / 100.0
    q, dq, ddq = (values * [[0.0], [0.0], [1.0]] for values in motion.evaluate(t % motion.period)[:3])
    tau = robot.regressor.torque(Motion(q, dq, ddq), robot.parameters)
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    return ArrayRecording("wrist only", robot.joints, Chunk(t, q.T, dq.T, tau.T))


@every_estimator
def test_data_with_half_of_the_information_give_small_parameters_that_explain_them(name):
    """Parameters that the data do not show are named and stay small, and the torque of this motion is right."""
    estimate = estimator_of(name).fit(arm_problem(one_joint_moves(0.1)))
    truth = arm()[0].base_values
    assert {"Izz1", "fv1", "fv2"} <= set(estimate.unexcited)
    assert np.isinf(estimate.condition_number)
    assert np.abs(estimate.values).max() < 3.0 * np.abs(truth).max()
    clean = arm_problem(one_joint_moves(0.0))
    if estimate.regressor is not None:
        clean = clean.with_columns(estimate.regressor, clean.columns)
    error = square = 0.0
    for tile in clean.tiles():
        predicted = estimate.values[clean.supports[tile.joint]] @ tile.block[:-1]
        error += float(np.sum((predicted - tile.block[-1]) ** 2))
        square += float(np.sum(tile.block[-1] ** 2))
    assert error < (0.02 if name in SMALL else 0.005) ** 2 * square  # a small population stops short of the minimum


BUDGETS = {
    name: option
    for name, kind in ESTIMATORS.items()
    for option in ("iterations", "generations", "steps")
    if option in kind.__dataclass_fields__ and name != "closed_loop_output_error"
}


@pytest.mark.parametrize("name", BUDGETS)
def test_an_answer_that_did_not_settle_is_refused_or_has_a_large_uncertainty(name):
    started = replace(estimator_of(name), **{BUDGETS[name]: 1})
    try:
        estimate = started.fit(arm_problem(noisy(1)))
    except ConvergenceError as refusal:
        assert str(refusal).startswith(f"{name}: ")
        return
    assert np.all(np.abs(estimate.values - arm()[0].base_values) < 5.0 * estimate.standard_deviations)


@pytest.mark.parametrize("name", [name for name, kind in ESTIMATORS.items() if not kind.uses_prior])
def test_an_earlier_set_that_would_not_be_used_is_refused(name):
    with pytest.raises(UsageError, match=f"estimator {name} uses no prior: use {PRIOR_USERS}, or leave the prior out"):
        Settings(estimator=estimator_of(name), prior=object())


@pytest.mark.slow
def test_closed_loop_output_error_of_a_joint_that_never_moves():
    def still(q):
        q[:, 0] = q[0, 0]
        return q

    given = changed(recorded(1, resolution=0.0, duration=3.0), q=still, reference=still)
    estimate = ClosedLoopOutputError(IDEAL).fit(loop_problem(given, 10.0))
    assert {"fv1", "fc1"} <= set(estimate.unexcited)
    assert np.all(np.abs(estimate.values - two_axes().base_values) < 5.0 * estimate.standard_deviations)


def test_closed_loop_output_error_does_not_begin_at_a_torque_of_a_million():
    def hit(tau):
        tau[700, 1] = 1e6
        return tau

    with pytest.raises(ConvergenceError, match="of the simulated robot does not follow"):
        ClosedLoopOutputError(IDEAL).fit(loop_problem(changed(recorded(1, duration=3.0), tau=hit), 10.0))


# --- Through the whole line ------------------------------------------------------------------------------------------


def evaluate(recording, model):
    training, rest = split([recording], model.joint_names)
    return identify(training, rest, model, Settings(estimator=ESTIMATORS["weighted"]()), "0").evaluation


@pytest.mark.slow
def test_too_little_motion_is_reported():
    robot, recording = arm()
    short = evaluate(changed(recording, rows=slice(200)), robot.model)
    assert short.verdict.word != "good"
    (finding,) = [one for one in short.findings if one.code == "too_little_motion"]
    assert finding.message.startswith("too little motion: 2.0 s of bandwidths")
    assert "too_little_motion" not in {one.code for one in evaluate(noisy(1), robot.model).findings}


OTHERS = {
    "axis": (('axis xyz="0 1 0"', 'axis xyz="1 0 0"'), True),
    "lengths": (('xyz="0.1 -0.2 0.3" rpy="0.3', 'xyz="0.2 -0.4 0.6" rpy="0.3'), True),
    "no lengths": (('xyz="0.1 -0.2 0.3" rpy="0.3', 'xyz="0 0 0" rpy="0.3'), True),
    "a turn by a tenth": (('rpy="0.3 -0.4 0.5"', 'rpy="0.3 -0.3 0.5"'), False),
    "its own": (("", ""), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_urdf_of_another_robot_with_the_same_joints_is_reported(name):
    change, another = OTHERS[name]
    evaluation = evaluate(noisy(1), RobotModel.from_urdf(ARM.replace(*change)))
    assert any(one.code == "prior_contradicted" for one in evaluation.findings) == another


@pytest.fixture
def cli(capfd, tmp_path):
    """Run `identify` or another command on the arm: exit code, standard output, standard error."""
    (tmp_path / "arm.urdf").write_text(ARM)

    def run(verb, *words, robot="arm.urdf"):
        capfd.readouterr()
        code = main([verb, *map(str, words), "--robot", str(tmp_path / robot), "--json"])
        return code, *capfd.readouterr()

    return run


def test_a_link_of_negative_mass_is_named_by_the_command(cli, tmp_path):
    (tmp_path / "wrong.urdf").write_text(ARM.replace('<mass value="2.2"/>', '<mass value="-2.2"/>'))
    data = save_npz(tmp_path / "data.npz", arm()[1])
    code, out, err = cli("identify", data, "--out", tmp_path / "run", robot="wrong.urdf")
    assert (code, json.loads(out)["error"]["code"], (tmp_path / "run").exists()) == (3, "model", False)
    assert "wrong.urdf: link l2 has a negative mass (-2.2 kg)" in err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weighted", "consistent"])
def test_the_command_names_a_joint_that_never_moves(name, cli, tmp_path):
    still = changed(noisy(1), q=lambda q: q * [1, 1, 0], dq=lambda dq: dq * [1, 1, 0])
    config = tmp_path / "c.yaml"
    config.write_text(f"terms: [viscous, coulomb, offset]\nestimator: {name}\n")
    data = save_npz(tmp_path / "still.npz", still)
    code, out, err = cli("identify", data, "--out", tmp_path / "run", "--config", config)
    assert code in (0, 1), err
    findings = {one["code"]: one for one in json.loads(out)["findings"]}
    assert findings["joint_barely_moves"]["joints"] == ["wrist"]
    assert findings["not_excited"]["joints"] == ["wrist"]


@pytest.mark.slow
def test_every_command_reports_data_outside_the_training_range(cli, tmp_path):
    trials = [Simulated().record(seed=seed, duration=20.0, noise=0.1, share=0.3) for seed in (3, 5)]
    files = [save_npz(tmp_path / f"{number}.npz", trial) for number, trial in enumerate(trials)]
    large = save_npz(tmp_path / "large.npz", noisy(1))
    code, _, err = cli("identify", *files, "--out", tmp_path / "run", *SIMPLE_MODEL)
    assert code in (0, 1), err
    given = ("--parameters", tmp_path / "run" / "parameters.yaml")
    for words in (
        ("validate", large, *given),
        ("predict", large, *given, "--out", tmp_path / "tau.npz"),
        ("simulate", large, *given, "--out", tmp_path / "moved.npz", "--restart", 1.0),
    ):
        _, out, err = cli(*words)
        assert out, err
        found = [one for one in json.loads(out)["findings"] if one["code"] == "outside_training"]
        assert found and "elbow" in found[0]["joints"], words
    _, out, _ = cli("predict", files[0], *given, "--out", tmp_path / "same.npz")
    assert json.loads(out)["warnings"] == []
