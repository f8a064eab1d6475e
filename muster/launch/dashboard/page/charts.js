// Curves on canvases: they share what part of the job they show. Nothing is drawn unless something changed.
"use strict";

class Curves {
  constructor(box, kinds) {
    this.columns = { time: [] };
    this.over = "time";
    this.smoothing = 0;
    this.isLogarithmic = false;
    this.range = null; // of the x axis; null: all
    this.onRange = () => {};
    this.box = box;
    this.others = []; // runs to compare with: {name, columns, colour, dash}
    this.charts = kinds.map((kind) => new Chart(this, box, kind));
    addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
  set(columns) {
    this.columns = columns;
    this.columns.time ??= [];
    this.addMetrics();
    this.draw();
  }
  setOthers(others) {
    this.others = others;
    this.addMetrics();
    this.zoom(null);
  }
  // A chart for each metric of the evaluations that some run has.
  addMetrics() {
    for (const columns of [this.columns, ...this.others.map((other) => other.columns)])
      for (const name of Object.keys(columns))
        if (name.startsWith("metric/") && !this.charts.some((chart) => chart.kind.name === name))
          this.charts.push(new Chart(this, this.box, { name, title: `Evaluation: ${name.slice(7)}`, text: shortNumber }));
  }
  add(point) {
    const times = this.columns.time;
    if (times.length && point.time <= times[times.length - 1]) return;
    const count = times.length;
    const names = Object.keys(point);
    for (const name of names) this.columns[name] ??= new Array(count).fill(null);
    for (const [name, column] of Object.entries(this.columns)) column.push(point[name] ?? null);
    if (names.some((name) => name.startsWith("metric/"))) this.addMetrics();
    if (times.length > 2400)
      for (const name of Object.keys(this.columns))
        this.columns[name] = this.columns[name].filter((_, i) => i % 2 === 0 || i === count);
    this.draw();
  }
  whole() {
    const xs = [this.columns, ...this.others.map((other) => other.columns)]
      .flatMap((columns) => this.xs(columns)).filter((x) => x !== null);
    return xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
  }
  // Of each run its own steps, or the time since it was seen first.
  xs(columns) {
    if (this.over === "step") return columns.step ?? [];
    const times = columns.time ?? [];
    return times.map((time) => time - times[0]);
  }
  zoom(range) {
    const [low, high] = this.whole();
    if (range) {
      range = [Math.max(low, range[0]), Math.min(high, range[1])];
      if (range[1] - range[0] < (high - low) * 1e-4) return;
      if (range[0] <= low && range[1] >= high) range = null;
    }
    this.range = range;
    this.onRange(range);
    this.draw();
  }
  // By keyboard: a factor, and a shift in parts of what is shown.
  change(factor, shift) {
    const [low, high] = this.range ?? this.whole();
    const middle = (low + high) / 2 + shift * (high - low);
    this.zoom([middle - ((high - low) / 2) * factor, middle + ((high - low) / 2) * factor]);
  }
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      for (const chart of this.charts) chart.draw();
    });
  }
}

