"""Estimators of the nonlinear constants of terms, such as Stribeck velocities."""
