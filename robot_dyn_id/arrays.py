# SPDX-License-Identifier: Apache-2.0
"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers."""

Integers = NDArray[np.int64]
"""Indices and counts."""

Mask = NDArray[np.bool_]
"""Choice of elements."""
