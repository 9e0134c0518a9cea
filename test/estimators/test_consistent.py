# SPDX-License-Identifier: Apache-2.0
"""The physically consistent estimate: real bodies that fit the data, and are near the URDF elsewhere."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh
from support.altered import altered
from support.robots import URDFS, panda_arm
from support.simulated import ARM, Simulated, changed

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.consistency import flag_not_negative, is_consistent, pseudo_inertia
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import make_earlier_prior, make_nominal_prior
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.estimators.bootstrap import bootstrap_estimate
from robot_dyn_id.files.configuration import parse_configuration
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import DEFAULT_TERMS, Settings
from robot_dyn_id.identification.validation.holdout import split
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.controllers import make_usable_dynamics
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings

DATA = os.environ.get("ROBOT_DYN_ID_DATA")


def run(robot, recording, estimator):
    training, rest = split([recording], robot.joints)
    return identify(training, rest, robot.model, Settings(estimator=estimator, terms=DEFAULT_TERMS), "test")


@pytest.fixture(scope="module")
def robot():
    return Simulated()


@pytest.fixture(scope="module")
def panda():
    return Simulated(URDFS["panda"].read_text(), joints=panda_arm().joint_names)


@pytest.fixture(scope="module")
def noisy(panda):
    """Short, and with noise above the torques that the inertia of a wrist makes."""
    return changed(panda.record(duration=12.0, noise=1.0, seed=2), rows=slice(0, 800))


def least_share(bodies, prior):
    """Smallest P relative to P0 in the order of matrices, over all bodies."""
    pairs = zip(pseudo_inertia(bodies.reshape(-1, 10)), pseudo_inertia(prior.reshape(-1, 10)), strict=True)
    return min(eigh(ours, theirs, eigvals_only=True)[0] for ours, theirs in pairs)


def random_poses(model, count=100_000):
    return np.random.default_rng(3).uniform(-np.pi, np.pi, (count, len(model.joint_names)))


def assert_consistent(parameters, prior):
    """All that the estimator promises of a parameter set."""
    assert parameters.bodies.physically_consistent
    assert is_consistent(parameters.bodies.standard_parameters)
    assert least_share(parameters.bodies.standard_parameters, prior) >= 0.01 * (1.0 - 1e-9)
    full = np.concatenate([parameters.bodies.standard_parameters, parameters.terms.values])
    np.testing.assert_allclose(parameters.base.mapping @ full, parameters.estimate.values, rtol=0, atol=1e-12)
    dynamics = Dynamics.from_parameters(parameters)
    assert dynamics.is_positive_definite(random_poses(dynamics.regressor.model)).all()
    bounded = flag_not_negative(dynamics.regressor)
    assert np.all(parameters.terms.values[bounded] >= 0.0)


@pytest.mark.slow
def test_data_that_make_least_squares_impossible_make_a_real_robot(panda, noisy):
    plain = run(panda, noisy, WeightedLeastSquares()).parameters
    assert not Dynamics.from_parameters(plain).is_positive_definite(random_poses(panda.model, 1000)).all()
    result = run(panda, noisy, Consistent())
    assert_consistent(result.parameters, panda.model.inertial_parameters)
    assert result.parameters.provenance.estimator == "consistent"
    assert result.evaluation.indefinite == 0.0
    error = np.abs(result.estimate.unconstrained - plain.estimate.values)
    assert np.median(error / plain.estimate.standard_deviations) < 0.2  # the same but for the weights of the joints
    good = altered(result.parameters, judgment={"verdict": "good"})
    make_usable_dynamics(good, panda.model.urdf, panda.joints, needs_mass_matrix=True)


@pytest.mark.slow
def test_a_link_without_thickness_is_named_and_the_result_is_real(robot):
    text = ARM.replace('ixx="0.016"', 'ixx="0.0601"').replace('ixy="0.001"', 'ixy="0"')
    flat = RobotModel.from_urdf(text)
    assert not is_consistent(flat.inertial_parameters)
    recording = robot.record(duration=20.0, noise=0.1)
    training, rest = split([recording], robot.joints)
    result = identify(training, rest, flat, Settings(estimator=Consistent(), terms=DEFAULT_TERMS), "test")
    assert result.parameters.bodies.physically_consistent
    assert "prior_not_physical" in {one.code for one in result.evaluation.findings}


@pytest.mark.slow
def test_a_urdf_without_masses_gives_a_real_robot_of_the_same_torque(robot):
    bare = "".join(part.partition("</inertial>")[2] or part for part in ARM.split("<inertial>"))
    training, rest = split([robot.record(duration=30.0, noise=0.01)], robot.joints)
    settings = Settings(estimator=Consistent(), terms=DEFAULT_TERMS)
    result = identify(training, rest, RobotModel.from_urdf(bare), settings, "test")
    plain = run(robot, robot.record(duration=30.0, noise=0.01), WeightedLeastSquares()).parameters
    parameters = result.parameters
    assert parameters.bodies.physically_consistent
    assert "prior_from_geometry" in {one.code for one in result.findings}
    assert parameters.judgment.held_out_all_joints_nrmse < 1.05 * plain.judgment.held_out_all_joints_nrmse
    off = np.abs(parameters.estimate.values - robot.base_values) / parameters.estimate.standard_deviations
    assert np.all(off < 5.0)


@pytest.mark.slow
def test_masses_that_are_placeholders_do_not_pull(robot):
    same = re.sub(r'<mass value="[^"]*"/>', '<mass value="1"/>', robot.text)
    same = re.sub(r"<inertia [^>]*>", '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>', same)
    training, rest = split([robot.record(duration=30.0, noise=0.01)], robot.joints)
    result = identify(
        training,
        rest,
        RobotModel.from_urdf(same),
        Settings(estimator=Consistent(strength=1e4), terms=DEFAULT_TERMS),
        "test",
    )
    assert result.parameters.bodies.physically_consistent
    assert result.parameters.judgment.held_out_all_joints_nrmse < 0.05
    assert not {"prior_contradicted", "prior_not_physical"} & {one.code for one in result.findings}


def test_a_negative_mass_is_refused():
    with pytest.raises(ModelError, match=r"link l2 has a negative mass \(-2.2 kg\)"):
        RobotModel.from_urdf(ARM.replace('<mass value="2.2"/>', '<mass value="-2.2"/>'))


def test_parameters_that_a_joint_at_rest_does_not_excite_are_the_urdfs(robot):
    recording = robot.record(duration=36.0, rate=50.0)
    n = len(recording.samples.t)
    still = {"q": recording.samples.q.copy(), "dq": None}
    still["q"][:, 2] = 0.3
    motion_only = replace(recording, samples=replace(recording.samples, **still))
    plan = SignalPlan.from_low_pass(50.0, LowPass(5.0), False)
    (piece,) = FilteredTrials([motion_only], robot.joints, {}, plan, keep_edges=True)
    assert len(piece.motion) == n
    tau = robot.regressor.torque(piece.motion, robot.parameters).T + 0.05 * np.random.default_rng(0).normal(size=(n, 3))
    data = replace(motion_only, samples=replace(motion_only.samples, tau=tau))
    trials = FilteredTrials([data], robot.joints, {}, plan)
    prior = make_nominal_prior(robot.model, robot.base.mapping)
    estimate = Consistent().fit(trials.problem(robot.regressor, robot.base.independent, prior))
    assert {"fv3", "fc3"} <= set(estimate.unexcited)
    assert np.all(np.isinf(estimate.standard_deviations[np.isin(robot.base.names, estimate.unexcited)]))
    inertial = robot.model.inertial_parameters
    assert is_consistent(estimate.full[: len(inertial)])
    np.testing.assert_allclose(robot.base.mapping @ estimate.full, estimate.values, rtol=0, atol=1e-12)
    shown = ~np.isin(robot.base.names, estimate.unexcited)
    off = np.abs(estimate.values - robot.base_values)[shown] / estimate.standard_deviations[shown]
    assert np.all(off < 5.0)
    wrist = estimate.full[20:30]
    assert np.all(np.abs(wrist - inertial[20:30]) < 0.5 * np.abs(inertial[20:30]).max())
    names = list(robot.regressor.names)
    assert estimate.full[names.index("fv3")] < 1e-3  # nothing is known, and nothing is made up


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
def test_the_franka_is_predicted_no_worse_than_by_least_squares(tmp_path):
    folder = Path(str(DATA)) / "fer_unisa_bag"
    configuration = parse_configuration({"estimator": "consistent", "terms": ["viscous", "coulomb", "offset"]})
    recording = open_recording(str(folder / "panda_exciting_trajectory.db3"), None)
    robot = RobotDescription.from_file(folder / "model.urdf")
    result = identify_recordings(robot, configuration, DataSelection([recording], train_range=(0.0, 16.0)))
    summary = result.save(tmp_path)
    prior = result.identification.selection.size * RobotModel.from_file(folder / "model.urdf").inertial_parameters
    assert_consistent(result.parameters, prior)
    assert summary["physically_consistent"]
    assert summary["mass_matrix_indefinite"] == 0.0
    assert summary["held_out"]["all_joints_nrmse"] <= 1.0 * summary["unconstrained_nrmse"]


@pytest.fixture(scope="module")
def problem(robot):
    trials = FilteredTrials([robot.record(duration=30.0, noise=0.3, seed=4)], robot.joints, {}, PLAN)
    prior = make_nominal_prior(robot.model, robot.base.mapping)
    return trials.problem(robot.regressor, robot.base.independent, prior)


PLAN = SignalPlan.from_low_pass(100.0, LowPass(5.0), False)


def test_far_from_all_bounds_it_is_weighted_least_squares(problem):
    plain = WeightedLeastSquares().fit(problem)
    found = Consistent(strength=0.0).fit(problem)
    assert is_consistent(found.full[:30])
    shift = np.abs(found.values - plain.values) / plain.standard_deviations
    assert np.median(shift) < 0.2
    np.testing.assert_allclose(np.median(found.standard_deviations / plain.standard_deviations), 1.0, atol=0.15)
    np.testing.assert_allclose(
        np.diff(found.intervals, axis=1)[:, 0] / (3.92 * found.standard_deviations), 1.0, atol=0.25
    )
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), found.standard_deviations, rtol=1e-9)


@pytest.mark.slow
def test_an_earlier_set_pulls_all_parameters_that_it_knows(robot, problem):
    training, rest = split([robot.record(duration=30.0, noise=0.3, seed=5)], robot.joints)
    settings = Settings(estimator=WeightedLeastSquares(), terms=DEFAULT_TERMS)
    earlier = identify(training, rest, robot.model, settings, "test").parameters
    prior = make_earlier_prior(earlier, robot.regressor, robot.base.mapping)
    pulled = Consistent(strength=1e8).fit(replace(problem, prior=prior))
    assert is_consistent(pulled.full[:30])
    assert np.all(pulled.full[30:][flag_not_negative(robot.regressor)] >= 0.0)
    apart = np.abs(pulled.values - earlier.estimate.values) / earlier.estimate.standard_deviations
    alone = (
        np.abs(Consistent(strength=0.0).fit(problem).values - earlier.estimate.values)
        / earlier.estimate.standard_deviations
    )
    assert np.median(apart) < 0.3 * np.median(alone)


def test_signs_can_be_freed_and_weights_given(robot, problem):
    dragging = replace(problem, tiles=negative_friction(robot, problem))
    kept = Consistent().fit(dragging)
    column = robot.base.names.index("fv2")
    assert kept.values[column] == 0.0
    assert kept.intervals[column, 0] == 0.0
    assert 0.0 < kept.standard_deviations[column] < np.inf
    assert kept.unconstrained[column] < -3.0 * kept.unconstrained_deviations[column]  # a bound hides no symptom
    freed = Consistent(signed=("fv2",)).fit(dragging)
    assert freed.values[column] == pytest.approx(robot.base_values[column] - 4.0, abs=0.5)
    weights = tuple(1.0 / freed.residual_rms)
    again = Consistent(signed=("fv2",), weights=weights).fit(dragging)
    np.testing.assert_allclose(again.values, freed.values, rtol=0, atol=0.2 * freed.standard_deviations.max())
    with pytest.raises(UsageError, match="2 weights for 3 joints"):
        Consistent(weights=(1.0, 2.0)).fit(problem)


def negative_friction(robot, problem):
    """Tiles whose second joint is driven by 4 N m s/rad of its velocity."""
    column = robot.base.names.index("fv2")

    def tiles():
        for tile in problem.tiles():
            block = tile.block.copy()
            at = np.flatnonzero(problem.supports[tile.joint] == column)
            if len(at):
                block[-1] -= 4.0 * block[at[0]]
            yield replace(tile, block=block)

    return tiles


def test_data_of_bodies_that_cannot_exist_are_reported(robot):
    impossible = Simulated()
    impossible.parameters = robot.parameters.copy()
    impossible.parameters[24:30] -= 0.3 * np.array([1, 0, 1, 0, 0, 1])  # inertias of the last body far below zero
    recording = impossible.record(duration=30.0, noise=0.01)
    trials = FilteredTrials([recording], robot.joints, {}, PLAN)
    prior = make_nominal_prior(robot.model, robot.base.mapping)
    estimate = Consistent().fit(trials.problem(robot.regressor, robot.base.independent, prior))
    assert is_consistent(estimate.full[:30])
    (finding,) = (one for one in estimate.findings if one.code == "links_contradicted")
    assert "wrist" in finding.joints


def test_bootstrap_intervals_hold_values_at_their_bounds(robot):
    """Friction that the robot has not is estimated as zero: the interval begins there and has a width."""
    recording = robot.record(duration=15.0, noise=0.2)
    plan = SignalPlan.from_low_pass(100.0, LowPass(5.0), False)
    trials = FilteredTrials([recording], robot.joints, {}, plan)
    terms = place_terms_on_joints(
        robot.model, (*DEFAULT_TERMS, TERMS["saturating_viscous"](), TERMS["rotor_inertia"]())
    )
    regressor = Regressor(robot.model, terms)
    problem = trials.problem(regressor, compute_base_parameters(regressor).independent)
    estimator = Consistent(strength=1.0)
    estimate = estimator.fit(problem)
    drawn = bootstrap_estimate(estimator, problem, estimate, 20)
    low, high = drawn.intervals.T
    assert np.all((low <= drawn.values) & (drawn.values <= high))
    bounded = estimate.intervals[:, 0] == 0.0
    assert np.any(bounded & (drawn.values == 0.0))
    assert np.all(low[bounded] == 0.0) and np.all(high[bounded] >= estimate.intervals[bounded, 1])
    assert np.all(drawn.standard_deviations[bounded] >= estimate.standard_deviations[bounded])
