# SPDX-License-Identifier: Apache-2.0
"""Summary of a small fleet, as in `fleet.json`."""

ROBOT = {
    **{"robot": "R1", "configuration": "default", "dates": ["2026-01-01"], "differs": False, "chi_square": 20.0},
    **{"degrees_of_freedom": 24.0, "probability": 1.0, "differences": [], "in_words": [], "recordings_agree": 1.0},
    **{"held_out_nrmse": 0.02},
    "drift": [{"name": "fv1", "unit": "N m s/d", "rate": 1e-3, "interval": [-1e-3, 3e-3]}],
}
FLEET = {
    **{"differing": [], "left_out": [], "findings": [], "recordings": {"used": 1, "restored": 0, "left_out": 0}},
    "signals": {"cutoff": 5.0, "motion_cutoff": 5.0, "velocity": "derivative"},
    "configurations": [
        {
            "configuration": "default",
            "compared": True,
            "held_out_nrmse": 0.1,
            "parameters": [{"name": "fv1", "unit": "N m s", "pooled": 1.0, "mean": None}],
            "variation": [{"name": "fv1", "relative_deviation": 0.1}],
        }
    ],
    "robots": [ROBOT],
}
