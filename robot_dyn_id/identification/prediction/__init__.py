# SPDX-License-Identifier: Apache-2.0
"""Torques and motions by an identified model."""
