# SPDX-License-Identifier: Apache-2.0
"""Dynamics that is linear in its parameters: regressor, base parameters, inverse and forward dynamics."""
