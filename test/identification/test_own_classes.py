# SPDX-License-Identifier: Apache-2.0
"""Terms and estimators of the user: classes that the package does not know are used and stored like its own."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.simulated import PARAMETERS, TERMS, Simulated

from robot_dyn_id.dynamics.dynamics import Dynamics
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.dynamics.terms import Coupling, Term, Viscous
from robot_dyn_id.errors import InputError, UsageError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.estimators.contract import Estimate
from robot_dyn_id.files.parameters import read_parameters, write_parameters
from robot_dyn_id.identification.pipeline import identify, validate
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.options import Positive
from robot_dyn_id.report.folder import write_results
from robot_dyn_id.report.summary import summarize_identification


@dataclass(frozen=True)
class SquareRoot(Term):
    """Friction that grows with the square root of the speed."""

    scale: Positive = 1.0

    name: ClassVar[str] = "square_root"
    symbols: ClassVar[tuple[str, ...]] = ("fr",)
    powers: ClassVar[tuple[tuple[int, int], ...]] = ((0, 0),)

    def columns(self, y, dy, ddy):
        return (np.sign(dy) * np.sqrt(np.abs(dy) / self.scale))[None, :]


@dataclass(frozen=True)
class Halved:
    """Weighted least squares, with halved values."""

    name: ClassVar[str] = "halved"
    uses_prior: ClassVar[bool] = False

    def fit(self, problem) -> Estimate:
        estimate = WeightedLeastSquares().fit(problem)
        return replace(estimate, values=0.5 * estimate.values)


@pytest.fixture(scope="module")
def result():
    terms = (*TERMS, SquareRoot(2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PARAMETERS, "fr", 0.7)
        robot = Simulated(terms=terms)
    settings = Settings(terms=terms, estimator=WeightedLeastSquares())
    return identify([robot.record(1)], [robot.record(2)], robot.model, settings, "test"), robot


def test_an_own_term_is_identified(result):
    identification, robot = result
    values = dict(zip(identification.parameters.base.names, identification.parameters.estimate.values, strict=True))
    assert [values["fr1"], values["fr2"]] == pytest.approx([0.7, 0.7], rel=0.02)
    assert identification.parameters.term_classes == (SquareRoot,)
    assert (
        validate([robot.record(3)], identification.parameters, Settings(terms=TERMS)).held_out.all_joints_nrmse < 0.05
    )


def test_a_stored_own_term_needs_its_class(result, tmp_path):
    identification, _ = result
    parameters, file = identification.parameters, tmp_path / "parameters.yaml"
    write_parameters(file, parameters)
    again = read_parameters(file, term_classes=[SquareRoot])
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 5, 3))
    ours, theirs = (Dynamics.from_parameters(one).inverse_dynamics(*states) for one in (parameters, again))
    assert np.array_equal(ours, theirs)
    assert Regressor.from_parameters(again).terms[-1][1] == SquareRoot(2.0)
    with pytest.raises(InputError, match=r"term square_root on \w+ is not known"):
        Regressor.from_parameters(read_parameters(file))


def test_the_report_of_an_own_term_is_written(result, tmp_path):
    identification, _ = result
    summary = summarize_identification(identification, "parameters.yaml")
    explanation = explain(identification.evaluation, identification.parameters, identification.training)
    write_results(tmp_path, summary, explanation, identification.parameters)
    assert "fr1" in (tmp_path / "report.html").read_text()


def test_options_of_an_own_term_are_checked():
    with pytest.raises(UsageError, match="square_root: scale must be positive, not 0"):
        SquareRoot(0.0)


@pytest.mark.parametrize(
    "settings", [{"terms": ("viscous",)}, {"terms": (Viscous,)}, {"estimator": "weighted"}], ids=str
)
def test_names_and_classes_in_place_of_objects_are_refused_with_what_makes_one(settings):
    with pytest.raises(UsageError, match=r"give an object, such as `rdi\.(TERMS|ESTIMATORS)\[name\]\(\)` makes"):
        Settings(**settings)


@dataclass(frozen=True)
class OtherViscous(Viscous):
    """A term with the name of another one."""


def test_an_own_term_with_the_name_of_another_is_refused(result):
    _, robot = result
    coupling = Coupling("sum", tuple((joint, 1.0) for joint in robot.joints), (OtherViscous(),))
    for settings in (Settings(terms=(OtherViscous(),)), Settings(terms=TERMS, couplings=(coupling,))):
        with pytest.raises(UsageError, match="viscous: this name belongs to a term of this package"):
            identify([robot.record(1)], [robot.record(2)], robot.model, settings, "test")


def test_an_own_estimator_is_used(result):
    identification, robot = result
    terms = (*TERMS, SquareRoot(2.0))
    settings = Settings(terms=terms, estimator=Halved())
    own = identify([robot.record(1)], [robot.record(2)], robot.model, settings, "test").parameters
    assert own.provenance.estimator == "halved"
    assert np.array_equal(own.estimate.values, 0.5 * identification.parameters.estimate.values)
