# SPDX-License-Identifier: Apache-2.0
"""Published identifications: inputs and special steps of a paper in each module; the rest is the package's own."""

PAPERS = {
    "planar3r": "base parameters by Kronecker products, one joint excited at a time (Wang et al. 2025)",
    "quaternion6r": "mass and inertia of every body from the wrenches of its hinges (2022)",
    "logistic2r": "logistic excitation, and identification repeated in closed loop (Qian et al.)",
    "flexible2r": "flexible joints, identified step by step (Chen et al. 2021)",
    "space6r": "improved Stribeck friction, found by a swarm and Levenberg-Marquardt (Jing et al. 2025)",
}
"""Name and idea; `papers/<name>.py` has `reproduce(extent, progress) -> Reproduction`."""
