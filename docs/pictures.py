# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documentation, from runs of the commands that its pages show.

    python docs/pictures.py [NAME...]

writes `docs/images/`; without names, all pictures. Those of the report hold a hash of the page's templates, so that a
test finds them out of date; CI draws them again for the site. It needs the environment of the tests with the extra
`plot`, and the distribution's Chromium (`.ci/browser`). The measured robots of the gallery need `ROBOT_DYN_ID_DATA`,
the folder of the measured recordings; only drawings of them are kept.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import robot_dyn_id as rdi
from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.margins import PlannedMotion
from robot_dyn_id.report.preview import PreviewOptions, write_preview

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "examples")]

import simulated_arm  # noqa: E402
from support.browser import Browser, browser  # noqa: E402
from support.pictures import KEY, hash_of_report  # noqa: E402

COLUMNS = 116
"""Width of the terminal [characters]."""

WIDTH = 1200
"""Width of the browser window [px]."""

REPORT = ("report", "report_joint")
"""Pictures of the report."""

COLORS = 160
"""Colors of a picture."""

MEASURED = {
    "panda": ("panda_gaz2019", ("train_0_14s",), "val_14_21s", {}),
    "kuka": ("kuka_lwr4_iit", ("train_m1_slow", "train_m3_fast"), "val_m2_slow_repeat", {}),
    "tiago": ("tiago_figaroh", ("train_7_48s",), "val_48_68s", {}),
}
"""Folder, training files and validation file of the measured robots."""

INCHES = (9.0, 1.45)
"""Width of a drawing, and height of one joint [inch]."""

CONTROL_STEP_S = 1e-4
CONTROL_TIME_S = 6.0


def save(image: Image.Image, name: str) -> None:
    """Write a picture with few colors; in those of the report, the hash of what they are drawn from."""
    folder = HERE / "images"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.png"
    content = PngInfo()
    if name in REPORT:
        content.add_text(KEY, hash_of_report())
    few = image.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True, pnginfo=content)
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {path.stat().st_size / 1000:.0f} kB")


@cache
def work_folder() -> Path:
    """Folder of the runs, removed when the process ends."""
    work_folder.keep = tempfile.TemporaryDirectory(prefix="pictures")  # type: ignore[attr-defined]
    return Path(work_folder.keep.name)  # type: ignore[attr-defined]


