# SPDX-License-Identifier: Apache-2.0
"""Simulated robots: plant, controllers, sensors."""
