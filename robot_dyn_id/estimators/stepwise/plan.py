# SPDX-License-Identifier: Apache-2.0
"""Planning of stepwise identification: groups of parameters that are identified together, their data and their order.

After Chen et al. 2021: equations whose unknowns are rank-deficient, or whose condition number is above 10, are not
solved at once. Groups that are observable alone in some data come first and are known in all later steps, with their
covariance. The plan does not depend on the meaning of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.dynamics.base_parameters import RANK_TOLERANCE
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators.stepwise.equations import SCALINGS, Equations, Group, Observability

MAX_CONDITION_NUMBER = 10.0
"""Condition number above which groups are split, if possible."""

SAMPLE_FACTOR = 5
"""Ratio of pseudo-observations to the minimum number of samples, with which the rank may be deficient by chance."""


@dataclass(frozen=True)
class Step:
    """Groups that are identified together.

    Attributes:
        groups: names of the groups.
        equations: names of the equations that they are identified from.
        known: groups of earlier steps that appear in these equations.
        observability: observability of the unknowns in these equations.
        within: whether the condition number is within the limit.
        instead: the largest choice that was rejected at this point, with its observability; empty if there was no such.
    """

    groups: tuple[str, ...]
    equations: tuple[str, ...]
    known: tuple[str, ...]
    observability: Observability
    within: bool
    instead: str


@dataclass(frozen=True)
class StepwisePlan:
    """Order in which groups are identified.

    Attributes:
        steps: the steps in order.
        unidentifiable: groups that are not observable in the data, and those that a prescribed order leaves out.
        limit: maximum condition number of groups that are not split.
        scaling: scaling of that condition number, one of `SCALINGS`.
        prescribed: whether the order was given by the user; groups are not split then.
    """

    steps: tuple[Step, ...]
    unidentifiable: tuple[str, ...]
    limit: float
    scaling: str
    prescribed: bool = False

    def __str__(self) -> str:
        """The steps with the reason for each."""
        what = "unit-norm columns" if self.scaling == "columns" else "raw columns"
        rule = f"groups are split where the rank is deficient or the condition of {what} is above {self.limit:g}"
        lines = ["a prescribed order" if self.prescribed else rule]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {', '.join(step.groups)}")
            lines.append(f"     from {'; '.join(step.equations)}: {step.observability}")
            if step.known:
                lines.append(f"     known by then: {', '.join(step.known)}")
            if not step.within:
                forced = "" if self.prescribed else ", but no smaller choice is conditioned better"
                lines.append(f"     condition of {what} above {self.limit:g}{forced}")
            if step.instead:
                lines.append(f"     not together with more: {step.instead}")
        if self.unidentifiable:
            why = "not in the order" if self.prescribed else "not distinguishable in the data"
            lines.append(f"not identified: {', '.join(self.unidentifiable)}: {why}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Choice:
    """Groups that could be the next step."""

    groups: frozenset[int]
    equations: tuple[int, ...]
    observability: Observability
    columns: Integers
    sigma: Array

    @property
    def full(self) -> bool:
        return self.observability.rank == self.observability.columns


def plan_steps(
    groups: Sequence[Group],
    draws: Sequence[Sequence[Equations]],
    parameters: int,
    limit: float = MAX_CONDITION_NUMBER,
    scaling: str = "columns",
) -> StepwisePlan:
    """Plan by rank and condition number which groups are identified together, and in which order.

    At each step the choices are the unknown groups of every single equation, of every family, and of all equations; the
    data of a choice are all equations without other unknowns. Among choices of full rank within the limit, the one with
    the lowest loss is taken: the largest ratio of a parameter's standard deviation (by the noise of the equations) to
    the best of all choices. If no choice is within the limit, the one with the lowest condition number is taken.

    Args:
        groups: disjoint groups of parameters.
        draws: the same equations from several draws of pseudo-observations, or once from recorded data.
        parameters: number of parameters p.
        limit: maximum condition number of groups that are not split.
        scaling: scaling of that condition number.

    Raises:
        UsageError: no equations, draws of different equations, groups that share a parameter, an unknown scaling, or
            a limit below 1.
    """
    _check(groups, draws, limit, scaling)
    shown = _shown(groups, draws)
    left = frozenset(range(len(groups)))
    steps = []
    while left:
        choices = list(_choices(groups, draws, parameters, shown, left))
        full = [choice for choice in choices if choice.full]
        if not full:
            break
        good = [choice for choice in full if choice.observability.condition_numbers[scaling] <= limit]
        if good:
            taken = min(good, key=lambda c: (round(_loss(c, full, parameters), 3), -c.observability.columns))
        else:
            taken = min(full, key=lambda c: c.observability.condition_numbers[scaling])
        steps.append(_step(groups, draws[0], shown, choices, taken, bool(good)))
        left -= taken.groups
    return StepwisePlan(tuple(steps), tuple(groups[g].name for g in sorted(left)), limit, scaling)


def make_prescribed_plan(
    groups: Sequence[Group],
    equations: Sequence[Equations],
    parameters: int,
    order: Sequence[tuple[Sequence[str], Sequence[str]]],
    limit: float = MAX_CONDITION_NUMBER,
    scaling: str = "columns",
) -> StepwisePlan:
    """Make a plan of an order given by the user, with the observability of each step.

    Args:
        groups: disjoint groups of parameters.
        equations: equations of the recorded data.
        parameters: number of parameters p.
        order: for each step the names of the groups to identify and of the equations to use.
        limit: condition number that those of the steps are compared with.
        scaling: scaling of that condition number.

    Raises:
        UsageError: an unknown group or equation, a group that is identified twice or not known when a step needs it, a
            step that is rank-deficient; and as in `plan_steps`.
    """
    _check(groups, [equations], limit, scaling)
    shown = _shown(groups, [equations])
    known = frozenset[int]()
    steps = []
    names_of = [[group.name for group in groups], [one.name for one in equations]]
    every = [name for chosen, _ in order for name in chosen]
    twice = [name for place, name in enumerate(every) if name in every[:place]]
    if twice:
        raise UsageError(f"{twice[0]} is in the order twice: keep the step that is to identify it")
    for number, chosen in enumerate(order, 1):
        for names, there in zip(chosen, names_of, strict=True):
            if not set(names) <= set(there):
                raise UsageError(f"step {number}: {min(set(names) - set(there))} is not there")
        wanted, used = (tuple(map(there.index, names)) for names, there in zip(chosen, names_of, strict=True))
        needed = frozenset[int]().union(*(shown[i] for i in used)) - known - set(wanted)
        if needed:
            raise UsageError(f"step {number}: {groups[min(needed)].name} is in its equations and not known by then")
        taken = _choice(groups, [equations], parameters, frozenset(wanted), used)
        if not taken.full:
            raise UsageError(f"step {number}, {', '.join(chosen[0])}: {taken.observability}")
        within = taken.observability.condition_numbers[scaling] <= limit
        steps.append(_step(groups, equations, shown, [taken], taken, within))
        known |= taken.groups
    left = sorted(frozenset(range(len(groups))) - known)
    return StepwisePlan(tuple(steps), tuple(groups[g].name for g in left), limit, scaling, prescribed=True)


def _shown(groups: Sequence[Group], draws: Sequence[Sequence[Equations]]) -> list[frozenset[int]]:
    """Indices of the groups that appear in each equation."""
    present = [
        [any(np.isin(group.columns, one.columns).any() for one in same) for group in groups]
        for same in zip(*draws, strict=True)
    ]
    return [frozenset(np.flatnonzero(row).tolist()) for row in present]


def _check(groups: Sequence[Group], draws: Sequence[Sequence[Equations]], limit: float, scaling: str) -> None:
    if scaling not in SCALINGS:
        raise UsageError(f"scaling {scaling!r} is not known; use one of {', '.join(SCALINGS)}")
    if not limit >= 1.0:
        raise UsageError(f"the limit of the condition number must be 1 or more, not {limit}")
    if not draws or not draws[0] or any([e.name for e in draw] != [e.name for e in draws[0]] for draw in draws):
        raise UsageError("a plan needs equations, the same ones in every draw")
    columns = np.concatenate([group.columns for group in groups])
    if len(set(columns.tolist())) < len(columns):
        raise UsageError("groups of parameters must not share any")


def _choices(
    groups: Sequence[Group],
    draws: Sequence[Sequence[Equations]],
    parameters: int,
    shown: Sequence[frozenset[int]],
    left: frozenset[int],
) -> Iterable[_Choice]:
    """Candidates for the next step, of any rank."""
    unknown = [groups_of & left for groups_of in shown]
    families: dict[str, frozenset[int]] = {}
    for one, wanted in zip(draws[0], unknown, strict=True):
        families[one.family] = families.get(one.family, frozenset()) | wanted
    sets = dict.fromkeys([*unknown, *families.values(), frozenset[int]().union(*unknown)])
    for wanted in sets:
        if wanted:
            used = tuple(i for i, own in enumerate(unknown) if own and own <= wanted)
            yield _choice(groups, draws, parameters, wanted, used)


def _choice(
    groups: Sequence[Group],
    draws: Sequence[Sequence[Equations]],
    parameters: int,
    wanted: frozenset[int],
    used: tuple[int, ...],
) -> _Choice:
    """Observability of some groups in some equations."""
    columns = np.sort(np.concatenate([groups[g].columns for g in wanted]))
    stacks = [[draw[i].expand(parameters)[:, columns] for i in used] for draw in draws]
    observability = Observability.from_draws(np.concatenate(stack) for stack in stacks)
    noise = [draws[0][i].noise for i in used]
    white = np.concatenate([rows / s for stack in stacks for rows, s in zip(stack, noise, strict=True)])
    return _Choice(wanted, used, observability, columns, _sigma(white))


def _sigma(white: Array) -> Array:
    """Standard deviations of the parameters from rows with unit noise, shape (k,)."""
    norms = np.linalg.norm(white, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.norm(np.linalg.pinv(white / scale, rcond=RANK_TOLERANCE), axis=1) / scale)


def _loss(choice: _Choice, choices: Sequence[_Choice], parameters: int) -> float:
    """Largest ratio of a parameter's standard deviation to the best one of all choices."""
    best = np.full(parameters, np.inf)
    for other in choices:
        best[other.columns] = np.minimum(best[other.columns], other.sigma)
    return float(np.max(choice.sigma / best[choice.columns]))


def _step(
    groups: Sequence[Group],
    equations: Sequence[Equations],
    shown: Sequence[frozenset[int]],
    choices: Sequence[_Choice],
    taken: _Choice,
    within: bool,
) -> Step:
    known = frozenset[int]().union(*(shown[i] for i in taken.equations)) - taken.groups
    wider = [choice for choice in choices if choice.groups > taken.groups]
    refused = max(wider, key=lambda choice: choice.observability.columns, default=None)
    return Step(
        groups=tuple(groups[g].name for g in sorted(taken.groups)),
        equations=tuple(equations[i].name for i in taken.equations),
        known=tuple(groups[g].name for g in sorted(known)),
        observability=taken.observability,
        within=within,
        instead=f"{len(refused.groups)} groups have {refused.observability}" if refused else "",
    )
