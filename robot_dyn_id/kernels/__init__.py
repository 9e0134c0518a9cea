"""Compiled loops, one file each; see `compiled` for how they are written."""
