# SPDX-License-Identifier: Apache-2.0
"""Estimation of the parameters of a model that is chosen."""
