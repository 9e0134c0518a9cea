# SPDX-License-Identifier: Apache-2.0
"""Limits on delays follow from one time, and each tolerates what it states."""

import pytest

from robot_dyn_id.excitation.execution.clocks import ClockAgreement
from robot_dyn_id.excitation.execution.latency import Latency


@pytest.mark.parametrize("longest", [0.02, 0.1, 2.0])
def test_two_segments_may_be_late_before_the_robot_brakes(longest):
    latency = Latency(longest)
    sent = [k * latency.renewal for k in range(4)]
    reach = [begin + latency.horizon for begin in sent]
    assert sent[2] < reach[0] and sent[3] == pytest.approx(reach[0])


def test_what_only_reports_is_more_patient_than_what_moves_a_robot():
    latency = Latency(0.1)
    ages = [latency.stale, latency.horizon, latency.unobserved, latency.absence]
    assert ages == sorted(ages) == pytest.approx([0.1, 0.3, 0.5, 1.0])


@pytest.mark.parametrize(("simulated", "age", "fault"), [(False, 0.09, False), (False, 0.11, True), (True, 0.9, False)])
def test_clocks_disagree_if_every_stamp_is_older_than_the_latency_for_a_while(simulated, age, fault):
    clocks = ClockAgreement(Latency(0.1), simulated)
    for k in range(60):
        clocks.receive(0.01 * k, age)
    assert bool(clocks.problem(0.6)) == fault and bool(clocks.late) == fault
    clocks.receive(0.61, 0.0)
    assert not clocks.problem(0.61)
