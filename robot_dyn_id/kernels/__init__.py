# SPDX-License-Identifier: Apache-2.0
"""Compiled loops, one file each; see `compiled` for how they are written."""
