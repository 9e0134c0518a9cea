# SPDX-License-Identifier: Apache-2.0
"""Load-dependent and presliding friction of simulated arms: found where they are, and nowhere else."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from support.commanded import MODEL, TRUTH, record

from robot_dyn_id.actuators.identification import KnownDrives, identify
from robot_dyn_id.actuators.judgment import judge
from robot_dyn_id.actuators.rollout import split_into_limbs
from robot_dyn_id.actuators.start import EffortRows, find_directions, solve_limb
from robot_dyn_id.actuators.validation import validate
from robot_dyn_id.export.actuators import report_left_out
from robot_dyn_id.files.actuators import read_actuators
from robot_dyn_id.kernels.actuators import BREAKAWAY, COULOMB, LOAD_COULOMB
from robot_dyn_id.workflow.actuators import ActuatorResult, compute_load

KNOWN = KnownDrives(TRUTH.kp, TRUTH.kd, np.full(3, np.inf))

LOADED = replace(TRUTH, load_coulomb=np.array([0.05, 0.05, 0.08]))

ELASTIC = replace(TRUTH, breakaway_displacement=np.array([0.01, 0.004, 0.02]))

BOTH = replace(LOADED, breakaway_displacement=ELASTIC.breakaway_displacement)


def moved(truth, seed=0, noise=1e-3):
    return record(truth=truth, seed=seed, duration=6.0, rate=50.0, noise=noise)


def find(truth, **options):
    return identify(MODEL, [moved(truth)], KNOWN, **options)


def chosen(estimate):
    return {test.kind: test.joints for test in estimate.friction if test.joints}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "kinds"),
    [(LOADED, [LOAD_COULOMB]), (ELASTIC, [BREAKAWAY]), (BOTH, [LOAD_COULOMB, BREAKAWAY])],
    ids=["load", "presliding", "both"],
)
def test_friction_is_found_within_its_intervals_and_predicts_other_motions(truth, kinds):
    estimate = find(truth)
    spread, found = estimate.uncertainty, estimate.actuators.values
    assert sorted(chosen(estimate).values()) == [MODEL.joint_names] * len(kinds)
    mask = spread.estimated
    assert mask[kinds].all()
    assert not mask[np.setdiff1d([LOAD_COULOMB, BREAKAWAY], kinds)].any()
    inside = (spread.low <= truth.values) & (truth.values <= spread.high)
    assert inside[kinds].all()
    assert np.mean(inside[mask]) >= 0.8
    np.testing.assert_allclose(found[kinds], truth.values[kinds], rtol=0.2)
    errors = validate(MODEL, estimate.actuators, [moved(truth, seed=7, noise=0.0)])
    without = validate(MODEL, identify_without(truth), [moved(truth, seed=7, noise=0.0)])
    assert errors.rms(np.inf) < 0.3 * without.rms(np.inf)


def identify_without(truth):
    """Actuators with Coulomb friction alone, fitted to the same motion."""
    import robot_dyn_id.actuators.identification as identification

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identification, "fit_friction", lambda measured, stretches, fit, block: (stretches, fit, ()))
        return find(truth).actuators


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 2e-3])
@pytest.mark.parametrize("seed", range(3))
def test_friction_that_the_truth_does_not_have_is_not_chosen(seed, noise):
    estimate = identify(MODEL, [moved(TRUTH, seed, noise)], KNOWN)
    assert not chosen(estimate)
    assert not estimate.uncertainty.estimated[[LOAD_COULOMB, BREAKAWAY]].any()
    assert not estimate.actuators.values[[LOAD_COULOMB, BREAKAWAY]].any()
    table = str(ActuatorResult(MODEL, estimate, None, np.ones(3), np.ones(3), (), (), ()))
    assert "load_coulomb" not in table
    assert "breakaway_displacement" not in table


@pytest.mark.slow
def test_a_load_that_hardly_changes_leaves_coulomb_friction_in_its_joint():
    """That of the elbow is 7 to 11 N m; those of the others start near 0."""
    options = {"duration": 6.0, "rate": 50.0, "center": np.array([0.0, 1.2, 0.3]), "amplitude": [0.5, 0.15, 0.5]}
    truth = replace(LOADED, load_coulomb=np.array([0.05, 0.05, 0.2]))
    estimate = identify(MODEL, [record(truth=truth, **options)], KNOWN)
    assert chosen(estimate) == {"load_coulomb": ("shoulder", "wrist")}
    low, high = estimate.loads
    assert low[1] > 0.5 * high[1]
    assert np.all(low[[0, 2]] < 0.5 * high[[0, 2]])
    friction = [truth.at_load(load).coulomb[1] for load in (low, high)]
    assert friction[0] < estimate.actuators.coulomb[1] < friction[1]
    found = estimate.actuators.load_coulomb[[0, 2]]
    np.testing.assert_allclose(found, truth.load_coulomb[[0, 2]], rtol=0.1)
    errors = validate(MODEL, estimate.actuators, [record(truth=truth, seed=7, noise=0.0, **options)])
    assert errors.share < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_friction_of_the_load_alone_is_found_too(seed):
    truth = replace(LOADED, coulomb=np.array([0.6, 0.5, 0.0]), load_coulomb=np.array([0.05, 0.05, 0.2]))
    estimate = identify(MODEL, [moved(truth, seed)], KNOWN)
    assert chosen(estimate) == {"load_coulomb": MODEL.joint_names}
    spread = estimate.uncertainty
    inside = (spread.low <= truth.values) & (truth.values <= spread.high)
    assert inside[[COULOMB, LOAD_COULOMB], 2].all()


@pytest.mark.slow
def test_findings_the_table_and_exports_state_what_was_chosen():
    estimate = find(BOTH)
    codes = {finding.code: finding for finding in judge(estimate, KNOWN, None)}
    assert codes["actuator_load_friction"].joints == MODEL.joint_names
    low, high = estimate.loads[:, 1]
    assert f"elbow {low:.2f} to {high:.2f} (largest weight 11.2" in codes["actuator_load_friction"].message
    weight = compute_load(MODEL, [moved(BOTH)])[1]
    assert low < weight < high < 11.3
    assert codes["actuator_presliding"].joints == MODEL.joint_names
    result = ActuatorResult(MODEL, estimate, None, np.ones(3), np.ones(3), (), (), ())
    assert "breakaway_displacement" in str(result).splitlines()[0]
    entries = result.summarize()
    assert [entry["parameter"] for entry in entries["friction"]] == ["load_coulomb", "breakaway_displacement"]
    assert entries["joints"][0]["load_coulomb"]["interval"][0] < 0.05


@pytest.mark.slow
def test_joints_of_one_type_share_their_friction():
    truth = replace(TRUTH, breakaway_displacement=np.full(3, 0.01))
    estimate = find(truth, types=[("shoulder", "elbow")])
    tests = {test.kind: test for test in estimate.shared}
    assert tests["breakaway_displacement"].agreed
    shared = estimate.actuators.breakaway_displacement
    assert shared[0] == shared[1] == pytest.approx(0.01, rel=0.1)


def test_the_linear_fit_has_friction_that_depends_on_the_load_and_presliding():
    (limb,) = split_into_limbs(MODEL)
    motion = record(truth=BOTH, noise=0.0, duration=10.0, rate=400.0, fastest=1.0)
    rows = EffortRows.from_motion(limb, motion, BOTH.values)
    estimated = np.zeros(BOTH.values.shape, dtype=bool)
    estimated[[COULOMB, LOAD_COULOMB]] = True
    found = solve_limb(rows, BOTH.values, estimated)
    np.testing.assert_allclose(found[COULOMB], BOTH.coulomb, rtol=0.1)
    np.testing.assert_allclose(found[LOAD_COULOMB], BOTH.load_coulomb, rtol=0.1)
    given, taken = rows.effort(BOTH)
    _, hard = EffortRows.from_motion(limb, motion, LOADED.values).effort(LOADED)
    inner = slice(200, -200)
    errors = [np.linalg.norm((given - effort)[:, inner]) for effort in (taken, hard)]
    assert errors[0] < 0.6 * errors[1]


def test_directions_are_signs_or_states_of_dahl_elements():
    q = np.array([[0.0, 0.1, 0.3, 0.2]] * 2)
    found = find_directions(q, np.gradient(q, axis=1), np.array([0.0, 0.1]))
    np.testing.assert_array_equal(found[0], np.sign(np.gradient(q[0])))
    assert found[1, 2] == pytest.approx(1.0)
    assert found[1, 3] == pytest.approx(-1.0 + 2.0 * np.exp(-1.0))


def test_a_finding_names_friction_that_models_of_other_simulators_lack():
    assert report_left_out(TRUTH) == ()
    half = replace(BOTH, load_coulomb=np.array([0.0, 0.05, 0.0]))
    loaded, elastic = report_left_out(half)
    assert (loaded.code, loaded.joints) == ("term_not_exported", ("elbow",))
    assert (elastic.code, elastic.joints) == ("presliding_not_exported", MODEL.joint_names)


@pytest.mark.slow
def test_models_of_other_simulators_have_the_friction_of_the_mean_load(tmp_path):
    estimate, load = find(LOADED), np.array([20.0, 10.0, 2.0])
    result = ActuatorResult(MODEL, estimate, None, np.ones(3), load, judge(estimate, KNOWN, None), (), ())
    files = result.save(tmp_path)
    friction = estimate.actuators.coulomb + estimate.actuators.load_coulomb * load
    joints = ElementTree.parse(files["mjcf_file"]).getroot().iter("joint")
    found = {joint.get("name"): float(joint.get("frictionloss")) for joint in joints}
    np.testing.assert_allclose([found[name] for name in MODEL.joint_names], friction, rtol=1e-12)
    assert "loads of the recordings" in (tmp_path / "actuators.yaml").read_text()
    assert read_actuators(files["file"]).actuators.load_coulomb == pytest.approx(estimate.actuators.load_coulomb)