def run_in_terminal(*words: str) -> str:
    """Run a command of the package in a terminal, and return its standard output with the colors."""
    terminal, side = pty.openpty()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # as in an activated environment
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "PATH": path}
    command = ["robot-dyn-id", *words]
    with subprocess.Popen(
        command, cwd=work_folder(), stdout=side, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(side)
        parts = []
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(terminal)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
    return b"".join(parts).decode().replace("\r\n", "\n")


@contextmanager
def open_page(path: Path, height: int = 900) -> Iterator[Browser]:
    """A page in the browser, with all of its plots."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        tab.command("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
        tab.driver.get(path.as_uri())
        draw_plots(tab)
        yield tab


def draw_plots(tab: Browser) -> None:
    """Draw all plots of the parts of a page that are unfolded."""
    if tab.run("return typeof Charts !== 'undefined'"):
        wait = "return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
        tab.run(wait)  # a link has unfolded its part
        tab.run("Charts.drawAll()")
        tab.run(wait)


def shoot(tab: Browser, selector: str, name: str, max_height: int = 4000) -> None:
    """Save the picture of an element of a page, from its top."""
    box = tab.run(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}",
        selector,
    )
    clip = {**box, "height": min(box["height"], max_height), "scale": 1}
    answer = tab.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    save(Image.open(io.BytesIO(base64.b64decode(answer["data"]))), name)


@cache
def franka_run() -> str:
    """Output of the README's second command; its folder is `franka` in the work folder."""
    return run_in_terminal("try", "franka")


def draw_terminal() -> None:
    """Table, verdict and uses as `try franka` prints them."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print("$ robot-dyn-id try franka", style="bold")
    console.print(Text.from_ansi(franka_run()))
    page = work_folder() / "terminal.html"
    style = "body { margin: 0 } pre { display: inline-block; margin: 0; padding: 14px; font-size: 13px }"
    text = console.export_html(theme=MONOKAI, inline_styles=True)
    page.write_text(text.replace("</head>", f"<style>{style}</style></head>"), encoding="utf-8")
    with open_page(page) as tab:
        shoot(tab, "pre", "terminal")


def draw_report() -> None:
    """Parts of the report of the Franka arm: the screen that decides, one joint."""
    franka_run()
    with open_page(work_folder() / "franka" / "report.html") as tab:
        shoot(tab, "body", REPORT[0], max_height=900)
        tab.run("location.hash = 'joint-4'")
        draw_plots(tab)
        shoot(tab, "#joint-4", REPORT[1])


def draw_franka() -> None:
    """Torque of the Franka arm, as the page of the gallery shows it in Python."""
    example = rdi.load_example("franka")
    draw_torque(rdi.identify(example.robot, example.recording), "franka_torque")


def draw_measured(name: str) -> None:
    """Torque of a measured robot in the recording that is not used for training."""
    data = os.environ.get("ROBOT_DYN_ID_DATA")
    if not data:
        print(f"{name}: skipped, ROBOT_DYN_ID_DATA is not set")
        return
    folder_name, training, validation, _ = MEASURED[name]
    folder = Path(data) / folder_name
    result = rdi.identify(
        rdi.load_robot(folder / "model.urdf"),
        [rdi.open_recording(folder / f"{part}.npz") for part in training],
        held_out=rdi.open_recording(folder / f"{validation}.npz"),
    )
    draw_torque(result, f"{name}_torque")


def draw_torque(result: rdi.IdentificationResult, name: str) -> None:
    """Drawing of measured and predicted torque; the result is printed, for the figures of the gallery."""
    print(result)
    figure = result.plot()
    figure.set_size_inches(INCHES[0], INCHES[1] * len(figure.axes) / 2)
    for effort, residual in zip(figure.axes[::2], figure.axes[1::2], strict=True):  # no room for two labels
        effort.yaxis.label.set_fontsize(8)
        residual.set_ylabel("")
    save_figure(figure, name)


def save_figure(figure: object, name: str) -> None:
    """Save a figure of matplotlib."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=80, format="png")  # type: ignore[attr-defined]
    save(Image.open(buffer), name)


def draw_preview() -> None:
    """Preview of a motion of the seven-axis arm of the demo."""
    model, t = RobotModel.from_file(ROOT / "urdf" / "arm7.urdf"), np.linspace(0.0, 10.0, 1001)
    limits = MotionLimits.from_model(model, (10.0,))
    motion = PlannedMotion(t, *make_excitation("fourier", limits, Demand(share=0.5)).evaluate(t)[:3])
    page = work_folder() / "preview.html"
    write_preview(page, model, motion, PreviewOptions(limits=limits))
    with open_page(page) as tab:
        tab.run(
            "const time = document.getElementById('time'); time.value = 0.35; time.dispatchEvent(new Event('input'))"
        )
        shoot(tab, "#motion3d", "preview")


def example_module(name: str) -> object:
    """A module of `examples/` whose name begins with a number."""
    spec = importlib.util.spec_from_file_location("example", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_control() -> None:
    """Tracking error of computed torque with the URDF's parameters and with the identified ones, simulated."""
    from matplotlib.figure import Figure

    robot = rdi.load_robot(simulated_arm.write_urdf(work_folder()))
    training = simulated_arm.write_recording(robot, work_folder() / "recording.npz", seed=1)
    identified = rdi.identify(robot, rdi.open_recording(training)).dynamics()
    nominal = rdi.Dynamics(rdi.Regressor(robot), np.arange(robot.inertial_parameters.size), robot.inertial_parameters)
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (title, dynamics) in zip(panels, (("URDF", nominal), ("identified model", identified)), strict=True):
        t, error = track(robot, dynamics)
        print(f"control, {title}: RMS error {1000 * np.sqrt(np.mean(error**2, axis=0)).round(5)} mrad")
        for joint, values in zip(robot.joint_names, 1000 * error.T, strict=True):
            panel.plot(t, values, lw=1.0, label=joint)
        panel.set_title(f"computed torque with the {title}", fontsize=10)
        panel.set_xlabel("time [s]")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("tracking error [mrad]")
    panels[0].legend(frameon=False, fontsize=8)
    save_figure(figure, "control")


def track(robot: rdi.RobotModel, dynamics: rdi.Dynamics) -> tuple[np.ndarray, np.ndarray]:
    """Errors [rad] of the simulated arm, heavier than its URDF and with friction, along a random motion.

    Returns:
        Times [s], shape (N,), and errors, shape (N, n), every millisecond.
    """
    law = example_module("5_predict_and_control").computed_torque  # type: ignore[attr-defined]
    columns = np.arange(robot.inertial_parameters.size)
    true = rdi.Dynamics(rdi.Regressor(robot), columns, simulated_arm.MASS_RATIO * robot.inertial_parameters)
    t = np.arange(round(CONTROL_TIME_S / CONTROL_STEP_S)) * CONTROL_STEP_S
    reference = np.stack([values.T for values in simulated_arm.random_fourier(robot, 5).evaluate(t)[:3]])
    q, dq = reference[0, 0].copy(), reference[1, 0].copy()
    errors = np.empty((len(t) // 10, len(robot.joint_names)))
    effort = np.zeros(len(robot.joint_names))
    for step in range(len(t)):
        if step % 10 == 0:  # the controller runs at 1 kHz
            errors[step // 10] = reference[0, step] - q
            effort = law(dynamics, np.stack([q, dq]), reference[:, step])
        dq += CONTROL_STEP_S * true.forward_dynamics(q, dq, effort - simulated_arm.friction(dq))
        q += CONTROL_STEP_S * dq
    return t[::10], errors


PICTURES: dict[str, Callable[[], None]] = {
    "terminal": draw_terminal,
    "report": draw_report,
    "preview": draw_preview,
    "control": draw_control,
    "franka": draw_franka,
    **{name: (lambda name=name: draw_measured(name)) for name in MEASURED},  # type: ignore[misc]
}
"""Functions that draw the pictures, by name."""


def main(names: list[str]) -> int:
    """Draw the named pictures, or all."""
    unknown = sorted({*names} - {*PICTURES})
    if unknown:
        print(f"{', '.join(unknown)}: no such picture; there are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    for name in names or PICTURES:
        PICTURES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
