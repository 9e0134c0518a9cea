# SPDX-License-Identifier: Apache-2.0
"""Delay and drift of the efforts against the motion, and their compensation.

A delay is a property of the drivers: it shifts the inertial and gravity torque of all strong joints alike. Friction
with hysteresis also makes a torque late or early, joint by joint, and is excluded: the columns of presliding friction
are free (`samples.RigidRows`), and one delay per recording must explain all joints.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array, Mask
from robot_dyn_id.chance import compute_jackknife_deviations
from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.resampling import interpolate_cubic, interpolate_linear
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.diagnosis.samples import BLOCKS, MotionSamples, RigidFit, RigidGrams, RigidRows
from robot_dyn_id.model.robot import RobotModel

SETTLING_RIDGE = 1e-6
"""Squared ratio of the torque of a combination of columns without and with what friction explains, below which the
combination is left at zero."""

PASSES = 3
"""Number of times that the rigid-body torque and the delay are estimated in turn."""

SIGNIFICANT_SIGMAS = 5.0
"""Number of standard deviations by which a delay that is compensated differs from zero."""

SMALLEST_DELAY_S = 4e-3
"""Shortest delay that is compensated [s]; below it filters and the smoothing of friction matter more."""

SMALLEST_ADVANTAGE = 0.05
"""Mean logarithm of the decrease of what rigid bodies do not explain, over the strong joints, from which on a delay is
compensated."""

STRONG_RATIO = 0.1
"""Effort of a joint without friction, as a ratio to the largest one, above which the joint is strong."""

LONGEST_DELAY_S, DELAY_STEP_S = 3.0, 0.1
"""Longest delay that is searched for, and step of the search [s], which linearization bridges."""

LATE_RESIDUAL_RATIO = 0.2
"""Mean residual of the strong joints without a delay, as a ratio to their efforts without friction, above which delays
of `DELAY_STEP_S` and more are possible: they leave that much. A motion that returns after a time to within this ratio
of its size is periodic for the search."""

SEARCHED_ADVANTAGE = 0.5 * math.log(2.0)
"""Advantage from which on a searched delay is compensated: it causes more than half of the squared residual.
Otherwise something else than a delay leaves most of the residual."""

LONGEST_DELAY_SHARE = 0.2
"""Longest delay that is searched for, as a share of the recording."""

AGREEING_SHARE = 0.6
"""Share of the strong joints that the delay must be an advantage for."""


@dataclass(frozen=True)
class EffortDelay:
    """Delay d + r (t - t0) of the efforts of one recording against its motion; positive if efforts are late.

    Attributes:
        delay: d [s].
        delay_deviation: standard deviation of d by a jackknife over blocks of time [s].
        drift: r [s/s].
        drift_deviation: standard deviation of r [s/s].
        middle: t0 [s].
        advantage: mean logarithm of the decrease of what rigid bodies do not explain, over the strong joints.
        agreeing: share of the strong joints where it decreases.
        half_length: half of the time that the samples span [s].
        own: further delay of each of n joints [s]; empty: all have the same.
    """

    delay: float
    delay_deviation: float
    drift: float
    drift_deviation: float
    middle: float
    advantage: float
    agreeing: float
    half_length: float
    own: tuple[float, ...] = ()

    @classmethod
    def of_joints(cls, own: Sequence[float]) -> EffortDelay:
        """Delays of single joints, without one that is common to all.

        Args:
            own: delay of each joint [s].
        """
        return cls(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, tuple(own))

    @property
    def drifts(self) -> bool:
        """Whether the drift differs from zero and is long enough to matter."""
        moved = abs(self.drift) * self.half_length
        return (
            self._matters and abs(self.drift) > SIGNIFICANT_SIGMAS * self.drift_deviation and moved > SMALLEST_DELAY_S
        )

    @property
    def significant(self) -> bool:
        """Whether the delay or the drift is compensated."""
        late = abs(self.delay) > max(SIGNIFICANT_SIGMAS * self.delay_deviation, SMALLEST_DELAY_S)
        return self._matters and (late or self.drifts)

    @property
    def _matters(self) -> bool:
        return self.advantage > SMALLEST_ADVANTAGE and self.agreeing >= AGREEING_SHARE

    def at(self, t: Array) -> Array:
        """Delay at time stamps [s]; without the drift where it is not significant."""
        return self.delay + (self.drift * (t - self.middle) if self.drifts else np.zeros_like(t))

    def apply(self, chunks: Iterator[Chunk], joints: Sequence[str]) -> Iterator[Chunk]:
        """Move efforts and currents to the time of the motion; see `Correction`.

        The first and the last effort hold outside the recording.
        """
        before: list[Chunk] = []
        pending: list[Chunk] = []
        for chunk in chunks:
            pending.append(chunk)
            while len(pending) > 1 and _latest(pending[1:]) > _latest(pending[:1]) + self._reach(pending[0]):
                yield self._moved(before, pending[0], pending[1:])
                before = [*before, pending.pop(0)]
                while len(before) > 1 and _latest(before[:1]) < _earliest(pending[0]) - self._reach(pending[0]):
                    before.pop(0)
        while pending:
            yield self._moved(before, pending[0], pending[1:])
            before = [*before[-1:], pending.pop(0)]

    def effort_stamps(self, t: Array) -> Array:
        """See `Correction`: efforts are taken later by their delay."""
        return np.asarray(t + self.at(t))

    def _reach(self, chunk: Chunk) -> float:
        """Largest delay in a chunk, and some samples for the interpolation [s]."""
        times = chunk.t[np.isfinite(chunk.t)]
        if not len(times):
            return 0.0
        steps = np.diff(times)
        own = max(map(abs, self.own), default=0.0)
        return own + float(np.abs(self.at(times)).max()) + 4.0 * float(np.median(steps) if len(steps) else 0.0)

    def _moved(self, before: Sequence[Chunk], chunk: Chunk, after: Sequence[Chunk]) -> Chunk:
        """A chunk with its efforts taken later by their delay."""
        around = Chunk.join([*before[-2:], chunk, *after])
        forward = np.isfinite(around.t) & (around.t > np.maximum.accumulate(np.concatenate([[-np.inf], around.t[:-1]])))
        stamps = around.t[forward]
        if len(stamps) < 4:
            return chunk
        common = self.effort_stamps(chunk.t)

        def taken(values: Array, delay: float) -> Array:
            times = np.clip(common + delay, stamps[0], stamps[-1])
            finite = np.isfinite(values).all() and np.isfinite(times).all()
            return (interpolate_cubic if finite else interpolate_linear)(times, stamps, values)

        def moved(values: Array | None) -> Array | None:
            if values is None:
                return None
            known = values[forward]
            if not self.own:
                return taken(known, 0.0)
            return np.column_stack([taken(known[:, [j]], delay) for j, delay in enumerate(self.own)])

        return replace(chunk, tau=moved(around.tau), current=moved(around.current))


def estimate_delay(samples: MotionSamples, model: RobotModel) -> EffortDelay:
    """Estimate delay and drift of the efforts of one recording.

    With efforts late by d the measured torque is tau(t) - d dtau/dt to first order; the rigid-body torque and d are
    estimated in turn, all joints together.

    Args:
        samples: samples of one recording.
        model: the robot; its masses are not used.
    """
    samples, (searched, slope), before = _search(samples, model)
    rows = RigidRows.from_samples(samples, [model])
    regressor, middle = Regressor(model), float(samples.t.mean())
    fit = rows.grams().fit()
    augmented = rows
    complete = regressor.dense(samples.motion).transpose(1, 2, 0) * samples.valid[..., None]
    sizes = np.sqrt((complete**2).sum(axis=1))  # with what friction can explain
    for _ in range(PASSES):
        values = _settle(rows, sizes, fit)
        rate = (regressor.torque(samples.later, values) - regressor.torque(samples.earlier, values)) / samples.spacing
        late = -np.stack([rate, rate * (samples.t - middle)], axis=2) * samples.valid[..., None]
        augmented = rows.with_columns(rows.project(late))
        fit = augmented.grams().fit()
    without = [augmented.grams(samples.blocks != block).fit(fit.weights).values[-2:] for block in range(BLOCKS)]
    deviations = compute_jackknife_deviations(without)
    gains = np.log(before / _unexplained(augmented.grams()))[_find_strong(rows)]
    return EffortDelay(
        delay=searched + float(fit.values[-2]),
        delay_deviation=float(deviations[0]),
        drift=slope + float(fit.values[-1]),
        drift_deviation=float(deviations[1]),
        middle=middle,
        advantage=float(gains.mean()),
        agreeing=float((gains > 0.0).mean()),
        half_length=0.5 * float(np.ptp(samples.t)),
    )


def estimate_joint_delays(samples: MotionSamples, model: RobotModel) -> tuple[float, ...]:
    """Delays of the efforts of single joints [s], 0 where none is significant, n.

    All are estimated together, as that of all joints is in `estimate_delay`.

    Args:
        samples: samples without a delay that is common to all joints.
        model: the robot; its masses are not used.
    """
    rows = RigidRows.from_samples(samples, [model])
    regressor = Regressor(model)
    complete = regressor.dense(samples.motion).transpose(1, 2, 0) * samples.valid[..., None]
    values = _settle(rows, np.sqrt((complete**2).sum(axis=1)), rows.grams().fit())
    rate = (regressor.torque(samples.later, values) - regressor.torque(samples.earlier, values)) / samples.spacing
    joints = len(rate)
    late = np.zeros((*rate.shape, joints))
    late[np.arange(joints), :, np.arange(joints)] = -rate * samples.valid
    augmented = rows.with_columns(rows.project(late))
    fit = augmented.grams().fit()
    without = [augmented.grams(samples.blocks != block).fit(fit.weights).values[-joints:] for block in range(BLOCKS)]
    found, deviations = fit.values[-joints:], compute_jackknife_deviations(without)
    clear = (np.abs(found) > np.maximum(SIGNIFICANT_SIGMAS * deviations, SMALLEST_DELAY_S)) & _find_strong(rows)
    return tuple(np.where(clear, found, 0.0).tolist())


def _find_strong(rows: RigidRows) -> Mask:
    """Mask of the strong joints, shape (n,)."""
    strength = np.sqrt((rows.tau**2).sum(axis=1) / rows.counts)
    return np.asarray(strength > STRONG_RATIO * strength.max(initial=0.0))


def _unexplained(grams: RigidGrams) -> Array:
    """Residuals of rigid bodies as ratios to the efforts without friction, shape (n,)."""
    return grams.fit().rms / np.maximum(np.sqrt(grams.squares / grams.counts), 1e-300)


def _search(samples: MotionSamples, model: RobotModel) -> tuple[MotionSamples, tuple[float, float], Array]:
    """Search for a delay or a drift that is too long for the linearization, one after the other.

    Moved efforts carry their friction with them, which the friction columns then explain better or worse whether or not
    there is a delay: shifts are compared by how much rigid bodies explain of what friction leaves.

    Delays that differ by a period of the motion are alike: the search covers half a period to each side, and of delays
    that are about as good it takes the shortest. What is an advantage only because of one block of time (a collision)
    does not count: a delay shifts all efforts.

    Returns:
        The samples with realigned efforts; delay [s] and drift [s/s] that were removed, 0 if none is needed; the
        residuals without them, as ratios to the efforts without friction, shape (n,).
    """
    rows = RigidRows.from_samples(samples, [model])
    strong = _find_strong(rows)
    before = _unexplained(rows.grams())
    if not strong.any() or float(before[strong].mean()) < LATE_RESIDUAL_RATIO:
        return samples, (0.0, 0.0), before
    length = float(np.ptp(samples.t))
    longest = min(LONGEST_DELAY_S, LONGEST_DELAY_SHARE * length)
    inside = _inside(samples, longest)
    if inside.sum() < len(samples) // 2:
        return samples, (0.0, 0.0), before
    central = replace(samples, valid=samples.valid & inside)
    rows = RigidRows.from_samples(central, [model])
    grams = rows.grams()
    unmoved = _unexplained(grams)

    def shifted(delay: float, drift: float) -> RigidRows:
        return rows.with_efforts(_efforts_at(central, delay, drift))

    def gain(delay: float, drift: float) -> float:
        later = shifted(delay, drift)
        products = np.einsum("jnc,jn->jc", later.columns, later.tau)
        moved = replace(grams, products=products, squares=(later.tau**2).sum(axis=1), scale=later.scale)
        return float(np.log(unmoved / _unexplained(moved))[strong].mean())

    shifts = _symmetric(longest)
    delays = _symmetric(min(longest, _half_period(samples, longest)))
    delay, drift = 0.0, 0.0
    for _ in range(2):
        delay = _shortest_of_the_best(delays, [gain(shift, drift) for shift in delays])
        drift = _shortest_of_the_best(shifts, [gain(delay, shift / length) for shift in shifts]) / length
    later = shifted(delay, drift)
    parts = [samples.blocks != block for block in range(BLOCKS)]
    gains = [np.log(_unexplained(rows.grams(part)) / _unexplained(later.grams(part)))[strong].mean() for part in parts]
    if min(gain(delay, drift), *gains) < SEARCHED_ADVANTAGE:
        return samples, (0.0, 0.0), before
    return replace(central, tau=_efforts_at(central, delay, drift)), (delay, drift), unmoved


def _symmetric(longest: float) -> list[float]:
    """Multiples of `DELAY_STEP_S` up to a longest one to both sides of 0 [s], shortest first."""
    steps = np.arange(np.floor(longest / DELAY_STEP_S + 1e-9) + 1.0)
    return [DELAY_STEP_S * sign * step for step in steps.tolist() for sign in (1.0, -1.0)[: 2 if step else 1]]


def _shortest_of_the_best(shifts: Sequence[float], gains: Sequence[float]) -> float:
    """First of the shifts whose gain is within `SMALLEST_ADVANTAGE` of the largest; the shortest ones come first."""
    enough = max(gains) - SMALLEST_ADVANTAGE
    return next(shift for shift, gain in zip(shifts, gains, strict=True) if gain >= enough)


def _half_period(samples: MotionSamples, longest: float) -> float:
    """Half of the period of a motion [s], infinite if the motion does not return within 2 `longest` [s].

    The motion returns after the lag of the first minimum of its mean squared change over this lag below
    `LATE_RESIDUAL_RATIO`^2 of its variance, once it has left that range.
    """
    step = 0.25 * float(np.median(np.diff(samples.t)))
    near = LATE_RESIDUAL_RATIO**2 * float(samples.motion.q.var(axis=1).sum())
    changes, left = [0.0, 0.0], False
    for count in range(1, int(2.0 * longest / step) + 1):
        changes = [*changes[-2:], _mean_squared_change(samples, count * step)]
        left = left or changes[1] > near
        if left and changes[1] < min(changes[0], changes[2], near):
            return 0.5 * (count - 1) * step
    return np.inf


def _mean_squared_change(samples: MotionSamples, lag: float) -> float:
    """Mean over the samples of the squared change of all positions after a lag [s]; infinite if nothing is as long."""
    total, count = 0.0, 0
    for segment in np.unique(samples.segment):
        own = samples.segment == segment
        t, q = samples.t[own], samples.motion.q[:, own]
        inside = t + lag <= t[-1]
        total += sum(float(((np.interp(t[inside] + lag, t, row) - row[inside]) ** 2).sum()) for row in q)
        count += int(inside.sum())
    return total / count if count else np.inf


def _inside(samples: MotionSamples, longest: float) -> Mask:
    """Samples that are this far from the ends of their segments, shape (N,)."""
    inside = np.zeros(len(samples), dtype=bool)
    for segment in np.unique(samples.segment):
        own = samples.segment == segment
        t = samples.t[own]
        inside[own] = (t - t[0] >= longest) & (t[-1] - t >= longest)
    return inside


def _efforts_at(samples: MotionSamples, delay: float, drift: float) -> Array:
    """Efforts later by a delay [s] and a drift [s/s], 0 where they are not usable, shape (n, N)."""
    tau, middle = np.zeros_like(samples.tau), float(samples.t.mean())
    for segment in np.unique(samples.segment):
        own = samples.segment == segment
        t = samples.t[own]
        tau[:, own] = [np.interp(t + delay + drift * (t - middle), t, row) for row in samples.tau[:, own]]
    return np.where(samples.valid, tau, 0.0)


def _settle(rows: RigidRows, sizes: Array, fit: RigidFit) -> Array:
    """Rigid-body parameters without combinations whose torque friction explains: they are left at zero.

    Args:
        rows: projected rows.
        sizes: norms of the columns before the projection, shape (n, c).
        fit: fit that the weights of the joints and the delay come from.
    """
    grams = rows.grams()
    scale = np.sqrt(np.maximum(fit.weights @ sizes**2, 1e-300))
    matrix = np.tensordot(fit.weights, grams.grams, 1) / np.outer(scale, scale)
    matrix[np.diag_indices(len(matrix))] += SETTLING_RIDGE
    return np.asarray(np.linalg.solve(matrix, fit.weights @ grams.products / scale) / scale)


def _latest(chunks: Sequence[Chunk]) -> float:
    return max((float(np.nanmax(chunk.t)) for chunk in chunks if np.isfinite(chunk.t).any()), default=-np.inf)


def _earliest(chunk: Chunk) -> float:
    return float(np.nanmin(chunk.t)) if np.isfinite(chunk.t).any() else np.inf
