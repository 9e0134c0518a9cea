# SPDX-License-Identifier: Apache-2.0
"""Fault suite: what the package promises under faults, and how often it kept each promise.

`make soak` runs all of it; `python -m faults --help` (in `benchmarks/`) lists the parts. The small form runs as
`test/test_faults_*.py`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Root of the source tree."""
