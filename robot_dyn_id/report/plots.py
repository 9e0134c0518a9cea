"""Plots of the report, as SVG text to be put into a page."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from robot_dyn_id.dataset import Array
from robot_dyn_id.evaluation import Evaluation
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.regressor import regressor_of

MEASURED, PREDICTED, ERROR, PALE = "#1f2933", "#d9480f", "#1971c2", "#c3cad1"


def _figure(width: float, height: float, rows: int = 1, **options: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, 1, squeeze=False, **options)[:, 0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25)
    return figure, axes


def _svg(figure: Any) -> str:
    import matplotlib

    text = io.StringIO()
    # text stays text, and the same input gives the same bytes
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "robot_dyn_id", "path.simplify": True}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)


def torque_plot(evaluation: Evaluation, joint: int) -> str:
    """Measured and predicted torque of a joint over the held-out data, and their difference below."""
    trace, metrics = evaluation.trace, evaluation.held_out.joints[joint]
    t = trace.t - trace.t[0]
    figure, (above, below) = _figure(8.2, 3.0, 2, sharex=True, height_ratios=(3, 1))
    above.plot(t, trace.raw[joint], color=PALE, lw=0.6, label="recorded")
    above.plot(t, trace.measured[joint], color=MEASURED, lw=1.2, label="recorded, low-passed")
    above.plot(t, trace.predicted[joint], color=PREDICTED, lw=1.0, label="predicted")
    above.set_ylabel(f"effort [{metrics.unit}]", fontsize=8)
    above.legend(fontsize=7, ncols=3, loc="upper right", frameon=False)
    below.plot(t, trace.predicted[joint] - trace.measured[joint], color=ERROR, lw=0.8)
    below.set_ylabel(f"error [{metrics.unit}]", fontsize=8)
    below.set_xlabel("time [s]", fontsize=8)
    return _svg(figure)


def sigma_plot(parameters: ParameterSet) -> str:
    """Relative standard deviation of every base parameter; what the data cannot tell stands at the top edge."""
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = parameters.standard_deviations / np.abs(parameters.values)
    shown = np.clip(np.where(np.isnan(relative), np.inf, relative), 1e-4, 1e2)
    colours = {"good": "#2b8a3e", "weak": "#e67700", "not excited": "#c92a2a"}
    figure, (axis,) = _figure(max(6.0, 0.14 * len(shown) + 1.0), 2.6)
    for status, colour in colours.items():
        chosen = np.flatnonzero(np.array(parameters.status) == status)
        axis.scatter(chosen, shown[chosen], s=14, color=colour, label=status)
    axis.set_yscale("log")
    axis.axhline(0.3, color=MEASURED, lw=0.6, ls=":")
    axis.set_xticks(range(len(shown)), parameters.names, rotation=90, fontsize=6)
    axis.set_ylabel("sigma / |value|", fontsize=8)
    axis.legend(fontsize=7, ncols=3, frameon=False)
    return _svg(figure)


def friction_curve(parameters: ParameterSet, joint: int) -> str | None:
    """Torque of a joint's friction and offset columns over its trained speeds, with a band of two sigma.

    None if no term of this joint is among the base parameters.
    """
    name, speed = parameters.joint_names[joint], float(parameters.dq_max[joint])
    first = len(parameters.column_names) - len(parameters.term_names)
    columns = [first + i for i, owner in enumerate(parameters.term_joints) if owner == name]
    places = [np.flatnonzero(parameters.independent_columns == column) for column in columns]
    base = np.array([int(place[0]) for place in places if len(place)])
    if not len(base) or not speed > 0:
        return None
    dq = np.linspace(-speed, speed, 401)
    curves = _term_columns(parameters, name, dq)[[i for i, place in enumerate(places) if len(place)]]
    values = parameters.values[base] @ curves
    variance = np.einsum("ik,ij,jk->k", curves, parameters.covariance[np.ix_(base, base)], curves)
    sigma = np.sqrt(np.maximum(variance, 0.0))
    figure, (axis,) = _figure(4.0, 2.3)
    axis.fill_between(dq, values - 2 * sigma, values + 2 * sigma, color=PREDICTED, alpha=0.2, lw=0)
    axis.plot(dq, values, color=PREDICTED, lw=1.3)
    axis.axhline(0, color=MEASURED, lw=0.5)
    axis.set_xlabel("speed [rad/s or m/s]", fontsize=8)
    axis.set_ylabel("friction and offset", fontsize=8)
    axis.set_title(name, fontsize=9, loc="left", parse_math=False)
    return _svg(figure)


def _term_columns(parameters: ParameterSet, name: str, dq: Array) -> Array:
    """Columns of a joint's terms at zero position and acceleration, shape (columns, speeds)."""
    still = np.zeros_like(dq)
    terms = [term for coordinate, term in regressor_of(parameters).terms if coordinate.name == name]
    return np.concatenate([term.columns(still, dq, still) for term in terms])
