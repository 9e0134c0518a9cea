# SPDX-License-Identifier: Apache-2.0
"""Wang et al. 2025: the exact steps of the paper, and the simulated experiment."""

import sys
from pathlib import Path

import numpy as np
import pytest

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.files.joint_limits import read_joint_limits
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.papers.planar3r import experiment as planar3r_experiment
from robot_dyn_id.papers.planar3r import reproduction as planar3r
from robot_dyn_id.papers.planar3r.experiment import EstimateDraws, SimulatedExperiment, load_arm, make_sine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import paper_designs

# --- Equations ---------------------------------------------------------------------------------------------------


def verdicts(model):
    return {figure.name.partition(":")[0]: figure.verdict for figure in planar3r.check_equations(model)}


def test_ranks_pivots_groupings_and_agreement_with_pinocchio():
    found = verdicts(load_arm())
    shown = found.pop("fastest velocity mode with friction as printed, eq. 28 [1/s]")
    assert shown == "shown"
    assert [found.pop(name) for name in tuple(found)[:2]] == ["reproduced"] * 2  # ranks
    assert set(found.values()) == {"holds"} and len(found) == 9


@pytest.mark.parametrize("printed", [(3, 7, 8, 13, 17, 18, 23, 27), (3, 7, 8, 13, 17, 18, 23, 27, 28, 30)])
def test_a_pivot_more_or_less_than_printed_is_noticed(printed, monkeypatch):
    monkeypatch.setitem(planar3r.PUBLISHED, "pivots", printed)
    assert verdicts(load_arm())["pivot columns that are only in our set or only in the printed one"] == "does not hold"


def test_another_robot_does_not_have_the_parameters_of_the_paper():
    text = load_arm().urdf
    heavier = RobotModel.from_urdf(text.replace('<mass value="3"/>', '<mass value="3.1"/>'), gravity=load_arm().gravity)
    assert verdicts(heavier)["torque"] == "holds"
    longer = RobotModel.from_urdf(text.replace('xyz="-0.36 0', 'xyz="-0.37 0'), gravity=load_arm().gravity)
    figures = {figure.name: figure.verdict for figure in planar3r.check_equations(longer)}
    assert figures["K_r: largest difference from the printed groupings"] == "does not hold"
    assert figures["frames from the screw axes of Table 1, eq. 5 and 6: difference from the URDF"] == "does not hold"
    flat = RobotModel.from_urdf(text, gravity=(-9.8, 0.0, 0.0))
    assert verdicts(flat)["rank, 12 samples"] == "not reproducible"


# --- Excitation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("joint", "turns"), [(2, 14.0), (1, 15.0), (0, 60.0)])
def test_condition_numbers_of_sines_with_pinocchios_regressor(joint, turns):
    w, a = 2.0 * np.pi * turns / 60.0, (5.0 * np.pi / 9.0, 2.0 * np.pi / 3.0, np.pi / 2.0)[joint]
    t = 60.0 / turns * np.arange(4000) / 4000
    q, dq, ddq = np.zeros((3, 3, len(t)))
    q[joint], dq[joint], ddq[joint] = a * np.sin(w * t), a * w * np.cos(w * t), -a * w**2 * np.sin(w * t)
    friction = np.zeros((len(t), 3, 2))
    # the designed motion meets its reversals within rounding, on one side or the other
    moving = np.abs(dq[joint]) > 1e-9
    friction[:, joint] = np.column_stack([dq[joint], np.sign(dq[joint])])
    rows = np.concatenate([paper_designs.rigid("planar3r", -9.8, q, dq, ddq), friction], axis=2)[moving]
    rows = rows.reshape(-1, 32)
    regressor = Regressor(load_arm(), place_terms_on_joints(load_arm(), planar3r.FRICTION))
    expected = np.linalg.cond(rows[:, paper_designs.leftmost(rows)])
    assert planar3r.compute_condition(regressor, make_sine(joint, turns)) == pytest.approx(expected, rel=2e-3)


def test_the_one_motion_is_as_long_as_the_three_runs_and_within_what_they_use():
    runs = planar3r_experiment.make_three_runs(planar3r.TURNS)
    one = planar3r_experiment.design_one_motion()
    assert [run.order for run in runs] == [(2,), (1,), (0,)]
    assert one.duration == pytest.approx(sum(run.duration for run in runs), abs=1e-9)
    times = [np.linspace(0.0, motion.duration, 50_001) for motion in (one, *runs)]
    used, *of_runs = (
        [np.abs(x).max(axis=1) for x in m.evaluate(t)[:3]] for m, t in zip((one, *runs), times, strict=True)
    )
    assert np.all(np.array(used) <= np.max(of_runs, axis=0) * (1.0 + 1e-6))
    w = 2.0 * np.pi / 60.0 * np.array(list(planar3r.TURNS.values()))
    amplitude = np.max(of_runs, axis=0)[0]
    limits = read_joint_limits(find_shared_file("config/design/papers/planar3r_limits.yaml"), load_arm())
    assert list(limits.of("max_velocity").values()) == pytest.approx(amplitude * w)
    assert list(limits.of("max_acceleration").values()) == pytest.approx(amplitude * w**2)


