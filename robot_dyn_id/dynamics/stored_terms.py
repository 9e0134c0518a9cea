# SPDX-License-Identifier: Apache-2.0
"""Storage of terms in parameter sets: names, joints, and constants by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from robot_dyn_id.dynamics.terms import TERMS, Coordinate, Coupling, Term
from robot_dyn_id.dynamics.terms.coupling import COUPLING_PREFIX
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet, TermState

Terms = Sequence[tuple[Coordinate, Term]]


def list_stored_constants(terms: Terms, joints: Sequence[str], simple: Sequence[str]) -> list[tuple[str, str, float]]:
    """List name, joint and value of every constant: those of the terms, then the weights of couplings.

    Args:
        terms: coordinates and the terms that act on them.
        joints: names of the n joints.
        simple: names of the coordinates that are joints.
    """
    constants = [(f"{term.name}.{k}", at.name, value) for at, term in terms for k, value in term.constants.items()]
    coupled = dict.fromkeys(at for at, _ in terms if at.name not in simple)
    weights = [(at, joint, w) for at in coupled for joint, w in zip(joints, at.weights, strict=True) if w != 0.0]
    return constants + [(f"{COUPLING_PREFIX}.{joint}", at.name, weight) for at, joint, weight in weights]


def list_states(terms: Terms) -> tuple[TermState, ...]:
    """List the internal states of the terms: parallel states of one name on one coordinate are one entry."""
    listed = []
    for at, term in terms:
        values = term.initial_states().tolist()
        equation = term.state_parameters, tuple(term.constants[name] for name in term.state_parameters)
        for name in dict.fromkeys(term.state_names):
            own = tuple(value for value, state in zip(values, term.state_names, strict=True) if state == name)
            listed.append(TermState(f"{term.name}.{name}", at.name, own, *equation))
    return tuple(listed)


def find_own_classes(terms: Iterable[Term]) -> tuple[type[Term], ...]:
    """Classes of terms that are not part of this package.

    Raises:
        UsageError: a class with the name of a term of this package: a stored set would be read as the latter.
    """
    own = tuple(dict.fromkeys(type(term) for term in terms if TERMS.get(term.name) is not type(term)))
    for kind in own:
        if kind.name in TERMS:
            raise UsageError(f"term {kind.name}: this name belongs to a term of this package: choose another one")
    return own


def restore_terms(
    parameters: ParameterSet, coordinates: Sequence[Coordinate], model: RobotModel
) -> tuple[tuple[Coordinate, Term], ...]:
    """Restore the terms of a parameter set, in the order of its columns.

    Args:
        parameters: the parameter set.
        coordinates: coordinates of the moving joints.
        model: the robot of the set.

    Raises:
        InputError: an unknown term, constant or joint, or a constant outside its range.
    """
    constants: dict[tuple[str, str], dict[str, float]] = {}
    for name, joint, value in zip(
        parameters.terms.constant_names,
        parameters.terms.constant_joints,
        parameters.terms.constant_values,
        strict=True,
    ):
        term, _, constant = name.partition(".")
        constants.setdefault((term, joint), {})[constant] = float(value)
    known = {coordinate.name: coordinate for coordinate in coordinates}
    own = cast("tuple[type[Term], ...]", parameters.term_classes)
    classes = {**TERMS, **{kind.name: kind for kind in own}}
    terms = []
    try:
        for (term, name), weights in constants.items():
            if term == COUPLING_PREFIX:
                known[name] = Coupling(name, tuple(weights.items())).coordinate(model)
        for name, joint in dict.fromkeys(zip(parameters.terms.names, parameters.terms.joints, strict=True)):
            if name not in classes or joint not in known:
                raise InputError(f"parameter set: term {name} on {joint} is not known, and no given class has its name")
            terms.append((known[joint], classes[name]().with_constants(constants.get((name, joint), {}))))
    except UsageError as error:
        raise InputError(f"parameter set: {error}") from None
    return tuple(terms)
