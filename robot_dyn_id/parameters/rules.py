# SPDX-License-Identifier: Apache-2.0
"""Rules of the fields of a set of parts: sizes, bounds and words, next to each field, for readers in any language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from robot_dyn_id.errors import InputError, make_storable

LARGEST = 1e12
"""Bound of all magnitudes [SI]. No robot is near it, and products of such numbers do not overflow."""

MOST_PER_ENTRY = 1000
"""Greatest lengths of the lists of one state, one use, or the residuals of one joint."""

LONGEST_LINE = 4096
"""Greatest length of a text [characters], except for expressions and the URDF."""

AGREEMENT = 1e-6
"""Relative difference within which fields that express the same quantity agree. Identification meets 1e-10."""

PARAMETER_SET = "parameter set"
"""Beginning of messages about a parameter set."""

UNKNOWN = "unknown"
"""Word of fields that nothing has determined."""


@dataclass(frozen=True)
class FieldRule:
    """FieldRule of one field.

    Attributes:
        shape: names of the sizes of its dimensions, such as `p` base parameters, see `ParameterSet.sizes`; empty: any.
        optional: whether the field may be empty instead.
        finite: whether its numbers must be finite, of magnitudes up to `LARGEST`.
        least: least number; -inf: any. NaN is refused.
        nan: whether NaN is a number that is not known, and is admitted.
        most: greatest length of the list, refused before anything of the size of products of lengths is computed; 0:
            its shape bounds it.
        longest: greatest length of its texts [characters]; 0: they are checked elsewhere.
        words: words that it may hold; empty: any text.
        unique: whether no text may be there twice.
    """

    shape: tuple[str, ...] = ()
    optional: bool = False
    finite: bool = False
    least: float = -np.inf
    nan: bool = False
    most: int = 0
    longest: int = LONGEST_LINE
    words: tuple[str, ...] = ()
    unique: bool = False


def rule(*shape: str, **bounds: Any) -> dict[str, FieldRule]:
    """Metadata of a field: the names of its sizes, and the other attributes of its `FieldRule`."""
    return {"rule": FieldRule(shape, **bounds)}


def refused(what: str) -> InputError:
    """Refusal of a parameter set."""
    return InputError(f"{PARAMETER_SET}: {what}")


def _list_rules(part: Any, name: str) -> Iterator[tuple[str, FieldRule, Any]]:
    """List dotted name, rule and value of each field of a part, and of the parts within it."""
    for item in fields(part):
        value, path = getattr(part, item.name), f"{name}.{item.name}"
        if "rule" in item.metadata:
            yield path, item.metadata["rule"], value
        for inner in value if isinstance(value, tuple) else (value,):
            if is_dataclass(inner):
                yield from _list_rules(inner, path)


def check_fields(what: str, parts: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Check every field of the parts of a set by its rule.

    Args:
        what: kind of the set, for messages.
        parts: parts by name.
        sizes: sizes that the rules name.

    Raises:
        InputError: a field that is too long, has the wrong length or holds a value that no identification writes.
    """
    listed = [each for name, part in parts.items() for each in _list_rules(part, f"{what}: {name}")]
    for each in listed:
        _check_length(*each)
    for each in listed:
        _check_shape(*each, sizes)
    for check in (_check_texts, _check_numbers):
        for each in listed:
            check(*each)


def _check_length(name: str, rule: FieldRule, value: Any) -> None:
    """Refuse a list that is too long."""
    if rule.most and len(value) > rule.most:
        raise InputError(f"{name} has {len(value)} entries, at most {rule.most} are read")


def _check_shape(name: str, rule: FieldRule, value: Any, sizes: Mapping[str, int]) -> None:
    """Refuse a field whose lengths do not fit the others."""
    if rule.shape and not (rule.optional and np.shape(value) == (0,)):
        expected = tuple(sizes[size] for size in rule.shape)
        if np.shape(value) != expected:
            raise InputError(f"{name} has shape {np.shape(value)}, expected {expected}")


def _check_texts(name: str, rule: FieldRule, value: Any) -> None:
    """Refuse texts that no identification writes."""
    texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) and rule.longest else ()
    for text in texts if rule.longest else ():
        if make_storable(text, rule.longest) != text:
            raise InputError(f"{name} holds a text that is not one printable line of {rule.longest} characters")
        if rule.words and text not in rule.words:
            raise InputError(f"{name} is {text[:40]!r}, expected one of {', '.join(rule.words)}")
    if rule.unique and len(set(texts)) < len(texts):
        raise InputError(f"{name} has {next(text for text in texts if texts.count(text) > 1)} twice")


def _check_numbers(name: str, rule: FieldRule, value: Any) -> None:
    """Refuse numbers that no identification writes."""
    if not isinstance(value, float | int | np.ndarray):
        return
    numbers = np.ravel(value)
    known = numbers[~np.isnan(numbers)] if rule.nan else numbers
    if rule.finite and len(bad := known[~(np.abs(known) <= LARGEST)]):
        raise InputError(f"{name} holds {bad[0]}, expected finite numbers of magnitudes up to {LARGEST:g}")
    if rule.least > -np.inf and len(bad := known[~(known >= rule.least)]):
        raise InputError(f"{name} holds {bad[0]}, expected {rule.least:g} or more")
