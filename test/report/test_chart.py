# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from robot_dyn_id.report.chart import Axis, Band, ChartPanel, CrossLine, Line, Stems, chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*panels, **options):
    return ElementTree.fromstring(chart(300.0, 200.0, panels, **options))


def points(element):
    return np.array([[float(x) for x in pair] for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", element.get("d"))])


def of_color(root, color):
    return [path for path in root.iter(f"{SVG}path") if color in (path.get("stroke"), path.get("fill"))]


def labels(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def test_a_line_is_where_its_values_are():
    x, y = np.array([0.0, 1.0, 4.0]), np.array([-1.0, 3.0, 1.0])
    root = drawn(ChartPanel((Line(x, y, "#123456"),), x=Axis("time [s]"), y=Axis("effort", (-1.0, 3.0))))
    (line,) = of_color(root, "#123456")
    at = points(line)
    np.testing.assert_allclose((at[:, 0] - at[0, 0]) / np.ptp(at[:, 0]), x / 4.0, atol=1e-3)
    np.testing.assert_allclose((at[0, 1] - at[:, 1]) / np.ptp(at[:, 1]), (y + 1.0) / 4.0, atol=1e-3)
    assert {"time [s]", "effort", "0", "4"} <= set(labels(root))


def test_nan_interrupts_a_line_and_limits_cut_it_off():
    y = np.array([0.0, 1.0, np.nan, 1.0, 900.0])
    root = drawn(ChartPanel((Line(np.arange(5.0), y, "#123456"),), y=Axis("", (0.0, 2.0))))
    (line,) = of_color(root, "#123456")
    assert line.get("d").count("M") == 2 and line.get("d").count("L") == 2
    (clip,) = root.iter(f"{SVG}clipPath")
    assert line.get("clip-path") == f"url(#{clip.get('id')})"
    (frame,) = clip
    top, height = float(frame.get("y")), float(frame.get("height"))
    places = points(line)[:, 1]
    np.testing.assert_allclose(places[[0, 1, 2]], top + height * np.array([1.0, 0.5, 0.5]), atol=0.06)
    assert places[3] < top - 100.0 * height, "beyond the frame, not a plateau on it"


def test_every_panel_clips_its_own_curves():
    band = Band(np.arange(3.0), np.full(3, -9.0), np.full(3, 9.0), "#abcdef")
    panels = [ChartPanel((band,), y=Axis("", (-limit, limit))) for limit in (1.0, 2.0)]
    root = drawn(*panels)
    clips = [f"url(#{clip.get('id')})" for clip in root.iter(f"{SVG}clipPath")]
    assert len(set(clips)) == 2
    assert [path.get("clip-path") for path in of_color(root, "#abcdef")] == clips


def test_huge_values_remain_numbers_that_a_renderer_takes():
    line = Line(np.arange(3.0), np.array([0.0, 1e300, 1.0]), "#123456")
    (drawn_line,) = of_color(drawn(ChartPanel((line,), y=Axis("", (0.0, 2.0)))), "#123456")
    assert np.abs(points(drawn_line)).max() < 1e6


@pytest.mark.parametrize("scale", [1e-9, 3e-4, 1.0, 7.3, 2e8])
@pytest.mark.parametrize("center", [0.0, 5.0])
def test_ticks_are_few_and_distinct(scale, center):
    line = Line(np.linspace(0.0, 1.0, 9), scale * (center + np.linspace(-1.0, 1.3, 9)), "#123456")
    found = labels(drawn(ChartPanel((line,), x=Axis("x"), y=Axis("y"))))
    numbers = [label.replace("\N{MINUS SIGN}", "-") for label in found if label not in ("x", "y", None)]
    assert 5 <= len(numbers) <= 16
    upright = numbers[: next(i for i in range(1, len(numbers)) if float(numbers[i]) <= float(numbers[i - 1]))]
    assert len(set(upright)) == len(upright) >= 2


@pytest.mark.parametrize("low", [-1.0, -0.99, -1.3, -1.9, 0.3])
def test_every_axis_shows_its_scale_by_two_ticks(low):
    """Also a low panel, which has room for three only, about zero."""
    for high in np.linspace(low + 0.1, low + 4.0, 60):
        axis = Axis("y", (low, float(high)))
        line = Line(np.array([0.0, 1.0]), np.array([low, high]), "#123456")
        root = ElementTree.fromstring(chart(300.0, 70.0, [ChartPanel((line,), x=Axis("x", names=("a", "b")), y=axis)]))
        assert len([label for label in labels(root) if label not in ("x", "y", "a", "b", None)]) >= 2


def test_logarithmic_axes_have_powers_of_ten():
    place = np.geomspace(1e-4, 10.0, 20)
    band = Band(place, np.zeros(20), np.ones(20), "#abcdef")
    root = drawn(ChartPanel((band,), x=Axis("x", logarithmic=True), y=Axis("y")))
    assert "10⁻⁴" in labels(root) and "10⁰" in labels(root)
    at = points(of_color(root, "#abcdef")[0])[:20, 0]
    np.testing.assert_allclose(np.diff(at), np.ptp(at) / 19.0, atol=0.11)


def test_names_are_escaped_and_rules_outside_are_not_drawn():
    stems = Stems(np.array([0.0, 1.0]), np.array([1.0, 2.0]), "#123456")
    axis = Axis(limits=(-0.5, 1.5), names=("a<b", "c&d"))
    rules = (
        CrossLine(1.5, color="#aaaaaa"),
        CrossLine(9.0, color="#bbbbbb"),
        CrossLine(1.0, vertical=True, color="#cccccc"),
    )
    root = drawn(ChartPanel((stems, *rules), x=axis, y=Axis("y", (0.0, 3.0))))
    assert {"a<b", "c&d"} <= set(labels(root))
    assert len(list(root.iter(f"{SVG}circle"))) == 2
    assert len(of_color(root, "#aaaaaa")) == len(of_color(root, "#cccccc")) == 1
    assert not of_color(root, "#bbbbbb")


@pytest.mark.parametrize("values", [np.zeros(3), np.full(3, np.nan), np.empty(0)])
def test_constant_missing_and_no_values_are_drawn(values):
    assert (
        drawn(ChartPanel((Line(np.arange(float(len(values))), values, "#123456"),), x=Axis("x"), y=Axis("y")))
        is not None
    )
