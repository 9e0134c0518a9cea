# SPDX-License-Identifier: Apache-2.0
"""Names in the documentation: paths of the repository exist, modules and attributes resolve."""

import importlib
import re
from functools import cache
from pathlib import Path

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

SUFFIXES = {
    "csv",
    "db3",
    "html",
    "json",
    "jsonl",
    "lock",
    "md",
    "npz",
    "py",
    "sdf",
    "svg",
    "toml",
    "urdf",
    "xml",
    "txt",
    "yaml",
}
"""Ends of names of files."""

FOLDERS = ("benchmarks", "examples", "launch", "robot_dyn_id", "test")

CODE_FILES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")} | {"setup.py"}

CODE = sorted((ROOT / "robot_dyn_id").rglob("*.py"))


def on_pages(wrong):
    """Pages with what is wrong on them; `wrong` is a function of a page's text."""
    found = {page.relative_to(ROOT).as_posix(): wrong(page.read_text(encoding="utf-8")) for page in PAGES}
    return {page: names for page, names in found.items() if names}


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


def test_paths_in_the_documentation_exist():
    headers = {
        path.relative_to(ROOT / "cpp" / "include").as_posix() for path in (ROOT / "cpp" / "include").rglob("*.hpp")
    }
    plugins = {
        name
        for file in (ROOT / "cpp" / "ros2_control").glob("*.xml")
        for name in re.findall(r'class name="([^"]+)"', file.read_text(encoding="utf-8"))
    }

    def missing(text):
        found = set(PATHS.findall(text)) - headers - plugins
        return [path for path in found if not exists(path) and not is_interface(path)]

    assert on_pages(missing) == {}


def test_files_of_code_in_the_documentation_exist():
    assert on_pages(lambda text: set(FILES.findall(text)) - CODE_FILES) == {}


def test_modules_and_attributes_in_the_documentation_resolve():
    assert on_pages(lambda text: [name for name in names(text) if not resolves(name)]) == {}


@cache
def source(path):
    return path.read_text(encoding="utf-8")


@cache
def dotted(path):
    """Name of the module of a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def is_defined(name, path):
    text = source(path)
    pattern = rf"\b{name}\b" if path.stem == "__init__" else rf"^\s*(?:(?:def|class) {name}\b|{name}\b.*[:=])"
    return re.search(pattern, text, re.M) is not None


def undefined(text):
    """Names of a text that are not in the module before them, which is given without its package."""
    for module, name in set(SHORT.findall(text)):
        if module.split(".")[0] not in FOREIGN and name not in SUFFIXES:
            places = [path for path in CODE if f".{dotted(path)}".endswith(f".{module}")]
            if not any(is_defined(name, path) for path in places):
                yield f"{module}.{name}"


def test_names_behind_a_module_are_in_it():
    assert on_pages(lambda text: list(undefined(text))) == {}
