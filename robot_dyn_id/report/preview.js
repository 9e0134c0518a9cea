// SPDX-License-Identifier: Apache-2.0
"use strict";
// The robot along its motion, with controls of the time.
(() => {
  const data = JSON.parse(document.getElementById("motion").textContent);
  const element = (name) => document.getElementById(name);
  const [play, slider, speed, clock, bones] = ["play", "time", "speed", "clock", "bones"].map(element);
  const values = [...document.querySelectorAll("#positions td.n")];
  const end = data.t[data.t.length - 1], begin = data.t[0];
  let now = begin, running = false, before = 0;

  // Frame number and share of the way to the next one.
  function frame(t) {
    let low = 0, high = data.t.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (data.t[middle] <= t) low = middle;
      else high = middle;
    }
    const step = data.t[high] - data.t[low];
    return [low, high, step > 0 ? Math.min(1, Math.max(0, (t - data.t[low]) / step)) : 0];
  }

  function poses() {
    const [a, b, share] = frame(now);
    const found = data.poses[a].map((p, i) => {
      const q = data.poses[b][i], side = p[3] * q[3] + p[4] * q[4] + p[5] * q[5] + p[6] * q[6] < 0 ? -1 : 1;
      const mixed = p.map((x, k) => x * (1 - share) + (k < 3 ? 1 : side) * q[k] * share);
      const length = Math.hypot(mixed[3], mixed[4], mixed[5], mixed[6]);
      return Scene.pose(mixed.map((x, k) => (k < 3 ? x : x / length)));
    });
    return [...found, Scene.base];
  }

  const scene = Scene.create(element("view"), data, poses, () => bones.checked);

  function draw(cursors = true) {
    scene.draw();
    const [a, b, share] = frame(now), length = end - begin || 1;
    values.forEach((cell, j) => (cell.textContent = Charts.text(data.q[a][j] * (1 - share) + data.q[b][j] * share)));
    clock.textContent = `${now.toFixed(2)} s of ${end.toFixed(2)} s`;
    slider.value = String((now - begin) / length);
    if (cursors) Charts.setTime(now);
  }

  function tick(stamp) {
    if (!running) return;
    now += Math.min(0.1, (stamp - before) / 1000) * Number(speed.value);
    before = stamp;
    if (now >= end) now = begin;
    draw();
    requestAnimationFrame(tick);
  }

  play.onclick = () => {
    running = !running;
    play.textContent = running ? "Pause" : "Play";
    before = performance.now();
    if (running) requestAnimationFrame(tick);
  };
  slider.oninput = () => {
    now = begin + Number(slider.value) * (end - begin);
    draw();
  };
  Charts.onTime((time) => {
    if (running || time === null) return;
    now = Math.min(end, Math.max(begin, time));
    draw(false);
  });
  bones.onchange = () => draw();
  element("home").onclick = scene.reset;
  element("nearer").onclick = () => scene.zoom(0.8);
  element("farther").onclick = () => scene.zoom(1.25);
  draw();
})();
