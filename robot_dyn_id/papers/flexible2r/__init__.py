# SPDX-License-Identifier: Apache-2.0
"""Reproduction: stepwise identification of flexible joints (Chen et al. 2021)."""
