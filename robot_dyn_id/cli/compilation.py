# SPDX-License-Identifier: Apache-2.0
"""Note on the first identification after an installation, which compiles."""

from __future__ import annotations

from robot_dyn_id.cli import note
from robot_dyn_id.kernels.compiled import is_on_disk
from robot_dyn_id.kernels.stepping import advance_lanes


def note_compilation() -> None:
    """Print why the first identification of an installation takes long, if this is the first."""
    if not is_on_disk(advance_lanes):
        note("first identification of this installation: its functions are compiled, once, for one to two minutes")
