"""Reports: the answer as data, and a page for people. Plots are made here and nowhere else."""
