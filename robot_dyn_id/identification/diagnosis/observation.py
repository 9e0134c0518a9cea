# SPDX-License-Identifier: Apache-2.0
"""First pass over recordings: everything that is observed before anything is corrected.

The second pass, `stages.correction.correct_channels`, is for what needs the corrections of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from robot_dyn_id.data.corrected import Corrected, as_corrected
from robot_dyn_id.data.observer import observe
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.findings import Finding
from robot_dyn_id.identification.diagnosis.alternation import AlternationObserver
from robot_dyn_id.identification.diagnosis.channel_faults import ChannelRuns, RunsObserver
from robot_dyn_id.identification.diagnosis.equal_channels import EqualityObserver
from robot_dyn_id.identification.diagnosis.positions import ObservedPositions, PositionObserver
from robot_dyn_id.identification.diagnosis.resolution import ResolutionObserver
from robot_dyn_id.identification.diagnosis.spikes import DistanceObserver, SpikeLimits
from robot_dyn_id.identification.diagnosis.stamps import FirstObserver, FirstSamples
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.signals.cleaning import Drive
from robot_dyn_id.signals.stillness import Stillness, StillnessObserver


@dataclass(frozen=True)
class Observation:
    """Result of the first pass over a complete recording.

    Attributes:
        first: its first samples.
        stillness: time at rest.
        positions: jumps of the positions.
        runs: frozen positions and largest efforts.
        spikes: efforts that may be spikes.
        findings: findings about encoders with a low resolution, samples that alternate, and joints with one channel.
    """

    first: FirstSamples
    stillness: Stillness
    positions: ObservedPositions
    runs: ChannelRuns
    spikes: SpikeLimits
    findings: tuple[Finding, ...]


def observe_recordings(
    recordings: Sequence[Recording], model: RobotModel, drives: Mapping[str, Drive], currents: bool
) -> list[Corrected]:
    """Observe recordings that have not been observed yet, in one pass over each.

    Args:
        recordings: the recordings.
        model: the robot.
        drives: drives of the joints whose effort is a current.
        currents: whether all efforts are currents, whatever the drives.

    Raises:
        InputError: a recording that cannot be read.
        UnsafeDataError: stamps that are not in seconds, or samples that are too far apart.
    """
    read = dict.fromkeys(model.joint_names, Drive(1.0)) if currents else drives
    return [_observe(as_corrected(recording), model, read) for recording in recordings]


def observation_of(recording: Corrected) -> Observation:
    """Observation of a recording of `observe_recordings`, or of one that is made of it."""
    assert isinstance(recording.observation, Observation)
    return recording.observation


def _observe(recording: Corrected, model: RobotModel, drives: Mapping[str, Drive]) -> Corrected:
    if recording.observation is not None:
        return recording
    source, joints = recording.recording.source, model.joint_names
    first, stillness = FirstObserver(source, joints), StillnessObserver(joints)
    positions, resolution = PositionObserver(source, model), ResolutionObserver(source, joints)
    runs, distances = RunsObserver(joints, drives), DistanceObserver(joints, drives)
    values = AlternationObserver(source, joints, drives), EqualityObserver(source, joints, drives)
    observe(recording.complete, joints, first, stillness, positions, runs, distances, resolution, *values)
    jumps = positions.conclude()
    found = Observation(
        first.conclude(),
        stillness.conclude(),
        jumps,
        runs.conclude(jumps),
        distances.conclude(),
        (*resolution.conclude(), *(finding for one in values for finding in one.conclude())),
    )
    return replace(recording, observation=found)
