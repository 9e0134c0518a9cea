# SPDX-License-Identifier: Apache-2.0
"""From recordings and a robot model to a validated parameter set."""
