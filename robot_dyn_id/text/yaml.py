# SPDX-License-Identifier: Apache-2.0
"""Reading and writing of YAML: with limits, and one line for every error."""

from __future__ import annotations

import math
import re
from pathlib import Path
from textwrap import shorten
from typing import Any

import yaml

from robot_dyn_id.errors import InputError, RobotDynIdError
from robot_dyn_id.text.files import MIB, read_text

YAML_LIMIT = 64 * MIB
"""Largest YAML file [bytes]."""

DEEPEST = 50
"""Deepest nesting of lists and mappings; the libraries below fail at some hundreds, some of them by a crash."""

MOST_VALUES = 1_000_000
"""Largest number of values, those of aliases counted at each use; as many take some 600 MB while they are read."""

LONGEST_REASON = 200
"""Longest message of the YAML library that is passed on [characters]."""

LONGEST_NUMBER = 1_000
"""Longest number [characters]; the time to convert one grows with the square of its length."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Ten times as fast, where it was built."""

_RESOLVER: Any = yaml.resolver.Resolver()

_EXPONENT = re.compile(r"[-+]?[0-9]+\.?[0-9]*[eE][-+]?[0-9]{1,3}")

_PLACE = re.compile(r'in "<\w+ string>", ')
"""Beginning of a place in messages of the YAML library, which does not know the file."""

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_yaml(path: str | Path, what: str, error: type[RobotDynIdError] = InputError) -> Any:
    """The content of a file; None of an empty one.

    Args:
        path: the file; `~` is the home folder.
        what: the file should hold, for the message.
        error: raised where it cannot be read.

    Raises:
        RobotDynIdError: the file cannot be opened, is too large, is not YAML, or exceeds the limits of `parse_yaml`.
    """
    return parse_yaml(read_text(path, what, YAML_LIMIT, error), str(path), error)


def parse_yaml(text: str, source: str, error: type[RobotDynIdError] = InputError) -> Any:
    """The content of a YAML text: plain values, lists and mappings; nothing in it is executed.

    Args:
        text: one YAML document.
        source: name for messages.
        error: class of the error that is raised.

    Raises:
        RobotDynIdError: not YAML, nested too deeply, too many values, or an alias within its own anchor.
    """
    try:
        _check(text, _KeysOnce())  # before anything is built, since depth and aliases break the builder
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, _Refused, ValueError) as problem:
        words = _PLACE.sub("at ", " ".join(str(problem).split()))
        reason = shorten(words, LONGEST_REASON, placeholder=" ...") + _suggest_spaces(text, problem)
    except (LookupError, TypeError, AttributeError, OverflowError):  # such as `!!bool x`
        reason = "a value is not what its tag says"
    raise error(f"{source}: not a YAML file ({reason})")


def _suggest_spaces(text: str, problem: Exception) -> str:
    """Hint, for the end of a message, where the line at fault is indented by a tab; else empty."""
    mark = getattr(problem, "problem_mark", None)
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines):
        return ""
    line = lines[mark.line]
    return "; indent by spaces, not by tabs" if "\t" in line[: len(line) - len(line.lstrip())] else ""


def suggest_exponent(value: Any) -> str:
    """Hint, for the end of a message, for an exponent without point or sign, which is text in YAML 1.1; else empty.

    Args:
        value: a value where a number is expected.
    """
    if not isinstance(value, str) or not _EXPONENT.fullmatch(value):
        return ""
    mantissa, exponent = value.lower().split("e")
    signed = exponent if exponent[0] in "+-" else f"+{exponent}"
    return f"; write {mantissa if '.' in mantissa else mantissa + '.0'}e{signed}: YAML 1.1 needs the point and the sign"


