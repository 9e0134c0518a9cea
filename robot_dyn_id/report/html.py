# SPDX-License-Identifier: Apache-2.0
"""The report page: one file that needs nothing else, with the verdict first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dyn_id.dynamics.crosscheck import MAX_DIFFERENCE_RATIO
from robot_dyn_id.dynamics.regressor import Regressor
from robot_dyn_id.identification.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report import plots
from robot_dyn_id.report.friction import FrictionCurve, friction_curve, reversal_curve
from robot_dyn_id.report.summary import base_parameter_rows
from robot_dyn_id.signals.torque_shares import WEAK_TORQUE_SHARE, torque_shares_of
from robot_dyn_id.text.files import write_atomically

if TYPE_CHECKING:
    import jinja2


def write_html(path: Path, summary: dict[str, Any], evaluation: Evaluation, parameters: ParameterSet) -> None:
    """Write the page.

    Args:
        path: the file.
        summary: from `report.summary`.
        evaluation: what is shown.
        parameters: parameter set of the model that was evaluated.

    Raises:
        InputError: the file cannot be written.
    """
    regressor = Regressor.from_parameters(parameters)
    shares = torque_shares_of(parameters, regressor)
    page = (
        page_environment()
        .get_template("template.html.j2")
        .render(
            summary=summary,
            parameters=parameters,
            rows=[
                {**row, **_written(row), "share": share if math.isfinite(share) else None}
                for row, share in zip(base_parameter_rows(parameters), shares.tolist(), strict=True)
            ],
            torques=[plots.torque_plot(evaluation, joint) for joint in range(len(parameters.joint_names))],
            sigmas=plots.share_plot(parameters, shares),
            frictions=list(_frictions(parameters)),
            colors=plots,
            units=regressor.model.effort_units,
            drawn=len(evaluation.trace.t),
            has_nominal=bool(regressor.model.inertial_parameters.any()),
            weak=WEAK_TORQUE_SHARE,
            tolerance=MAX_DIFFERENCE_RATIO,
        )
    )
    write_atomically(path, page)


def page_environment() -> jinja2.Environment:
    """Environment of the templates of this folder; text is escaped, a missing variable is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, number=number)
    return environment


def percent(value: float | None) -> str:
    """A ratio in per cent; a dash for what is not known."""
    if value is None:
        return "\N{EN DASH}"
    text = f"{100 * value:.1f}" if abs(value) < 10 else f"{100 * value:,.0f}"
    return text.replace("-", "\N{MINUS SIGN}") + "\N{NO-BREAK SPACE}%"


def number(value: float | None, digits: int = 4, padded: bool = False) -> str:
    """A number with that many significant digits, ending zeros kept if `padded`; a dash for what is not known."""
    if value is None:
        return "\N{EN DASH}"
    text = f"{value:#.{digits}g}".rstrip(".") if padded else f"{value:.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}")


def plus_minus(value: float, sigma: float) -> tuple[str, str]:
    """Value and sigma as text, to the second digit of sigma.

    Both have the same exponent: `-0.0012`, `0.0023`, or `3.42e-07`, `0.11e-07`.
    """
    if not sigma > 0.0:
        return number(value), number(sigma)
    largest = max(abs(value), sigma)
    exponent = 0 if 1e-3 <= largest < 1e5 else math.floor(math.log10(largest))
    decimals = min(max(0, 1 - math.floor(math.log10(sigma)) + exponent), 9)
    suffix = f"e{exponent:+03d}" if exponent else ""
    value_text, sigma_text = (f"{x / 10.0**exponent:.{decimals}f}{suffix}" for x in (value, sigma))
    return value_text.replace("-", "\N{MINUS SIGN}"), sigma_text.replace("-", "\N{MINUS SIGN}")


def _written(row: dict[str, Any]) -> dict[str, Any]:
    """A base parameter's value, sigma and 95 % interval as text."""
    value, sigma = row["value"], row["standard_deviation"]
    if value is None or sigma is None:
        return {"value_text": number(value), "sigma_text": "not known", "interval_text": number(None)}
    value_text, sigma_text = plus_minus(value, sigma)
    ends = row["interval"]
    interval = number(None) if ends is None else " \N{HORIZONTAL ELLIPSIS} ".join(number(end) for end in ends)
    return {"value_text": value_text, "sigma_text": sigma_text, "interval_text": interval}


def _frictions(parameters: ParameterSet) -> Iterator[tuple[FrictionCurve, str, str, list[dict[str, Any]]]]:
    """Curve, its plot, that of presliding (empty without), and parameters of every joint that has friction."""
    regressor, rows = Regressor.from_parameters(parameters), base_parameter_rows(parameters)
    for joint in range(len(parameters.joint_names)):
        curve = friction_curve(parameters, regressor, joint)
        if curve is not None:
            reversal = reversal_curve(parameters, regressor, joint)
            presliding = "" if reversal is None else plots.reversal_plot(reversal)
            shown = [{**rows[i], **_written(rows[i])} for i in curve.parameters]
            yield curve, plots.friction_plot(curve), presliding, shown
