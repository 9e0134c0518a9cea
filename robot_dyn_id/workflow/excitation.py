# SPDX-License-Identifier: Apache-2.0
"""Design of an excitation for a robot, and its file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.terms import Term
from robot_dyn_id.errors import UsageError, suggest_known
from robot_dyn_id.excitation.design.optimizers import OPTIMIZERS
from robot_dyn_id.excitation.design.planning import DesignTask, make_design_task
from robot_dyn_id.excitation.design.search import Design
from robot_dyn_id.excitation.design.search import design as search_design
from robot_dyn_id.excitation.design.settings import DEMAND_KEYS, DesignSettings
from robot_dyn_id.excitation.forms.registry import repeat_cycle
from robot_dyn_id.excitation.trajectory import Excitation
from robot_dyn_id.files.design import read_design_settings
from robot_dyn_id.files.trajectory import StoredExcitation, write_trajectory
from robot_dyn_id.identification.settings import DEFAULT_TERMS
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.progress import Progress, ignore_progress
from robot_dyn_id.report.folder import make_output_folder
from robot_dyn_id.report.text import design_text


@dataclass(frozen=True)
class DesignResult:
    """A designed excitation for a robot.

    `print(result)` shows the margins to every limit, the objective and the condition number.

    Attributes:
        robot: the robot.
        settings: the demands.
        task: limits, requirements and notes of the design.
        design: the motion that was found, with its margins and standard deviations.
    """

    robot: RobotModel
    settings: DesignSettings
    task: DesignTask
    design: Design

    @property
    def trajectory(self) -> Excitation:
        """The motion with all its periods."""
        return repeat_cycle(self.design.excitation, self.task.problem.parametrization, self.settings.demand.periods)

    @property
    def stored(self) -> StoredExcitation:
        """Content of `trajectory.yaml`."""
        task, trajectory = self.task, self.trajectory
        objective = f"{task.objective} {self.design.objective_value:.6g}"
        about = f"{objective} by {self.settings.optimizer}, seed {self.settings.seed}"
        motion: Any = trajectory
        return StoredExcitation.from_excitation(
            self.robot, task.limits, motion, about, task.collision_check, task.surroundings
        )

    def __str__(self) -> str:
        """Margins, objective, condition number, and what had to be assumed."""
        notes = [f"  ! {note}" for note in (self.task.collision_note, *self.task.notes) if note]
        return "\n".join([self.task.usage, design_text(self.design), *notes])

    def save(self, file: str | Path) -> None:
        """Write `trajectory.yaml`, which the excitation publisher and `robot-dyn-id simulate` read.

        Raises:
            InputError: the file cannot be written.
        """
        make_output_folder(Path(file).parent)
        write_trajectory(file, self.stored)


def design(
    robot: RobotModel,
    file: str | Path | None = None,
    terms: tuple[Term, ...] | None = None,
    progress: Progress = ignore_progress,
    **options: Any,
) -> DesignResult:
    """Design an excitation that identifies a robot best within its limits, as `robot-dyn-id design` does.

    Example:
        ```python
        quick = {"draws": 20, "starts": 2, "finished": 1, "steps": 10}
        designed = rdi.design(robot, period=6.0, acceleration={"all": 5.0}, search=quick)
        print(designed)
        designed.save("trajectory.yaml")
        ```

    Args:
        robot: the robot; all its joints move.
        file: design file with the demands.
        terms: terms to be identified in addition to the rigid bodies; by default viscous, Coulomb and offset.
        progress: callback that receives every stage of the work.
        **options: keys of a design file, in place of its own.

    Raises:
        UsageError: an unknown option, or demands that contradict one another.
        MotionError: no motion within the limits was found.
    """
    known = [*(item.name for item in fields(DesignSettings) if item.name != "demand"), *DEMAND_KEYS]
    for name in options:
        if name not in known:
            raise UsageError(f"unknown option {name!r}; {suggest_known(name, known)}")
    settings = read_design_settings(file, **options)
    regressor = Regressor(robot, place_terms_on_joints(robot, DEFAULT_TERMS if terms is None else terms))
    task = make_design_task(settings, robot, regressor)
    found = search_design(task.problem, OPTIMIZERS[settings.optimizer], settings.seed, settings.search, progress)
    return DesignResult(robot, settings, task, found)
