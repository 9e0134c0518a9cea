# SPDX-License-Identifier: Apache-2.0
"""Spectra of measured torques and of residuals along recordings, by Welch's method in flat memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dyn_id.arrays import Array, Integers, Mask

LONGEST, SHORTEST = 512, 32
"""Largest and smallest number of samples of a section."""

SECTIONS = 4
"""Number of sections that the longest stretch is at least divided into."""


@dataclass(frozen=True)
class TorqueSpectra:
    """Amplitude densities of n joints at F frequencies, one-sided: the square root of the power spectral density.

    Attributes:
        frequency: frequencies up to half the rate of the samples [Hz], shape (F,).
        residual: density of the recorded minus the predicted torque [N m/Hz^1/2 or N/Hz^1/2], shape (n, F); NaN for a
            joint without a section in which all samples count.
        measured: density of the recorded torque, shape (n, F).
        sections: number of sections that were averaged, shape (n,).
    """

    frequency: Array
    residual: Array
    measured: Array
    sections: Integers


@dataclass
class WelchSums:
    """Sums over half-overlapping sections with a Hann window, each without its mean (Welch 1967).

    Attributes:
        rate: samples per second [Hz].
        length: number of samples of a section.
        joints: number of joints, n.
    """

    rate: float
    length: int
    joints: int
    _power: Array = field(init=False, repr=False)
    _sections: Integers = field(init=False, repr=False)
    _held: list[tuple[Array, Mask]] = field(default_factory=list, init=False, repr=False)
    _next: tuple[int, int] = field(default=(-1, -1), init=False, repr=False)

    def __post_init__(self) -> None:
        """Start with empty sums."""
        self._power = np.zeros((2, self.joints, self.length // 2 + 1))
        self._sections = np.zeros(self.joints, dtype=np.int64)

    @classmethod
    def for_stretch(cls, rate: float, seconds: float, joints: int) -> WelchSums:
        """Sums whose sections divide a stretch of some seconds into at least `SECTIONS`."""
        samples = max(1.0, rate * seconds / SECTIONS)
        return cls(rate, int(np.clip(2 ** int(np.log2(samples)), SHORTEST, LONGEST)), joints)

    def add(self, segment: int, number: Integers, torques: Array, valid: Mask) -> None:
        """Add samples of one segment, which continue the last ones if their numbers do.

        Args:
            segment: number of the segment.
            number: grid number of each sample, ascending, shape (N,).
            torques: residual and recorded torque, shape (2, n, N).
            valid: samples of each joint that count, shape (n, N).
        """
        starts = np.flatnonzero(np.diff(number, prepend=number[:1] - 1) != 1)
        for part in np.split(np.arange(len(number)), starts):
            if not len(part):
                continue
            if self._next != (segment, int(number[part[0]])):
                self._held = []
            self._held.append((torques[..., part], valid[:, part]))
            self._next = (segment, int(number[part[-1]]) + 1)
            self._take_sections()

    def conclude(self) -> TorqueSpectra:
        """Spectra of what was added."""
        frequency = np.asarray(np.fft.rfftfreq(self.length, 1.0 / self.rate), dtype=np.float64)
        window = np.hanning(self.length + 1)[:-1]
        doubled = np.where((frequency > 0.0) & (frequency < 0.5 * self.rate), 2.0, 1.0)
        count = np.where(self._sections > 0, self._sections, np.nan)[:, None]
        density = np.sqrt(doubled * self._power / (self.rate * (window**2).sum() * count))
        return TorqueSpectra(frequency, density[0], density[1], self._sections)

    def _take_sections(self) -> None:
        """Add all complete sections of the held samples, and keep what the next one needs."""
        if sum(mask.shape[1] for _, mask in self._held) < self.length:
            return
        torques = np.concatenate([part for part, _ in self._held], axis=-1)
        valid = np.concatenate([mask for _, mask in self._held], axis=-1)
        hop = self.length // 2
        count = (valid.shape[1] - self.length) // hop + 1
        sections = np.lib.stride_tricks.sliding_window_view(torques, self.length, axis=-1)[..., : count * hop : hop, :]
        whole = np.lib.stride_tricks.sliding_window_view(valid, self.length, axis=-1)[:, : count * hop : hop].all(-1)
        window = np.hanning(self.length + 1)[:-1]
        spectra = np.fft.rfft((sections - sections.mean(axis=-1, keepdims=True)) * window, axis=-1)
        self._power += np.einsum("kjsf,js->kjf", np.abs(spectra) ** 2, whole.astype(np.float64))
        self._sections += whole.sum(axis=1)
        self._held = [(torques[..., count * hop :].copy(), valid[:, count * hop :].copy())]
