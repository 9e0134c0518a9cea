# SPDX-License-Identifier: Apache-2.0
"""`chain.yaml`: the bodies of a robot, identified from the wrenches of its hinges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robot_dyn_id.files.formats import FileFormat
from robot_dyn_id.loads.chain_recording import IdentifiedChain

FORMAT = FileFormat("chain", 1, "identify the chain again with this version of robot_dyn_id")


def summarize_chain(chain: IdentifiedChain) -> dict[str, Any]:
    """Bodies as keys and values, SI; a value is None where it is not identifiable."""
    estimate = chain.estimate
    bodies = []
    for number, (name, frame) in enumerate(zip(chain.bodies, chain.frames, strict=True)):
        bodies.append(
            {
                "joint": name,
                "frame": {"position": frame.position.tolist(), "rotation": frame.rotation.tolist()},
                "parameters": {
                    str(symbol): [float(value), float(sigma)] if np.isfinite(value) else None
                    for symbol, value, sigma in zip(
                        estimate.names[number],
                        estimate.values[number],
                        estimate.standard_deviations[number],
                        strict=True,
                    )
                },
            }
        )
    return {
        "bodies": bodies,
        "not_identifiable": list(estimate.not_excited),
        "independent": estimate.rank,
        "sensors": list(chain.sensors),
    }


def write_chain(path: str | Path, chain: IdentifiedChain, **entries: Any) -> dict[str, Any]:
    """Write the bodies of a chain.

    Args:
        path: the file.
        chain: the bodies.
        entries: further entries of the summary.

    Returns:
        The summary, see `summarize_chain`, with these entries.

    Raises:
        InputError: the file cannot be written.
    """
    summary = {**summarize_chain(chain), **entries}
    FORMAT.write(path, summary)
    return summary
