# SPDX-License-Identifier: Apache-2.0
"""Order of the cases: every beginning of the list is a stratified sample of the complete grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mutation.clean import ARMS
from mutation.table import CLEAN, Job


def list_faults(faults: Sequence[str], strengths: Sequence[int], rounds: int, model: Job) -> list[Job]:
    """Cases of faults, in rounds: each round has every fault at every strength once, on an arm of its own.

    The arms rotate with the fault, the strength and the round, so that the first two rounds meet each fault on up to
    six arms, and eight rounds are the complete grid.

    Args:
        faults: keys of the faults.
        strengths: strengths, 0 to 2; the upper two come first in each round.
        rounds: number of arms for each fault and strength.
        model: seed and other attributes of the jobs.
    """
    arms = list(ARMS)
    return [
        replace(model, fault=fault, arm=arms[(number + 3 * strength + turn) % len(arms)], strength=strength)
        for turn in range(min(rounds, len(arms)))
        for strength in sorted(strengths, reverse=True)
        for number, fault in enumerate(faults)
    ]


def list_clean(count: int, model: Job) -> list[Job]:
    """Clean recordings, `count` of each arm with consecutive seeds from that of `model` on."""
    return [
        replace(model, fault=CLEAN, arm=arm, strength=0, seed=model.seed + number)
        for number in range(count)
        for arm in ARMS
    ]


def mixed(first: Sequence[Job], second: Sequence[Job]) -> list[Job]:
    """Both lists in one, each evenly spread, so that a run that is stopped has parts of both."""
    places = [(number / max(len(jobs), 1), job) for jobs in (first, second) for number, job in enumerate(jobs)]
    return [job for _, job in sorted(places, key=lambda pair: pair[0])]
