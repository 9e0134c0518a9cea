# SPDX-License-Identifier: Apache-2.0
"""Errors on held-out data, and what a model is fit for."""
