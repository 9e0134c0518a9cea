# SPDX-License-Identifier: Apache-2.0
"""Estimators of the nonlinear constants of terms, such as Stribeck velocities."""
