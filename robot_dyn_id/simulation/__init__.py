"""Simulated robots: plant, controllers, sensors."""
