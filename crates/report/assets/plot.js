"use strict";
// Line plots: several named series over time or a logarithm, with zoom, values at the cursor and a legend.
//
// Clearway.plot(container, spec) draws into an element and returns { update, zoom, range, redraw }. A spec is
// { title, x: axis, y: axis, series: [{ name, shape, colour, x: [...], y: [...] }], rules: [{ x, label }] }, an axis is
// { label, unit, log, from, to, group }. Plots whose x axes are of one group zoom together.
const Clearway = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 8;
  const PREFIXES = [["", 1], ["K", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];
  const UNITS = {
    "us": [["ps", 1e-6], ["ns", 1e-3], ["µs", 1], ["ms", 1e3], ["s", 1e6]],
    "B": PREFIXES.map(([prefix, factor]) => [prefix + "B", factor]),
    "bps": PREFIXES.map(([prefix, factor]) => [prefix + "b/s", factor]),
    "": PREFIXES,
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
    const { ticks, step } = linearTicks(low, high, count);
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

  function pathOf(series, first, last, x, y) {
    let path = "";
    let open = false;
    let lastY = 0;
    for (let place = first; place <= last; place++) {
      const value = series.y[place];
      if (value === null) {
        open = false;
        continue;
      }
      const px = x.at(series.x[place]).toFixed(1);
      const py = y.at(value).toFixed(1);
      if (series.shape === "interval") {
        if (!open) path += "M" + x.at(place > 0 ? series.x[place - 1] : Math.min(0, series.x[0])).toFixed(1) + " " + py;
        else if (py !== lastY) path += "V" + py;
        path += "H" + px;
      } else if (!open) path += "M" + px + " " + py;
      else if (series.shape === "step") path += "H" + px + "V" + py;
      else path += "L" + px + " " + py;
      lastY = py;
      open = true;
    }
    return path;
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
      const { series } = this.spec;
      if (series.length < 2) return;
      series.forEach((one, place) => {
        const button = html("button", "", this.legend);
        button.type = "button";
        button.setAttribute("aria-pressed", String(!this.hidden.has(place)));
        button.title = "Show or hide";
        const sample = svg("svg", { width: 18, height: 8, viewBox: "0 0 18 8", "aria-hidden": "true" }, button);
        svg("path", { d: "M0 4H18", class: this.classOf(one) }, sample);
        html("span", "", button, one.name);
        button.addEventListener("click", () => {
          if (!this.hidden.delete(place)) this.hidden.add(place);
          button.setAttribute("aria-pressed", String(!this.hidden.has(place)));
          this.draw();
        });
      });
    }

    classOf(series) {
      return "line c" + (series.colour % COLOURS) + (series.colour >= COLOURS ? " dashed" : "");
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

    range() {
      return this.group.range || this.fullRange();
    }

    // The places of a series that a range needs, one more at each end.
    placesIn(series, [low, high]) {
      const first = Math.max(0, lowerBound(series.x, low) - 1);
      const last = Math.min(series.x.length - 1, lowerBound(series.x, high) + (series.shape === "step" ? 1 : 0));
      return [first, last];
    }

    heightRange(range) {
      const { y: axis } = this.spec;
      let low = axis.from ?? Infinity;
      let high = axis.to ?? -Infinity;
      for (const series of this.visible()) {
        const [first, last] = this.placesIn(series, range);
        for (let place = first; place <= last; place++) {
          const value = series.y[place];
          if (value === null || (axis.log && value <= 0)) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
      if (low === Infinity) [low, high] = axis.log ? [1, 10] : [0, 1];
      if (axis.log) return [low / 1.15, Math.max(high, low * 2) * (axis.to === undefined ? 1.15 : 1)];
      if (high <= low) high = low + (Math.abs(low) || 1);
      return [low, axis.to === undefined || high > axis.to ? high + (high - low) * 0.06 : high];
    }

    draw(width) {
      this.width = this.container.clientWidth;
      const w = width || this.width || 560;
      const h = w < 420 ? 216 : 248;
      const { spec } = this;
      const range = this.range();
      const [bottom, top] = this.heightRange(range);
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
      svg("rect", { x: box.left, y: box.top - 2, width: box.right - box.left, height: box.bottom - box.top + 4 },
        svg("clipPath", { id: clip }, root));
      this.lines = svg("g", { "clip-path": "url(#" + clip + ")" }, root);
      this.drawRules(root, box, range);
      this.drawLines(range);
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
      const series = this.visible()[0];
      const place = series ? pointAt(series, this.x.back(px)) : -1;
      return place >= 0 && series.y[place] !== null && this.y.at(series.y[place]) > (this.box.top + this.box.bottom) / 2;
    }

    drawLines(range) {
      this.points = 0;
      this.spec.series.forEach((series, number) => {
        if (this.hidden.has(number)) return;
        const [first, last] = this.placesIn(series, range);
        this.points += last - first + 1;
        const path = svg("path", { class: this.classOf(series), d: pathOf(series, first, last, this.x, this.y) }, this.lines);
        path.dataset.series = String(number);
        if (series.shape !== "points") return;
        for (let place = first; place <= last; place++) {
          if (series.y[place] === null) continue;
          const at = { cx: this.x.at(series.x[place]).toFixed(1), cy: this.y.at(series.y[place]).toFixed(1), r: 2.6 };
          svg("circle", { class: "dot c" + (series.colour % COLOURS), ...at }, this.lines);
        }
      });
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

    showValues(value, px, pointerY) {
      const rows = [];
      for (const series of this.visible()) {
        const place = pointAt(series, value);
        const y = place < 0 ? null : series.y[place];
        if (y === null || y === undefined) continue;
        const at = series.shape === "line" || series.shape === "points" ? this.x.at(series.x[place]) : px;
        rows.push({ series, y, px: at, py: this.y.at(y), place });
      }
      const near = pointerY === undefined ? null
        : rows.reduce((a, b) => (a && Math.abs(a.py - pointerY) <= Math.abs(b.py - pointerY) ? a : b), null);
      for (const { series, px: x, py } of rows) {
        svg("circle", { class: "dot c" + (series.colour % COLOURS), cx: x.toFixed(1), cy: py.toFixed(1), r: 3 }, this.over);
      }
      const crowded = rows.length > 4;
      for (const line of this.lines.children) {
        const own = near && crowded && this.spec.series[Number(line.dataset.series)] !== near.series;
        line.classList.toggle("faded", Boolean(own));
      }
      if (crowded) rows.sort((a, b) => b.y - a.y);
      this.fillTip(value, rows, near);
      this.placeTip(px);
    }

    fillTip(value, rows, near) {
      const MOST = 12;
      const { spec, tip } = this;
      tip.replaceChildren();
      const points = spec.series.some((series) => series.shape === "points");
      const x = points && rows.length ? rows[0].series.x[rows[0].place] : value;
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
        for (const line of plot.lines.children) line.classList.remove("faded");
      }
    }

    update(spec) {
      this.spec = spec;
      this.buildLegend();
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
    };
  }

  return { plot, format, svg, html };
})();
