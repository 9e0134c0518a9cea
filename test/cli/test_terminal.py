# SPDX-License-Identifier: Apache-2.0
"""Commands on a terminal and elsewhere: progress, amount of output, tables, help, completion, suggestions."""

import importlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from support.commands import COMMAND, JOINTS, check_error_line
from support.processes import HANG_S, run_program

from robot_dyn_id.cli import GROUPS, VERBS, main, make_parser, terminal
from robot_dyn_id.cli.completion import SHELLS
from robot_dyn_id.cli.examples import EXAMPLES
from robot_dyn_id.cli.terminal import Terminal
from robot_dyn_id.files.shared import find_shared_file
from robot_dyn_id.nodes import NODES
from robot_dyn_id.progress import Stage

COLOR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def fast(monkeypatch):
    """Periods of milliseconds instead of seconds."""
    monkeypatch.setattr(terminal, "QUIET_START_S", 0.05)
    monkeypatch.setattr(terminal, "LINE_PERIOD_S", 0.2)
    monkeypatch.setattr(terminal, "UNCHANGED_PERIOD_S", 0.5)
    monkeypatch.setattr(terminal, "REFRESH_PERIOD_S", 0.01)


def drawn(script, **environment):
    """Output of a script on a terminal of 80 columns, both streams."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **environment}
    with subprocess.Popen([sys.executable, "-c", script], stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        content = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            content += part
        process.wait(HANG_S)
    os.close(ours)
    assert process.returncode == 0, content.decode()
    return content.decode()


BAR = """import time
from robot_dyn_id.cli import terminal
from robot_dyn_id.progress import Stage
terminal.QUIET_START_S = 0.05
shown = terminal.Terminal("identify")
for done in range(8):
    shown.report(Stage("estimating", done, 8, "best 0.5"))
    time.sleep(0.15)
shown.show("verdict: bad")
"""


@pytest.mark.slow
def test_a_terminal_has_a_bar_with_the_remaining_time_which_vanishes():
    text = drawn(BAR)
    assert "estimating" in text and "best 0.5" in text
    assert re.search(r"0:0\d, 0:0\d left", text)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is visible again
    end = text[text.rindex("\x1b[2K") :]  # the line of the bar is erased before the result
    assert CODES.sub("", end).split() == ["verdict:", "bad"]
    assert COLOR.search(end)


@pytest.mark.slow
def test_a_shown_command_can_be_copied_from_a_terminal():
    command = f"robot-dyn-id predict {'a' * 60}/recording.db3 --robot {'b' * 60}/robot.urdf --out x"
    script = f"from robot_dyn_id.cli import terminal\nterminal.Terminal('try').show('next:\\n    {command}')"
    assert CODES.sub("", drawn(script)).splitlines()[1].strip() == command


@pytest.mark.slow
def test_errors_and_results_are_plain_without_rich():
    script = f"""import sys
