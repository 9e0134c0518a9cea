# SPDX-License-Identifier: Apache-2.0
"""Comparison of identified models of one robot."""
