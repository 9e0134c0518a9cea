# SPDX-License-Identifier: Apache-2.0
"""Distances between the links of a robot and its surroundings."""
