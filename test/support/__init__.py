# SPDX-License-Identifier: Apache-2.0
"""Shared by tests: robots, simulated recordings, worlds of running nodes."""
