# SPDX-License-Identifier: Apache-2.0
"""A load that is taken up, or put down, while a recording is made."""

import re

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

ROBOT = Simulated()
MASS, REACH = 1.5, np.array([0.05, 0.1, -0.2])


def carry(recording, start, stop):
    """The recording with a point mass at the last link for some time."""
    samples = recording.samples
    motion = Motion(samples.q.T, samples.dq.T, np.gradient(samples.dq, samples.t, axis=0).T)
    last = 10 * (len(ROBOT.model.body_names) - 1)
    torque = ROBOT.regressor.torque(motion, MASS * np.append(1.0, REACH), np.arange(last, last + 4))
    during = (samples.t >= samples.t[0] + start) & (samples.t < samples.t[0] + stop)
    return changed(recording, tau=lambda tau: tau + np.where(during, torque, 0.0).T)


@pytest.fixture(scope="module")
def recording():
    return ROBOT.record(duration=40.0, noise=0.05)


def identified(*recordings):
    return identify(list(recordings), [], ROBOT.model, Settings(), "test")


def loads(result):
    return [one for one in result.evaluation.findings if one.code == "load_changed" and one.severity == "error"]


@pytest.mark.parametrize(("start", "stop"), [(20.0, 60.0), (12.0, 28.0)], ids=["taken up", "and put down"])
def test_a_load_in_a_part_of_a_recording_is_named_with_mass_and_times(recording, start, stop):
    result = identified(carry(recording, start, stop))
    (found,) = loads(result)
    assert result.evaluation.verdict.word == "bad"
    assert all(one.fit.answer == "no" for one in result.evaluation.uses)
    sign, mass = re.search(r"by about ([+-])([\d.]+) kg", found.message).groups()
    assert sign == "+" and float(mass) == pytest.approx(MASS, rel=0.2)
    first, last = map(float, re.search(r"exclude: \[\[([\d.]+), ([\d.]+)\]\]", found.action).groups())
    assert start - 6.0 < first <= start and min(stop, 40.0) <= last < stop + 6.0


def test_without_another_load_nothing_is_named(recording):
    assert not loads(identified(recording))


def test_zeros_of_all_efforts_that_move_are_no_load():
    """As where sensors are zeroed again: in a small motion they pay as a load too, and pay more as zeros."""
    motion = draw_random_fourier(ROBOT.model, 1)
    motion.coefficients[:] *= 0.1
    sensors = Sensors(np.full(3, 0.02), 1e-6, 1e-3)
    small = simulate_recording(ROBOT.regressor, ROBOT.parameters, motion, sample_times(40.0, 100.0), sensors, 1)
    late = small.samples.t[:, None] >= small.samples.t[0] + 20.0
    result = identified(changed(small, tau=lambda tau: tau + late))
    (row,) = [row for row in result.tried if row.step == "load_change"]
    assert row.pays and not row.chosen and not loads(result)


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_a_zero_of_one_effort_that_moves_is_no_load(recording, joint):
    late = recording.samples.t >= recording.samples.t[0] + 20.0
    step = np.where(late[:, None] & (np.arange(3) == joint), 2.0, 0.0)
    assert not loads(identified(changed(recording, tau=lambda tau: tau + step)))


def test_blocks_of_several_recordings_do_not_follow_one_another(recording):
    """Each has a part in each block."""
    result = identified(carry(recording, 20.0, 60.0), ROBOT.record(2, duration=40.0, noise=0.05))
    assert not loads(result) and "load_change" not in {row.step for row in result.tried}
