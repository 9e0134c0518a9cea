# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots with 6-axis sensors in their hinges: what cannot be used is refused."""

import numpy as np
import pytest
from support.simulated import Simulated

from robot_dyn_id.data.wrench import WrenchRecording
from robot_dyn_id.errors import InputError
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.loads.chain_recording import RecordedSensor, identify_recorded_chain

ROBOT = Simulated()
RECORDING = ROBOT.record(seed=3, rate=100.0, duration=10.0)


def test_a_robot_without_sensors_is_refused():
    with pytest.raises(InputError, match="no hinge has a sensor"):
        identify_recorded_chain(RECORDING, [], ROBOT.model, Settings())


def test_wrenches_of_another_time_are_refused():
    readings = np.random.default_rng(0).normal(size=(6, len(RECORDING.samples.t)))
    later = RecordedSensor.in_hinge(ROBOT.model, 0, WrenchRecording("later", RECORDING.samples.t + 1e3, readings))
    with pytest.raises(InputError, match="no samples of the sensors lie within the motion"):
        identify_recorded_chain(RECORDING, [later], ROBOT.model, Settings())
