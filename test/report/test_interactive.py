# SPDX-License-Identifier: Apache-2.0
"""Data of interactive plots: columns keep their values to 16 bits, decimation keeps extremes."""

import base64
import json

import numpy as np
import pytest

from robot_dyn_id.report.interactive import (
    LEVELS,
    Plot,
    PlotAxis,
    PlotSheet,
    Series,
    Table,
    decimate_curves,
    escape_script,
    pack_column,
)
from robot_dyn_id.report.plots import DisplayTime


def unpacked(column):
    codes = np.frombuffer(base64.b64decode(column["codes"]), "<i2").astype(float)
    values = np.where(codes == -32768, np.nan, column["low"] + (codes + 32767) * column["step"])
    return 10.0**values if column["log"] else values


def test_columns_keep_their_values():
    values = np.random.default_rng(0).normal(size=1000)
    values[[3, 500]] = np.nan, np.inf
    found = unpacked(pack_column(values))
    known = np.isfinite(values)
    assert np.array_equal(np.isfinite(found), known)
    assert np.abs(found - values)[known].max() <= 0.51 * np.ptp(values[known]) / LEVELS
    ratios = np.geomspace(1e-9, 1e3, 1000)
    assert unpacked(pack_column(ratios, ratio=True)) == pytest.approx(ratios, rel=1e-3)
    assert np.isnan(unpacked(pack_column(np.append(ratios, [0.0, -1.0]), ratio=True))[-2:]).all()
    assert np.ptp(unpacked(pack_column(np.full(100, 2.5)))) == 0.0
    assert pack_column(np.array([1.0, np.nan, -0.0])) == [1.0, None, 0.0]
    assert str(pack_column(np.array([-0.0]))) == "[0.0]"
    assert pack_column(np.full(100, np.nan)) == [None] * 100


def test_decimation_keeps_the_extremes_and_their_order():
    t = np.arange(10_007) * 0.01
    curve = np.sin(t)
    curve[777], curve[5001] = 9.0, -7.0
    gap = np.where((t > 50.0) & (t < 60.0), np.nan, curve)
    places, (found, interrupted) = decimate_curves(t, [curve, gap], 200)
    assert len(places) == len(found) == 400 and np.all(np.diff(places) > 0.0)
    assert found.max() == 9.0 and found.min() == -7.0
    assert abs(places[np.argmax(found)] - t[777]) < 0.5 and abs(places[np.argmin(found)] - t[5001]) < 0.5
    assert np.isnan(interrupted[(places > 51.0) & (places < 59.0)]).all() and not np.isnan(found).any()
    falling = (places > 15.2) & (places < 16.8)
    assert np.all(np.diff(found[falling]) <= 0.0)
    same, (kept,) = decimate_curves(t, [curve], 6000)
    assert same is t and kept is not None and len(kept) == len(t)


def test_extremes_between_the_places_are_decimated_too():
    """A spike between two samples of a thinned curve is drawn, also where there are few places."""
    t = np.arange(100.0)
    low, high = np.sin(t) - 0.1, np.sin(t) + 0.1
    high[33], low[70] = 9.0, -7.0
    for buckets in (10, 80, 4000):
        places, (found,) = decimate_curves(t, [np.stack([low, high])], buckets)
        assert len(places) == len(found) <= 200 and np.all(np.diff(places) >= 0.0)
        assert found.max() == 9.0 and found.min() == -7.0
        assert abs(places[np.argmax(found)] - 33.0) <= 100 / buckets + 1.0


def test_decimated_curves_keep_every_interruption():
    """One NaN per interruption, which a bucket of other samples would hide."""
    t = np.arange(20_000) * 0.01 + 5.0 * np.repeat([0, 1, 2, 3], [3003, 7000, 1, 9996])
    axis = DisplayTime.from_stamps(t, joints=40)
    table = axis.table([Series("speed", np.sin(t), "blue")])
    assert axis.decimated and len(table.x) <= 2 * (axis.buckets + 6)
    gaps = np.flatnonzero(np.isnan(table.series[0].y))
    assert np.count_nonzero(np.diff(gaps) > 1) + 1 == len(axis.starts) == 3
    for start in axis.starts:
        before = gaps[table.x[gaps] < start]
        assert not np.isnan(table.series[0].y[before[-1] + 1]) and table.x[before[-1] + 1] == start
    assert np.all(np.diff(table.x) >= 0.0)


def test_a_sheet_holds_a_column_once_and_cannot_end_its_script():
    sheet, x = PlotSheet(), np.linspace(0.0, 1.0, 100)
    for number in range(3):
        table = Table(x, (Series("</script>", x**2, "blue"), Series("other", x + number, "orange")))
        sheet.add(f"plot-{number}", Plot("title", PlotAxis("x"), PlotAxis("y"), (table,)))
    content = json.loads(sheet.json())
    assert len(content["columns"]) == 2 + 2 and list(content["plots"]) == ["plot-0", "plot-1", "plot-2"]
    assert (
        "</script>" not in sheet.json() and content["plots"]["plot-0"]["tables"][0]["series"][0]["label"] == "</script>"
    )
    assert escape_script({"a": "<&>"}) == '{"a":"\\u003c\\u0026\\u003e"}'
