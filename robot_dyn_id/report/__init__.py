# SPDX-License-Identifier: Apache-2.0
"""Reports: the answer as data, and a page for people. Plots are made here and nowhere else."""
