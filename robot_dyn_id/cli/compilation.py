# SPDX-License-Identifier: Apache-2.0
"""The first identification after an installation, which compiles: on two cores at once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from robot_dyn_id.cli import note
from robot_dyn_id.cores import count_cores
from robot_dyn_id.kernels.compiled import is_on_disk
from robot_dyn_id.kernels.stepping import advance_lanes
from robot_dyn_id.simulation.plant_lanes import warm_up_dry_friction, warm_up_lanes
from robot_dyn_id.termination import ignore_terminal

LEAST_CORES = 2
"""Least number of cores on which another process compiles: on one it would only take time from this one."""

LOWER_PRIORITY = 5
"""Steps of priority that the other process is below this one."""


@contextmanager
def first_identification() -> Iterator[None]:
    """Explain why the first identification of an installation takes long, and compile its last functions meanwhile."""
    if not announce_compilation(advance_lanes):
        yield
        return
    with compiling(warm_up_lanes):
        warm_up_dry_friction()  # before the other process needs it: the two then take equally long
        yield


def announce_compilation(kernel: Callable[..., object]) -> bool:
    """Explain why the first run of an installation takes long; False if the machine code of a kernel is on disk."""
    if is_on_disk(kernel):
        return False
    note("functions of this installation are compiled, once, within a minute")
    return True


@contextmanager
def compiling(*warm_ups: Callable[[], None]) -> Iterator[None]:
    """Call functions that compile kernels in another process, so that their machine code is on disk when it is needed.

    Args:
        warm_ups: functions of modules, called one after the other.
    """
    if count_cores() < LEAST_CORES:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_call, args=(warm_ups,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()  # the only signal that a process cannot inherit as ignored
        process.join()


def _call(warm_ups: tuple[Callable[[], None], ...]) -> None:
    ignore_terminal()  # its signals are for the command, which ends this
    os.nice(LOWER_PRIORITY)
    with suppress(Exception):  # the command meets the same error where it can explain it
        for warm_up in warm_ups:
            warm_up()
