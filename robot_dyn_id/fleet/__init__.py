# SPDX-License-Identifier: Apache-2.0
"""Fleets: many robots of one type, compared and identified together from the factors of their recordings."""
