# SPDX-License-Identifier: Apache-2.0
"""Random robots: their geometry, bodies and URDFs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dyn_id.arrays import Array
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.model.robot import RobotModel

FEWEST_AXES, MOST_AXES = 2, 9

SHORTEST_M, LONGEST_M = 0.05, 0.5
"""Distances of consecutive joints."""

SPEED_RAD_S, SPEED_M_S = 2.0, 0.4
"""Greatest speed of joints that turn, and that slide."""

PLACEHOLDER_RATING = 10_000.0
"""Effort limit of a URDF whose author did not know it [N m or N]."""


@dataclass(frozen=True)
class Link:
    """A moving body and the joint that moves it.

    Attributes:
        name: name of the joint.
        parent: number of the parent body, -1 for the base.
        origin: origin of the joint in the frame of the parent [m], shape (3,).
        turn: roll, pitch and yaw of the joint's frame [rad], shape (3,).
        slides: whether the joint is prismatic; its axis is z.
        reach: largest excursion from 0 [rad or m].
        arm: vector from the joint's origin to the end of the body [m], shape (3,).
        mass: mass [kg].
        center: center of mass [m], shape (3,).
        inertia: rotational inertia about the center of mass [kg m^2], shape (3, 3).
        mimics: name of the joint that this one follows with the opposite sign; empty if it is independent.
    """

    name: str
    parent: int
    origin: Array
    turn: Array
    slides: bool
    reach: float
    arm: Array
    mass: float
    center: Array
    inertia: Array
    mimics: str = ""


def draw_links(rng: np.random.Generator, axes: int, features: Sequence[str]) -> list[Link]:
    """Draw the bodies of a robot, heavier where they carry more.

    Args:
        rng: random number generator.
        axes: number of independent joints.
        features: features of the robot; `prismatic`, `branch` and `parallelogram` matter.
    """
    wrist = axes - 2 if "coupled wrist" in features else axes  # its joints turn, in one arm
    sliding = set(rng.choice(wrist, size=min(wrist, int(rng.integers(1, 3))), replace=False).tolist())
    sliding = sliding if "prismatic" in features else set()
    fork = int(rng.integers(0, axes - 3)) if "branch" in features else axes
    second = int(rng.integers(fork + 2, min(axes, wrist + 1))) if "branch" in features else axes
    lengths = rng.uniform(SHORTEST_M, LONGEST_M, axes)
    density = rng.uniform(5.0, 25.0)
    links: list[Link] = []
    for j in range(axes):
        parent = fork if j == second else j - 1
        length = float(lengths[j])
        direction = np.eye(3)[rng.integers(3)] + 0.15 * rng.normal(size=3)
        arm = length * direction / np.linalg.norm(direction)
        turn = 0.5 * np.pi * rng.choice([-1, 0, 1], 3) + (0.2 * rng.normal(size=3) if rng.random() < 0.3 else 0.0)
        if j and not np.abs(np.sin(turn[:2])).max() > 0.5:  # parallel axes all along would not be an arm
            turn[0] += 0.5 * np.pi
        mass = density * length * (0.4 + 0.6 * (axes - j) / axes) * rng.uniform(0.6, 1.6) + 0.2
        origin = links[parent].arm if j else np.array([0.0, 0.0, rng.uniform(0.0, 0.4)])
        slides = j in sliding
        reach = rng.uniform(0.1, 0.3) if slides else rng.uniform(1.0, 2.6)
        center, inertia = _draw_body(rng, mass, arm)
        prefix = "left" if "branch" in features and j >= second else "joint"
        links.append(Link(f"{prefix}_{j + 1}", parent, origin, turn, slides, reach, arm, mass, center, inertia))
    if "parallelogram" in features:
        links = _add_parallelogram(rng, links)
    return links


def _draw_body(rng: np.random.Generator, mass: float, arm: Array) -> tuple[Array, Array]:
    """Center of mass and inertia of a body along a vector: three boxes at random places around it."""
    length = float(np.linalg.norm(arm))
    shares = rng.dirichlet(np.full(3, 2.0))
    places = rng.uniform(0.0, 1.0, (3, 1)) * arm + 0.15 * length * rng.normal(size=(3, 3))
    center = shares @ places
    inertia = np.zeros((3, 3))
    for share, place in zip(shares, places, strict=True):
        size = rng.uniform(0.03, 0.12 + 0.3 * length, 3) ** 2
        away = place - center
        inertia += share * mass * (np.diag(size.sum() - size) / 12 + away @ away * np.eye(3) - np.outer(away, away))
    return center, inertia


def _add_parallelogram(rng: np.random.Generator, links: list[Link]) -> list[Link]:
    """Add a rod parallel to a body, and keep the next body parallel to the ground: both follow by mimic joints."""
    turning = [j for j, link in enumerate(links) if not link.slides]
    leader = int(rng.choice(turning))
    length = float(np.linalg.norm(links[leader].arm))
    mass = 0.3 * links[leader].mass
    center, inertia = _draw_body(rng, mass, links[leader].arm)
    bar = Link(
        "follower_1",
        leader,
        links[leader].arm,
        np.zeros(3),
        False,
        links[leader].reach,
        links[leader].arm,
        mass,
        center,
        inertia,
        links[leader].name,
    )
    moved = [
        replace(link, parent=len(links), origin=0.5 * length * np.array([1.0, 0.0, 0.0]))
        if link.parent == leader and j == leader + 1
        else link
        for j, link in enumerate(links)
    ]
    return [*moved, bar]


def vary_bodies(rng: np.random.Generator, links: Sequence[Link]) -> list[Link]:
    """Bodies of the real robot, whose URDF gives masses that are up to 35 % wrong."""
    varied = []
    for link in links:
        factor = float(rng.uniform(0.75, 1.35))
        shift = 0.1 * np.linalg.norm(link.arm) * rng.normal(size=3)
        inertia = factor * link.inertia * rng.uniform(0.9, 1.1)
        varied.append(replace(link, mass=factor * link.mass, center=link.center + shift, inertia=inertia))
    return varied


def make_placeholders(rng: np.random.Generator, links: Sequence[Link]) -> list[Link]:
    """Bodies of a URDF that was made from drawings alone: all masses 1 kg, or 0, and inertias of unit cubes."""
    mass = float(rng.choice([1.0, 1.0, 0.0]))
    cube = float(rng.choice([1.0, 1.0 / 6.0])) * np.eye(3) if mass else np.zeros((3, 3))
    return [replace(link, mass=mass, center=np.zeros(3), inertia=cube) for link in links]


def make_urdf(links: Sequence[Link], ratings: Sequence[float], name: str = "hostile") -> str:
    """URDF of bodies.

    Args:
        links: the bodies.
        ratings: effort limit of each joint [N m or N].
        name: name of the robot.
    """
    lines = ['<link name="base"/>']
    for link, rating in zip(links, ratings, strict=True):
        i = link.inertia
        entries = {"ixx": i[0, 0], "ixy": i[0, 1], "ixz": i[0, 2], "iyy": i[1, 1], "iyz": i[1, 2], "izz": i[2, 2]}
        inertia = " ".join(f'{key}="{value:.9g}"' for key, value in entries.items())
        parent = "base" if link.parent < 0 else f"{links[link.parent].name}_link"
        speed = SPEED_M_S if link.slides else SPEED_RAD_S
        lower = link.reach + (0.02 if link.slides else 0.2)
        mimic = f'<mimic joint="{link.mimics}" multiplier="-1"/>' if link.mimics else ""
        lines += [
            f'<link name="{link.name}_link"><inertial><origin xyz="{_numbers(link.center)}"/>'
            f'<mass value="{link.mass:.9g}"/><inertia {inertia}/></inertial></link>',
            f'<joint name="{link.name}" type="{"prismatic" if link.slides else "revolute"}"><parent link="{parent}"/>'
            f'<child link="{link.name}_link"/><origin xyz="{_numbers(link.origin)}" rpy="{_numbers(link.turn)}"/>'
            f'<axis xyz="0 0 1"/><limit lower="{-lower:.6g}" upper="{lower:.6g}" velocity="{1.5 * speed:g}" '
            f'effort="{rating:g}"/>{mimic}</joint>',
        ]
    return f'<robot name="{name}">\n' + "\n".join(lines) + "\n</robot>\n"


def _numbers(vector: Array) -> str:
    return " ".join(f"{value:.9g}" for value in vector)


def measure_scales(model: RobotModel, links: Sequence[Link], rng: np.random.Generator) -> tuple[Array, Array]:
    """Largest torque of gravity and of usual accelerations, and mean inertia, of every joint, shape (n,) each."""
    n, draws = len(model.joint_names), 60
    reach = np.array([link.reach for link in order_links(model, links)])
    q = reach[:, None] * rng.uniform(-1.0, 1.0, (n, draws))
    zero = np.zeros((n, draws))
    regressor = Regressor(model, ())
    gravity = regressor.torque(Motion(q, zero, zero), model.inertial_parameters)
    inertia = np.array(
        [
            (
                regressor.torque(Motion(q, zero, np.eye(n)[:, [j]] * np.ones((1, draws))), model.inertial_parameters)
                - gravity
            )[j].mean()
            for j in range(n)
        ]
    )
    acceleration = np.where(model.slides, 1.0, 4.0)
    return np.abs(gravity).max(axis=1) + acceleration * inertia, inertia


def order_links(model: RobotModel, links: Sequence[Link]) -> list[Link]:
    """Links of the independent joints, in the model's order."""
    named = {link.name: link for link in links}
    return [named[name] for name in model.joint_names]
