"""What several tests use: robots, simulated recordings, worlds of running nodes."""
