# SPDX-License-Identifier: Apache-2.0
"""Links of parameter sets: standard deviations only where data determine a value, and the URDF for comparison."""

from dataclasses import replace

import numpy as np
import pytest
from support.altered import altered
from support.given_parameters import parameter_set
from support.model_nodes import identified
from support.robots import MIMICS, joint, urdf
from support.simulated import ARM

from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Viscous
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.files.parameters_header import describe_parameters
from robot_dyn_id.identification.model import IdentifiedModel
from robot_dyn_id.identification.validation.explanation.links import (
    BY_PRIOR,
    COMBINED,
    DETERMINED,
    UNKNOWN,
    WITHOUT_TORQUE,
    explain_links,
)


def explained(parameters):
    return explain_links(parameters, Regressor.from_parameters(parameters).model)


def test_the_first_link_about_a_vertical_axis_has_one_parameter_that_acts():
    """Only the inertia about the axis acts on the torque; all others have no torque, not a value of zero."""
    parameters = parameter_set(urdf(joint("turn", "base", "l1", rpy="0 0 0"), links=1))
    (link,) = explained(parameters)
    words = {row.name: row.status for row in link.parameters}
    assert words.pop("Izz1") in (DETERMINED, BY_PRIOR)
    assert set(words.values()) == {WITHOUT_TORQUE}
    assert link.determined in ("partly", "no")
    assert np.isnan(link.identified.mass_sigma)


def test_only_parameters_that_the_data_determine_alone_have_a_standard_deviation():
    parameters = identified()
    links = explained(parameters)
    rows = {row.name: row for link in links for row in link.parameters}
    single = {
        name for name, text in zip(parameters.base.names, parameters.base.expressions, strict=True) if name == text
    }
    for name, row in rows.items():
        assert np.isfinite(row.sigma) == (row.status == DETERMINED)
        assert (row.status in (DETERMINED, BY_PRIOR)) == (name in single)
        if row.status == COMBINED:
            assert name in row.expression.split()
            assert np.isnan(row.difference)
        if row.status == DETERMINED:
            number = parameters.base.names.index(name)
            assert row.sigma == pytest.approx(parameters.estimate.standard_deviations[number])
            assert row.value == pytest.approx(parameters.estimate.values[number])
            assert row.difference == pytest.approx((row.value - row.urdf) / row.sigma)


def test_a_value_with_a_deviation_as_large_as_the_robot_does_not_count_as_determined():
    parameters = parameter_set(ARM)  # standard deviations of 1 kg m and 1 kg m^2
    rows = [row for link in explained(parameters) for row in link.parameters]
    assert DETERMINED not in {row.status for row in rows} and BY_PRIOR in {row.status for row in rows}
    assert np.isnan([[row.sigma, row.difference] for row in rows]).all()
    assert {link.determined for link in explained(parameters)} == {"no"}


def test_a_deviation_that_the_prior_alone_explains_does_not_count_as_determined():
    parameters = identified()
    words = []
    for strength in (0.0, 1e12, np.nan):
        links = explained(altered(parameters, estimate={"prior_strength": strength}))
        rows = [row for link in links for row in link.parameters]
        words.append({row.status for row in rows})
        numbers = [[row.sigma, row.difference] for row in rows if row.status != DETERMINED]
        numbers += [[link.identified.mass_sigma] * 2 for link in links if link.parameters[0].status != DETERMINED]
        assert np.isnan(numbers).all()
    assert [DETERMINED in word for word in words] == [True, False, False]
    assert [UNKNOWN in word for word in words] == [False, False, True]


@pytest.mark.parametrize("strength", [0.0, 3.0, np.nan])
def test_a_stored_set_has_the_same_links_as_the_identification(strength, tmp_path):
    """The strength of its prior is stored: no sigma of a link where it is not known, rather than that of the prior."""
    parameters = altered(identified(), provenance={"estimator": "consistent"}, estimate={"prior_strength": strength})
    write_parameters(tmp_path / "p.yaml", parameters)
    stored = read_parameters(tmp_path / "p.yaml")
    np.testing.assert_equal(IdentifiedModel.from_parameters(stored).estimate.prior_strength, strength)
    statuses = [[row.status for link in explained(one) for row in link.parameters] for one in (parameters, stored)]
    assert statuses[0] == statuses[1]
    assert (UNKNOWN in statuses[0]) == np.isnan(strength) != (DETERMINED in statuses[0])
    text = describe_parameters(stored)
    links = text[text.index("# Links, in the frame") : text.index("# Friction")]
    assert not np.isnan(strength) or "+-" not in links


def test_the_strength_of_an_unlike_prior_is_not_known():
    estimate = IdentifiedModel.from_parameters(altered(identified(), estimate={"prior_strength": 2.0})).estimate
    assert estimate.known_prior_strength == 2.0
    assert np.isnan(replace(estimate, regularized_towards="an earlier set", prior_strength=0.0).known_prior_strength)


def test_links_are_named_with_what_is_fixed_to_them():
    text = urdf(joint("turn", "base", "l1"), joint("plate", "l1", "l2", kind="fixed"), links=2)
    (link,) = explained(parameter_set(text, terms=(Viscous(),)))
    assert (link.name, link.joint, link.lumped) == ("l1", "turn", ("l2",))


def test_followers_of_a_mimic_joint_are_links_too():
    assert [link.joint for link in explained(parameter_set(MIMICS))] == ["a", "b", "c", "d", "e", "f"]


def test_placeholder_masses_are_not_compared():
    text = ARM
    for name in ("l1", "l2", "l3"):
        start = text.index(f'<link name="{name}">')
        end = text.index("</link>", start) + len("</link>")
        text = text[:start] + f'<link name="{name}"/>' + text[end:]
    sound = parameter_set(ARM)
    links = explained(parameter_set(text, inertial=sound.bodies.standard_parameters))
    assert all(link.urdf is None for link in links)
    assert np.isnan([row.urdf for link in links for row in link.parameters]).all()
