"""Reproduction: logistic excitation with iterative closed-loop identification (Qian et al.)."""
