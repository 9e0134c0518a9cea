"""Forms of excitation by name. A new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robot_dyn_id.excitation.fourier import fourier_within
from robot_dyn_id.excitation.limits import MotionLimits
from robot_dyn_id.excitation.sequential import sequential_within
from robot_dyn_id.excitation.trajectory import Repeated, Trajectory, check_limits


@dataclass(frozen=True)
class Demand:
    """What is asked of an excitation; every form takes what it knows.

    Attributes:
        period: of one cycle [s].
        periods: how many; with sequential sines how many each joint does at full amplitude.
        harmonics: of a Fourier series.
        seed: of random coefficients.
        share: of the limits that is used.
        posture: its centre; see `MotionLimits.around`.
    """

    period: float = 10.0
    periods: int = 1
    harmonics: int = 5
    seed: int = 1
    share: float = 0.9
    posture: tuple[float, ...] = ()


def _fourier(limits: MotionLimits, demand: Demand) -> Trajectory:
    cycle = fourier_within(limits, demand.seed, demand.period, demand.harmonics, demand.share, demand.posture)
    return Repeated(cycle, demand.periods)


def _sequential_sine(limits: MotionLimits, demand: Demand) -> Trajectory:
    return sequential_within(limits, demand.period, demand.periods, demand.share, demand.posture)


FORMS: dict[str, Callable[[MotionLimits, Demand], Trajectory]] = {
    "fourier": _fourier,
    "sequential_sine": _sequential_sine,
}
"""Makes an excitation within limits."""


def make_excitation(form: str, limits: MotionLimits, demand: Demand) -> Trajectory:
    """An excitation by the name of its form, compared with the limits.

    Raises:
        UsageError: a demand that leaves no motion.
        MotionError: it does not fit into the limits.
    """
    excitation = FORMS[form](limits, demand)
    check_limits(excitation.cycle if isinstance(excitation, Repeated) else excitation, limits)
    return excitation
