# SPDX-License-Identifier: Apache-2.0
"""Options."""

from __future__ import annotations

from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.factors import METHODS


def check_options(name: str, order: int, method: str = "qr", **counts: int) -> None:
    """Refuse options that no estimator can have.

    Args:
        name: of the estimator.
        order: of the autoregressive model of residuals.
        method: of factorisation.
        counts: options that must be 1 or more, `passes` say, by their names.

    Raises:
        UsageError: a negative order, an unknown method, a count below 1.
    """
    for option, count in counts.items():
        if count < 1:
            raise UsageError(f"{name}: {option} must be 1 or more, not {count}")
    if order < 0:
        raise UsageError(f"{name}: autoregressive_order must be 0 or more, not {order}")
    if method not in METHODS:
        raise UsageError(f"{name}: factorisation {method!r} is not known; use one of {', '.join(METHODS)}")
