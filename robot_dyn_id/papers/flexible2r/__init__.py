"""Reproduction: stepwise identification of flexible joints (Chen et al. 2021)."""
