"""Reproduction: improved Stribeck friction, Fourier excitation and PSO-LM (Jing et al. 2025)."""
