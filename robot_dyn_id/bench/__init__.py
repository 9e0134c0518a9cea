# SPDX-License-Identifier: Apache-2.0
"""Measurement of this package: kernels against peers, whole commands, growth of their cost, comparison of two runs."""
