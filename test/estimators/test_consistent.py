# SPDX-License-Identifier: Apache-2.0
"""The physically consistent estimate: real bodies that fit the data, and are near the URDF elsewhere."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh
from support.robots import URDFS, panda_arm
from support.simulated import ARM, Simulated, changed

from robot_dyn_id.dynamics.base_parameters import base_parameters
from robot_dyn_id.dynamics.consistency import is_consistent, not_negative, parameters_of, pseudo_inertia, solid
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.prior import nominal_prior
from robot_dyn_id.dynamics.regressor import Regressor, terms_on_joints
from robot_dyn_id.dynamics.terms import Coulomb, Offset, RotorInertia, Viscous
from robot_dyn_id.errors import ModelError, UsageError
from robot_dyn_id.estimators import Consistent, WeightedLeastSquares
from robot_dyn_id.estimators.completion import METRICS, Completion
from robot_dyn_id.files.configuration import parse_configuration
from robot_dyn_id.identification.holdout import split
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.model.urdf import RobotDescription
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.signals.filtering import LowPass
from robot_dyn_id.signals.processing import SignalPlan
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.simulation.controllers import usable_dynamics
from robot_dyn_id.workflow.identification import DataSelection, identify_recordings

DATA = os.environ.get("ROBOT_DYN_ID_DATA")

every_metric = pytest.mark.parametrize("metric", METRICS)


def run(robot, recording, estimator):
    training, rest = split([recording], robot.joints)
    return identify(training, rest, robot.model, Settings(estimator=estimator), "test")


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
    assert parameters.physically_consistent
    assert is_consistent(parameters.standard_parameters)
    assert least_share(parameters.standard_parameters, prior) >= 0.01 * (1.0 - 1e-9)
    full = np.concatenate([parameters.standard_parameters, parameters.term_values])
    np.testing.assert_allclose(parameters.mapping @ full, parameters.values, rtol=0, atol=1e-12)
    dynamics = Dynamics.from_parameters(parameters)
    assert dynamics.is_positive_definite(random_poses(dynamics.regressor.model)).all()
    bounded = not_negative(dynamics.regressor)
    assert np.all(parameters.term_values[bounded] >= 0.0)


@every_metric
def test_data_that_make_least_squares_impossible_make_a_real_robot(panda, noisy, metric):
    plain = run(panda, noisy, WeightedLeastSquares()).parameters
    assert not Dynamics.from_parameters(plain).is_positive_definite(random_poses(panda.model, 1000)).all()
    result = run(panda, noisy, Consistent(metric=metric))
    assert_consistent(result.parameters, panda.model.inertial_parameters)
    assert result.parameters.estimator == "consistent"
    assert result.evaluation.indefinite == 0.0
    np.testing.assert_array_equal(result.estimate.unconstrained, plain.values)
    assert result.unconstrained_nrmse == pytest.approx(plain.held_out_all_joints_nrmse, rel=1e-12)
    good = replace(result.parameters, verdict="good")
    usable_dynamics(good, panda.model.urdf, panda.joints, needs_mass_matrix=True)


TERMS = (Viscous(), Coulomb(), Offset(), RotorInertia())


def of_panda(terms=TERMS, **options):
    """A completion with base parameters that no real robot has, known as badly as they are large."""
    model = panda_arm()
    regressor = Regressor(model, terms_on_joints(model, terms))
    base = base_parameters(regressor)
    rng = np.random.default_rng(4)
    values = base.mapping @ np.append(model.inertial_parameters, rng.uniform(0.1, 1.0, len(regressor.term_columns)))
    values += 0.5 * np.abs(values) * rng.normal(size=len(values))
    root = np.triu(rng.normal(size=(len(values),) * 2) / np.abs(values) / 3.0) + np.diag(3.0 / np.abs(values))
    bodies, _ = solid(model.inertial_parameters.reshape(-1, 10), model.body_names)
    arguments = {"spread": 1.0, "floor": 0.01, "metric": "entropic"} | options
    return Completion(root, values, base.mapping, bodies, not_negative(regressor), **arguments)


def cost(completion, full):
    """The objective, written down once more: misfit and relative distances of the bodies."""
    misfit = completion.root @ (completion.mapping @ full - completion.base)
    bodies = full[: completion.bodies.size].reshape(-1, 10)
    total = 0.5 * misfit @ misfit
    for ours, prior in zip(pseudo_inertia(bodies), pseudo_inertia(completion.bodies), strict=True):
        relative = np.linalg.solve(prior, ours)
        if completion.metric == "euclidean":
            distance = 0.5 * np.trace((relative - np.eye(4)) @ (relative - np.eye(4)))
        else:
            scale = 1.0 - completion.floor
            room = (relative - completion.floor * np.eye(4)) / scale
            distance = scale**2 * (np.trace(room) - np.linalg.slogdet(room)[1] - 4.0)
        total += distance / completion.spread**2
    return total


@every_metric
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_no_real_robot_nearby_is_better(metric, spread):
    completion = of_panda(metric=metric, spread=spread)
    best = completion.solve()
    inertial = completion.bodies.size
    rng, least = np.random.default_rng(5), cost(completion, best)
    others = [of_panda(metric=metric, spread=spread * factor).solve() for factor in (0.7, 1.4)]
    start = np.append(completion.bodies.ravel(), np.ones(len(completion.bounded)))
    for _ in range(60):  # everything between feasible points is feasible
        bodies = [parameters_of(p @ p.T) for p in 0.3 * rng.normal(size=(len(completion.bodies), 4, 4))]
        some = np.append(start[:inertial] + np.concatenate(bodies), rng.uniform(0.0, 2.0, len(completion.bounded)))
        for other in (some, start, *others):
            for share in (1e-3, 1e-2, 0.1):
                assert cost(completion, best + share * (other - best)) >= least - 1e-6


def test_a_conic_solver_finds_the_same():
    clarabel = pytest.importorskip("clarabel", reason="the conic solver Clarabel is not installed")
    from scipy import sparse

    completion = of_panda(metric="euclidean", spread=3.0)
    ours = completion.solve()
    scale, inertial = completion.scale, completion.bodies.size
    rows, target = completion.root @ completion.mapping @ scale, completion.root @ completion.base
    unit = np.linalg.solve(scale, np.append(completion.bodies.ravel(), np.zeros(len(completion.bounded))))
    weights = np.r_[np.full(inertial, completion.spread**-2), np.full(len(completion.bounded), 1e-9)]
    quadratic = rows.T @ rows + np.diag(weights)
    # Clarabel's triangles of matrices: upper, column by column, off the diagonal times sqrt(2): our basis.
    cones = [clarabel.PSDTriangleConeT(4)] * len(completion.bodies)
    cones.append(clarabel.NonnegativeConeT(int(completion.bounded.sum())))
    bounded = inertial + np.flatnonzero(completion.bounded)
    picked = -np.eye(len(unit))[np.r_[0:inertial, bounded]]
    offset = np.r_[-completion.floor * unit[:inertial], np.zeros(len(bounded))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic)),
        -(rows.T @ target + weights * unit),
        sparse.csc_matrix(picked),
        offset,
        cones,
        settings,
    )
    theirs = scale @ np.array(solver.solve().x)
    assert cost(completion, ours) <= cost(completion, theirs) + 1e-5
    np.testing.assert_allclose(np.linalg.solve(scale, ours - theirs), 0.0, atol=1e-3)


def test_well_determined_combinations_are_kept_and_the_rest_is_the_urdfs():
    completion = of_panda()
    truth = np.append(1.2 * completion.bodies.ravel(), np.ones(len(completion.bounded)))
    base = completion.mapping @ truth
    sharp = replace(completion, root=1e5 * completion.root, base=base)
    found = sharp.solve()
    np.testing.assert_allclose(completion.mapping @ found, base, rtol=0, atol=1e-6 * np.abs(base).max())
    blind = replace(completion, root=1e-9 * completion.root).solve()
    inertial = completion.bodies.size
    np.testing.assert_allclose(blind[:inertial], completion.bodies.ravel(), rtol=1e-5, atol=1e-7)


def test_a_link_without_thickness_is_named_and_the_result_is_real(robot):
    text = ARM.replace('ixx="0.016"', 'ixx="0.0601"').replace('ixy="0.001"', 'ixy="0"')
    flat = RobotModel.from_urdf(text)
    assert not is_consistent(flat.inertial_parameters)
    recording = robot.record(duration=20.0, noise=0.1)
    training, rest = split([recording], robot.joints)
    result = identify(training, rest, flat, Settings(estimator=Consistent()), "test")
    assert result.parameters.physically_consistent
    assert "prior_not_physical" in {one.code for one in result.evaluation.findings}


def test_urdfs_without_masses_and_with_negative_ones_are_refused(robot):
    bare = "".join(part.partition("</inertial>")[2] or part for part in ARM.split("<inertial>"))
    training, rest = split([robot.record()], robot.joints)
    with pytest.raises(UsageError, match="write estimates of masses and inertias into it"):
        identify(training, rest, RobotModel.from_urdf(bare), Settings(estimator=Consistent()), "test")
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
    prior = nominal_prior(robot.model, robot.base.mapping)
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


@pytest.mark.skipif(DATA is None, reason="ROBOT_DYN_ID_DATA, the folder of measured data, is not set")
def test_the_franka_is_predicted_no_worse_than_by_least_squares(tmp_path):
    folder = Path(str(DATA)) / "fer_unisa_bag"
    configuration = parse_configuration({"estimator": "consistent"})
    recording = open_recording(str(folder / "panda_exciting_trajectory.db3"), None)
    robot = RobotDescription.from_file(folder / "model.urdf")
    result = identify_recordings(robot, configuration, DataSelection([recording], train_range=(0.0, 16.0)))
    summary = result.save(tmp_path)
    assert_consistent(result.parameters, RobotModel.from_file(folder / "model.urdf").inertial_parameters)
    assert summary["physically_consistent"]
    assert summary["mass_matrix_indefinite"] == 0.0
    assert summary["held_out"]["all_joints_nrmse"] <= 1.0 * summary["unconstrained_nrmse"]
    found = [one["message"] for one in summary["findings"] if one["code"] == "negative_parameter"]
    assert any("fv4" in message for message in found)  # a symptom is not hidden by a bound


@every_metric
@pytest.mark.parametrize("sharper", [1e2, 1e4, 1e6])
def test_precise_data_that_no_real_robot_has_made_still_give_one(metric, sharper):
    completion = of_panda(metric=metric)
    found = replace(completion, root=sharper * completion.root).solve()
    inertial = completion.bodies.size
    assert is_consistent(found[:inertial])
    assert np.all(found[inertial:][completion.bounded] >= 0.0)
