"""The report page: one file that needs nothing else, with the verdict first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dyn_id.evaluation import Evaluation
from robot_dyn_id.parameter_io import write_atomically
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.report.plots import friction_curve, sigma_plot, torque_plot
from robot_dyn_id.report.summary import base_parameter_rows


def write_html(path: Path, summary: dict[str, Any], evaluation: Evaluation, parameters: ParameterSet) -> None:
    """Write the page.

    Args:
        path: the file.
        summary: from `report.summary`.
        evaluation: what is shown.
        parameters: of the model that was evaluated.

    Raises:
        InputError: the file cannot be written.
    """
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    template = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "template.html.j2"
    )
    joints = range(len(parameters.joint_names))
    page = template.render(
        summary=summary,
        parameters=parameters,
        rows=base_parameter_rows(parameters),
        torques=[(parameters.joint_names[joint], torque_plot(evaluation, joint)) for joint in joints],
        sigmas=sigma_plot(parameters),
        frictions=[curve for curve in (friction_curve(parameters, joint) for joint in joints) if curve],
    )
    write_atomically(path, page)
