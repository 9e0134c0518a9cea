# SPDX-License-Identifier: Apache-2.0
"""Measured robots of public repositories: the plain command against least squares and FIGAROH.

`python -m robots` in `benchmarks/` fetches each repository at a fixed commit, converts its recordings, and runs the
contenders on the same files with the same low-pass; all are judged on held-out data. Nothing of the repositories is
kept in this one.
"""
