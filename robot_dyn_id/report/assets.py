# SPDX-License-Identifier: Apache-2.0
"""Environment of the pages, the scripts and styles that are written into them, and numbers as text."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

HERE = Path(__file__).parent
"""Folder of templates, styles and scripts."""

LIBRARY = "uPlot"
"""Plotting library whose script is in `vendor/`; see the README there."""

SCRIPTS = ("charts", "scene", "preview", "bodies")
"""Own scripts, each a file of that name."""

MAX_SHOWN_FINDINGS = 3
"""Number of findings that a page shows in full; the others are folded."""

LARGEST_PERCENT = 10.0
"""Ratio from which a multiple is easier to read than a percentage."""


@cache
def read_page_library() -> dict[str, str]:
    """Texts that pages contain: plotting library (`script`, `style`, `license`), own `SCRIPTS`."""
    vendor = HERE / "vendor"
    return {
        "script": (vendor / f"{LIBRARY}.iife.min.js").read_text(encoding="utf-8"),
        "style": (vendor / f"{LIBRARY}.min.css").read_text(encoding="utf-8"),
        "license": f"{LIBRARY}\n\n{(vendor / f'{LIBRARY}.LICENSE').read_text(encoding='utf-8')}",
        **{name: (HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS},
    }


@cache
def make_page_environment() -> jinja2.Environment:
    """Environment of the templates of this folder; text is escaped, a missing variable is an error."""
    import jinja2

    from robot_dyn_id.report.compiled_templates import CompiledTemplates

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=CompiledTemplates(HERE, Path(__file__).read_bytes()),
    )
    environment.filters.update(percent=format_percent, number=number, finite=lambda x: x if math.isfinite(x) else None)
    environment.globals["library"] = read_page_library()
    return environment


def format_percent(value: float | None) -> str:
    """A ratio in percent, from `LARGEST_PERCENT` on as a multiple; a dash for an unknown one."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if abs(value) >= LARGEST_PERCENT:
        return f"{_signed(f'{value:,.0f}')}\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}"
    return _signed(f"{100 * value:.1f}") + "\N{NO-BREAK SPACE}%"


def number(value: float | None, digits: int = 4, padded: bool = False) -> str:
    """A number with that many significant digits, ending zeros kept if `padded`; a dash for an unknown one."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return _signed("\N{INFINITY}" if value > 0 else "-\N{INFINITY}")
    return _signed(f"{value:#.{digits}g}".rstrip(".") if padded else f"{value:.{digits}g}")


def format_plus_minus(value: float, sigma: float) -> tuple[str, str]:
    """Value and sigma as text, to the second digit of sigma.

    Both have the same exponent: `-0.0012`, `0.0023`, or `3.42e-07`, `0.11e-07`.
    """
    if not sigma > 0.0:
        return number(value), number(sigma)
    largest = max(abs(value), sigma)
    exponent = 0 if 1e-3 <= largest < 1e5 else math.floor(math.log10(largest))
    decimals = min(max(0, 1 - math.floor(math.log10(sigma)) + exponent), 9)
    suffix = f"e{exponent:+03d}" if exponent else ""
    value_text, sigma_text = (_signed(f"{x / 10.0**exponent:.{decimals}f}") for x in (value, sigma))
    suffix = suffix.replace("-", "\N{MINUS SIGN}")
    return value_text + suffix, sigma_text + suffix


def _signed(text: str) -> str:
    """The text of a number with a true minus sign, and without it before zero."""
    if text.startswith("-") and not any(digit in "123456789\N{INFINITY}" for digit in text.split("e", maxsplit=1)[0]):
        text = text[1:]
    return text.replace("-", "\N{MINUS SIGN}")