class Chart {
  constructor(curves, box, kind) {
    this.curves = curves;
    this.kind = kind;
    this.pointer = null;
    this.drag = null;
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const title = document.createElement("b");
    title.textContent = kind.title;
    this.readout = document.createElement("span");
    caption.append(title, this.readout);
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    figure.append(caption, this.canvas);
    box.append(figure);
    const at = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.addEventListener("pointerdown", (event) => {
      this.drag = at(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => { this.pointer = at(event); curves.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.pointer = null; curves.draw(); });
    this.canvas.addEventListener("pointerup", (event) => {
      const from = this.drag;
      this.drag = null;
      if (from !== null && Math.abs(at(event) - from) > 8)
        curves.zoom([this.valueAt(Math.min(from, at(event))), this.valueAt(Math.max(from, at(event)))]);
      curves.draw();
    });
    this.canvas.addEventListener("dblclick", () => curves.zoom(null));
    this.canvas.addEventListener("keydown", (event) => {
      const keys = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25] };
      if (event.key === "Escape" || event.key === "0") curves.zoom(null);
      else if (keys[event.key]) curves.change(...keys[event.key]);
      else return;
      event.preventDefault();
    });
  }
  valueAt(pixel) {
    const { left, width, low, high } = this.frame;
    return low + ((pixel - left) / width) * (high - low);
  }
  // [x, y, smoothed y] of what is shown.
  points(columns) {
    const { curves, kind } = this;
    const xs = curves.xs(columns);
    const ys = columns[kind.name] ?? [];
    const [low, high] = curves.range ?? curves.whole();
    const made = [];
    let smooth = null;
    for (let i = 0; i < ys.length; ++i) {
      const y = ys[i];
      if (typeof y !== "number" || xs[i] === null || xs[i] === undefined) continue;
      smooth = smooth === null ? y : curves.smoothing * smooth + (1 - curves.smoothing) * y;
      if (xs[i] >= low && xs[i] <= high) made.push([xs[i], y, smooth]);
    }
    return made;
  }
  // "nan" where the newest value of this run is no number, which no curve shows.
  noNumber() {
    const last = (this.curves.columns[this.kind.name] ?? []).findLast((y) => y !== null && y !== undefined);
    return typeof last === "string" ? last : "";
  }
  draw() {
    const { canvas, kind, curves } = this;
    const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const paint = canvas.getContext("2d");
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const points = this.points(curves.columns);
    const others = curves.others.map((other) => ({ ...other, points: this.points(other.columns) }))
      .filter((other) => other.points.length);
    const all = [points, ...others.map((other) => other.points)].flat();
    const [low, high] = curves.range ?? curves.whole();
    const left = 60, right = width - 8, top = 8, bottom = height - 20;
    this.frame = { left, width: right - left, low, high };
    paint.font = "11px system-ui, sans-serif";
    paint.fillStyle = colour("--soft");
    if (!all.length) {
      const text = this.noNumber() ? "no number so far" : "nothing yet";
      paint.fillText(text, left, (top + bottom) / 2);
      canvas.setAttribute("aria-label", `${kind.title}: ${text}`);
      this.readout.textContent = this.noNumber();
      return;
    }
    const scale = kind.name === "loss" && curves.isLogarithmic && all.every((p) => p[1] > 0) ? Math.log10 : (y) => y;
    let min = Infinity, max = -Infinity;
    for (const [, y, smooth] of all) {
      min = Math.min(min, scale(y), scale(smooth));
      max = Math.max(max, scale(y), scale(smooth));
    }
    if (kind.fromZero) min = Math.min(min, 0);
    const room = (max - min || Math.abs(max) || 1) * 0.06;
    max += room;
    if (!kind.fromZero) min -= room;
    const px = (x) => left + ((x - low) / (high - low || 1)) * (right - left);
    const py = (y) => bottom - ((scale(y) - min) / (max - min)) * (bottom - top);
    paint.strokeStyle = colour("--line");
    paint.lineWidth = 1;
    paint.textAlign = "right";
    for (let i = 0; i <= 3; ++i) {
      const value = min + ((max - min) * i) / 3;
      const y = bottom - ((bottom - top) * i) / 3;
      paint.beginPath();
      paint.moveTo(left, Math.round(y) + 0.5);
      paint.lineTo(right, Math.round(y) + 0.5);
      paint.stroke();
      paint.fillText(kind.text(Number((scale === Math.log10 ? 10 ** value : value).toPrecision(3))), left - 6, y + 4);
    }
    paint.textAlign = "left";
    paint.fillText(curves.over === "time" ? timeText(low) : `step ${Math.round(low)}`, left, height - 5);
    paint.textAlign = "right";
    paint.fillText(curves.over === "time" ? timeText(high) : `step ${Math.round(high)}`, right, height - 5);
    const line = (points, which, alpha) => {
      paint.globalAlpha = alpha;
      paint.beginPath();
      points.forEach((point, i) => paint[i ? "lineTo" : "moveTo"](px(point[0]), py(point[which])));
      if (points.length === 1) paint.arc(px(points[0][0]), py(points[0][which]), 2, 0, 7);
      paint.stroke();
      paint.globalAlpha = 1;
    };
    paint.lineJoin = "round";
    paint.lineWidth = 1.5;
    for (const other of others) {
      paint.strokeStyle = colour(other.colour);
      paint.setLineDash(other.dash);
      line(other.points, 2, 1);
    }
    paint.setLineDash([]);
    paint.strokeStyle = colour("--computing");
    paint.lineWidth = 2;
    if (curves.smoothing > 0) line(points, 1, 0.3);
    line(points, 2, 1);
    const wanted = this.pointer === null ? null : this.valueAt(this.pointer);
    const near = (of) => (wanted === null ? of[of.length - 1]
      : of.reduce((best, p) => (Math.abs(p[0] - wanted) < Math.abs(best[0] - wanted) ? p : best)));
    const where = (point) => (curves.over === "time" ? timeText(point[0]) : `step ${point[0]}`);
    const told = others.map((other) => `${other.name}: ${kind.text(near(other.points)[1])} at ${where(near(other.points))}`);
    if (!points.length) {
      this.readout.textContent = told.join("; ");
      canvas.setAttribute("aria-label", [`${kind.title}: nothing yet`, ...told].join("; "));
      return;
    }
    const shown = near(points);
    if (this.pointer !== null) {
      paint.strokeStyle = colour("--soft");
      paint.lineWidth = 1;
      paint.beginPath();
      paint.moveTo(px(shown[0]), top);
      paint.lineTo(px(shown[0]), bottom);
      paint.stroke();
      paint.fillStyle = colour("--computing");
      paint.beginPath();
      paint.arc(px(shown[0]), py(shown[2]), 4, 0, 7);
      paint.fill();
      if (this.drag !== null) {
        paint.globalAlpha = 0.15;
        paint.fillRect(Math.min(this.drag, this.pointer), top, Math.abs(this.pointer - this.drag), bottom - top);
        paint.globalAlpha = 1;
      }
    }
    const now = this.pointer === null && this.noNumber() ? [`now ${this.noNumber()}`] : [];
    this.readout.textContent = [...now, `${kind.text(shown[1])} at ${where(shown)}`, ...(this.pointer === null ? [] : told)].join("; ");
    const values = points.map((p) => p[1]);
    canvas.setAttribute("aria-label",
      [`${kind.title}: ${kind.text(shown[1])} at ${where(shown)}, from ${kind.text(Math.min(...values))} to ${kind.text(Math.max(...values))}`, ...told].join("; "));
  }
}

function timeText(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.floor(seconds);
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24, minutes = Math.floor(whole / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

function shortTime(seconds) {
  if (typeof seconds !== "number") return "–";
  if (seconds === 0) return "0";
  if (Math.abs(seconds) < 1e-3) return `${(seconds * 1e6).toPrecision(3)} µs`;
  return Math.abs(seconds) < 1 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
}

function shortNumber(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  const size = Math.abs(value);
  if (size >= 1e12) return value.toExponential(2).replace("e+", "e");
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return String(Number(value.toPrecision(4)));
}

function sizeText(bytes) {
  if (typeof bytes !== "number") return "–";
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toPrecision(3)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
