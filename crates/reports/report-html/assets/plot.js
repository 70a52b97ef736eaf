"use strict";
// Line plots: several named series over time or a logarithm, with zoom, values at the cursor and a legend.
//
// Clearway.plot(container, spec) draws into an element and returns { update, zoom, range, redraw }. A spec is
// { title, x: axis, y: axis, series: [{ name, shape, colour, x: [...], y: [...] }], rules: [{ x, label }] }, an axis is
// { label, unit, log, from, to, group }. Plots whose x axes are of one group zoom together.
const Clearway = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 8;
  // So many series are drawn as exactly as they are.
  const FEW = 2;
  // More dots than this are small.
  const MANY = 400;
  const PREFIXES = [["", 1], ["K", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];
  const UNITS = {
    "us": [["ps", 1e-6], ["ns", 1e-3], ["µs", 1], ["ms", 1e3], ["s", 1e6]],
    "B": PREFIXES.map(([prefix, factor]) => [prefix + "B", factor]),
    "bps": PREFIXES.map(([prefix, factor]) => [prefix + "b/s", factor]),
    "": [["", 1], ["M", 1e6], ["G", 1e9], ["T", 1e12]],
    "/us": [["", 1]],
    "x": [["×", 1]],
    "1": [["", 1]],
  };

  function svg(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.append(element);
    return element;
  }

  function html(name, className, parent, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  // The largest unit in which `value` is at least one.
  function unitFor(unit, value) {
    const units = UNITS[unit];
    let best = units.find(([, factor]) => factor === 1) || units[0];
    if (value > 0) {
      for (const candidate of units) if (value >= candidate[1] * 0.9999) best = candidate;
      if (value < units[0][1]) best = units[0];
    }
    return best;
  }

  function trimmed(number) {
    return number.includes(".") ? number.replace(/\.?0+$/, "") : number;
  }

  function separated(number) {
    const [whole, fraction] = number.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return fraction ? grouped + "." + fraction : grouped;
  }

  // A value with four significant digits and its unit.
  function format(unit, value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0" + (unit === "x" ? "×" : "");
    const [name, factor] = unitFor(unit, Math.abs(value));
    const scaled = value / factor;
    const decimals = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(scaled))));
    const number = separated(trimmed(scaled.toFixed(Math.min(decimals, 8))));
    if (unit === "/us") return number + " per µs";
    return number + (name === "" || name === "×" ? "" : " ") + name;
  }

  function linearTicks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((candidate) => candidate >= rough * 0.999);
    const ticks = [];
    for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) ticks.push(place * step);
    return { ticks, step };
  }

  function logTicks(low, high, count) {
    const decades = Math.log10(high / low);
    const digits = decades < 1.5 ? [1, 2, 5] : [1];
    const skip = Math.max(1, Math.ceil(decades / Math.max(count, 2)));
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      if (power % skip !== 0) continue;
      for (const digit of digits) {
        const tick = digit * 10 ** power;
        if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push(tick);
      }
    }
    return ticks;
  }

  // Ticks with their labels, and the unit that all of them share (none if each has its own).
  function ticksOf(axis, low, high, count) {
    if (axis.log) {
      const ticks = logTicks(low, high, count);
      return { ticks: ticks.map((at) => [at, format(axis.unit, at)]), unit: "" };
    }
    // Things are whole: at most a tick for each.
    const most = axis.unit === "" && high - low >= 1 ? Math.min(count, high - low) : count;
    const { ticks, step } = linearTicks(low, high, most);
    const [name, factor] = unitFor(axis.unit, Math.max(Math.abs(low), Math.abs(high)));
    const decimals = Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9));
    const label = (at) => separated((at / factor).toFixed(Math.min(decimals, 8)));
    return { ticks: ticks.map((at) => [at, label(at)]), unit: name };
  }

  function withUnit(axis, unit) {
    return unit && unit !== "×" ? axis.label + " (" + unit + ")" : axis.label;
  }

  function scale(axis, low, high, from, to) {
    if (axis.log) {
      const factor = (to - from) / Math.log(high / low);
      return { at: (value) => from + Math.log(Math.max(value, 1e-300) / low) * factor, back: (px) => low * Math.exp((px - from) / factor) };
    }
    const factor = (to - from) / (high - low);
    return { at: (value) => from + (value - low) * factor, back: (px) => low + (px - from) / factor };
  }

  // The first place whose x is at least `value`.
  function lowerBound(xs, value) {
    let low = 0;
    let high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The place of the point that stands for `value`.
  function pointAt(series, value) {
    const xs = series.x;
    const next = lowerBound(xs, value);
    if (series.shape === "interval") return next < xs.length ? next : -1;
    if (series.shape === "step") return xs[next] === value ? lowerBound(xs, value * (1 + 1e-12) + 1e-300) - 1 : next - 1;
    if (next === 0) return 0;
    if (next === xs.length) return next - 1;
    return value - xs[next - 1] < xs[next] - value ? next - 1 : next;
  }

  // The points of a series from one place to another, so many of them joined that at most `most` are left: intervals by their
  // means or their peaks. Runs begin at multiples of a power of two, so that they stay what they are while one moves along.
  function part(series, first, last, most) {
    let run = 1;
    while (series.join && (last - first + 1) / run > most) run *= 2;
    const from = first - (first % run);
    const start = from > 0 ? series.x[from - 1] : Math.min(0, series.x[0]);
    const shown = { series, shape: series.shape, x: [], y: [], start, run };
    if (run === 1) {
      shown.x = series.x.slice(first, last + 1);
      shown.y = series.y.slice(first, last + 1);
      shown.start = first > 0 ? series.x[first - 1] : start;
      return shown;
    }
    for (let begin = from; begin <= last; begin += run) {
      const end = Math.min(begin + run, series.x.length);
      shown.x.push(series.x[end - 1]);
      shown.y.push(joined(series, begin, end));
    }
    return shown;
  }

  // Puts the value of each interval at its middle, for a line.
  function toMiddles(shown) {
    let start = shown.start;
    shown.x = shown.x.map((end) => {
      const middle = (start + end) / 2;
      start = end;
      return middle;
    });
    shown.shape = "line";
  }

  function joined(series, begin, end) {
    let weight = 0;
    let sum = 0;
    let peak = null;
    for (let place = begin; place < end; place++) {
      const value = series.y[place];
      if (value === null) continue;
      const length = series.x[place] - (place > 0 ? series.x[place - 1] : Math.min(0, series.x[0]));
      weight += length;
      sum += value * length;
      if (peak === null || value > peak) peak = value;
    }
    if (series.join === "max" || peak === null) return peak;
    return weight > 0 ? sum / weight : peak;
  }

  function pathOf(shown, x, y) {
    let path = "";
    let open = false;
    let lastY = 0;
    for (let place = 0; place < shown.x.length; place++) {
      const value = shown.y[place];
      if (value === null) {
        open = false;
        continue;
      }
      const px = x.at(shown.x[place]).toFixed(1);
      const py = y.at(value).toFixed(1);
      if (shown.shape === "dots") {
        // A line of no length has round ends.
        path += "M" + px + " " + py + "h0";
      } else if (shown.shape === "interval") {
        if (!open) path += "M" + x.at(place > 0 ? shown.x[place - 1] : shown.start).toFixed(1) + " " + py;
        else if (py !== lastY) path += "V" + py;
        path += "H" + px;
      } else if (!open) path += "M" + px + " " + py;
      else if (shown.shape === "step") path += "H" + px + "V" + py;
      else path += "L" + px + " " + py;
      lastY = py;
      open = true;
    }
    return path;
  }

  function classOf(series) {
    const shape = series.shape !== "dots" ? "" : series.x.length > MANY ? "dots many " : "dots ";
    return "line " + shape + "c" + (series.colour % COLOURS) + (series.colour >= COLOURS ? " dashed" : "");
  }

  function namesOf(spec) {
    return JSON.stringify(spec.series.map((series) => [series.name, series.colour]));
  }

  // A legend for plots with series of the same names: it shows and hides them, and lets the one under the pointer stand out.
  function fillLegend(legend, plots) {
    plots[0].spec.series.forEach((series, place) => {
      const button = html("button", "", legend);
      button.type = "button";
      button.title = "Show or hide";
      const sample = svg("svg", { width: 18, height: 8, viewBox: "0 0 18 8", "aria-hidden": "true" }, button);
      svg("path", { d: "M0 4H18", class: classOf(series) }, sample);
      html("span", "", button, series.name);
      const press = () => button.setAttribute("aria-pressed", String(!plots[0].hidden.has(place)));
      press();
      button.addEventListener("click", () => {
        for (const plot of plots) plot.toggle(place);
        press();
      });
      button.addEventListener("pointerenter", () => plots.forEach((plot) => plot.highlight(plot.spec.series[place])));
      button.addEventListener("pointerleave", () => plots.forEach((plot) => plot.highlight(null)));
    });
  }

  const groups = new Map();
  const all = [];
  let count = 0;

  class Plot {
    constructor(container, spec) {
      this.container = container;
      this.spec = spec;
      this.number = count++;
      this.hidden = new Set();
      this.cursor = null;
      this.group = spec.x.group ? groups.get(spec.x.group) : undefined;
      if (!this.group) {
        this.group = { plots: [], range: null };
        if (spec.x.group) groups.set(spec.x.group, this.group);
      }
      this.group.plots.push(this);
      all.push(this);
      this.build();
      this.draw();
      new ResizeObserver(() => {
        if (Math.abs(this.container.clientWidth - this.width) > 1) this.draw();
      }).observe(container);
    }

    build() {
      const { container } = this;
      container.replaceChildren();
      container.classList.add("ready");
      this.area = html("div", "area", container);
      this.reset = html("button", "reset", this.area, "Reset zoom");
      this.reset.type = "button";
      this.reset.hidden = true;
      this.reset.addEventListener("click", () => this.zoom(null));
      this.svg = svg("svg", { tabindex: 0, role: "img", "aria-label": container.dataset.alternative || this.spec.title }, this.area);
      this.tip = html("div", "tip", this.area);
      this.tip.setAttribute("role", "status");
      this.tip.hidden = true;
      this.legend = html("div", "legend", container);
      this.buildLegend();
      this.listen();
    }

    buildLegend() {
      this.legend.replaceChildren();
      if (this.spec.series.length > 1) fillLegend(this.legend, [this]);
    }

    toggle(place) {
      if (!this.hidden.delete(place)) this.hidden.add(place);
      this.draw();
    }

    classOf(series) {
      return classOf(series);
    }

    visible() {
      return this.spec.series.filter((_, place) => !this.hidden.has(place));
    }

    // All of x, whatever is shown now.
    fullRange() {
      const { x: axis, series, rules } = this.spec;
      let low = axis.from ?? Infinity;
      let high = axis.to ?? -Infinity;
      for (const { x } of series) {
        low = Math.min(low, x[0]);
        high = Math.max(high, x[x.length - 1]);
      }
      for (const rule of rules || []) {
        low = Math.min(low, rule.x);
        high = Math.max(high, rule.x);
      }
      if (!(high > low)) {
        const margin = Math.abs(low) * 0.05 || 1;
        return axis.log ? [low / 1.5, high * 1.5] : [low - margin, high + margin];
      }
      if (axis.log) {
        const margin = (high / low) ** 0.03;
        return [low / margin, high * margin];
      }
      const margin = (high - low) * 0.03;
      return [axis.from === undefined ? Math.max(low - margin, low >= 0 ? 0 : -Infinity) : low, axis.from === undefined ? high + margin : high];
    }

    hasDots() {
      return this.spec.series.some((series) => series.shape === "dots");
    }

    range() {
      return this.group.range || this.fullRange();
    }

    // What is drawn of a range that is `width` pixels wide.
    partsIn([low, high], width) {
      const visible = this.visible();
      const most = width / (visible.length > FEW ? 5 : 3);
      return visible.map((series) => {
        const first = Math.max(0, lowerBound(series.x, low) - 1);
        const last = Math.min(series.x.length - 1, lowerBound(series.x, high) + (series.shape === "step" ? 1 : 0));
        const shown = part(series, first, last, most);
        // Steps of many series hide each other.
        if (visible.length > FEW && shown.shape === "interval") toMiddles(shown);
        return shown;
      });
    }

    heightRange() {
      const { y: axis } = this.spec;
      let low = axis.from ?? Infinity;
      let high = axis.to ?? -Infinity;
      for (const { y } of this.shown) {
        for (const value of y) {
          if (value === null || (axis.log && value <= 0)) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
      if (low === Infinity) [low, high] = axis.log ? [1, 10] : [0, 1];
      if (axis.log) return [low / 1.15, Math.max(high, low * 2) * (axis.to === undefined ? 1.15 : 1)];
      if (high <= low) high = low + (Math.abs(low) || 1);
      if (axis.from === undefined && this.hasDots()) low = Math.max(low - (high - low) * 0.06, low >= 0 ? 0 : -Infinity);
      return [low, axis.to === undefined || high > axis.to ? high + (high - low) * 0.06 : high];
    }

    draw(width) {
      this.width = this.container.clientWidth;
      const w = width || this.width || 560;
      const h = w < 420 ? 216 : 248;
      const { spec } = this;
      const range = this.range();
      this.shown = this.partsIn(range, w - 60);
      const [bottom, top] = this.heightRange();
      const rows = ticksOf(spec.y, bottom, top, 5);
      const columns = ticksOf(spec.x, range[0], range[1], Math.floor(w / 75));
      const left = 12 + 6.4 * Math.max(2, ...rows.ticks.map(([, label]) => label.length));
      const box = { left, right: w - 14, top: 24, bottom: h - 36 };
      this.box = box;
      this.x = scale(spec.x, range[0], range[1], box.left, box.right);
      this.y = scale(spec.y, bottom, top, box.bottom, box.top);
      const root = this.svg;
      root.replaceChildren();
      root.setAttribute("viewBox", "0 0 " + w + " " + h);
      this.drawAxes(root, box, rows, columns);
      const clip = "clip-" + this.number;
      // Dots at the edge are whole.
      const around = this.hasDots() ? 4 : 0;
      svg("rect", {
        x: box.left - around, y: box.top - 2 - around,
        width: box.right - box.left + 2 * around, height: box.bottom - box.top + 4 + 2 * around,
      },
        svg("clipPath", { id: clip }, root));
      this.lines = svg("g", { "clip-path": "url(#" + clip + ")" }, root);
      this.drawRules(root, box, range);
      this.drawJoin(root, box);
      this.drawLines();
      this.over = svg("g", { class: "over" }, root);
      this.overlay = svg("rect", { class: "overlay", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }, root);
      this.reset.hidden = !this.group.range;
      this.container.dataset.range = range.join(" ");
      this.container.dataset.points = String(this.points);
      if (this.cursor !== null) this.showCursor(this.cursor, false);
    }

    drawAxes(root, box, rows, columns) {
      const { spec } = this;
      for (const [at, label] of rows.ticks) {
        const y = this.y.at(at).toFixed(1);
        svg("path", { class: "grid", d: "M" + box.left + " " + y + "H" + box.right }, root);
        svg("text", { class: "tick end", x: box.left - 7, y, dy: "0.32em" }, root).textContent = label;
      }
      svg("path", { class: "axis", d: "M" + box.left + " " + box.bottom + "H" + box.right }, root);
      for (const [at, label] of columns.ticks) {
        const x = this.x.at(at).toFixed(1);
        svg("path", { class: "axis", d: "M" + x + " " + box.bottom + "v4" }, root);
        svg("text", { class: "tick middle", x, y: box.bottom + 16 }, root).textContent = label;
      }
      svg("text", { class: "label", x: 2, y: 11 }, root).textContent = withUnit(spec.y, rows.unit);
      svg("text", { class: "label end", x: box.right, y: box.bottom + 31 }, root).textContent = withUnit(spec.x, columns.unit);
    }

    drawRules(root, box, range) {
      for (const rule of this.spec.rules || []) {
        if (rule.x < range[0] || rule.x > range[1]) continue;
        const x = this.x.at(rule.x);
        const right = x < (box.left + box.right) / 2;
        const y = this.isLowAt(x + (right ? 50 : -50)) ? box.top + 10 : box.bottom - 7;
        svg("path", { class: "rule", d: "M" + x.toFixed(1) + " " + box.top + "V" + box.bottom }, root);
        svg("text", { class: "label halo" + (right ? "" : " end"), x: (x + (right ? 5 : -5)).toFixed(1), y }, root)
          .textContent = rule.label;
      }
    }

    // True if the first line is in the lower half there.
    isLowAt(px) {
      const [first] = this.shown;
      const place = first ? pointAt(first, this.x.back(px)) : -1;
      return place >= 0 && first.y[place] !== null && this.y.at(first.y[place]) > (this.box.top + this.box.bottom) / 2;
    }

    drawLines() {
      this.points = 0;
      this.paths = new Map();
      for (const shown of this.shown) {
        const { series } = shown;
        this.points += shown.x.length;
        this.paths.set(series, svg("path", { class: this.classOf(series), d: pathOf(shown, this.x, this.y) }, this.lines));
        if (series.shape !== "points") continue;
        shown.x.forEach((x, place) => {
          if (shown.y[place] === null) return;
          const at = { cx: this.x.at(x).toFixed(1), cy: this.y.at(shown.y[place]).toFixed(1), r: 2.6 };
          svg("circle", { class: "dot c" + (series.colour % COLOURS), ...at }, this.lines);
        });
      }
    }

    // Lets one series stand out; all again if it is null.
    highlight(chosen) {
      for (const [series, path] of this.paths) path.classList.toggle("faded", Boolean(chosen) && series !== chosen);
    }

    // Says what a point stands for where several were joined.
    drawJoin(root, box) {
      const one = this.shown.find((shown) => shown.run > 1 && shown.x.length > 1);
      if (!one) return;
      const length = (one.x[one.x.length - 1] - one.start) / one.x.length;
      const text = (one.series.join === "max" ? "peaks within " : "means over ") + format(this.spec.x.unit, Number(length.toPrecision(2)));
      svg("text", { class: "label end", x: box.right, y: 11 }, root).textContent = text;
    }

    // From the page's pixels to the drawing's.
    position(event) {
      const frame = this.svg.getBoundingClientRect();
      const factor = this.svg.viewBox.baseVal.width / (frame.width || 1);
      return [(event.clientX - frame.left) * factor, (event.clientY - frame.top) * factor];
    }

    clamped(px) {
      return Math.min(Math.max(px, this.box.left), this.box.right);
    }

    listen() {
      const { svg: root } = this;
      let start = null;
      root.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        start = this.clamped(this.position(event)[0]);
        if (event.pointerType !== "touch") root.setPointerCapture(event.pointerId);
      });
      root.addEventListener("pointermove", (event) => {
        const [x, y] = this.position(event);
        if (start !== null && Math.abs(x - start) > 5) this.showSelection(start, this.clamped(x));
        else if (x >= this.box.left - 8 && x <= this.box.right + 8) this.showCursor(this.x.back(this.clamped(x)), true, y);
        else this.hideCursor();
      });
      root.addEventListener("pointerup", (event) => {
        const end = this.clamped(this.position(event)[0]);
        if (start !== null && Math.abs(end - start) > 5) {
          const [a, b] = [start, end].sort((one, other) => one - other);
          this.hideCursor();
          this.zoom([this.x.back(a), this.x.back(b)]);
        }
        start = null;
      });
      root.addEventListener("pointercancel", () => {
        start = null;
        this.hideCursor();
      });
      root.addEventListener("pointerleave", () => {
        if (start === null) this.hideCursor();
      });
      root.addEventListener("dblclick", () => this.zoom(null));
      root.addEventListener("blur", () => this.hideCursor());
      root.addEventListener("keydown", (event) => this.onKey(event));
    }

    onKey(event) {
      const [low, high] = this.range();
      const px = (value) => this.x.at(value);
      const cursor = this.cursor ?? this.x.back((this.box.left + this.box.right) / 2);
      const step = (this.box.right - this.box.left) / (event.shiftKey ? 10 : 100);
      const about = (factor) => [px(cursor) - (px(cursor) - px(low)) * factor, px(cursor) + (px(high) - px(cursor)) * factor];
      switch (event.key) {
        case "ArrowLeft":
        case "ArrowRight": {
          const moved = this.clamped(px(cursor) + (event.key === "ArrowLeft" ? -step : step));
          this.showCursor(this.x.back(moved), true);
          break;
        }
        case "+":
        case "=":
          this.zoom(about(0.5).map((at) => this.x.back(at)));
          break;
        case "-":
          this.zoom(about(2).map((at) => this.x.back(at)));
          break;
        case "Escape":
        case "0":
          this.zoom(null);
          break;
        default:
          return;
      }
      event.preventDefault();
    }

    // Shows a part of x in all plots of the group; everything if `range` is null.
    zoom(range) {
      const full = this.fullRange();
      let next = range && [Math.max(range[0], full[0]), Math.min(range[1], full[1])];
      if (next && (!(next[1] > next[0]) || (next[0] <= full[0] && next[1] >= full[1]))) next = null;
      this.group.range = next;
      for (const plot of this.group.plots) plot.draw();
    }

    showSelection(from, to) {
      this.tip.hidden = true;
      this.over.replaceChildren();
      const [a, b] = from < to ? [from, to] : [to, from];
      svg("rect", { class: "selection", x: a, y: this.box.top, width: b - a, height: this.box.bottom - this.box.top }, this.over);
    }

    // The line at the cursor; with the values if `full`, and in the other plots of the group the line alone.
    showCursor(value, full, pointerY) {
      this.cursor = value;
      this.over.replaceChildren();
      const px = this.x.at(value);
      if (px >= this.box.left - 1 && px <= this.box.right + 1) {
        svg("path", { class: "cursor", d: "M" + px.toFixed(1) + " " + this.box.top + "V" + this.box.bottom }, this.over);
      }
      if (!full) return;
      for (const plot of this.group.plots) if (plot !== this) plot.showCursor(value, false);
      this.showValues(value, px, pointerY);
    }

    // The dot that is nearest to the pointer, wherever that is; along x if it has no height.
    dotAt(shown, px, pointerY) {
      let best = -1;
      let least = Infinity;
      shown.x.forEach((x, place) => {
        const across = this.x.at(x) - px;
        const up = pointerY === undefined ? 0 : this.y.at(shown.y[place]) - pointerY;
        const distance = across * across + up * up;
        if (distance < least) [best, least] = [place, distance];
      });
      return best;
    }

    showValues(value, px, pointerY) {
      const rows = [];
      for (const shown of this.shown) {
        const place = shown.shape === "dots" ? this.dotAt(shown, px, pointerY) : pointAt(shown, value);
        const y = place < 0 ? null : shown.y[place];
        if (y === null || y === undefined) continue;
        const x = shown.x[place];
        const at = ["line", "points", "dots"].includes(shown.shape) ? this.x.at(x) : px;
        rows.push({ series: shown.series, x, y, px: at, py: this.y.at(y) });
      }
      const near = pointerY === undefined ? null
        : rows.reduce((a, b) => (a && Math.abs(a.py - pointerY) <= Math.abs(b.py - pointerY) ? a : b), null);
      for (const { series, px: x, py } of rows) {
        svg("circle", { class: "dot c" + (series.colour % COLOURS), cx: x.toFixed(1), cy: py.toFixed(1), r: 3 }, this.over);
      }
      const crowded = rows.length > 4;
      this.highlight(near && crowded ? near.series : null);
      if (crowded) rows.sort((a, b) => b.y - a.y);
      this.fillTip(value, rows, near);
      this.placeTip(px);
    }

    fillTip(value, rows, near) {
      const MOST = 12;
      const { spec, tip } = this;
      tip.replaceChildren();
      const points = spec.series.some((series) => ["points", "dots"].includes(series.shape));
      const x = points && rows.length ? rows[0].x : value;
      html("div", "at", tip, spec.x.label + " " + format(spec.x.unit, x));
      const shown = rows.slice(0, MOST);
      if (near && !shown.includes(near)) shown[MOST - 1] = near;
      for (const row of shown) {
        const line = html("div", row === near && rows.length > 1 ? "row near" : "row", tip);
        html("i", "c" + (row.series.colour % COLOURS), line);
        html("span", "", line, row.series.name);
        html("b", "", line, format(spec.y.unit, row.y));
      }
      if (rows.length > shown.length) html("div", "at", tip, "and " + (rows.length - shown.length) + " more");
      tip.hidden = false;
    }

    placeTip(px) {
      const factor = (this.area.clientWidth || 1) / this.svg.viewBox.baseVal.width;
      const width = this.tip.offsetWidth;
      const x = px * factor;
      const left = x + 14 + width > this.area.clientWidth ? Math.max(0, x - width - 14) : x + 14;
      this.tip.style.left = left + "px";
      this.tip.style.top = this.box.top * factor + "px";
    }

    hideCursor() {
      for (const plot of this.group.plots) {
        plot.cursor = null;
        plot.tip.hidden = true;
        plot.over.replaceChildren();
        plot.highlight(null);
      }
    }

    // Leaves its group and is not drawn again; its element can be removed.
    forget() {
      this.group.plots.splice(this.group.plots.indexOf(this), 1);
      all.splice(all.indexOf(this), 1);
    }

    update(spec) {
      const before = namesOf(this.spec);
      this.spec = spec;
      // A legend that stays what it is must not be built anew under the pointer.
      if (namesOf(spec) !== before) this.buildLegend();
      this.draw();
    }
  }

  // Paper has one width for all screens.
  const PAPER = 372;
  addEventListener("beforeprint", () => all.forEach((plot) => {
    plot.hideCursor();
    plot.draw(PAPER);
  }));
  addEventListener("afterprint", () => all.forEach((plot) => plot.draw()));

  function plot(container, spec) {
    const drawn = new Plot(container, spec);
    return {
      update: (next) => drawn.update(next),
      zoom: (range) => drawn.zoom(range),
      range: () => drawn.range(),
      redraw: () => drawn.draw(),
      drawn,
    };
  }

  // One legend, put before `element`, instead of one for each of `plots`, if they are about the same series.
  function shareLegend(element, plots) {
    const several = plots.map((one) => one.drawn).filter((drawn) => drawn.spec.series.length > 1);
    if (several.length < 2 || several.some((drawn) => namesOf(drawn.spec) !== namesOf(several[0].spec))) return;
    const legend = html("div", "legend shared");
    element.before(legend);
    fillLegend(legend, several);
    for (const drawn of several) drawn.legend.remove();
  }

  return { plot, shareLegend, format, svg, html };
})();
