# SPDX-License-Identifier: Apache-2.0
"""Options of estimators and terms: every one has a range, and what lies outside is refused by name."""

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

from robot_dyn_id.dynamics.terms import TERMS
from robot_dyn_id.errors import UsageError
from robot_dyn_id.estimators import ESTIMATORS
from robot_dyn_id.options import Choice, Range

CLASSES = {**ESTIMATORS, **TERMS}
RANGES = [(name, option) for name, kind in CLASSES.items() for option in kind.option_ranges]
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "estimators.md"


def outside(allowed, default):
    """Values that lie just outside a range, and values of other types."""
    if isinstance(allowed, Choice):
        return ["something else", 1]
    step = 1 if isinstance(default, int) else 1e-9
    low = [allowed.low - step if allowed.includes_low else allowed.low]
    high = [allowed.high + step if allowed.includes_high else allowed.high]
    return [type(default)(bound) for bound in low + high if math.isfinite(bound)] + [math.nan, math.inf, True, "text"]


@pytest.mark.parametrize(("name", "option"), RANGES)
def test_values_outside_the_range_are_refused(name, option):
    kind = CLASSES[name]
    default = next(item.default for item in fields(kind) if item.name == option)
    for value in outside(kind.option_ranges[option], default):
        with pytest.raises(UsageError) as caught:
            kind(**{option: value})
        assert caught.value.message.startswith(f"{name}: {option} must be {kind.option_ranges[option]}, not ")


@pytest.mark.parametrize("name", CLASSES)
def test_every_number_and_word_has_a_range_that_holds_its_default(name):
    kind = CLASSES[name]
    defaults = {item.name: item.default for item in fields(kind)}
    assert set(kind.option_ranges) == {option for option, value in defaults.items() if type(value) in (int, float, str)}
    assert all(allowed.contains(defaults[option]) for option, allowed in kind.option_ranges.items())


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
        return (
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
        )

    expected = {
        (item.name, name): (shown(item.default), str(kind.option_ranges.get(item.name, "true or false")))
        for name, kind in ESTIMATORS.items()
        for item in fields(kind)
        if item.name != "controller"
    }
    table = documented()
    assert {key: row for key, row in table.items() if key[0] != "controller"} == expected
    assert {name for option, name in table if option == "controller"} == {
        name for name, kind in ESTIMATORS.items() if "controller" in {item.name for item in fields(kind)}
    }
