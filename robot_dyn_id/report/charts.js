// SPDX-License-Identifier: Apache-2.0
"use strict";
// Plots of a page: elements with data-plot are drawn from the data in #plots when they come into view, and all of them in print.
const Charts = (() => {
  const holder = document.getElementById("plots");
  const data = holder ? JSON.parse(holder.textContent) : { columns: [], plots: {} };
  const FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
  const LABEL_FONT = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
  const MINUS = "\u2212", PRINT_WIDTH = 330;
  const unpacked = new Map(), drawn = new Map(), groups = new Map(), cursorListeners = [], styleListeners = [];
  let printing = false;

  document.documentElement.classList.add("js");

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
  const faded = (name, share) => {
    const hex = color(name).replace("#", "");
    const [r, g, b] = [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16));
    return `rgba(${r},${g},${b},${share})`;
  };

  // Numbers of a column, null where nothing is known.
  function column(number) {
    if (!unpacked.has(number)) {
      const packed = data.columns[number];
      let values = packed;
      if (!Array.isArray(packed)) {
        const bytes = Uint8Array.from(atob(packed.codes), (letter) => letter.charCodeAt(0));
        const view = new DataView(bytes.buffer);
        values = Array.from({ length: bytes.length / 2 }, (_, i) => {
          const code = view.getInt16(2 * i, true);
          if (code === -32768) return null;
          const value = packed.low + (code + 32767) * packed.step;
          return packed.log ? 10 ** value : value;
        });
      }
      unpacked.set(number, values);
    }
    return unpacked.get(number);
  }

  // Ascending without repetition, as rows of several tables are joined by their places.
  function ascending(values) {
    const step = (values[values.length - 1] - values[0] || 1) * 1e-9;
    let last = -Infinity;
    return values.map((value) => (last = value > last ? value : last + step));
  }

  function text(value, digits = 4) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
    const size = Math.abs(value), rounded = Number(value.toPrecision(digits));
    let written = size !== 0 && (size < 1e-3 || size >= 1e6) ? rounded.toExponential() : String(rounded);
    if (Number(written) === 0) written = "0";
    return written.replace(/-/g, MINUS);
  }

  const tick = (value) => (value === null ? "" : text(value, 6));

  function group(name) {
    if (!groups.has(name)) groups.set(name, { range: null, members: new Set() });
    return groups.get(name);
  }

  function tickDistance(plot) {
    return plot.width < 420 ? 56 : 70;
  }

  // One plot from its description: data in rows over common places, series, and what is drawn over them.
  function describe(spec) {
    const tables = spec.tables.map((table) => [
      ascending(column(table.x)),
      ...table.series.flatMap((one) => (one.high === undefined ? [column(one.y)] : [column(one.y), column(one.high)])),
    ]);
    const rows = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const series = [{}], bands = [], entries = [];
    for (const table of spec.tables) {
      for (const one of table.series) {
        const first = series.length;
        const common = { label: one.label, show: one.shown, auto: one.scaled, spanGaps: false };
        if (one.high !== undefined) {
          const edge = { ...common, stroke: () => faded(one.color, 0.35), width: 0.7, points: { show: false } };
          series.push(edge, { ...edge });
          bands.push({ series: [first + 1, first], fill: () => faded(one.color, 0.16) });
          entries.push({ one, numbers: [first, first + 1] });
          continue;
        }
        const lined = { ...common, stroke: () => color(one.color), width: one.width, dash: one.dash.length ? one.dash : undefined, points: { show: false } };
        if (one.style === "points") {
          series.push({ ...common, stroke: () => faded(one.color, 0.65), width: 0, paths: () => null,
            points: { show: true, size: Math.max(2, 2 * one.width), width: 0, fill: () => faded(one.color, 0.55), stroke: () => faded(one.color, 0.55), space: 0 } });
        } else if (one.style === "bars") {
          series.push({ ...lined, fill: () => faded(one.color, 0.4), paths: uPlot.paths.bars({ size: [0.9, 60] }) });
        } else series.push(lined);
        entries.push({ one, numbers: [first] });
      }
    }
    return { rows, series, bands, entries };
  }

  function rules(spec) {
    return (plot) => {
      const { ctx, bbox } = plot, ratio = window.devicePixelRatio || 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const rule of spec.rules) {
        const at = Math.round(plot.valToPos(rule.at, rule.vertical ? "x" : "y", true)) + 0.5;
        ctx.strokeStyle = color(rule.color);
        ctx.lineWidth = ratio;
        ctx.setLineDash(rule.color === "bad" ? [5 * ratio, 4 * ratio] : [2 * ratio, 3 * ratio]);
        ctx.beginPath();
        if (rule.vertical) ctx.moveTo(at, bbox.top), ctx.lineTo(at, bbox.top + bbox.height);
        else ctx.moveTo(bbox.left, at), ctx.lineTo(bbox.left + bbox.width, at);
        ctx.stroke();
        if (rule.label) {
          ctx.fillStyle = color(rule.color);
          ctx.font = FONT.replace("11px", `${11 * ratio}px`);
          ctx.textBaseline = "top";
          ctx.textAlign = "left";
          if (rule.vertical) ctx.fillText(rule.label, at + 4 * ratio, bbox.top + 2 * ratio);
          else ctx.fillText(rule.label, bbox.left + 4 * ratio, at + 2 * ratio);
        }
      }
      ctx.restore();
    };
  }

  function axis(spec, vertical) {
    const own = vertical ? spec.y : spec.x;
    const found = {
      stroke: () => color("text-soft"), font: FONT, labelFont: LABEL_FONT, label: own.label, labelSize: 17, labelGap: 0,
      grid: { stroke: () => color("line"), width: 1 }, ticks: { stroke: () => color("line"), width: 1, size: 4 }, gap: 4,
    };
    if (own.names.length) {
      found.splits = () => own.names.map((_, i) => i);
      found.values = () => own.names;
    } else found.values = (plot, values) => (own.log ? values.map((v) => (v !== null && Math.abs(Math.log10(v) % 1) < 1e-6 ? tick(v) : "")) : values.map(tick));
    if (vertical) {
      const measure = document.createElement("canvas").getContext("2d");
      measure.font = FONT;
      found.size = (plot, values) => 10 + Math.max(30, ...(values || []).map((value) => measure.measureText(value).width));
      found.space = 20;
    } else {
      found.size = 24;
      found.space = tickDistance;
    }
    return found;
  }

  function scale(own, vertical) {
    const found = { time: false, distr: own.log ? 3 : 1 };
    if (own.limits) found.range = (plot, low, high) => (vertical || plot.zoomed !== true ? own.limits : [low, high]);
    else if (own.names.length) found.range = [-0.6, own.names.length - 0.4];
    else if (vertical && !own.log) found.range = (plot, low, high) => {
      if (low === null || high === null) return [-1, 1];
      const whole = plot.full === undefined || (plot.scales.x.min <= plot.full.min && plot.scales.x.max >= plot.full.max);
      if (own.room && whole) [low, high] = [Math.min(low, own.room[0]), Math.max(high, own.room[1])];
      const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
      return [low - room, high + room];
    };
    else if (!vertical) found.range = (plot, low, high) => (low === high ? [low - 0.5, high + 0.5] : [low, high]);
    return found;
  }

  const widthOf = (box) => {
    const room = Math.floor(box.getBoundingClientRect().width); // clientWidth rounds up
    return Math.max(220, printing ? Math.min(room, PRINT_WIDTH) : room);
  };

  function draw(box) {
    if (drawn.has(box) || box.offsetParent === null) return;
    const spec = data.plots[box.dataset.plot], { rows, series, bands, entries } = describe(spec);
    const shared = spec.group ? group(spec.group) : null;
    let quiet = false;
    const plot = new uPlot({
      width: widthOf(box), height: spec.height, series, bands,
      scales: { x: scale(spec.x, false), y: scale(spec.y, true) },
      axes: [axis(spec, false), axis(spec, true)],
      legend: { show: false },
      cursor: {
        sync: shared ? { key: spec.group, scales: ["x", null] } : undefined,
        drag: { x: true, y: false, setScale: true, dist: 5 },
        points: { size: 6 }, y: false,
      },
      hooks: {
        drawAxes: [rules(spec)],
        setCursor: [(one) => show(one)],
        setScale: [(one, key) => {
          if (key !== "x" || quiet) return;
          const { min, max } = one.scales.x;
          if (shared) zoomGroup(shared, { min, max }, one);
        }],
      },
    }, rows, box);
    plot.full = { min: rows[0][0], max: rows[0][rows[0].length - 1] };
    plot.setQuietly = (range) => {
      quiet = true;
      plot.setScale("x", range);
      queueMicrotask(() => (quiet = false));
    };
    const buttons = legend(box, spec, plot, entries);
    const where = box.parentElement.querySelector(".where");
    function show(one) {
      const index = one.cursor.idx;
      if (where) where.textContent = index === null || index === undefined ? "" : `${spec.x.label.replace(/\s*\[.*/, "")} ${text(rows[0][index])}`;
      for (const { output, numbers } of buttons) {
        const values = index === null || index === undefined ? [] : numbers.map((n) => rows[n][index]);
        output.textContent = values.every((v) => v === null || v === undefined) ? "" : values.map((v) => text(v, 3)).join(" \u2026 ");
      }
      if (spec.group === "time" && one.cursor.event) cursorListeners.forEach((listener) => listener(index === null ? null : rows[0][index]));
    }
    drawn.set(box, plot);
    if (shared) {
      shared.members.add(plot);
      if (shared.range) plot.setQuietly(shared.range);
    }
    keys(box, spec, plot, shared);
    box.classList.add("drawn");
  }

  function zoomGroup(shared, range, source) {
    if (shared.busy) return;
    shared.busy = true;
    shared.range = range;
    shared.members.forEach((plot) => plot !== source && plot.setQuietly(range));
    shared.busy = false;
  }

  // Names of the series as buttons that turn them off and on, with the values at the cursor.
  function legend(box, spec, plot, entries) {
    const list = document.createElement("div");
    list.className = "legend";
    const found = entries.filter(({ one }) => one.label).map(({ one, numbers }) => {
      const button = document.createElement("button"), mark = document.createElement("i"), output = document.createElement("span");
      button.type = "button";
      button.setAttribute("aria-pressed", String(one.shown));
      mark.className = one.style;
      mark.style.setProperty("--mark", `var(--${one.color})`);
      output.className = "value";
      button.append(mark, one.label, output);
      button.onclick = () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        numbers.forEach((n) => plot.setSeries(n, { show: on }));
      };
      list.append(button);
      return { output, numbers };
    });
    if (!spec.legend) return [];
    const where = document.createElement("span");
    where.className = "where";
    list.append(where);
    box.parentElement.insertBefore(list, box.nextSibling);
    return found;
  }

  // Zoom by a factor about the middle or the cursor, and shift by a share of what is shown.
  function change(plot, shared, factor, shift) {
    const { min, max } = plot.scales.x, log = plot.scales.x.distr === 3;
    const to = log ? Math.log10 : (x) => x, back = log ? (x) => 10 ** x : (x) => x;
    const [low, high] = [to(min), to(max)], left = plot.cursor.left;
    const middle = left > 0 ? to(plot.posToVal(left, "x")) : (low + high) / 2;
    const limits = [to(plot.full.min), to(plot.full.max)];
    let from = middle - (middle - low) * factor + shift * (high - low), until = middle + (high - middle) * factor + shift * (high - low);
    from = Math.max(from, limits[0]);
    until = Math.min(until, limits[1]);
    if (until - from < 1e-5 * (limits[1] - limits[0])) return;
    plot.setScale("x", { min: back(from), max: back(until) });
  }

  const reset = (plot) => plot.setScale("x", { ...plot.full });

  function keys(box, spec, plot, shared) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-roledescription", "interactive plot");
    box.setAttribute("aria-label", `${spec.title}. Arrow keys move the cursor, plus and minus zoom, Shift with arrow keys shifts, Home resets.`);
    box.onkeydown = (event) => {
      const step = event.ctrlKey ? 10 : 1;
      if (event.key === "+" || event.key === "=") change(plot, shared, 0.5, 0);
      else if (event.key === "-") change(plot, shared, 2, 0);
      else if (event.key === "Home") reset(plot);
      else if (event.key === "Escape") plot.setCursor({ left: -10, top: -10 }, true, true);
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        const side = event.key === "ArrowLeft" ? -1 : 1;
        if (event.shiftKey) change(plot, shared, 1, 0.25 * side);
        else {
          const width = plot.over.clientWidth, at = plot.cursor.left > 0 ? plot.cursor.left : width / 2;
          plot.setCursor({ left: Math.min(width - 1, Math.max(1, at + side * step * Math.max(1, width / 200))), top: plot.over.clientHeight / 2 }, true, true);
          const live = document.getElementById("live");
          if (live) live.textContent = [...box.parentElement.querySelectorAll(".legend > *")].map((one) => one.textContent).join(", ");
        }
      } else return;
      event.preventDefault();
    };
    plot.over.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      change(plot, shared, Math.exp(0.002 * event.deltaY), 0);
    }, { passive: false });
  }

  function resize() {
    drawn.forEach((plot, box) => {
      if (box.offsetParent === null) return;
      const width = widthOf(box);
      if (Math.abs(width - plot.width) > 0.5) plot.setSize({ width, height: plot.height });
    });
  }

  function redraw() {
    drawn.forEach((plot) => plot.redraw(false, true));
    styleListeners.forEach((listener) => listener());
  }

  // Move the cursor of all plots over time.
  function setTime(time) {
    group("time").members.forEach((plot) => {
      const left = plot.valToPos(time, "x");
      plot.setCursor(left < 0 || left > plot.over.clientWidth ? { left: -10, top: -10 } : { left, top: 5 }, true);
    });
  }

  const boxes = () => [...document.querySelectorAll("[data-plot]")];
  const watcher = new IntersectionObserver((entries) => entries.forEach((one) => one.isIntersecting && draw(one.target)), { rootMargin: "800px" });

  // Everything is drawn in print, in light colors and as wide as the paper.
  function print(on) {
    if (on === printing) return;
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    document.querySelectorAll("details").forEach((one) => {
      if (on && !one.open) one.open = one.dataset.opened = true;
      else if (!on && one.dataset.opened) one.open = false, delete one.dataset.opened;
    });
    if (on) boxes().forEach(draw);
    resize();
    redraw();
  }

  // Buttons that act on a group of plots: data-zoom is in, out, left, right or reset.
  function toolbar() {
    document.querySelectorAll("[data-zoom]").forEach((button) => {
      button.onclick = () => {
        const shared = group(button.dataset.group || "time"), plot = [...shared.members][0];
        if (!plot) return;
        const [factor, shift] = { in: [0.5, 0], out: [2, 0], left: [1, -0.25], right: [1, 0.25] }[button.dataset.zoom] || [0, 0];
        if (factor) change(plot, shared, factor, shift);
        else reset(plot);
      };
    });
    document.querySelectorAll("[data-show-joint]").forEach((button) => {
      button.onclick = () => showJoint(button, button.getAttribute("aria-pressed") !== "true");
    });
    document.querySelectorAll("[data-show-all]").forEach((button) => {
      button.onclick = () => document.querySelectorAll("[data-show-joint]").forEach((one) => showJoint(one, button.dataset.showAll === "true"));
    });
  }

  function showJoint(button, on) {
    button.setAttribute("aria-pressed", String(on));
    document.querySelectorAll(`[data-joint="${button.dataset.showJoint}"]`).forEach((one) => (one.hidden = !on));
    resize();
  }

  // Tables with the class sortable: buttons in their head; data-filter is the id of the table that a field filters.
  function tables() {
    document.querySelectorAll("table.sortable").forEach((table) => {
      const body = table.tBodies[0];
      [...table.tHead.rows[0].cells].forEach((cell, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...cell.childNodes);
        cell.append(button);
        button.onclick = () => {
          const down = cell.getAttribute("aria-sort") === "ascending";
          [...table.tHead.rows[0].cells].forEach((one) => one.removeAttribute("aria-sort"));
          cell.setAttribute("aria-sort", down ? "descending" : "ascending");
          const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
          const compare = (a, b) => {
            const [p, q] = [key(a), key(b)], [x, y] = [Number(p), Number(q)];
            if (p === "" || q === "") return (p === "") - (q === "");
            const order = Number.isNaN(x) || Number.isNaN(y) ? p.localeCompare(q, "en", { numeric: true }) : x - y;
            return down ? -order : order;
          };
          body.append(...[...body.rows].sort(compare));
        };
      });
    });
    document.querySelectorAll("[data-filter]").forEach((field) => {
      field.oninput = () => filter(document.getElementById(field.dataset.filter));
    });
  }

  function filter(table) {
    const fields = [...document.querySelectorAll(`[data-filter="${table.id}"]`)];
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      const content = row.textContent.toLowerCase();
      const kept = fields.every((one) => (one.tagName === "SELECT" ? !one.value || row.dataset.status === one.value : content.includes(one.value.toLowerCase().trim())));
      row.hidden = !kept;
      count += kept;
    }
    const output = document.getElementById(`${table.id}-count`);
    if (output) output.textContent = `${count} of ${table.tBodies[0].rows.length} shown`;
  }

  // A link into folded parts opens them, and the explanation of the finding that it leads to.
  function reveal() {
    const place = location.hash && document.getElementById(location.hash.slice(1));
    if (!place) return;
    place.querySelectorAll(":scope > details.why").forEach((one) => (one.open = true));
    for (let one = place.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    place.scrollIntoView();
  }

  boxes().forEach((box) => watcher.observe(box));
  toolbar();
  tables();
  reveal();
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal(); // the same link again
  });
  document.addEventListener("toggle", resize, true);
  window.addEventListener("resize", resize);
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return {
    color, text, drawn, setTime, drawAll: () => boxes().forEach(draw),
    onTime: (listener) => cursorListeners.push(listener),
    onStyle: (listener) => styleListeners.push(listener),
  };
})();
