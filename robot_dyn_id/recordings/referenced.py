# SPDX-License-Identifier: Apache-2.0
"""Joint states of a bag together with the commanded positions from another topic of the same bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.recording import DerivedRecording
from robot_dyn_id.data.resampling import interpolate_linear
from robot_dyn_id.errors import InputError
from robot_dyn_id.findings import Finding
from robot_dyn_id.recordings.joint_states import NANOSECONDS
from robot_dyn_id.recordings.merged import Merged, report_clock
from robot_dyn_id.recordings.rosbag2 import BagRecording


@dataclass(frozen=True)
class Referenced(DerivedRecording):
    """A recording with the positions of another one as its reference.

    They are interpolated linearly at its stamps, and are NaN beyond their first and last message: such samples are
    left out later, and reported.

    Attributes:
        recording: what the robot did.
        wanted: commanded positions: the reference of a controller's state, the positions of other types.
    """

    recording: BagRecording | Merged
    wanted: BagRecording

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Stream both; see `BagRecording.chunks`.

        Raises:
            InputError: a joint that one of the topics does not hold.
        """
        missing = [joint for joint in joints if joint not in self.wanted.joint_names]
        if missing:
            held = ", ".join(self.wanted.joint_names)
            raise InputError(f"{self.source}: {self.wanted.topic} has no {', '.join(missing)}; it holds {held}")
        later = self.wanted.chunks(joints)
        t, q = np.empty(0), np.empty((0, len(joints)))
        for chunk in self.recording.chunks(joints):
            while not (len(t) and t[-1] >= chunk.t.max()) and (more := next(later, None)) is not None:
                stamps = more.t + (self.wanted.epoch - self.epoch) / NANOSECONDS
                before = np.maximum.accumulate(np.append(t[-1] if len(t) else -np.inf, stamps))[:-1]
                news = stamps > before
                wanted = more.q if more.reference is None else more.reference  # of a controller's state
                t, q = np.concatenate([t, stamps[news]]), np.concatenate([q, wanted[news]])
            yield replace(chunk, reference=interpolate_linear(chunk.t, t, q))
            first = max(0, int(np.searchsorted(t, chunk.t.max())) - 1)
            t, q = t[first:], q[first:]

    def dropped(self, joints: Sequence[str]) -> Mapping[str, int]:
        """Number of samples of the recording that are left out, by reason."""
        return self.recording.dropped(joints)

    def findings(self, joints: Sequence[str]) -> tuple[Finding, ...]:
        """Findings about both topics."""
        measured = self.recording.recording if isinstance(self.recording, Merged) else self.recording
        found = *self.recording.findings(joints), *report_clock(measured, self.wanted), *self.wanted.findings(joints)
        return tuple(dict.fromkeys(found))
