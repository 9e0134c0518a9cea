# SPDX-License-Identifier: Apache-2.0
"""Disks that fail while the recorder writes: full, read-only, removed.

A small memory file system is mounted where the right to do so is there; else the size of files is limited, which is
reported as such. A disk becomes read-only as real ones do, by an error of its file system: ext4 in a file, if the
kernel has loop devices.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from faults.cell import STARTING_S, Cell, Process
from faults.results import Result

SIZE = "16m"
"""Size of the file system: minutes of joint states, since a busy computer takes long to begin a motion."""

DISK_BYTES = 2**26
"""Size of the file system that fails by an error."""

REPORTED_S = 1.5
"""Time after which the recorder must have reported that its bag is gone; about a second, and DDS."""

LEAST_COUNT = 100
"""Messages that are on the disk before it fails, and are read back."""

STOPPED_S = 3.0
"""Time after the failure of the recorder until the motion must have ended."""


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system at a new folder; False if it cannot be mounted."""
    folder.mkdir(parents=True)
    with _mounted(folder, ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)]) as mounted:
        yield mounted


@contextlib.contextmanager
def _failing_disk(folder: Path) -> Iterator[Path | None]:
    """A small ext4 at a new folder, and the file that triggers an error of it; None if it cannot be mounted."""
    folder.mkdir(parents=True)
    image = folder.with_suffix(".ext4")
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    if not _succeeds(["mkfs.ext4", "-q", str(image)]):
        yield None
        return
    words = ["mount", "-o", "loop,errors=remount-ro", str(image), str(folder)]
    with _mounted(folder, words) as mounted:
        device = os.stat(folder).st_dev
        name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
        trigger = Path("/sys/fs/ext4") / name / "trigger_fs_error"
        yield trigger if mounted and trigger.exists() else None


def _succeeds(words: Sequence[str]) -> bool:
    """Whether a command is there and ends well."""
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _mounted(folder: Path, words: Sequence[str]) -> Iterator[bool]:
    """Mount by a command, and unmount a folder at the end; False if the command fails."""
    mounted = _succeeds(words)
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def _fill(folder: Path) -> None:
    """Write until no space is left."""
    with contextlib.suppress(OSError), (folder / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**16))


def _limit_files(process: Process, bag: Path) -> None:
    """Let no file of a process grow beyond the present size of its bag."""
    size = max(file.stat().st_size for file in bag.iterdir())
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))


def _recording(cell: Cell, bag: Path) -> None:
    """Start a recorder and the excitation."""
    from robot_dyn_id.msg import ExcitationStatus
    from robot_dyn_id.msg import RecordingStatus as Status

    cell.recording.clear()
    cell.on_disk = 0
    cell.start("recorder", folder=bag)
    cell.wait_started("recorder", "excitation_publisher", "simulator")
    cell.until_recording(Status.IDLE)
    cell.trigger("recorder/start")
    cell.until_recording(Status.RECORDING)
    cell.until_excitation(ExcitationStatus.READY, ExcitationStatus.DONE, ExcitationStatus.FAULT)
    cell.run_motion()
    cell.world.until(lambda: cell.on_disk >= LEAST_COUNT, STARTING_S, "messages on the disk")


def _kept(bag: Path) -> int:
    """Number of samples that are read back."""
    from robot_dyn_id.recordings import open_recording

    recording = open_recording(bag)
    return sum(len(chunk) for chunk in recording.chunks(recording.joint_names))


def _failed_well(cell: Cell, bag: Path, word: str) -> str:
    """The recorder says what happened, keeps what it has, stays, and the motion ends; empty if so."""
    from robot_dyn_id.msg import RecordingStatus as Status

    cell.until_recording(Status.FAILED, timeout=60.0)
    reason = cell.recording[-1][1]
    problems = []
    if word not in reason:
        problems.append(f"the reason does not say {word!r}: {reason}")
    if _kept(bag) < LEAST_COUNT:
        problems.append(f"{_kept(bag)} samples are read back")
    cell.until_rest(cell.moment(), STOPPED_S)
    if cell.others_alive():
        problems.append(f"{', '.join(cell.others_alive())} ended")
    return "; ".join(problems)


