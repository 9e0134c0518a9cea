# SPDX-License-Identifier: Apache-2.0
"""The small form of the mutation suite (`benchmarks/mutation`): the simulated recordings, and faults that are named."""

import json
from collections import Counter

import numpy as np
import pytest
from measuring import append_row, read_rows
from mutation.case import Answer
from mutation.catalog import FAULTS, clean_case
from mutation.clean import ARMS, BREAKAWAY_RAD, Bench, presliding
from mutation.schedule import list_faults
from mutation.table import CLEAN, Job, Row, markdown, run

from robot_dyn_id.findings import find_definition


@pytest.fixture(scope="module")
def arm():
    return Bench.draw("ur5", 0)


@pytest.mark.parametrize("name", ARMS)
def test_a_recording_is_repeatable_and_within_the_limits_of_the_arm(name):
    bench, again = (Bench.draw(name, 3) for _ in range(2))
    trial, other = bench.record(duration=20.0), again.record(duration=20.0)
    np.testing.assert_array_equal(trial.effort + trial.noise, other.effort + other.noise)
    limits, motion = bench.robot.limits, trial.motion
    assert (motion.q >= limits.lower[:, None] - 1e-9).all() and (motion.q <= limits.upper[:, None] + 1e-9).all()
    assert (np.abs(motion.dq) <= limits.velocity[:, None]).all()
    assert (np.abs(trial.gravity + trial.inertial) <= limits.effort[:, None]).all()
    assert (motion.dq[:, 0] == 0.0).all() and (motion.dq[:, -1] == 0.0).all()


@pytest.mark.parametrize("kind", ["periodic", "moves"])
def test_velocities_and_accelerations_belong_to_the_positions(arm, kind):
    trial = arm.record(duration=20.0, kind=kind)
    for value, rate in ((trial.motion.q, trial.motion.dq), (trial.motion.dq, trial.motion.ddq)):
        step = np.diff(value, axis=1)
        np.testing.assert_allclose(step, (rate[:, 1:] + rate[:, :-1]) / 2 / arm.rate, atol=2e-2 * np.abs(step).max())


def test_friction_slides_as_dahl_elements_do():
    """Against the closed form: 1 - exp(-x / breakaway) from rest, and its reversal from the state reached there."""
    shares = np.eye(len(BREAKAWAY_RAD))
    path = np.concatenate([np.linspace(0.0, 0.01, 50), np.linspace(0.01, 0.004, 40)])
    states = presliding(np.tile(path, (len(shares), 1)), shares)
    reached = 1.0 - np.exp(-0.01 / BREAKAWAY_RAD)
    np.testing.assert_allclose(states[:, 49], reached, rtol=1e-9)
    np.testing.assert_allclose(states[:, -1], -1.0 + (1.0 + reached) * np.exp(-0.006 / BREAKAWAY_RAD), rtol=1e-9)


@pytest.mark.parametrize("key", [key for key, fault in FAULTS.items() if fault.sized])
def test_stronger_faults_change_the_recording_more(arm, key):
    clean, sizes = clean_case(arm), []
    for strength in range(3):
        case = FAULTS[key].apply(arm, strength, np.random.default_rng(0))
        given, same = case.training[0].samples, clean.training[0].samples
        if given.tau.shape == same.tau.shape and (given.tau != same.tau).any():
            sizes.append(np.sqrt(np.mean((given.tau - same.tau) ** 2)))
        else:  # several recordings, or another description
            sizes.append(float(case.size.split()[0].strip("%")))
    assert 0 < sizes[0] < sizes[1] <= sizes[2], sizes


REFUSED = ("current", "sign", "millinewton", "degrees", "nanoseconds", "sideways", "swapped_positions")
"""Faults that are found before a model is identified."""

FOUND = ("velocity_degrees", "spikes", "tool_among")
"""Faults of recordings that a model is identified from."""


@pytest.mark.slow
@pytest.mark.parametrize("key", REFUSED)
def test_the_fault_is_named_before_a_model_is_identified(key):
    row = run(Job(key, "ur5", 1, 0))
    assert row.found, row.line()


@pytest.mark.slow
@pytest.mark.parametrize("key", FOUND)
def test_the_fault_is_named_in_addition_to_the_model(key):
    row = run(Job(key, "panda", 2, 0, pinned=True, whole=True))
    assert row.found and np.isfinite(row.answer.nrmse), row.line()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "name", "strength"), [("swapped_efforts", "talos_left_arm", 1), ("other_arm", "ur10", 2)]
)
def test_a_refusal_names_the_cause(key, name, strength):
    """And not what the same efforts show as currents, nor the correction that fits best, where that is not enough."""
    row = run(Job(key, name, strength, 10))
    assert row.found and np.isnan(row.answer.nrmse), row.line()


@pytest.mark.slow
def test_the_plain_command_warns_of_nothing_in_a_clean_recording():
    row = run(Job(CLEAN, "panda", 0, 0))
    assert not row.found and row.answer.nrmse < 0.02, row.line()


def test_every_fault_is_named_by_codes_that_are_defined():
    assert len(FAULTS) >= 25 and all(find_definition(code) for fault in FAULTS.values() for code in fault.codes)


def test_a_beginning_of_the_schedule_is_stratified_and_all_of_it_is_the_grid():
    model = Job(CLEAN, "", 0, 0)
    jobs = list_faults(list(FAULTS), [1, 2], len(ARMS), model)
    assert len(set(jobs)) == len(jobs) == len(FAULTS) * 2 * len(ARMS)
    first = jobs[: 2 * len(FAULTS)]
    assert {(job.fault, job.strength) for job in first} == {(key, k) for key in FAULTS for k in (1, 2)}
    counts = Counter(job.arm for job in first)
    assert counts.keys() == ARMS.keys() and max(counts.values()) - min(counts.values()) <= 2


def test_a_fault_is_found_only_if_its_joint_is_named():
    answer = Answer((("gain_inconsistent", "warning"),), (("elbow",),), nrmse=0.02)
    job = Job("gain", "ur5", 2, 0)
    assert Row(job, answer, "", 1.0, ("elbow",)).found and not Row(job, answer, "", 1.0, ("wrist",)).found
    row = Row(job, answer, "", 1.0, ("elbow",))
    assert Row.from_summary(json.loads(json.dumps(row.summary()))).summary() == row.summary()


def test_the_table_counts_what_was_found():
    def row(fault, strength, *findings):
        return Row(Job(fault, "ur5", strength, 0), Answer(findings, ((),) * len(findings)), "", 1.0)

    rows = [
        row("spikes", 1, ("effort_outliers", "info")),
        row("spikes", 2, ("held_out_error", "error")),
        row(CLEAN, 0, ("rest_left_out", "info")),
        row(CLEAN, 0, ("contact", "warning")),
    ]
    text = markdown(rows)
    assert "| `effort_outliers` |  | 1/1 | 0/1 | held_out_error 1 |" in text
    assert "Found at 5 and 20 x: 1 of 2" in text and "without a warning: 1 of 2" in text and "- `contact`: 1" in text


def test_results_survive_a_row_that_was_cut_off(tmp_path):
    file = tmp_path / "cases.jsonl"
    assert read_rows(file) == []
    append_row(file, {"number": 1})
    with file.open("a") as stream:
        stream.write('{"number": 2, "na')
    for number in (3, 4):
        append_row(file, {"number": number})
    with file.open("a") as stream:
        stream.write('{"number": 5, {"number": 6}\n{"number": {"number": 7}')
    assert [row["number"] for row in read_rows(file)] == [1, 3, 4]
