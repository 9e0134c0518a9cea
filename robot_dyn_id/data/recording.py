# SPDX-License-Identifier: Apache-2.0
"""Recordings: re-iterable sequences of chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.errors import InputError


class Recording(Protocol):
    """One trial: a re-iterable source of chunks.

    Attributes:
        source: name for messages, usually the path.
        joint_names: recorded joints, in the order of the source.
        epoch: origin of the stamps `t` in nanoseconds of the recording's clock; 0 if `t` is as in the source.
        effort_is_torque: whether the source states that efforts are in N m or N; if not, efforts of joints with a
            configured gain are currents.
    """

    @property
    def source(self) -> str: ...  # noqa: D102
    @property
    def joint_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def epoch(self) -> int: ...  # noqa: D102
    @property
    def effort_is_torque(self) -> bool: ...  # noqa: D102

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Iterate over the trial from its first sample.

        Args:
            joints: names of the joints, in the order of the columns.

        Raises:
            InputError: a joint that is not recorded, or a file that cannot be read.
        """
        ...


@dataclass(frozen=True)
class ArrayRecording:
    """A trial in memory (tests, simulations, `.npz` and `.csv` files).

    Attributes:
        source: name for messages, usually the path.
        joint_names: names of the joints, in the order of the columns.
        samples: all samples.
        epoch: see `Recording`.
        effort_is_torque: see `Recording`.
        chunk_size: number of samples per chunk.
    """

    source: str
    joint_names: tuple[str, ...]
    samples: Chunk
    epoch: int = 0
    effort_is_torque: bool = True
    chunk_size: int = 8192

    def chunks(self, joints: Sequence[str]) -> Iterator[Chunk]:
        """Iterate over the samples chunk by chunk; see `Recording.chunks`."""
        columns = find_columns_of(self.joint_names, joints, self.source)
        for start in range(0, len(self.samples), self.chunk_size):
            yield self.samples.take(slice(start, start + self.chunk_size)).joints(columns)


def find_columns_of(available: Sequence[str], wanted: Sequence[str], source: str) -> list[int]:
    """Column numbers of the joints `wanted` among those `available`.

    Raises:
        InputError: a wanted joint is not available.
    """
    missing = [name for name in wanted if name not in available]
    if missing:
        raise InputError(f"{source}: no joint {', '.join(missing)}; it holds {', '.join(available)}")
    return [list(available).index(name) for name in wanted]


class DerivedRecording:
    """Base for views on a recording; forwards its metadata.

    Attributes:
        recording: the viewed recording.
    """

    recording: Recording

    @property
    def source(self) -> str:
        """See `Recording`."""
        return self.recording.source

    @property
    def joint_names(self) -> tuple[str, ...]:
        """See `Recording`."""
        return self.recording.joint_names

    @property
    def epoch(self) -> int:
        """See `Recording`."""
        return self.recording.epoch

    @property
    def effort_is_torque(self) -> bool:
        """See `Recording`."""
        return self.recording.effort_is_torque