def _full(cell: Cell, folder: Path) -> str:
    with small_disk(folder) as mounted:
        _recording(cell, folder / "bag")
        cell.world.wait(1.0)
        _fill(folder) if mounted else _limit_files(cell.processes["recorder"], folder / "bag")
        return _failed_well(cell, folder / "bag", "No space left" if mounted else "File too large")


def _read_only(cell: Cell, folder: Path) -> str | None:
    with _failing_disk(folder) as trigger:
        if trigger is None:
            return None
        _recording(cell, folder / "bag")
        cell.world.wait(1.0)
        trigger.write_text("1")
        return _failed_well(cell, folder / "bag", "Read-only file system")


def _removed(cell: Cell, folder: Path) -> str:
    """A file that is removed can still be written to: the recorder has to compare what is on the disk."""
    from robot_dyn_id.msg import RecordingStatus as Status

    folder.mkdir(parents=True)
    _recording(cell, folder / "bag")
    cell.world.wait(1.0)
    shutil.rmtree(folder)
    removed = cell.moment()
    cell.until_recording(Status.FAILED, timeout=60.0)
    late, reason = cell.moment() - removed, cell.recording[-1][1]
    problems = []
    if late > REPORTED_S:
        problems.append(f"the loss was reported after {late:.1f} s")
    if str(folder / "bag") not in reason:
        problems.append(f"the reason does not name the bag: {reason}")
    answer = cell.trigger("recorder/stop")
    if answer.success or answer.message != reason:
        problems.append(f"stop answers {answer.success}, {answer.message}")
    cell.until_rest(cell.moment(), STOPPED_S)
    if cell.others_alive():
        problems.append(f"{', '.join(cell.others_alive())} ended")
    if cell.processes["recorder"].end() == 0:
        problems.append("the recorder ends with code 0")
    return "; ".join(problems)


def _cannot_be_made(cell: Cell, folder: Path) -> str:
    """A folder that cannot be made, below a file."""
    from robot_dyn_id.msg import RecordingStatus as Status

    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file")
    cell.recording.clear()
    cell.start("recorder", folder=folder / "bag")
    cell.wait_started("recorder")
    cell.until_recording(Status.IDLE)
    cell.trigger("recorder/start")
    cell.world.wait(1.5)
    if not cell.processes["recorder"].alive:
        return "the recorder ended"
    return "" if cell.recording[-1][0] == Status.FAILED else f"the recorder reports {cell.recording[-1]}"


DISKS: dict[str, tuple[str, Callable[[Cell, Path], str | None]]] = {
    "disk full while recording": ("recorder reports the fault, bag readable, motion ends, no node ends", _full),
    "disk read-only while recording": (
        "recorder reports the fault, bag readable, motion ends, no node ends",
        _read_only,
    ),
    "bag removed while recording": (
        "recorder reports the loss and ends with an error, motion ends, no node ends",
        _removed,
    ),
    "bag folder cannot be made": ("recorder reports the fault and stays up", _cannot_be_made),
}
"""Promise and scenario of each fault."""


def run(world: Any, folder: Path, runs: int, chosen: Sequence[str] = ()) -> list[Result]:
    """Let disks fail.

    Args:
        world: world of `ros_world`.
        folder: for logs and disks.
        runs: number of runs of each fault.
        chosen: faults; empty: all.
    """
    from faults.cell import cell

    results = []
    for number, fault in enumerate(chosen or DISKS):
        promise, scenario = DISKS[fault]
        broken: list[str] = []
        done = 0
        with cell(world, folder / f"disk_{number}", f"disk_{number}", simulated_time=True) as made:
            made.start("simulator", rate=500.0, publish_rate=500.0)
            made.start("excitation_publisher", recording="required")
            while done < runs:
                try:
                    problem = scenario(made, folder / f"place_{number}_{done}")
                except Exception as error:
                    problem = " ".join(str(error).split())[:300]
                if problem is None:
                    break
                done += 1
                broken += [problem] if problem else []
                if "recorder" in made.processes:
                    made.processes["recorder"].end()
                with contextlib.suppress(Exception):
                    made.trigger("excitation_publisher/stop")
        notes = tuple(f"{broken.count(text)} x {text}" for text in dict.fromkeys(broken))[:4]
        notes = notes if done else ("needs the right to mount a file system, and loop devices",)
        results.append(Result(promise, fault, done, len(broken), notes=notes))
        print(f"  {fault}: {results[-1].verdict}", *notes, sep="\n    ", flush=True)
    return results
