# SPDX-License-Identifier: Apache-2.0
"""Identification pipeline: recordings in, validated parameter set out.

Each stage is a value that holds the one before it, and its own findings: recordings are `Read` and `Examined`, a model
is `Chosen`, `Fitted` and `Judged`. A caller can stop at any of them, or begin with one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from robot_dyn_id.cores import one_blas_thread
from robot_dyn_id.data.recording import Recording
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.stages.chosen import Chosen
from robot_dyn_id.identification.stages.examined import Examined
from robot_dyn_id.identification.stages.fitted import Fitted
from robot_dyn_id.identification.stages.identification import Identification
from robot_dyn_id.identification.stages.judged import Judged, judge_parameters
from robot_dyn_id.identification.stages.read import Read
from robot_dyn_id.identification.validation.evaluation import Evaluation
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import ParameterSet
from robot_dyn_id.progress import Progress, Stage, ignore_progress


@one_blas_thread()
def identify(
    training: Sequence[Recording],
    held_out: Sequence[Recording],
    model: RobotModel,
    settings: Settings,
    software_version: str,
    progress: Progress = ignore_progress,
) -> Identification:
    """Identify a robot's dynamics, and validate them on held-out data.

    Args:
        training: trials to estimate from.
        held_out: trials to validate on; empty: blocked cross-validation on the training data.
        model: the robot; its joints are identified.
        settings: choices of the identification.
        software_version: version that is written into the parameter set.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used.
        UnsafeDataError: a health check refuses the data.
        UsageError: contradictory settings.
    """
    progress(Stage("comparing efforts and motion"))
    read = Read.from_recordings(training, held_out, model, settings)
    examined = Examined.from_read(read, progress)
    chosen = Chosen.from_examined(examined, progress)
    fitted = Fitted.from_chosen(chosen, progress)
    judged = Judged.from_fitted(fitted, progress)
    return Identification.from_judged(judged, software_version)


@one_blas_thread()
def validate(
    recordings: Sequence[Recording], parameters: ParameterSet, settings: Settings, progress: Progress = ignore_progress
) -> Evaluation:
    """Evaluate an identified model on other recordings. Terms, filter and joints are those of the parameter set.

    Args:
        recordings: trials to validate on.
        parameters: the identified model.
        settings: drives of the joints that are not those of the parameter set, source of velocities, thresholds and
            health checks to overrule.
        progress: callback that receives every stage of the work.

    Raises:
        InputError: data that cannot be used, or gains of joints whose gain was not known when they were identified.
        UnsafeDataError: a health check refuses the data.
    """
    read = Read.to_validate(recordings, parameters, settings)
    return judge_parameters(read, parameters, progress)
