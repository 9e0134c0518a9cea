"""From recordings and a robot model to a validated parameter set."""
