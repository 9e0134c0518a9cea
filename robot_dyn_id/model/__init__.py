"""Robot models: URDF, kinematic tree, screw axes."""
