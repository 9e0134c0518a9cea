# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: every plot is drawn, nothing overflows, keyboard, contrast, print, without scripts."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.browser import NPM, browser, require_browser
from support.fleet_summaries import FLEET
from support.result_pages import example_page
from support.robots import PLANAR3R
from support.simulated import TERMS, Simulated

from robot_dyn_id.bench.growth import GrowthPoint, render_growth_page
from robot_dyn_id.comparison.models import compare_models
from robot_dyn_id.excitation import Demand, MotionLimits, make_excitation
from robot_dyn_id.findings import find_definition
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.identification.validation.explanation import explain
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.report.comparison import render_comparison_page
from robot_dyn_id.report.fleet import write_fleet_page
from robot_dyn_id.report.html import write_html
from robot_dyn_id.report.margins import PlannedMotion
from robot_dyn_id.report.preview import PreviewOptions, write_preview
from robot_dyn_id.report.result import write_result_page
from robot_dyn_id.report.summary import summarize_identification

ARM7 = PLANAR3R.parent / "arm7.urdf"
PAGES = ("report", "comparison", "fleet", "preview", "growth", "result")
NARROW, WIDE = 390, 1400
LONG = {
    **{f"joint{number}": f"joint{number}_of_the_left_arm_{'x' * 70}" for number in range(1, 8)},
    **{"p.yaml": f"/recordings/{'recordings_of_today/' * 9}p.yaml", "trial": "a_very_long_folder/" * 9},
    **{word: f"{word}_{'y' * 90}" for word in ("one", "two", "robot_dyn_id", "arm7", "link7", "fleet", "Fit", "mass")},
}
"""Names and paths as awkward as users have them, by those of the pages."""
MIN_TICK_PX = 11
MIN_PRINTED_PLOT_BYTES = 500

VENDOR = Path(__file__).resolve().parents[2] / "robot_dyn_id" / "report" / "vendor"

BLANK = """
return [...document.querySelectorAll("[data-plot]")].filter((box) => {
  const canvas = box.querySelector("canvas");
  if (!canvas || !canvas.width) return true;
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return !pixels.some((value) => value !== 0);
}).map((box) => box.dataset.plot)
"""

