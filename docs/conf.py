# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation site (Sphinx with MyST).

`make docs` builds it with warnings as errors. Nothing is loaded from the network: the theme has its own fonts and
scripts, and formulas are MathML, which browsers draw without a script.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import SphinxError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from reference_pages import write_reference  # noqa: E402
from remote_resources import check_site  # noqa: E402

from robot_dyn_id.files.shared import find_shared_file  # noqa: E402
from robot_dyn_id.version import __version__  # noqa: E402

REPOSITORY = "https://github.com/robot-dyn-id/robot_dyn_id/blob/main/"

project = "robot_dyn_id"
author = "robot_dyn_id maintainers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"robot_dyn_id {__version__}"
html_static_path: list[str] = []
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
highlight_language = "text"
nitpicky = False

myst_enable_extensions = ["dollarmath"]
rosdoc2_settings = {
    "override_theme": False,
    "enable_breathe": False,
    "enable_exhale": False,
    "enable_intersphinx": False,
    "automatically_extend_intersphinx_mapping": False,
}

myst_heading_anchors = 4

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports: list[str] = []
autodoc_default_options = {"exclude-members": "__init__, __new__"}


def interface_folder() -> Path:
    """Folder with `msg` and `action`: the repository, or the installed package if rosdoc2 has copied this folder."""
    return HERE.parent if (HERE.parent / "msg").is_dir() else find_shared_file("msg/ParameterSet.msg").parents[1]


COMBINING = {"\u00a8": "\u0308", "\u02d9": "\u0307", "\u02c6": "\u0302"}
"""Combining characters of accents: without a mathematical font, browsers draw an accent over the letter itself."""

ACCENTED = re.compile(
    r'<mover accent="true">\s*<mi>(\w)</mi>\s*<mo stretchy="false">([' + "".join(COMBINING) + r"])</mo>\s*</mover>"
)


def math_text(node: nodes.Element, block: bool) -> str:
    """Formula of a node as MathML."""
    text = node.astext()
    if block and "\\\\" in text and "\\begin" not in text:
        text = "\\begin{aligned}" + text + "\\end{aligned}"
    return ACCENTED.sub(
        lambda match: f'<mi style="font-style: italic">{match[1]}{COMBINING[match[2]]}</mi>',
        tex2mathml(text, as_block=block),
    )


def visit_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula in a line.

    Raises:
        SkipNode: always, the node is complete.
    """
    translator.body.append(math_text(node, block=False))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula on lines of its own.

    Raises:
        SkipNode: always, the node is complete.
    """
    translator.body.append(f'<div class="math" style="overflow-y: hidden">{math_text(node, block=True)}</div>')
    raise nodes.SkipNode


def link_repository(app: Any, page: str, source: list[str]) -> None:
    """Turn links to files outside this folder, which code hosts resolve, into links to the repository."""
    folder = (HERE / page).parent

    def absolute(match: re.Match[str]) -> str:
        target = match[1]
        path = (folder / target.partition("#")[0]).resolve()
        if HERE in path.parents or not path.is_relative_to(HERE.parent):
            return match[0]
        return f"]({REPOSITORY}{path.relative_to(HERE.parent).as_posix()})"

    source[0] = re.sub(r"\]\((\.\.?/[^)\s]+)\)", absolute, source[0])


def markdown_code(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn the Markdown of docstrings, fences and single backticks, into reStructuredText."""
    fenced, result = False, []
    for line in lines:
        if line.strip().startswith("```"):
            fenced = not fenced
            indent = line[: len(line) - len(line.lstrip())]
            result += [f"{indent}.. code-block:: python", ""] if fenced else [""]
        elif fenced:
            result.append(f"   {line}")
        else:
            result.append(re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line))
    lines[:] = result


def refuse_remote_resources(app: Any, error: Exception | None) -> None:
    """Fail if a page loads anything from the network.

    Raises:
        SphinxError: a page does.
    """
    if error is None and app.builder.format == "html" and (found := list(check_site(Path(app.outdir)))):
        raise SphinxError("loaded from the network: " + "; ".join(found))


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer, the generated pages and the conversions."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", lambda _: write_reference(interface_folder(), HERE / "reference"))
    app.connect("source-read", link_repository)
    app.connect("autodoc-process-docstring", markdown_code, priority=400)  # before napoleon
    app.connect("build-finished", refuse_remote_resources)
    return {"parallel_read_safe": False}
