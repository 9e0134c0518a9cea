# SPDX-License-Identifier: Apache-2.0
"""Reproduction: improved Stribeck friction, Fourier excitation and PSO-LM (Jing et al. 2025)."""
