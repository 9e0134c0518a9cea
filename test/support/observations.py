# SPDX-License-Identifier: Apache-2.0
"""Observers of recordings in tests, and recordings that are corrected by their findings."""

from robot_dyn_id.data.chunk import Chunk
from robot_dyn_id.data.corrected import Corrected
from robot_dyn_id.data.observer import observe
from robot_dyn_id.data.recording import ArrayRecording
from robot_dyn_id.identification.diagnosis.observation import observe_recordings
from robot_dyn_id.identification.stages.correction import correct_channels


class CountedRecording(ArrayRecording):
    """A recording that counts the passes over it."""

    def __init__(self, recording):
        """Count the passes over a recording in memory."""
        super().__init__(**vars(recording))
        object.__setattr__(self, "passes", 0)

    def chunks(self, joints):
        """See `Recording.chunks`; a pass counts from its start on."""
        object.__setattr__(self, "passes", self.passes + 1)
        yield from super().chunks(joints)


def conclude(recording, joints, observer):
    """Conclusion of an observer of a recording."""
    observe(recording, joints, observer)
    return observer.conclude()


def corrected(recording, *corrections):
    """A recording with corrections."""
    return Corrected(recording, corrections)


def samples_of(recording):
    """All samples of a recording in one chunk."""
    return Chunk.join(list(recording.chunks(recording.joint_names)))


def channels_of(recording, model, drives=None):
    """A recording whose channels are corrected; see `correct_channels`."""
    drives = drives or {}
    return correct_channels(observe_recordings([recording], model, drives, False), model.joint_names, drives)
