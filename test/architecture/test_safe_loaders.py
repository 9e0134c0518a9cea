# SPDX-License-Identifier: Apache-2.0
"""No data is ever run as code: what could do so is used nowhere, or is listed here with the reason."""

import ast
from pathlib import Path

import pytest
from architecture import figures

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    [*(ROOT / "robot_dyn_id").rglob("*.py"), *(ROOT / "launch").glob("*.py"), *(ROOT / "examples").rglob("*.py")]
)

MODULES = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "cloudpickle",
    "code",
    "codeop",
    "xacro",
    "subprocess",
}
"""Modules that make code or objects of data, or start programs."""

BUILTINS = {"eval", "exec", "compile", "__import__"}

CALLS = {  # `yaml.safe_load` has no limits of depth and aliases: read by `text.yaml`
    *("os.system", "os.popen", "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load", "yaml.full_load_all"),
    *(
        "yaml.safe_load",
        "yaml.safe_load_all",
        "yaml.load_all",
        "np.fromfile",
        "numpy.fromfile",
        "ctypes.CDLL",
        "runpy.run_path",
        "runpy.run_module",
    ),
}

SAFE = {"SafeLoader", "yaml.SafeLoader", "yaml.CSafeLoader", "_LOADER"}
"""Names of YAML loaders that make nothing but plain values; `test_loaders_are_safe` looks at what they are."""

EXCEPTIONS = {
    (
        "robot_dyn_id/model/xacro_process.py",
        "subprocess",
    ): "xacro of a file of the user, in a process with limits, no shell",
    ("robot_dyn_id/__init__.py", "import of a name"): "a public name of the table _EXPORTS",
    ("robot_dyn_id/findings.py", "import of a name"): "each module of the package, for the list of all findings",
    ("robot_dyn_id/cli/__init__.py", "import of a name"): "a verb of the list VERBS",
    ("robot_dyn_id/flexible/__init__.py", "import of a name"): "a public name of the table _MODULES",
    ("robot_dyn_id/cores.py", "ctypes.CDLL"): "the C library that this process already has, for prctl",
    ("robot_dyn_id/cores.py", "pickle"): "results of its own forked processes, through a pipe that nothing else has",
    (
        "robot_dyn_id/report/compiled_templates.py",
        "marshal",
    ): "own templates, compiled to `__pycache__` next to them, from which Python runs the modules of this package too",
    ("robot_dyn_id/bench/commands.py", "subprocess"): "times this program's own command in a process of its own",
    ("robot_dyn_id/cli/doctor.py", "import of a name"): "a package of the tables REQUIRED and OPTIONAL",
    (
        "robot_dyn_id/cli/doctor.py",
        "ctypes.CDLL",
    ): "the C library of this process: adjtimex, which reads the kernel clock",
    ("robot_dyn_id/kernels/stored.py", "import of a name"): "a module of the folder kernels",
    (
        "robot_dyn_id/kernels/precompiled.py",
        "import of a name",
    ): "a module of the folder kernels, of a table in that file",
    ("robot_dyn_id/cli/reproduce.py", "import of a name"): "a paper of the list of choices",
    (
        "robot_dyn_id/nodes/messages/message_types.py",
        "import of a name",
    ): "package of a message, service or action, whose name is checked",
    ("robot_dyn_id/nodes/executables.py", "import of a name"): "a node of the list NODES",
    ("robot_dyn_id/excitation/design/optimizers.py", "import of a name"): "a module of a table in that file",
}
"""File, what it uses, and why that runs no data."""


def dotted(node):
    """`a.b.c` of an expression, empty if it is another one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def keyword(call, name):
    return next((item.value for item in call.keywords if item.arg == name), None)


def unsafe(nodes):
    """Names among the nodes of a syntax tree that could run data as code."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {item.name.split(".")[0] for item in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {(node.module or "").split(".")[0]} & MODULES
        elif isinstance(node, ast.Call):
            found |= unsafe_call(node)
    return found


def unsafe_call(call):
    name, found = dotted(call.func), set()
    if name in BUILTINS or name in CALLS:
        found.add(name)
    if name.endswith("import_module") and not isinstance(call.args[0], ast.Constant):
        found.add("import of a name")
    if name == "yaml.load":
        loader = keyword(call, "Loader") or (call.args[1] if len(call.args) > 1 else None)
        if dotted(loader) not in SAFE:
            found.add("yaml.load")
    if name in ("np.load", "numpy.load"):
        allowed = keyword(call, "allow_pickle")
        if not (isinstance(allowed, ast.Constant) and allowed.value is False):
            found.add("np.load")
    shell = keyword(call, "shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
        found.add("shell")
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import pickle", {"pickle"}),
        ("from subprocess import run", {"subprocess"}),
        ("eval(text)", {"eval"}),
        ("re.compile(text)", set()),
        ("yaml.load(text)", {"yaml.load"}),
        ("yaml.load(text, yaml.Loader)", {"yaml.load"}),
        ("yaml.load(text, Loader=yaml.SafeLoader)", set()),
        ("yaml.safe_load(text)", {"yaml.safe_load"}),
        ("yaml.unsafe_load(text)", {"yaml.unsafe_load"}),
        ("np.load(path)", {"np.load"}),
        ("np.load(path, allow_pickle=True)", {"np.load"}),
        ("np.load(path, allow_pickle=False)", set()),
        ("importlib.import_module(name)", {"import of a name"}),
        ("importlib.import_module('sklearn')", set()),
        ("run(words, shell=True)", {"shell"}),
        ("os.system(text)", {"os.system"}),
    ],
)
def test_the_scan_finds_what_it_looks_for(text, found):
    assert unsafe(ast.walk(ast.parse(text))) == found


def test_nothing_runs_data_as_code_but_what_is_listed():
    used = {(path.relative_to(ROOT).as_posix(), what) for path in SOURCES for what in unsafe(figures.nodes(path))}
    assert used == set(EXCEPTIONS)


def test_loaders_are_safe():
    yaml = pytest.importorskip("yaml")
    from robot_dyn_id.text.yaml import _LOADER as Loader

    assert issubclass(Loader, (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    constructors = {getattr(one, "__func__", one) for one in Loader.yaml_constructors.values()}
    assert constructors <= {getattr(one, "__func__", one) for one in yaml.SafeLoader.yaml_constructors.values()}
    assert not Loader.yaml_multi_constructors


def test_a_yaml_file_makes_no_objects(tmp_path):
    from robot_dyn_id.errors import InputError
    from robot_dyn_id.text.yaml import read_yaml

    path, proof = tmp_path / "hostile.yaml", tmp_path / "proof"
    path.write_text(f"a: !!python/object/apply:os.system ['touch {proof}']\n")
    with pytest.raises(InputError, match="not a YAML file"):
        read_yaml(path, "test")
    assert not proof.exists()
