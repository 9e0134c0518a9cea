# SPDX-License-Identifier: Apache-2.0
"""Names in the documentation: paths of the repository exist, modules and attributes resolve."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in ("benchmarks", "docs", "examples", "test") for page in sorted((ROOT / folder).rglob("*.md"))),
]

PATHS = re.compile(r"(?<![\w/.~$}-])(?:robot_dyn_id|test|docs|config|examples)/[\w./*-]*\w[\w/*-]*")
"""Paths from the root of the repository; a `*` stands for anything."""

FILES = re.compile(r"`(\w+\.py)`")

INTERFACES = {path.stem for kind in ("msg", "srv", "action") for path in (ROOT / kind).glob(f"*.{kind}")}

DOTTED = re.compile(r"(?<![\w/.-])robot_dyn_id(?:\.[A-Za-z_]\w*)+(?![\w-])")

IMPORTED = re.compile(r"^\s*from (robot_dyn_id[\w.]*) import (\([^)]*\)|.*)$", re.M)

FACADE = re.compile(r"(?<![\w/.])rdi((?:\.[A-Za-z_]\w*)+)")
"""Names behind `import robot_dyn_id as rdi`."""

SHORT = re.compile(r"`(?!robot_dyn_id\.)([a-z_]\w*(?:\.[a-z_]\w*)*)\.([A-Za-z_]\w*)`")
"""A module without its package, and a name in it."""

FOREIGN = {
    "cmeel",
    "observation",
    "CoG",
    "friction",
    "gravity_compensation",
    "header",
    "pin",
    "result",
    "thresholds",
    "tool",
}
"""Names before a dot that are not modules of the package: messages, other packages, variables, keys."""

SUFFIXES = {"csv", "db3", "html", "json", "jsonl", "md", "npz", "py", "svg", "toml", "urdf", "xml", "yaml"}
"""Ends of names of files."""

FOLDERS = ("benchmarks", "examples", "launch", "robot_dyn_id", "test")

CODE_FILES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")} | {"setup.py"}

CODE = sorted((ROOT / "robot_dyn_id").rglob("*.py"))

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def exists(path):
    return any(ROOT.glob(path.rstrip("/")))


def is_interface(path):
    """Whether it is the type of a ROS interface of the package, or the C++ header generated from it."""
    generated = {f"{re.sub(r'(?<!^)(?=[A-Z])', '_', interface).lower()}.hpp" for interface in INTERFACES}
    package, _, name = re.sub("/(msg|srv|action)/", "/", path).partition("/")
    return package == "robot_dyn_id" and name in INTERFACES | generated


def resolves(name):
    """A module whose file exists, or an attribute of one."""
    words = name.split(".")
    known = 1
    while known < len(words):
        module = ROOT.joinpath(*words[: known + 1])
        if not (module.is_dir() or module.with_suffix(".py").exists()):
            break
        known += 1
    if known == len(words):
        return True
    value = importlib.import_module(".".join(words[:known]))
    for word in words[known:]:
        if word in getattr(value, "__dataclass_fields__", {}):  # without a default the class lacks it
            return True
        if not hasattr(value, word):
            return False
        value = getattr(value, word)
    return True


def names(text):
    """Dotted names of the package in a text."""
    yield from DOTTED.findall(text)
    yield from (f"robot_dyn_id{rest}" for rest in FACADE.findall(text))
    for module, imported in IMPORTED.findall(text):
        yield from (f"{module}.{name}" for name in re.findall(r"(?:^|[(,])\s*(\w+)", imported.partition("#")[0]))


@every_page
def test_paths_in_the_documentation_exist(page):
    found = PATHS.findall(page.read_text(encoding="utf-8"))
    headers = {
        path.relative_to(ROOT / "cpp" / "include").as_posix() for path in (ROOT / "cpp" / "include").rglob("*.hpp")
    }
    plugins = {
        name
        for file in (ROOT / "cpp" / "ros2_control").glob("*.xml")
        for name in re.findall(r'class name="([^"]+)"', file.read_text(encoding="utf-8"))
    }
    known = headers | plugins
    assert not [path for path in found if not exists(path) and not is_interface(path) and path not in known]


@every_page
def test_files_of_code_in_the_documentation_exist(page):
    assert set(FILES.findall(page.read_text(encoding="utf-8"))) <= CODE_FILES


@every_page
def test_modules_and_attributes_in_the_documentation_resolve(page):
    assert not [name for name in names(page.read_text(encoding="utf-8")) if not resolves(name)]


def dotted(path):
    """Name of the module of a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def is_defined(name, path):
    text = path.read_text(encoding="utf-8")
    pattern = rf"\b{name}\b" if path.stem == "__init__" else rf"^\s*(?:(?:def|class) {name}\b|{name}\b.*[:=])"
    return re.search(pattern, text, re.M) is not None


@every_page
def test_names_behind_a_module_are_in_it(page):
    """Where the name of the module is given without its package."""
    for module, name in SHORT.findall(page.read_text(encoding="utf-8")):
        if module.split(".")[0] not in FOREIGN and name not in SUFFIXES:
            places = [path for path in CODE if f".{dotted(path)}".endswith(f".{module}")]
            assert any(is_defined(name, path) for path in places), f"{module}.{name}"
