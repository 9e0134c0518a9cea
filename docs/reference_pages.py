# SPDX-License-Identifier: Apache-2.0
"""Reference pages of the site, generated from the code at each build: commands, options, interfaces, public names."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import robot_dyn_id as rdi
from robot_dyn_id.cli import VERBS
from robot_dyn_id.files.configuration import OF_JOINTS, Configuration, JointConfiguration
from robot_dyn_id.files.values import list_field_hints
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.thresholds import Thresholds

SOURCE = "Generated from the code at each build of this site."


def write_reference(root: Path, folder: Path) -> None:
    """Write all generated pages.

    Args:
        root: root of the repository, for the definitions of messages.
        folder: folder of the pages, which is created.
    """
    pages = {
        "commands": commands_page(),
        "configuration": configuration_page(),
        "estimators": options_page("Options of estimators", "estimator", rdi.ESTIMATORS, "../estimators.md"),
        "terms": options_page("Options of terms", "term", rdi.TERMS, "../terms.md"),
        "messages": messages_page(root),
        "api": api_page(),
    }
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        file = folder / f"{name}.md"
        if not file.is_file() or file.read_text(encoding="utf-8") != text:  # unchanged pages are not built again
            file.write_text(text, encoding="utf-8")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def plain(text: str) -> str:
    """Text in a cell of a table, in which only code in backticks is markup."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    escaped = [part if part.startswith("`") else re.sub(r"([*_<>\[\]$\\#])", r"\\\1", part) for part in parts]
    return "".join(escaped).replace("|", "\\|")


def code(text: str) -> str:
    """Code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def commands_page() -> str:
    """Page of all commands with their arguments, from the argument parsers."""
    parts = ["# Commands and their options", SOURCE, "Every command also takes `--help` and `--json`."]
    for verb, text in VERBS.items():
        parser = argparse.ArgumentParser(prog=f"robot-dyn-id {verb}", add_help=False)
        importlib.import_module(f"robot_dyn_id.cli.{verb}").add_arguments(parser)
        rows = [
            (
                argument_words(action),
                plain((action.help or "") % {"default": action.default}),
                code(default_text(action)),
            )
            for action in parser._actions
            if action.help is not argparse.SUPPRESS
        ]
        parts += [
            f"## {verb}",
            f"{plain(text[0].upper() + text[1:])}.",
            table(("argument", "meaning", "default"), rows),
        ]
    return "\n\n".join(parts)


def argument_words(action: argparse.Action) -> str:
    """Names of an argument with its values, as code."""
    choices = "{" + ", ".join(map(str, action.choices)) + "}" if action.choices is not None else None
    metavar = action.metavar if action.metavar is not None else choices or action.dest.upper()
    words = " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    if action.nargs in ("+", "*"):
        words = f"{words} ..."
    if not action.option_strings:
        return code(words)
    takes_value = action.nargs != 0
    return code(", ".join(action.option_strings) + (f" {words}" if takes_value else "")) + (
        " (required)" if action.required else ""
    )


def default_text(action: argparse.Action) -> str:
    """Default of an argument; empty if there is none."""
    if action.default in (None, False, argparse.SUPPRESS) or action.default == []:
        return ""
    return " ".join(map(str, action.default)) if isinstance(action.default, (list, tuple)) else str(action.default)


def attributes_of(kind: type) -> dict[str, str]:
    """Descriptions of the attributes of a class, by name, from its docstring."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):  # a class describes what it adds to its bases
        section = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        entries = re.split(r"^    (\w+): ", section, flags=re.M)
        found |= {name: " ".join(text.split()) for name, text in zip(entries[1::2], entries[2::2], strict=True)}
    return found


def default_of(item: Any) -> str:
    """Default of a field of a dataclass."""
    if item.default is not MISSING:
        return repr(item.default)
    if item.default_factory is not MISSING:
        value = item.default_factory()
        name = getattr(value, "name", None)
        return str(name) if name else (repr(value) if not hasattr(value, "__dataclass_fields__") else "")
    return "(required)"


def options_table(kind: type, leave_out: Sequence[str] = ()) -> str:
    """Table of the fields of a dataclass."""
    descriptions = attributes_of(kind)
    ranges = getattr(kind, "option_ranges", {})
    rows = [
        (
            code(item.name),
            code(default_of(item)),
            plain(str(ranges.get(item.name, ""))),
            plain(descriptions.get(item.name, "")),
        )
        for item in fields(kind)
        if item.name not in leave_out
    ]
    return table(("key", "default", "allowed", "meaning"), rows)


def configuration_page() -> str:
    """Page of all keys of the configuration file, from its dataclasses."""
    known = set(list_field_hints(Configuration)) | set(list_field_hints(Settings))
    if not set(OF_JOINTS) <= known:
        raise ValueError("the settings of joints have other names")
    parts = [
        "# Keys of the configuration file",
        SOURCE + " Examples and explanations: [configuration](../configuration.md).",
        "## Keys of the file",
        options_table(Configuration, ["settings"]),
        options_table(Settings, OF_JOINTS),
        "## Keys of each joint",
        options_table(JointConfiguration),
        "## Keys of `thresholds`",
        options_table(Thresholds),
    ]
    return "\n\n".join(parts)


def options_page(title: str, kind: str, classes: dict[str, type], page: str) -> str:
    """Page of the options of estimators or terms."""
    parts = [f"# {title}", f"{SOURCE} How to choose: [{kind}s]({page})."]
    for name, item in classes.items():
        first = (inspect.getdoc(item) or "").partition("\n\n")[0]
        body = options_table(item) if fields(item) else f"This {kind} has no options."
        parts += [f"## {name}", plain(first), body]
    return "\n\n".join(parts)


def messages_page(root: Path) -> str:
    """Page of the definitions of all messages and actions."""
    parts = ["# Messages and actions", SOURCE]
    for kind in ("msg", "action"):
        for file in sorted((root / kind).glob(f"*.{kind}")):
            text = re.sub(r"\A# SPDX[^\n]*\n+", "", file.read_text(encoding="utf-8"))
            parts += [f"## {file.stem}", f"`robot_dyn_id/{kind}/{file.stem}`", f"```text\n{text.rstrip()}\n```"]
    return "\n\n".join(parts)


def api_page() -> str:
    """Page of all public names, by autodoc."""
    parts = ["# Python API", SOURCE + " Introduction with examples: [Python](../python.md)."]
    for name in sorted((name for name in rdi.__all__ if name != "__version__"), key=str.lower):
        value = getattr(rdi, name)
        if isinstance(value, dict):
            rows = [(code(key), code(f"{item.__module__}.{item.__name__}")) for key, item in value.items()]
            parts += [f"## {name}", f"`rdi.{name}[name]`, by name:", table(("name", "class"), rows)]
            continue
        directive = "autoclass" if inspect.isclass(value) else "autofunction"
        options = "\n   :members:\n   :inherited-members: Exception" if inspect.isclass(value) else ""
        target = f"{value.__module__}.{value.__qualname__}"
        parts += [f"## {name}", f"```{{eval-rst}}\n.. {directive}:: {target}{options}\n```"]
    return "\n\n".join(parts)
