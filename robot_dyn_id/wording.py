# SPDX-License-Identifier: Apache-2.0
"""Figures of several joints or times in one line of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def format_spans(spans: Iterable[tuple[float, float]]) -> str:
    """Spans of time [s] as text: `from 0.0 to 5.0 s, from 34.2 to 128.0 s`."""
    return ", ".join(f"from {start:.1f} to {stop:.1f} s" for start, stop in spans)


def format_shares(shares: Iterable[tuple[str, float]]) -> str:
    """Named ratios as text: `elbow velocity 12%, wrist position 7%`."""
    return ", ".join(f"{name} {share:.0%}" for name, share in shares)


def format_counts(counts: Mapping[str, int]) -> str:
    """Counts by reason as text: `12 velocity missing or not finite, 3 time stamp repeated`."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
