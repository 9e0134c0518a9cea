# SPDX-License-Identifier: Apache-2.0
"""Explanation of an identified model: the figures behind its report."""

from robot_dyn_id.identification.validation.explanation.explain import (
    ModelExplanation,
    ParameterExplanation,
    TimeAxis,
    explain,
)

__all__ = ["ModelExplanation", "ParameterExplanation", "TimeAxis", "explain"]