# --- Experiment --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment():
    return SimulatedExperiment.from_paper()


@pytest.fixture(scope="module")
def runs(experiment):
    return [experiment.run(motion) for motion in planar3r_experiment.make_three_runs(planar3r.TURNS)]


def test_errors_are_counted():
    found = EstimateDraws(
        np.array([1.0, 0.05]), np.array([[1.2, 0.05], [0.9, 0.55]]), np.array([[0.1, 0.1], [0.1, 0.2]])
    )
    assert found.worst == pytest.approx([0.2, 0.1])
    assert found.norms * np.hypot(1.0, 0.05) == pytest.approx([0.2, np.hypot(0.1, 0.5)])
    assert found.beyond(1.5).tolist() == [[True, False], [False, True]]


@pytest.mark.slow
def test_the_arm_is_identified_joint_by_joint_and_in_one_motion(experiment, runs):
    one = [experiment.run(planar3r_experiment.design_one_motion())]
    ideal = ESTIMATORS["stepwise"]().fit(experiment.problem(experiment.exact(runs)))
    exact = experiment.errors([ideal])
    assert exact.norms[0] < 5e-4 and exact.worst[0] < 0.02
    stepwise, generalized = (ESTIMATORS[name]() for name in ("stepwise", "generalized"))
    noisy = experiment.measured(runs, 0)
    own = experiment.problem(noisy, all_torques=False)
    first, same = (estimator.fit(own) for estimator in (stepwise, generalized))
    # while one joint moves alone, its own torque identifies as many combinations as it has parameters: nothing is left
    # to weigh
    assert np.allclose(first.values, same.values, atol=0.05 * first.standard_deviations)
    paper = stepwise.fit(experiment.problem(noisy))
    second = generalized.fit(experiment.problem(experiment.measured(one, 0), all_torques=False))
    for estimate in (first, paper, second):
        assert not experiment.errors([estimate]).beyond(5.0).any()
    # the torques with which joints at rest carry the moving one inform, above all about the last links
    assert np.all(paper.standard_deviations < 1.001 * first.standard_deviations)
    ratio = dict(zip(experiment.base.names, second.standard_deviations / paper.standard_deviations, strict=True))
    assert ratio["Izz3"] < 0.5 < 1.0 < ratio["my1"] < 1.5


def test_table_3_is_next_to_what_was_identified_and_no_verdict_is_based_on_it(experiment):
    draws = EstimateDraws(experiment.truth, experiment.truth[None] * 1.01, np.full((1, 15), 0.1))
    figures = list(planar3r.compare_table_3(experiment, draws))
    assert [figure.published for figure in figures] == pytest.approx(experiment.truth.tolist(), abs=5e-5)
    assert {figure.verdict for figure in figures} == {"other conditions"}


def test_the_one_motion_is_compared_with_all_torques_of_the_three_runs():
    truth, draws = np.array([1.0, 2.0]), 20
    values = truth + np.linspace(0.1, 0.2, draws)[:, None]

    def found(factor):
        return EstimateDraws(truth, truth + factor * (values - truth), np.full(values.shape, factor))

    figures = list(
        planar3r.compare_with_three_runs(
            {planar3r.THREE: found(1.0), planar3r.OWN: found(4.0), planar3r.ONE: found(0.5)}
        )
    )
    assert [figure.verdict for figure in figures] == ["beaten"] * 2 + ["other conditions"] * 2 + ["beaten"]
    assert [figure.ours for figure in figures] == pytest.approx([0.5, 0.5, 0.125, 0.125, 0.5])
    assert len(figures[0].spread.values) == draws


@pytest.mark.slow
def test_a_test_of_the_rank_with_measured_torques_always_finds_one_more(experiment, runs):
    figures = {figure.name.partition(":")[0]: figure for figure in planar3r.rank_test(experiment, runs)}
    ranks = [figures[name].ours for name in ("rank of [H tau], without noise", "rank of [H tau], with noise")]
    assert ranks == [15, 16] and figures["error bound, eq. 29"].verdict == "holds"
    drawn = planar3r.draw_runs(experiment, runs)
    assert [drawing.name for drawing in drawn] == ["planar3r_run1", "planar3r_run2", "planar3r_run3"]
    measured, filtered = drawn[0].panels[2].curves
    assert np.abs(np.interp(filtered.x, measured.x, measured.y) - filtered.y).max() < 4.0  # noise of 0.5 N m, filtered
