# SPDX-License-Identifier: Apache-2.0
"""Reports: the answer as data, and as a page. Plots are made here and nowhere else."""
