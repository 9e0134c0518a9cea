// SPDX-License-Identifier: Apache-2.0
"use strict";
// Polygons in the frames of bodies on a 2D canvas: the farthest is painted first, no GPU is needed.
const Scene = (() => {
  const LIGHT = [0.35, -0.45, 0.82];
  const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const scale = (a, f) => [a[0] * f, a[1] * f, a[2] * f];
  const unit = (a) => scale(a, 1 / (Math.hypot(...a) || 1));

  // Rotation matrix of a quaternion.
  function matrix(x, y, z, w) {
    return [
      [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
      [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
      [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ];
  }

  // Pose from position and quaternion; the base is the end of a list of poses.
  const pose = (values) => ({ turn: matrix(...values.slice(3)), at: values.slice(0, 3) });
  const base = { turn: matrix(0, 0, 0, 1), at: [0, 0, 0] };
  const place = (one, p) => add(one.at, [dot(one.turn[0], p), dot(one.turn[1], p), dot(one.turn[2], p)]);

  // data: shapes, parents, planes, center, radius; poses(): pose of every body, then of the base; bones(): whether joints are drawn.
  function create(canvas, data, poses, bones) {
    const context = canvas.getContext("2d");
    const home = { azimuth: -0.9, height: 0.42, distance: 2.7 * data.radius, target: data.center };
    let camera = { ...home };

    function projector() {
      const { azimuth, height, distance, target } = camera;
      const back = [Math.cos(height) * Math.cos(azimuth), Math.cos(height) * Math.sin(azimuth), Math.sin(height)];
      const right = [-Math.sin(azimuth), Math.cos(azimuth), 0], up = cross(back, right);
      const eye = add(target, scale(back, distance));
      const width = canvas.clientWidth, tall = canvas.clientHeight, focus = 1.15 * Math.min(width, 1.6 * tall);
      const near = 0.02 * data.radius;
      const project = (p) => {
        const v = sub(p, eye), depth = -dot(v, back);
        if (depth < near) return null;
        return [width / 2 + (focus * dot(v, right)) / depth, tall / 2 - (focus * dot(v, up)) / depth, depth];
      };
      return { project, eye, right, up, focus };
    }

    function grid(view, plane) {
      const normal = plane.normal, side = unit(Math.abs(normal[2]) < 0.9 ? cross([0, 0, 1], normal) : cross([0, 1, 0], normal));
      const other = cross(normal, side), middle = add(data.center, scale(normal, plane.height - dot(normal, data.center)));
      const step = data.radius > 4 ? 1 : data.radius > 0.4 ? 0.2 : 0.05, count = Math.ceil((1.7 * data.radius) / step);
      context.strokeStyle = Charts.color(plane.solid ? "pale" : "line");
      context.lineWidth = 1;
      context.beginPath();
      for (let i = -count; i <= count; i++) {
        for (const [u, v] of [[side, other], [other, side]]) {
          for (let k = -count; k < count; k++) {
            const start = add(middle, add(scale(u, i * step), scale(v, k * step)));
            const a = view.project(start), b = view.project(add(start, scale(v, step)));
            if (a && b) context.moveTo(a[0], a[1]), context.lineTo(b[0], b[1]);
          }
        }
      }
      context.stroke();
    }

    function faces(view, placed) {
      const drawn = [];
      for (const shape of data.shapes) {
        if (shape.hidden) continue;
        const own = placed[shape.body < 0 ? placed.length - 1 : shape.body];
        const world = [], flat = [];
        for (let i = 0; i < shape.vertices.length; i += 3) {
          world.push(place(own, [shape.vertices[i], shape.vertices[i + 1], shape.vertices[i + 2]]));
          flat.push(view.project(world[world.length - 1]));
        }
        for (const corners of shape.faces) {
          if (corners.some((c) => !flat[c])) continue;
          const [a, b, c] = corners.map((k) => world[k]);
          let normal = unit(cross(sub(b, a), sub(c, a)));
          if (dot(normal, sub(view.eye, a)) < 0) {
            if (shape.closed) continue;
            normal = scale(normal, -1);
          }
          const depth = corners.reduce((sum, k) => sum + flat[k][2], 0) / corners.length;
          const light = 0.62 + 0.38 * dot(normal, unit(LIGHT));
          const color = shape.color.map((part) => Math.round(Math.min(255, part * light)));
          drawn.push({ depth, points: corners.map((k) => flat[k]), fill: `rgba(${color},${shape.opacity})`, solid: shape.opacity === 1 });
        }
      }
      return drawn.sort((p, q) => q.depth - p.depth);
    }

    function skeleton(view, placed) {
      context.lineCap = "round";
      data.parents.forEach((parent, i) => {
        const a = view.project(placed[parent < 0 ? placed.length - 1 : parent].at), b = view.project(placed[i].at);
        if (!a || !b) return;
        context.strokeStyle = Charts.color("orange");
        context.lineWidth = 3;
        context.beginPath(), context.moveTo(a[0], a[1]), context.lineTo(b[0], b[1]), context.stroke();
        context.fillStyle = Charts.color("ink");
        context.beginPath(), context.arc(b[0], b[1], 4, 0, 7), context.fill();
      });
    }

    function draw() {
      const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, tall = canvas.clientHeight;
      if (!width || !tall) return;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(tall * ratio);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, tall);
      const view = projector(), placed = poses();
      data.planes.forEach((plane) => grid(view, plane));
      context.lineWidth = 0.7;
      context.lineJoin = "round";
      for (const face of faces(view, placed)) {
        context.fillStyle = face.fill;
        context.strokeStyle = face.solid ? face.fill : "rgba(0,0,0,0)"; // closes the seams between neighbors
        context.beginPath();
        face.points.forEach((p, i) => (i ? context.lineTo(p[0], p[1]) : context.moveTo(p[0], p[1])));
        context.closePath(), context.fill(), context.stroke();
      }
      if (bones()) skeleton(view, placed);
    }

    function turn(aside, up) {
      camera.azimuth -= aside;
      camera.height = Math.max(-1.5, Math.min(1.5, camera.height + up));
      draw();
    }

    function zoom(factor) {
      camera.distance = Math.max(0.1 * data.radius, Math.min(20 * data.radius, camera.distance * factor));
      draw();
    }

    function reset() {
      camera = { ...home };
      draw();
    }

    canvas.onpointerdown = (event) => canvas.setPointerCapture(event.pointerId);
    canvas.onpointermove = (event) => {
      if (!event.buttons) return;
      if (event.buttons === 1 && !event.shiftKey) turn(0.008 * event.movementX, 0.008 * event.movementY);
      else {
        const view = projector(), size = camera.distance / view.focus;
        camera.target = add(camera.target, add(scale(view.right, -size * event.movementX), scale(view.up, size * event.movementY)));
        draw();
      }
    };
    canvas.oncontextmenu = (event) => event.preventDefault();
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(0.001 * event.deltaY));
    }, { passive: false });
    canvas.tabIndex = 0;
    canvas.onkeydown = (event) => {
      const act = {
        ArrowLeft: () => turn(0.1, 0), ArrowRight: () => turn(-0.1, 0), ArrowUp: () => turn(0, 0.1), ArrowDown: () => turn(0, -0.1),
        "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), Home: reset,
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    new ResizeObserver(draw).observe(canvas); // also when its part of the page is unfolded
    Charts.onStyle(draw);
    return { draw, zoom, reset };
  }

  return { create, pose, base };
})();
