# SPDX-License-Identifier: Apache-2.0
"""Options of estimators and terms: every one has a range, and what lies outside is refused by name."""

import math
import re
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import pytest

from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.options import Choice, Range

CLASSES = {**ESTIMATORS, **TERMS}
RANGES = [(name, option) for name, kind in CLASSES.items() for option in kind.option_ranges]
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "estimators.md"


def types_of(kind, option):
    """Types of an option; that it may be None, for a default that is chosen, is left out."""
    hint = get_type_hints(kind)[option]
    return {part for part in get_args(hint) or (hint,) if part is not NoneType}


def outside(allowed, number):
    """Values that lie just outside a range, and values of other types."""
    if isinstance(allowed, Choice):
        return ["something else", 1]
    step = 1 if number is int else 1e-9
    low = [allowed.low - step if allowed.includes_low else allowed.low]
    high = [allowed.high + step if allowed.includes_high else allowed.high]
    return [number(bound) for bound in low + high if math.isfinite(bound)] + [math.nan, math.inf, True, "text"]


@pytest.mark.parametrize(("name", "option"), RANGES)
def test_values_outside_the_range_are_refused(name, option):
    kind = CLASSES[name]
    (number,) = types_of(kind, option)
    for value in outside(kind.option_ranges[option], number):
        with pytest.raises(UsageError) as caught:
            kind(**{option: value})
        assert caught.value.message.startswith(f"{name}: {option} must be {kind.option_ranges[option]}, not ")


@pytest.mark.parametrize("name", CLASSES)
def test_every_number_and_word_has_a_range_that_holds_its_default(name):
    kind = CLASSES[name]
    defaults = {item.name: item.default for item in fields(kind)}
    assert set(kind.option_ranges) == {option for option in defaults if types_of(kind, option) <= {int, float, str}}
    known = {option: value for option, value in defaults.items() if value is not None}  # None: chosen from the data
    assert all(allowed.contains(known[option]) for option, allowed in kind.option_ranges.items() if option in known)


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if "weighted" in vars(kind)])
def test_a_flag_is_true_or_false(name):
    with pytest.raises(UsageError, match="weighted must be true or false, not 1"):
        CLASSES[name](weighted=1)


def test_a_range_says_what_it_allows():
    ranges = {
        "a finite number": Range(),
        "0 or more": Range(0),
        "positive": Range(0, includes_low=False),
        "between 0.001 and 1000": Range(1e-3, 1e3),
        "0 or more and less than 1": Range(0, 1, includes_high=False),
        "more than 1 and at most 10": Range(1, 10, includes_low=False),
        "less than 2": Range(high=2, includes_high=False),
        "one of qr, gram": Choice(("qr", "gram")),
    }
    assert {text: str(allowed) for text, allowed in ranges.items()} == {text: text for text in ranges}


# --- Documentation ---------------------------------------------------------------------------------------------------


def documented():
    """Option, estimators, default and allowed values of each row of the table of options."""
    section = re.search(r"^## Options$(.*?)^## ", DOCUMENT.read_text(), re.M | re.S)[1]
    cells = [[cell.strip() for cell in row.split("|")[1:5]] for row in section.splitlines() if row.startswith("| `")]
    return {
        (option.strip("`"), estimator.strip("` ")): (default, allowed)
        for option, estimators, default, allowed in cells
        for estimator in estimators.split(",")
    }


def test_the_documentation_has_every_option_with_its_default_and_range():
    def shown(value):
        words = {None: "chosen", True: "true", False: "false"}
        if value is None or isinstance(value, bool):
            return words[value]
        return f"{value:g}" if isinstance(value, float) else str(value)

    structured = ("controller", "weights", "signed")  # no single number or word: their rows are prose
    expected = {
        (item.name, name): (shown(item.default), str(kind.option_ranges.get(item.name, "true or false")))
        for name, kind in ESTIMATORS.items()
        for item in fields(kind)
        if item.name not in structured
    }
    table = documented()
    assert {key: row for key, row in table.items() if key[0] not in structured} == expected
    for option in structured:
        assert {name for one, name in table if one == option} == {
            name for name, kind in ESTIMATORS.items() if option in {item.name for item in fields(kind)}
        }
