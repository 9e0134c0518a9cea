"""Estimators that replace measured signals by simulated ones."""
