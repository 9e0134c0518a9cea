# SPDX-License-Identifier: Apache-2.0
"""From raw samples to the rows of the linear problem: one file per step."""
