# SPDX-License-Identifier: Apache-2.0
"""Choice of a model from training data: terms, couplings, strength of the prior, and filter of the motion."""
