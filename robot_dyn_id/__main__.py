# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dyn_id` is `robot-dyn-id`."""

from robot_dyn_id.cli import run_process

raise SystemExit(run_process())
