# SPDX-License-Identifier: Apache-2.0
"""Robot models: URDF, kinematic tree, screw axes."""
