// SPDX-License-Identifier: Apache-2.0
"use strict";
// Links as bodies: identified and of the URDF, with boxes that show and hide them.
(() => {
  const data = JSON.parse(document.getElementById("scene").textContent);
  const canvas = document.getElementById("view"), boxes = [...document.querySelectorAll("[data-kind]")];
  const bones = document.getElementById("bones"), only = document.getElementById("link");
  const poses = [...data.poses.map(Scene.pose), Scene.base];
  const scene = Scene.create(canvas, data, () => poses, () => bones.checked);

  function update() {
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.kind));
    data.shapes.forEach((shape) => (shape.hidden = !shown.has(shape.kind) || (only.value && shape.link !== only.value)));
    scene.draw();
  }

  [...boxes, bones, only].forEach((one) => (one.onchange = update));
  document.getElementById("home").onclick = scene.reset;
  document.getElementById("nearer").onclick = () => scene.zoom(0.8);
  document.getElementById("farther").onclick = () => scene.zoom(1.25);
  update();
})();
