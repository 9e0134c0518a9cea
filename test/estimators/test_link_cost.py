# SPDX-License-Identifier: Apache-2.0
"""Price of physically consistent links on blocks that a fit has not used."""

import numpy as np
import pytest
from support.linear_problems import arm, arm_problem, noisy

from robot_dyn_id.dynamics.body_prior import BodyPrior
from robot_dyn_id.dynamics.consistency import flag_not_negative
from robot_dyn_id.estimators.consistent import judge_links
from robot_dyn_id.estimators.factors import Grams
from robot_dyn_id.estimators.link_cost import LinkCost, accumulate_blocks, cross_validate_links


@pytest.fixture(scope="module")
def problem():
    return arm_problem(noisy(1))


def test_blocks_hold_every_row_once(problem):
    whole = Grams.from_problem(problem)
    blocks = accumulate_blocks(problem, whole.counts, 4)
    for joint, matrix in enumerate(whole.matrices):
        total = np.sum([block.matrices[joint] for block in blocks], axis=0)
        np.testing.assert_allclose(total, matrix, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    counts = np.array([block.counts for block in blocks])
    np.testing.assert_array_equal(counts.sum(axis=0), whole.counts)
    assert np.ptp(counts, axis=0).max() <= 1


def test_links_of_a_real_robot_cost_nothing(problem):
    robot = arm()[0]
    blocks = accumulate_blocks(problem, Grams.from_problem(problem).counts)
    prior, bounded = BodyPrior.from_model(robot.model), flag_not_negative(robot.regressor)
    cost = cross_validate_links(blocks, np.ones(3), robot.base.mapping, prior, bounded, 1.0)
    assert 0.9 < cost.ratio <= 1.02
    assert judge_links(cost, []) == ()


def test_the_price_is_judged():
    assert LinkCost(0.0, 0.0).ratio == 1.0
    assert judge_links(LinkCost(1.02, 1.0), ["wrist"]) == ()
    (finding,) = judge_links(LinkCost(1.1, 1.0), ["wrist"])
    assert (finding.code, finding.joints) == ("links_contradicted", ("wrist",))
