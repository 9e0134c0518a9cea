# SPDX-License-Identifier: Apache-2.0
"""Recordings of every quality that models are identified from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from mutation.clean import REST_S, Bench, Trial

from robot_dyn_id.arrays import Array
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.simulation.closed_loop import quantize
from robot_dyn_id.workflow.excitation import design

Recorder = Callable[[Bench], Sequence[Recording]]

SLOW = 3.0
"""Ratio of the duration of slow motions to that of the others."""

SMALL = 0.3
"""Ratio of the amplitudes of small motions to those of the others."""

COARSE_BITS = 11
"""Resolution of coarse encoders, per turn."""

QUICK = {"draws": 20, "starts": 2, "finished": 1, "steps": 20}
"""Effort of the search for a motion."""

NOISY = 5.0
"""Ratio of the effort noise of bad sensors to that of good ones."""


def _record(bench: Bench, numbers: Sequence[int] = (0, 1), **options: object) -> list[Trial]:
    return [bench.record(number, **options) for number in numbers]


def _plain(bench: Bench, trials: Sequence[Trial], **channels: Callable[[Trial], Array | None]) -> list[Recording]:
    return [trial.recording(bench.robot, **{name: make(trial) for name, make in channels.items()}) for trial in trials]


def _slow(motion: Motion) -> Motion:
    """The first part of a motion, in three times the time."""
    count = motion.q.shape[1]
    grid = np.arange(count)
    q, dq, ddq = (
        np.array([np.interp(grid / SLOW, grid, row) for row in part]) for part in (motion.q, motion.dq, motion.ddq)
    )
    return Motion(q, dq / SLOW, ddq / SLOW**2)


def _small(motion: Motion) -> Motion:
    """The same motion with smaller amplitudes."""
    start = motion.q[:, :1]
    return Motion(start + SMALL * (motion.q - start), SMALL * motion.dq, SMALL * motion.ddq)


def _still_wrist(motion: Motion) -> Motion:
    """The same motion with the last third of the joints at rest."""
    moving = np.ones((len(motion.q), 1))
    moving[-max(1, len(motion.q) // 3) :] = 0.0
    start = motion.q[:, :1]
    return Motion(start + moving * (motion.q - start), moving * motion.dq, moving * motion.ddq)


def _designed(bench: Bench) -> list[Recording]:
    """The motion that is designed for computed torque, twice from rest; the ground is not in the way of any arm."""
    found = design(bench.robot, purpose="computed_torque", search=QUICK, ground=False).trajectory
    duration = 2.0 * found.duration

    def follow(motion: Motion) -> Motion:
        t = np.clip(np.arange(motion.q.shape[1]) / bench.rate - REST_S, 0.0, duration)
        q, dq, ddq = found.evaluate(np.mod(t, found.duration))[:3]
        return Motion(*(np.ascontiguousarray(part) for part in (q, dq, ddq)))

    return _plain(bench, _record(bench, duration=duration, change=follow))


def _currents(bench: Bench) -> list[Recording]:
    """Efforts in amperes, by a gain of each joint."""
    gains = np.random.default_rng((bench.seed, 7)).uniform(5.0, 40.0, len(bench.noise))
    return _plain(bench, _record(bench), tau=lambda trial: (trial.effort + trial.noise) / gains[:, None])


def _coarse(bench: Bench) -> list[Recording]:
    """Coarse encoders, without velocities."""
    step = 2.0 * np.pi / 2.0**COARSE_BITS
    return _plain(bench, _record(bench), q=lambda trial: quantize(trial.motion.q, step), dq=lambda trial: None)


QUALITIES: Mapping[str, Recorder] = {
    "two recordings": lambda bench: _plain(bench, _record(bench)),
    "four recordings": lambda bench: _plain(bench, _record(bench, (0, 1, 2, 3))),
    "one recording of 12 s": lambda bench: _plain(bench, _record(bench, (0,), duration=12.0)),
    "one recording of 6 s": lambda bench: _plain(bench, _record(bench, (0,), duration=6.0)),
    "slow": lambda bench: _plain(bench, _record(bench, change=_slow)),
    "small amplitudes": lambda bench: _plain(bench, _record(bench, change=_small)),
    "wrist at rest": lambda bench: _plain(bench, _record(bench, change=_still_wrist)),
    "coarse encoders": _coarse,
    "noisy efforts": lambda bench: _plain((noisy := replace(bench, noise=NOISY * bench.noise)), _record(noisy)),
    "currents": _currents,
    "designed for computed torque": _designed,
}
"""Recordings by their quality."""
