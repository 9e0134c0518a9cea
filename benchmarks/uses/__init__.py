# SPDX-License-Identifier: Apache-2.0
"""Uses of identified models, done in simulation: each answer of the tool with the success of the use itself."""
