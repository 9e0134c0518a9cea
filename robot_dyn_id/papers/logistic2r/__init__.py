# SPDX-License-Identifier: Apache-2.0
"""Reproduction: logistic excitation with iterative closed-loop identification (Qian et al.)."""
