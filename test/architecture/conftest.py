# SPDX-License-Identifier: Apache-2.0
"""Syntax trees, which the modules of this folder share, are left out of garbage collections."""

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def spared_trees():
    """Millions of objects without cycles: each collection of a later test would pass over all of them."""
    gc.collect()  # garbage of earlier tests, such as goals, would be kept as well
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
