# SPDX-License-Identifier: Apache-2.0
"""Joint states that an effort may follow from: every attack is noticed, and no healthy robot is refused."""

from contextlib import suppress

import numpy as np
import pytest
from support.simulated import ARM

from robot_dyn_id.errors import InputError
from robot_dyn_id.excitation.execution.state_guard import MOST_REFUSED, TIMELY_STATES, StateGuard
from robot_dyn_id.excitation.limits import REST_SPEED
from robot_dyn_id.model.robot import RobotModel

MODEL = RobotModel.from_urdf(ARM)
FASTEST = np.asarray(MODEL.limits.velocity)
TIMEOUT = 0.05
CLOCK = 1.7e9
"""Time of the clock of the stamps at the time 0 of the steady clock [s]."""


class Line:
    """Joint states of an arm that moves slowly at 1 kHz, and their guard."""

    def __init__(self, period=1e-3, moves=True):
        self.guard, self.now, self.period, self.moves = StateGuard(MODEL, TIMEOUT), 0.0, period, moves
        self.guard.expect(self.now)

    def truth(self, time):
        """Positions and velocities at a time."""
        speed = 0.5 * FASTEST * self.moves
        return 0.3 + speed * np.sin(time), speed * np.cos(time)

    def send(self, stamp=None, q=None, dq=None, wait=None):
        """One joint state; whether it is trusted."""
        self.now += self.period if wait is None else wait
        true = self.truth(self.now)
        stamp = CLOCK + self.now if stamp is None else stamp
        try:
            self.guard.receive(
                self.now, CLOCK + self.now, stamp, true[0] if q is None else q, true[1] if dq is None else dq
            )
        except InputError:
            return False
        return True

    def healthy(self, count):
        return [self.send() for _ in range(count)]


@pytest.mark.parametrize("rate", [50.0, 125.0, 500.0, 1000.0])
@pytest.mark.parametrize("stamped", [True, False])
def test_a_healthy_robot_is_trusted_at_every_rate(rate, stamped):
    line, rng = Line(1.0 / rate), np.random.default_rng(3)
    for _ in range(3000):
        delay = rng.exponential(0.1 / rate)  # of a busy computer: states come late, and then at once
        stamp = CLOCK + line.now + line.period - 1e-3 * rng.random() if stamped else 0.0
        assert line.send(stamp, wait=line.period if delay < line.period else 0.9 * TIMEOUT)
    assert line.guard.ready and not line.guard.fault and not line.guard.late


def test_a_robot_at_rest_that_repeats_its_values_is_not_frozen():
    line = Line()
    q = np.round(np.full(3, 0.7) * 4096) / 4096
    assert all(line.send(q=q, dq=np.full(3, speed)) for speed in (0.0, 0.9 * REST_SPEED) for _ in range(2_000))


def test_a_single_bad_state_changes_nothing():
    line = Line()
    line.healthy(50)
    assert not line.send(q=line.guard.position + 1.0)
    assert all(line.healthy(50)) and not line.guard.fault
    line.guard.refuse(line.now, "position of joint elbow is not finite")
    line.healthy(TIMELY_STATES)
    line.guard.refuse(line.now, "position of joint elbow is not finite")
    assert not line.guard.fault


def jumps(line):
    return line.send(q=line.truth(line.now)[0] + 1.0)


def two_robots(line):
    """Another one on the topic, 1 rad away, whose clock is ahead by a bit or by seconds."""
    line.send()
    return line.send(CLOCK + line.now + 3.0, line.truth(line.now)[0] + 1.0, wait=0.0)


def too_fast(line):
    return line.send(dq=2.5 * FASTEST)


def goes_back(line):
    line.send()
    return line.send(CLOCK + line.now - 0.01)


def frozen_in_motion(line):
    q, dq = line.truth(0.0)
    return line.send(q=q, dq=dq)


def not_finite(line):
    line.now += line.period
    line.guard.refuse(line.now, "position of joint elbow is not finite")
    return False


ATTACKS = {f.__name__: f for f in (jumps, two_robots, too_fast, goes_back, frozen_in_motion, not_finite)}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_a_fault_until_the_robot_is_back_where_it_was(attack):
    line = Line(moves=attack != "two_robots")
    line.send(wait=1e-6)
    line.healthy(50)
    if attack == "frozen_in_motion":
        line = Line()
        line.healthy(3)
    refused = 0
    for _ in range(400):
        refused += not ATTACKS[attack](line)
        assert bool(line.guard.fault) or refused < MOST_REFUSED + (attack == "frozen_in_motion")
    assert line.guard.fault and refused > 100
    line.guard.restart()
    line.healthy(TIMELY_STATES)
    assert not line.guard.fault


@pytest.mark.parametrize(("attack", "offset"), [("10 s old", -10.0), ("delayed", -2.0 * TIMEOUT), ("frozen", 0.0)])
def test_states_with_old_stamps_are_silence(attack, offset):
    line = Line()
    line.healthy(50)
    heard, last = line.guard.heard, CLOCK + line.now
    for _ in range(100):
        assert not line.send(last if attack == "frozen" else CLOCK + line.now + offset)
    assert line.guard.heard == heard and line.guard.silent(line.now)
    text, faulty = line.guard.obstacle(line.now)
    assert faulty and "stamp" in text


def test_a_position_that_jumped_is_trusted_again_where_it_was_and_nowhere_else():
    line = Line(moves=False)
    line.healthy(50)
    wrong = line.truth(0.0)[0] + np.array([0.0, 1.5, 0.0])
    assert not any(line.send(q=wrong) for _ in range(500)) and "elbow jumps by 1.5" in line.guard.fault
    assert all(line.healthy(TIMELY_STATES)) and not line.guard.fault


def test_time_without_states_lets_the_arm_move_and_late_states_are_counted():
    line = Line(moves=False)
    line.healthy(50)
    moved = line.truth(0.0)[0] + 0.5 * FASTEST
    assert line.send(q=moved, wait=1.0) and line.guard.timely == 0
    for _ in range(3):
        line.send(q=moved, wait=2 * TIMEOUT)
    assert line.guard.late == 4 and "less often than every 0.05 s" in line.guard.obstacle(line.now)[0]
    assert all(line.send(q=moved) for _ in range(TIMELY_STATES)) and line.guard.ready and not line.guard.late


def test_the_time_for_changes_of_the_effort_is_not_longer_than_passes():
    """Stamps that run ahead of the clock: of a driver with a fault, or of two that alternate."""
    line, given = Line(moves=False), 0.0
    for k in range(1000):
        with suppress(InputError):
            line.send(CLOCK + 0.04 * (k + 1))
        given += line.guard.step
    assert given <= line.now + TIMEOUT
    healthy, given = Line(moves=False), 0.0
    for _ in range(1000):
        healthy.send()
        given += healthy.guard.step
    assert given == pytest.approx(healthy.now, abs=2e-3)
