"""Distances between the links of a robot and its surroundings."""
