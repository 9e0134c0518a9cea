# SPDX-License-Identifier: Apache-2.0
"""Old spellings of keys and options, each refused by naming the present one."""

from __future__ import annotations

from typing import Any

from robot_dyn_id.errors import UsageError

RENAMED = {
    "centre": "center",
    "centre_of_mass": "center_of_mass",
    "free_centre": "free_center",
    "optimiser": "optimizer",
}
"""Present spelling of every renamed key of a file and command-line option (without dashes)."""


def refuse_old_spelling(name: object, shown: str = "") -> None:
    """Refuse a name of an earlier version.

    Args:
        name: key or option as the user wrote it; an option begins with two dashes.
        shown: the name as the message shows it, such as `motion.centre`; `name` by default.

    Raises:
        UsageError: the name has been renamed; the message gives the present spelling.
    """
    word = str(name).removeprefix("--")
    if word in RENAMED:
        present = str(name).replace(word, RENAMED[word])
        raise UsageError(f"{shown or name}: is now spelled {present}", f"write {present} in place of {name}")


def refuse_old_spellings(content: Any, key: str = "") -> None:
    """Refuse renamed keys anywhere in the content of a file.

    Args:
        content: values, lists and mappings as YAML gives them.
        key: dotted key of the content in its file; empty for the whole file.

    Raises:
        UsageError: the first renamed key, with its present spelling.
    """
    if isinstance(content, dict):
        for name, entry in content.items():
            path = f"{key}.{name}" if key else str(name)
            refuse_old_spelling(name, path)
            refuse_old_spellings(entry, path)