class _KeysOnce:
    """Check that no mapping has a key twice; loaders take the last one without a word."""

    def __init__(self) -> None:
        # Line of each key, a tag and a text, of the open mappings; None: a list.
        self._open: list[dict[tuple[str | None, str], int] | None] = []
        self._key_is_next: list[bool] = []

    def see(self, event: Any) -> None:
        """Take the next event.

        Raises:
            _Refused: a key that is there already.
        """
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._key_is_next.pop()
            return
        if not isinstance(event, yaml.NodeEvent):
            return
        if self._open and (keys := self._open[-1]) is not None:
            if self._key_is_next[-1] and isinstance(event, yaml.ScalarEvent):
                line = getattr(event.start_mark, "line", 0) + 1
                key = (_tag(event), event.value)
                if key in keys and key[0] != _MERGE:
                    lines = "" if keys[key] == line else f", in lines {keys[key]} and {line}"
                    raise _Refused(f"the key {event.value} is there twice{lines}: remove one of them")
                keys[key] = line
            self._key_is_next[-1] = not self._key_is_next[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append({} if isinstance(event, yaml.MappingStartEvent) else None)
            self._key_is_next.append(True)


_MERGE = "tag:yaml.org,2002:merge"
"""Tag of `<<`, which takes over the keys of another mapping and may be there several times."""


def _tag(event: Any) -> str | None:
    """Tag of a scalar: `1` and `"1"` are different keys."""
    if event.tag is not None or not event.implicit[0]:
        return str(event.tag or "tag:yaml.org,2002:str")
    return str(_RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)))


class _Refused(Exception):
    """Why a text exceeds the limits."""


def _check(text: str, keys: _KeysOnce) -> None:
    """Pass over the events of a text.

    Args:
        text: the text.
        keys: takes every event.

    Raises:
        _Refused: more than the limits.
        yaml.YAMLError: not YAML.
    """
    sizes: dict[str, int] = {}  # of what is anchored
    outer: list[tuple[str | None, int]] = []  # anchor of each open list or mapping, and values in front of it
    values = 0
    for event in yaml.parse(text, Loader=_LOADER):
        keys.see(event)
        if isinstance(event, yaml.ScalarEvent):
            values += 1
            if len(event.value) > LONGEST_NUMBER and _may_be_number(event):
                raise _Refused(f"a number of more than {LONGEST_NUMBER} characters")
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            values += 1
            outer.append((event.anchor, values - 1))
            if len(outer) > DEEPEST:
                raise _Refused(f"lists and mappings are nested deeper than {DEEPEST}")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = outer.pop()
            if anchor is not None:
                sizes[anchor] = values - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in outer):
                raise _Refused("an alias is within its own anchor")
            values += sizes.get(event.anchor or "", 1)
        if values > MOST_VALUES:
            raise _Refused(f"more than {MOST_VALUES} values, those of aliases counted at each use")


def _may_be_number(event: Any) -> bool:
    return event.tag in _NUMBERS or (event.implicit[0] and event.value[0] in "+-.0123456789")


_SAFE_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Several times as fast, where it was built."""


class _Dumper(_SAFE_DUMPER):  # type: ignore[misc]
    """Arrays in one line each, texts of several lines as blocks, and no aliases, which the parser of ROS 2 refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write a value at each of its uses."""
        return True


def _text(dumper: Any, value: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


class Row(list[Any]):
    """A list that is written in one line."""


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    Row, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
)


def format_yaml(content: dict[str, Any]) -> str:
    """YAML whose numbers read back as the same to the last bit: the shortest texts for which they do."""
    return "".join(_entry((key,), value) for key, value in content.items()) or "{}\n"


def _entry(path: tuple[str, ...], value: Any) -> str:
    """The lines of a value below the keys that lead to it; a mapping that holds a matrix entry by entry."""
    if isinstance(value, dict) and path[-1].isidentifier() and any(map(_is_matrix, value.values())):
        inner = "".join(_entry((*path, key), entry) for key, entry in value.items())
        return f"{'  ' * (len(path) - 1)}{path[-1]}:\n{inner}"
    if _is_matrix(value):
        return _matrix_text(path, value)
    *outer, key = path
    content = {key: value}
    for name in reversed(outer):
        content = {name: content}
    return _dumped(content).split("\n", len(outer))[-1]


def _dumped(content: dict[str, Any]) -> str:
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=2**31 - 1, allow_unicode=True))


def _is_matrix(rows: Any) -> bool:
    """Whether a value is rows of finite numbers, which are written in a tenth of the time."""
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(type(row) is Row and row for row in rows)
        and all(type(value) is float and math.isfinite(value) for row in rows for value in row)
    )


def _matrix_text(path: tuple[str, ...], rows: list[Row]) -> str:
    """A matrix of finite numbers as `_dumped` writes it."""
    header, indent = _dumped({path[-1]: []}).removesuffix(" []\n"), "  " * (len(path) - 1)
    lines = (", ".join(map(_number, row)) for row in rows)
    return f"{indent}{header}\n" + "".join(f"{indent}- [{line}]\n" for line in lines)


def _number(value: float) -> str:
    """A number as YAML 1.1 has it: exponents only after a decimal point."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e", 1)