WIDER = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && (box.right > width + 1 || box.left < -1) && !one.closest(".table, .skip, .for-readers, .u-over");
}).map((one) => one.outerHTML.slice(0, 120))
"""


def write_pages(folder):
    """Every kind of page, of a simulated arm of seven axes."""
    arm = Simulated(ARM7.read_text())
    training, held_out = arm.record(1, noise=1.0), arm.record(2, noise=1.0)  # some uses are limited
    result = identify([training], [held_out], arm.model, Settings(terms=TERMS), "0.0.test")
    summary = summarize_identification(result, "p.yaml")
    write_html(
        folder / "report.html",
        summary,
        explain(result.evaluation, result.parameters, result.training),
        result.parameters,
    )
    large = repeated(result.evaluation, 20_000)
    write_html(folder / "large.html", summary, explain(large, result.parameters, result.training), result.parameters)
    models = (result.parameters, result.parameters, result.parameters)
    compared = tuple(compare_models(models[0], other) for other in models[1:])
    page = render_comparison_page(("one", "two", "three"), models, compared, (large, large, large))
    (folder / "comparison.html").write_text(page, encoding="utf-8")
    write_fleet_page(folder / "fleet.html", FLEET)
    model = RobotModel.from_file(ARM7)
    limits, t = MotionLimits.from_model(model, (10.0,)), np.linspace(0.0, 10.0, 1001)
    motion = PlannedMotion(t, *make_excitation("fourier", limits, Demand(share=0.5)).evaluate(t)[:3])
    write_preview(folder / "preview.html", model, motion, PreviewOptions(limits=limits))
    write_result_page(folder / "result.html", example_page())
    points = [GrowthPoint(size, 1.0, 5.0 + size / 1e4) for size in (1000, 10_000, 100_000)]
    (folder / "growth.html").write_text(render_growth_page({"samples": points, "joints": points}), encoding="utf-8")
    for name in PAGES:
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        for word, long in LONG.items():
            text = re.sub(rf"(?<![\w/-]){re.escape(word)}(?![\w-])", long, text)
        (folder / f"long-{name}.html").write_text(text, encoding="utf-8")


def repeated(evaluation, samples):
    """The evaluation with its trace repeated to that number of samples at 100 Hz, with a spike in the residual."""
    trace = evaluation.trace
    places = np.arange(samples) % len(trace.t)

    def taken(values):
        return values[..., places] if isinstance(values, np.ndarray) and values.shape[-1:] == trace.t.shape else values

    def all_of(value):
        return replace(value, **{name: taken(entry) for name, entry in vars(value).items()})

    measured = trace.measured[:, places].copy()
    measured[0, samples // 3] += 100.0
    parts = {"motion": all_of(trace.motion), "parts": all_of(trace.parts), "t": 0.01 * np.arange(samples)}
    return replace(evaluation, trace=replace(all_of(trace), **parts, measured=measured))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    require_browser()
    path = tmp_path_factory.mktemp("pages")
    write_pages(path)
    return path


@pytest.fixture(scope="module")
def tab(folder):
    with browser(folder / "profile") as opened:
        yield opened


@pytest.mark.parametrize("name", PAGES)
def test_every_plot_is_drawn_without_a_message_on_the_console(tab, folder, name):
    tab.problems()
    for width in (WIDE, NARROW):
        tab.open(folder / f"{name}.html", width)
        count = tab.run("return document.querySelectorAll('[data-plot]').length")
        assert (count > 0) == (name != "fleet")
        assert tab.run(BLANK) == []
    if name in ("report", "preview"):
        assert tab.run(
            "const c = document.getElementById('view');"
            "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v !== 0)"
        )
    assert tab.problems() == []


@pytest.mark.parametrize("name", ["comparison", "fleet"])
def test_units_do_not_make_the_rows_of_a_narrow_page_higher(tab, folder, name):
    tab.open(folder / f"{name}.html", NARROW)
    heights = tab.run("return [...document.querySelectorAll('td.unit')].map((one) => one.parentElement.offsetHeight)")
    assert heights and max(heights) < 1.5 * min(heights)


@pytest.mark.parametrize("name", PAGES)
def test_long_names_and_paths_do_not_widen_a_page(tab, folder, name):
    assert len((folder / f"long-{name}.html").read_text()) > len((folder / f"{name}.html").read_text())
    for width in (NARROW, WIDE):
        tab.open(folder / f"long-{name}.html", width)
        assert tab.run("return document.documentElement.scrollWidth") <= width
        assert tab.run(WIDER) == []


FOLDED = "return [...document.querySelectorAll('details')].filter((one) => one.open).length"


def at(path, place):
    """Address of a place of a page."""
    return f"{path.as_uri()}#{place}"


def test_the_summary_fits_a_screen_and_the_rest_is_folded(tab, folder):
    tab.open(folder / "report.html")
    tab.driver.refresh()
    assert tab.run(FOLDED) == 0
    assert tab.run("return document.querySelector('.summary').getBoundingClientRect().bottom") <= 900
    assert tab.run("return document.documentElement.scrollHeight") < 1800
    assert all(tab.run("return [...document.querySelectorAll('.part > summary span')].map((s) => s.textContent)"))


@pytest.mark.parametrize("script", [True, False])
def test_a_link_opens_the_folded_part_that_it_leads_to(tab, folder, script):
    tab.open(folder / "report.html", script=script)
    tab.driver.get("about:blank")
    tab.driver.get(at(folder / "report.html", "joint-3"))
    heading = tab.driver.find_element("css selector", "#joint-3 h3")
    assert heading.is_displayed()
    assert not tab.driver.find_element("css selector", "#parameters").is_displayed()


def test_the_name_of_a_finding_leads_to_its_explanation(tab, folder):
    tab.open(folder / "report.html")
    tab.driver.refresh()
    links = tab.driver.find_elements("css selector", "#uses a.code")
    assert links
    links[0].click()
    explanation = tab.driver.find_element("css selector", f"{tab.run('return location.hash')} .why p")
    assert explanation.is_displayed() and explanation.text.startswith(find_definition(links[0].text).cause)


@pytest.mark.parametrize("name", PAGES)
def test_a_narrow_page_has_no_overflow_and_readable_ticks(tab, folder, name):
    tab.open(folder / f"{name}.html", NARROW)
    assert tab.run("return document.documentElement.scrollWidth") <= NARROW
    assert tab.run(WIDER) == []
    fonts = tab.run("return [...Charts.drawn.values()].flatMap((p) => p.axes.map((a) => a.font[0]))")
    sizes = [float(re.search(r"([\d.]+)px", font)[1]) for font in fonts]
    assert all(size >= MIN_TICK_PX for size in sizes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible(tab, folder, name, scheme):
    tab.open(folder / f"{name}.html", WIDE if scheme == "light" else NARROW, scheme)
    assert tab.accessibility() == {}
    background = tab.run("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", background)[:3])
    assert (brightness > 600) == (scheme == "light")


def press(tab, selector, *keys):
    """Press keys on an element that has the focus."""
    element = tab.driver.find_element("css selector", selector)
    tab.run("arguments[0].focus()", element)
    assert tab.run("return document.activeElement === arguments[0]", element)
    element.send_keys(*keys)


def shown_range(tab, name):
    return tab.run(
        "const p = Charts.drawn.get(document.querySelector(`[data-plot='${arguments[0]}']`)).scales.x;"
        "return [p.min, p.max]",
        name,
    )


def test_plots_are_operated_by_keyboard_and_share_their_time(tab, folder):
    tab.open(folder / "report.html")
    whole = shown_range(tab, "torque-0")
    press(tab, "[data-plot='torque-0']", "+")
    near = shown_range(tab, "torque-0")
    assert near[1] - near[0] == pytest.approx(0.5 * (whole[1] - whole[0]))
    for other in ("residual-0", "parts-0", "torque-6"):
        assert shown_range(tab, other) == pytest.approx(near)
    press(tab, "[data-plot='torque-0']", "\ue014", "\ue014")  # arrow right
    values = tab.run(
        "return [...document.querySelectorAll(\"[data-plot='parts-3'] ~ .legend .value\")].map((v) => v.textContent)"
    )
    assert len(values) == 5 and all(values)
    assert "measured" in tab.run("return document.getElementById('live').textContent")
    press(tab, "[data-plot='torque-0']", "\ue011")  # Home
    assert shown_range(tab, "torque-6") == pytest.approx(whole)


def test_joints_curves_and_rows_are_chosen_by_keyboard(tab, folder):
    tab.open(folder / "report.html")
    press(tab, "[data-show-joint='1']", " ")
    hidden = "return document.querySelector(`article[data-joint='${arguments[0]}']`).hidden"
    assert tab.run(hidden, 1) and not tab.run(hidden, 2)
    press(tab, "[data-plot='torque-0'] ~ .legend button", " ")
    assert not tab.run("return [...Charts.drawn.values()][0].series[1].show")
    rows = "return [...document.querySelectorAll('#base tbody tr')].filter((r) => !r.hidden).map((r) => r.cells[0].textContent)"
    everything = tab.run(rows)
    press(tab, "#base th:nth-child(2) button", "\ue007")  # Enter
    assert tab.run(rows) != everything and sorted(tab.run(rows)) == sorted(everything)
    values = tab.run("return [...document.querySelectorAll('#base tbody tr')].map((r) => r.cells[1].dataset.value)")
    assert np.all(np.diff(np.array(values, dtype=float)) >= 0.0)
    press(tab, "input[data-filter='base']", "fv3")
    assert tab.run(rows) == ["fv3"]
    assert tab.run("return document.getElementById('base-count').textContent") == f"1 of {len(everything)} shown"


def size_of_print(tab):
    pdf = base64.b64decode(tab.command("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    return len(pdf)


@pytest.mark.parametrize("name", PAGES)
def test_print_has_every_plot_and_no_cut_columns(tab, folder, name):
    tab.open(folder / f"{name}.html", 720, media="print")
    assert tab.run("return document.documentElement.scrollWidth") <= 720
    cut = "return [...document.querySelectorAll('.table')].filter((t) => t.scrollWidth > t.clientWidth + 1).length"
    assert tab.run(cut) == 0
    tab.open(folder / f"{name}.html", scheme="dark")
    plots = tab.run("return document.querySelectorAll('[data-plot]').length")
    printed = size_of_print(tab)
    assert tab.run(BLANK) == []
    tab.run("document.querySelectorAll('[data-plot] canvas').forEach((one) => one.remove())")
    assert printed - size_of_print(tab) >= MIN_PRINTED_PLOT_BYTES * plots


def test_without_scripts_tables_remain_and_a_sentence_explains_the_missing_plots(tab, folder):
    tab.open(folder / "report.html", script=False)
    for summary in tab.driver.find_elements("css selector", ".part > summary"):
        summary.click()
    text = tab.driver.find_element("css selector", "main").text
    assert "Plots need JavaScript" in text and "gravity compensation" in text
    assert all(name in text for name in ("joint1", "fv3", "SHA-256"))
    tab.open(folder / "report.html")
    assert "Plots need JavaScript" not in tab.driver.find_element("css selector", "main").text


def test_large_pages_remain_small_and_keep_their_extremes(folder):
    sizes = {path.stem: path.stat().st_size for path in folder.glob("*.html")}
    assert sizes["large"] < 3_000_000 and sizes["comparison"] < 3_000_000
    page = (folder / "large.html").read_text(encoding="utf-8")
    assert "are decimated to the smallest and the largest value" in page
    data = json.loads(re.search(r'id="plots">(.*?)</script>', page, re.S)[1])
    column = data["columns"][data["plots"]["residual-0"]["tables"][0]["series"][0]["y"]]
    codes = np.frombuffer(base64.b64decode(column["codes"]), "<i2")
    assert column["low"] + (int(codes.max()) + 32767) * column["step"] == pytest.approx(100.0, rel=0.2)


def test_the_library_is_the_published_one():
    require_browser()
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert (VENDOR / name).read_bytes() == (NPM / "uplot" / "dist" / name).read_bytes()
    version = json.loads((NPM / "uplot" / "package.json").read_text())["version"]
    assert f"version: {version}\n" in (VENDOR / "README.md").read_text()
    assert (VENDOR / "uPlot.LICENSE").read_bytes() == (NPM / "uplot" / "LICENSE").read_bytes()