sys.modules["rich"] = None
from robot_dyn_id.cli import main, show
assert main(["base", "--robot", "none.urdf"]) == 3
assert main(["base", "--robot", {str(find_shared_file("urdf/arm7.urdf"))!r}]) == 0
"""
    text = drawn(script, FORCE_COLOR="1")
    assert "robot-dyn-id: none.urdf: " in text and not COLOR.search(text)


@pytest.mark.slow
def test_no_color_leaves_no_color():
    assert not COLOR.search(drawn(BAR, NO_COLOR="1"))


def test_a_dumb_terminal_has_plain_lines():
    assert "\x1b" not in drawn(BAR, TERM="dumb")


def test_lines_elsewhere_are_few_and_a_long_stage_is_repeated(fast, capfd):
    shown = Terminal("identify")
    begin = time.monotonic()
    for number in range(100):
        shown.report(Stage(f"part {number}"))
        time.sleep(0.005)
    shown.report(Stage("long", 1, 4))
    time.sleep(1.5)
    shown.close()
    lines = capfd.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 2 + (time.monotonic() - begin) / 0.2
    assert "long: 1 of 4" in lines
    assert any(re.fullmatch(r"long: 1 of 4 \(\d+ s\)", line) for line in lines)


def test_a_short_command_prints_no_progress(capfd):
    shown = Terminal("base")
    shown.report(Stage("short"))
    shown.show("result")
    assert capfd.readouterr() == ("result\n", "")


def test_a_stage_knows_its_fraction():
    assert Stage("a").fraction is None and str(Stage("a")) == "a"
    assert Stage("a", 3, 4).fraction == 0.75 and str(Stage("a", 3, 4, "b")) == "a: 3 of 4; b"
    assert Stage("a", 9, 4).fraction == 1.0


def test_quiet_prints_errors_only(files, cli, tmp_path):
    assert cli("base", "--robot", files / "arm.urdf", "-q") == (0, "", "")
    code, out, _ = cli("base", "--robot", files / "arm.urdf", "--quiet", "--json")
    assert code == 0 and json.loads(out)["parameters"]
    code, out, err = cli("base", "--robot", tmp_path / "none.urdf", "-q")
    assert (code, out) == (3, "")
    check_error_line(err, "none.urdf")
    code, _, err = cli("base", "--robot", files / "arm.urdf", "-q", "-v")
    assert code == 2 and "not allowed with" in err


@pytest.mark.slow
def test_verbose_prints_stages_with_times_and_all_findings(files, cli):
    words = ["validate", files / "other.npz", "--robot", files / "arm.urdf"]
    code, out, err = cli(*words, "--parameters", files / "parameters.yaml", "-v")
    assert code == 0 and "verdict: " in out
    assert re.search(r"^\[ +\d+\.\d\d s\] surveying the recordings$", err, re.M)
    assert re.search(r"^ +\d+\.\d\d s  predicting$", err, re.M)
    assert re.search(r"whole command; CPU \d+\.\d\d s, largest memory \d+ MiB$", err, re.M)
    report = json.loads(cli(*words, "--parameters", files / "parameters.yaml", "--json")[1])
    assert all(f"{one['code']}: " in out for one in report["findings"])


def test_verbose_without_a_stage_prints_the_whole_time(capfd):
    Terminal(verbose=True).print_times()
    assert "whole command" in capfd.readouterr().err


@pytest.mark.slow
def test_tables_fit_eighty_columns_and_nothing_is_cut(files, cli, monkeypatch):
    words = ["validate", files / "other.npz", "--robot", files / "arm.urdf", "--parameters", files / "parameters.yaml"]
    plain = cli(*words)[1]
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    colored = cli(*words)[1]
    assert COLOR.search(colored)
    text = CODES.sub("", colored)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    assert all(name in text for name in JOINTS) and "verdict: good" in text
    loose = re.sub(r"\s+", "", text)
    for line in plain.splitlines():
        for cell in re.split(r"\s{2,}|: |; ", line.strip("!- ")):
            cell = cell.strip("()")
            if not cell.startswith(("held-out", "fit for", "info", "warning")):
                assert re.sub(r"\s+", "", cell) in loose, cell
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOR.search(cli("base", "--robot", files / "arm.urdf")[1])


def test_help_lists_every_command_once_below_the_heading_of_its_group(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found, group = {name: [] for name in GROUPS}, ""
    for line in lines[: lines.index("options:")]:
        heading, verb = re.match(r"  (\w+):$", line), re.match(r"    (\w+)(  |$)", line)
        if heading:
            group = heading[1]
        elif verb:
            found[group].append(verb[1])
    assert found == {name: list(verbs) for name, verbs in GROUPS.items()}


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_that_the_command_accepts(verb, capsys):
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    parser, _ = make_parser(verb)
    assert EXAMPLES[verb]
    for example in EXAMPLES[verb]:
        words = shlex.split(example, comments=True)
        assert words[0] == verb and f"robot-dyn-id {example}" in text
        parser.parse_args(words)


def test_results_are_printed_by_the_terminal_alone():
    """`print` would write into the progress bar."""
    for verb in VERBS:
        module = importlib.import_module(f"robot_dyn_id.cli.{verb}")
        with open(module.__file__, encoding="utf-8") as file:
            assert not re.search(r"(?<![\w.])print\(", file.read()), verb


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["idntify"], "identify"),
        (["identify", "x", "--estimtor", "ols"], "--estimator"),
        (["identify", "x", "--robot", "r", "--out", "o", "--estimator", "robst"], "robust"),
        (["identify", "x", "--robot", "r", "--out", "o", "--estimator=wieghted"], "weighted"),
        (["base", "--robto=arm.urdf", "--json"], "--robot"),
        (["identify", "x", "--robot", "r", "--out", "o", "--friction", "coulom"], "coulomb"),
        (["node", "recordr"], "recorder"),
    ],
)
def test_unknown_words_have_a_suggestion(words, meant, cli):
    code, _, err = cli(*words)
    assert code == 2
    check_error_line(err, f"did you mean {meant!r}")


def test_unknown_joints_and_keys_have_a_suggestion(files, cli, tmp_path):
    config = tmp_path / "config.yaml"
    for text, meant in ((f"identify: [{JOINTS[0]}x]\n", JOINTS[0]), ("estimater: ols\n", "estimator")):
        config.write_text(text)
        code, _, err = cli("base", "--robot", files / "arm.urdf", "--config", config)
        assert code in (2, 3)
        check_error_line(err, f"did you mean {meant!r}")


def completions(line, tmp_path):
    """Completions that the program answers to a shell."""
    file = tmp_path / "answer"
    environment = {
        **os.environ,
        **{"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(file)},
        **{"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"},
    }
    subprocess.run(COMMAND, env=environment, timeout=HANG_S, check=True, capture_output=True)
    return {word.strip() for word in file.read_text().splitlines()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("robot-dyn-id ide", {"identify"}),
        ("robot-dyn-id identify --estimator rob", {"robust"}),
        ("robot-dyn-id identify --fric", {"--friction"}),
        ("robot-dyn-id completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_the_completer_answers(line, expected, tmp_path):
    found = completions(line, tmp_path)
    assert expected <= found and len(found) < 12


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_of_shells(shell, cli, tmp_path, monkeypatch):
    code, script, _ = cli("completion", shell)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli("completion", shell, "-q") == (0, script, "")
    assert code == 0 and "robot-dyn-id" in script and "_ARGCOMPLETE" in script
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(script)
        subprocess.run([shell, "-n", str(file)], check=True, timeout=HANG_S)


def test_the_node_command_knows_all_nodes():
    from robot_dyn_id.nodes import tables

    assert [node.NAME for node in tables.NODES] == list(NODES)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--ros-args", "-p", "folder:=3"], ["-p", "folder:=3"]])
def test_the_node_command_runs_a_node_with_its_exit_code(words):
    done = run_program(*COMMAND, "node", "recorder", *words)
    assert done.returncode == 2 and done.stderr.startswith("recorder: ") and "folder" in done.stderr
