# SPDX-License-Identifier: Apache-2.0
"""Estimators that replace measured signals by simulated ones."""
