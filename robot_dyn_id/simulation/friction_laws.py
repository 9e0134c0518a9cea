# SPDX-License-Identifier: Apache-2.0
"""Terms of an identified model in the form of the simulation kernels: inertias, constants and friction laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.terms import Term, TermGroup, TermStates
from robot_dyn_id.dynamics.terms.laws import (
    ARCTAN,
    CONSTANT,
    COSINE,
    DAHL,
    INERTIA,
    POWER,
    SIGN,
    SINE,
    SPRING,
    VISCOUS,
    FrictionLaw,
)
from robot_dyn_id.errors import InputError
from robot_dyn_id.kernels import stepping

SHAPES = {SIGN: stepping.SIGN, DAHL: stepping.DAHL, POWER: stepping.POWER, ARCTAN: stepping.ARCTAN}
"""Laws of the kernels; a power of 1 or more is `stepping.RISING`."""

Key: TypeAlias = tuple[float, float, int, float]
"""Shape, constant, side and fading of a law of the kernels: laws that agree in them are one."""


@dataclass(frozen=True)
class FrictionLaws:
    """Terms of a robot with n joints as sums of laws on g friction coordinates, m laws in all.

    Laws of the same shape and constant on the same coordinate are one: Dahl elements that several terms have in common
    have one state.

    Attributes:
        inertia: rotor inertias, shape (n, n).
        constant: constant torques [N m or N], shape (n,).
        stiffness: torque of the springs over the positions [N m/rad or N/m], shape (n, n).
        waves: weights, frequency and phase of the torques that repeat along coordinates, shape (w, n + 2).
        amplitudes: their amplitudes [N m or N], shape (w,).
        weights: weights of the friction coordinates, shape (g, n).
        viscous: viscous friction forward and backward, shape (g, 2).
        starts: first law of each coordinate, and their number, shape (g + 1,).
        laws: see `kernels.stepping`, shape (m, 6).
        loads: standard parameters that the load is computed from, shape (b, 10, 1); (0, 10, 1) if no law depends on it.
        places: index of the law of each state of a term, shape (s, g), by term.
    """

    inertia: Array
    constant: Array
    stiffness: Array
    waves: Array
    amplitudes: Array
    weights: Array
    viscous: Array
    starts: Integers
    laws: Array
    loads: Array
    places: Mapping[Term, Integers]

    @classmethod
    def from_dynamics(cls, dynamics: Dynamics) -> FrictionLaws:
        """Convert the terms of a robot; those whose parameters are all zero are left out.

        Raises:
            InputError: a term that is not a sum of laws.
        """
        regressor = dynamics.regressor
        joints, first = len(regressor.model.joint_names), 10 * len(regressor.model.body_names)
        (inertia, stiffness), constant = np.zeros((2, joints, joints)), np.zeros(joints)
        waves: dict[tuple[float, ...], float] = {}
        viscous: dict[tuple[float, ...], Array] = {}
        summed: dict[tuple[float, ...], dict[Key, Array]] = {}
        elements: dict[Term, list[list[tuple[tuple[float, ...], Key]]]] = {}
        for group in regressor.term_groups:
            term, values = group.term, dynamics.parameters[first + group.numbers]
            if term.signal == "temperature":
                values = values * _warmth(group, dynamics.temperature)
            if not np.any(values):
                continue
            strength = np.array([0.0, 1.0] if term.signal == "load" else [1.0, 0.0])
            for law in _laws_of(term):
                places = []
                given = zip(group.weights, group.offsets[:, 0], law.factor * values[law.symbol], strict=True)
                for weights, offset, value in given:
                    along = tuple(weights.tolist())
                    if law.shape == INERTIA:
                        inertia += value * np.outer(weights, weights)
                    elif law.shape == CONSTANT:
                        constant += value * weights
                    elif law.shape == SPRING:
                        stiffness += value * np.outer(weights, weights)
                        constant += value * (offset - law.constant) * weights
                    elif law.shape in (SINE, COSINE):
                        phase = law.constant * offset + (0.5 * np.pi if law.shape == COSINE else 0.0)
                        wave = (*along, law.constant, float(phase))
                        waves[wave] = waves.get(wave, 0.0) + value
                    elif law.shape == VISCOUS:
                        sides = np.array([law.side >= 0, law.side <= 0])
                        viscous[along] = viscous.get(along, np.zeros(2)) + value * sides
                    else:
                        laws, key = summed.setdefault(along, {}), _key(law)
                        laws[key] = laws.get(key, np.zeros(2)) + value * strength
                        places.append((along, key))
                if law.shape == DAHL:
                    elements.setdefault(term, []).append(places)
        coordinates = dict.fromkeys([*summed, *viscous])
        listed = [(along, key, value) for along in coordinates for key, value in summed.get(along, {}).items()]
        counts = [len(summed.get(along, {})) for along in coordinates]
        number = {(along, key): k for k, (along, key, _) in enumerate(listed)}
        loaded = any(value[1] for _, _, value in listed)
        return cls(
            inertia,
            constant,
            stiffness,
            np.array(list(waves)).reshape(-1, joints + 2),
            np.array(list(waves.values())),
            np.array(list(coordinates), dtype=np.float64).reshape(-1, joints),
            np.array([viscous.get(along, np.zeros(2)) for along in coordinates]).reshape(-1, 2),
            np.cumsum([0, *counts]),
            np.array([(*key[:3], *value, key[3]) for _, key, value in listed]).reshape(-1, 6),
            regressor.load_bodies.reshape(-1, 10, 1).copy() if loaded else np.empty((0, 10, 1)),
            {term: np.array([[number[place] for place in row] for row in rows]) for term, rows in elements.items()},
        )

    def slip(self, states: TermStates | None = None) -> Array:
        """States of the laws, shape (m,), from those of the terms, shape (s, g, 1) each; zeros by default."""
        slip = np.zeros(len(self.laws))
        for term, places in self.places.items() if states is not None else ():
            assert states is not None
            slip[places] = states[term][..., 0]
        return slip


def _warmth(group: TermGroup, temperature: Array | None) -> Array:
    """Factors of a term that depends on temperature, shape (g,); at its reference temperature it has no torque."""
    if temperature is None:
        return np.zeros(len(group.weights))
    return group.term.factor(group.weights, temperature[:, None])[:, 0]


def _key(law: FrictionLaw) -> Key:
    shape = stepping.RISING if law.shape == POWER and law.constant >= 1.0 else SHAPES[law.shape]
    return shape, law.constant, law.side, law.fading


def _laws_of(term: Term) -> tuple[FrictionLaw, ...]:
    """Laws of a term.

    Raises:
        InputError: a term that has none.
    """
    if term.laws is None:
        raise InputError(f"term {term.name} cannot be simulated: identify with another friction model")
    return term.laws
