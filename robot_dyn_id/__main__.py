# SPDX-License-Identifier: Apache-2.0
"""`python -m robot_dyn_id` is `robot-dyn-id`."""

from robot_dyn_id.cli import main

raise SystemExit(main())
