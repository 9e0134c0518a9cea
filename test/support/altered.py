# SPDX-License-Identifier: Apache-2.0
"""Parameter sets with other values of some fields."""

from dataclasses import replace


def altered(parameters, **parts):
    """The set with other values, given as `part={field: value}`; it is checked again."""
    return replace(parameters, **{name: replace(getattr(parameters, name), **new) for name, new in parts.items()})


def scaled(parameters, factor):
    """The set with all masses, inertias and terms times a factor, which is consistent in itself."""
    estimate, bodies, terms = parameters.estimate, parameters.bodies, parameters.terms
    return altered(
        parameters,
        estimate={"values": factor * estimate.values},
        bodies={
            "standard_parameters": factor * bodies.standard_parameters,
            "load_parameters": factor * bodies.load_parameters,
        },
        terms={"values": factor * terms.values},
    )
