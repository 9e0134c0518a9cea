# SPDX-License-Identifier: Apache-2.0
"""Samples that alternate between two sources."""

import numpy as np
import pytest
from support.simulated import Simulated, changed

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.errors import UnsafeDataError
from robot_dyn_id.identification.diagnosis.alternation import AlternationObserver
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings

T = np.linspace(0.0, 40.0, 4001)


def observed(values, parts=1):
    observer = AlternationObserver("motion", ("joint",), {})
    for rows in np.array_split(np.arange(len(values)), parts):
        observer.observe(Chunk(T[rows], np.sin(T[rows])[:, None], None, values[rows, None]))
    return observer.conclude()


@pytest.mark.parametrize("differences", [0, 1, 2, 3])
def test_no_noise_alternates(differences):
    noise = np.diff(np.random.default_rng(1).normal(size=len(T) + differences), n=differences)
    assert observed(noise) == observed(1e-3 * noise + np.sin(T)) == ()


def test_a_joint_at_rest_and_a_coarse_reading_do_not_alternate():
    assert observed(np.zeros(len(T))) == ()
    dithered = np.round(0.5 + 0.3 * np.random.default_rng(2).normal(size=len(T)))
    assert observed(dithered) == ()


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("other", [0.0, 0.9])
def test_efforts_of_two_publishers_alternate(other, parts):
    efforts = 10.0 * np.sin(T) + 0.05 * np.random.default_rng(3).normal(size=len(T))
    (finding,) = observed(np.where(np.arange(len(T)) % 2, efforts, other * efforts), parts)
    assert (finding.code, finding.severity, finding.joints) == ("samples_alternate", "error", ("joint",))
    assert "efforts of joint" in finding.message and "positions" not in finding.message


def test_recordings_of_two_publishers_are_refused():
    """The mean of the efforts and of none is half of the torque, and a model of it would be consistent."""
    robot = Simulated()
    recording = robot.record(duration=20.0, noise=0.05)
    silent = changed(recording, tau=lambda tau: np.where(np.arange(len(tau))[:, None] % 2, tau, 0.0))
    with pytest.raises(UnsafeDataError, match="two publishers"):
        identify([silent], [], robot.model, Settings(), "test")


@pytest.mark.parametrize("count", [20, 30, 60])
def test_noise_of_few_samples_does_not_alternate_by_chance(count):
    rng = np.random.default_rng(4)
    draws = np.diff(rng.normal(size=(400, count + 3)), n=3)  # the noisiest that there is
    found = [bool(observed(np.concatenate([draw, np.full(len(T) - count, np.nan)]))) for draw in draws]
    assert np.mean(found) <= 0.05  # of three channels at once
