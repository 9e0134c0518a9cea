# SPDX-License-Identifier: Apache-2.0
"""Recordings as values: chunks of samples, sequences of chunks, and views on them."""
