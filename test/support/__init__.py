# SPDX-License-Identifier: Apache-2.0
"""What several tests use: robots, simulated recordings, worlds of running nodes."""
