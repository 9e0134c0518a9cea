# SPDX-License-Identifier: Apache-2.0
"""Options with allowed values: each is annotated with its range, and one function checks them all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import Annotated, ClassVar, get_origin, get_type_hints

from robot_dyn_id.errors import UsageError


@dataclass(frozen=True)
class Range:
    """Interval of finite numbers.

    Attributes:
        low: lower bound.
        high: upper bound.
        includes_low: whether the lower bound itself is allowed.
        includes_high: whether the upper bound itself is allowed.
    """

    low: float = -math.inf
    high: float = math.inf
    includes_low: bool = True
    includes_high: bool = True

    def contains(self, value: object) -> bool:
        """Whether a value is a number in the interval."""
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            return False
        number = float(value)
        above = number >= self.low if self.includes_low else number > self.low
        below = number <= self.high if self.includes_high else number < self.high
        return above and below

    def __str__(self) -> str:
        """The interval in words, for messages and tables."""
        if self.includes_low and self.includes_high and math.isfinite(self.low) and math.isfinite(self.high):
            return f"between {self.low:g} and {self.high:g}"
        open_low = f"more than {self.low:g}" if self.low else "positive"
        low = f"{self.low:g} or more" if self.includes_low else open_low
        high = f"at most {self.high:g}" if self.includes_high else f"less than {self.high:g}"
        bounds = [text for text, bound in ((low, self.low), (high, self.high)) if math.isfinite(bound)]
        return " and ".join(bounds) or "a finite number"


@dataclass(frozen=True)
class Choice:
    """Words of which an option is one.

    Attributes:
        words: the words.
    """

    words: tuple[str, ...]

    def contains(self, value: object) -> bool:
        """Whether a value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        """The words, for messages and tables."""
        return f"one of {', '.join(self.words)}"


OptionRanges = Mapping[str, Range | Choice]
"""Allowed values of the options of a class, by the options' names."""

NotNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, includes_low=False)]
Count = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0)]
Order = Annotated[int, Range(0, 1000)]
"""Types of options with their ranges: of numbers, iterations, seeds, and orders of autoregressive models."""


class _AnnotatedRanges:
    """The ranges that the options of a class are annotated with."""

    def __get__(self, instance: object, owner: type) -> OptionRanges:
        """Read the annotations of a class."""
        return find_ranges(owner)


@cache
def find_ranges(kind: type) -> OptionRanges:
    """Allowed values of the options of a class, from annotations such as `Annotated[float, Range(0)]`."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: hint.__metadata__[0] for name, hint in hints if get_origin(hint) is Annotated}


@dataclass(frozen=True)
class CheckedOptions:
    """Base of values whose fields are options: they are checked against their annotated ranges when one is made.

    Attributes:
        name: name of the class in configurations and messages.
        option_ranges: allowed values of each option that has a number or a word as default, see `find_ranges`.
    """

    name: ClassVar[str]
    option_ranges: ClassVar[OptionRanges] = _AnnotatedRanges()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: an option outside its range, or not of the type of its default.
        """
        check_options(self)


KINDS = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
}
"""By the type of an option's default: the type that its value must have, and what messages call it."""


def check_options(options: CheckedOptions) -> None:
    """Compare every option with the type of its default and with its range.

    Raises:
        UsageError: an option that does not fit; the message names the class, the option, the allowed range and the
            value.
    """
    for item in fields(options):
        value, kind = getattr(options, item.name), type(item.default)
        if value is None and item.default is None:
            continue
        expected, called = KINDS.get(kind, (object, ""))
        allowed = options.option_ranges.get(item.name)
        if not isinstance(value, expected) or (isinstance(value, bool) and kind in (int, float)):
            raise UsageError(f"{options.name}: {item.name} must be {allowed or called}, not {value!r}")
        if allowed is not None and not allowed.contains(value):
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            raise UsageError(f"{options.name}: {item.name} must be {allowed}, not {shown}")
