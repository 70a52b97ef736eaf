// The map of a fabric: Clearway.map(container, spec). Boxes in rows, and a line, an arc or half a cell of a matrix for each bundle of links.
//
// A spec is { rows: [{ kind, nodes }], boxes: columns, bundles: columns, totals: columns, frames: columns and ends, events, paths }, where a
// column is a list, or one value for all. Frames hold the value of bundle b in interval f at f * bundles + b.
Clearway.map = (() => {
  const { svg, html, format } = Clearway;
  const { LEVELS, METRICS, greatest, levelOf, print, buildChoices, drawScale } = Clearway.links;
  // Pairs of boxes of two rows from which on they are a matrix.
  const MANY = 256;
  const FRAMES_A_SECOND = 8;
  const REACH = 7;

  const at = (column, place) => (Array.isArray(column) ? column[place] : column);

  class FabricMap {
    constructor(container, spec) {
      this.container = container;
      this.spec = spec;
      this.frame = -1;
      this.path = null;
      this.chosen = null;
      this.pointed = null;
      this.boxes = spec.boxes.name.map((name, place) => ({
        name, place, row: at(spec.boxes.row, place), group: at(spec.boxes.group, place), nodes: at(spec.boxes.nodes, place),
      }));
      this.bundles = spec.bundles.from.map((from, place) => ({
        place, from, to: spec.bundles.to[place], links: at(spec.bundles.links, place), rate: at(spec.bundles.rate, place),
      }));
      this.frames = spec.frames ? spec.frames.ends.length : 0;
      const isKnown = ({ key }) => spec.totals[key] !== undefined && (!spec.frames || spec.frames[key] !== undefined);
      this.metrics = spec.totals ? METRICS.filter(isKnown) : [];
      this.metric = this.metrics[0];
      this.build();
      this.draw();
      new ResizeObserver(() => {
        if (Math.abs(this.area.clientWidth - this.width) > 1) this.draw();
      }).observe(container);
      addEventListener("beforeprint", () => this.draw(760));
      addEventListener("afterprint", () => this.draw());
    }

    // What the colours show of a metric now: one value for each bundle, or one for all.
    values(metric) {
      const { spec, frame } = this;
      if (frame < 0) return spec.totals ? spec.totals[metric.key] : 0;
      const column = spec.frames[metric.key];
      if (!Array.isArray(column)) return column ?? 0;
      const count = this.bundles.length;
      return column.slice(frame * count, (frame + 1) * count);
    }

    most(metric) {
      const { spec, frame } = this;
      const columns = frame < 0 ? spec.totals : spec.frames;
      const most = columns ? greatest([columns], metric.key) : 0;
      return metric.unit === "%" ? Math.max(1, most) : most;
    }

    interval(frame) {
      const { ends } = this.spec.frames;
      return [frame > 0 ? ends[frame - 1] : 0, ends[frame]];
    }

    // New values of each metric, of a run in progress; `note` says of when.
    update(totals, note) {
      this.spec.totals = totals;
      for (const input of this.choices.querySelectorAll("input")) {
        input.disabled = !input.checked && greatest([totals], input.value) === 0;
      }
      this.note ??= html("p", "note", this.container);
      this.legend.after(this.note);
      this.note.textContent = note;
      this.paint();
    }

    // Links of a bundle that are down at the interval shown; at any time of the run if no interval is.
    downOf(place) {
      const { spec, frame } = this;
      let down = at(spec.bundles.down, place);
      let most = down;
      const until = frame < 0 ? Infinity : this.interval(frame)[1];
      for (const event of spec.events || []) {
        if (event.at > until || !event.bundles.includes(place)) continue;
        down += event.down;
        most = Math.max(most, down);
      }
      return frame < 0 ? most : down;
    }

    build() {
      const { container, spec } = this;
      container.replaceChildren();
      container.classList.add("fabric-map");
      if (spec.totals) {
        this.choices = buildChoices(container, "map-metric", this.metrics, [spec.totals], this.metric, (metric) => {
          this.metric = metric;
          this.paint();
        });
        this.legend = html("p", "scale", container);
      }
      if (this.frames > 1) this.buildTime();
      if (spec.paths) this.buildPaths();
      // The drawing may be wider than the page and scrolls; what is said of a link is beside it.
      this.area = html("div", "area", container);
      this.scroller = html("div", "map-scroll", this.area);
      const label = container.dataset.alternative || "Map of the network";
      this.root = svg("svg", { tabindex: 0, role: "img", "aria-label": label }, this.scroller);
      this.tip = html("div", "tip", this.area);
      this.tip.setAttribute("role", "status");
      this.tip.hidden = true;
      this.detail = html("div", "map-detail", container);
      this.detail.hidden = true;
      const { root } = this;
      root.addEventListener("pointermove", (event) => this.point(this.hit(event)));
      root.addEventListener("pointerleave", () => this.point(null));
      root.addEventListener("blur", () => this.point(null));
      root.addEventListener("click", (event) => this.choose(this.hit(event)));
      root.addEventListener("keydown", (event) => this.onKey(event));
    }

    buildTime() {
      const bar = html("div", "time-bar control", this.container);
      this.play = html("button", "", bar, "Play");
      this.play.type = "button";
      this.play.addEventListener("click", () => this.toggle());
      const label = html("label", "", bar);
      html("span", "", label, "Time");
      this.slider = html("input", "", label);
      Object.assign(this.slider, { type: "range", min: 0, max: this.frames, step: 1, value: 0 });
      this.slider.addEventListener("input", () => {
        this.stop();
        this.show(Number(this.slider.value) - 1);
      });
      this.when = html("output", "", bar);
      this.sayWhen();
    }

    buildPaths() {
      const label = html("label", "menu control", this.container);
      html("span", "", label, "Path of");
      this.menu = html("select", "", label);
      html("option", "", this.menu, "no flow").value = "-1";
      this.spec.paths.forEach((path, place) => {
        html("option", "", this.menu, path.name).value = String(place);
      });
      this.menu.addEventListener("change", () => this.showPath(Number(this.menu.value)));
      for (const button of document.querySelectorAll("button[data-path]")) {
        button.addEventListener("click", () => {
          this.showPath(Number(button.dataset.path));
          this.container.scrollIntoView({ block: "center" });
        });
      }
    }

    sayWhen() {
      const text = this.frame < 0 ? "whole run" : this.interval(this.frame).map((time) => format("us", time)).join(" – ");
      this.when.textContent = text;
      this.slider.setAttribute("aria-valuetext", text);
    }

    toggle() {
      if (this.timer) {
        this.stop();
        return;
      }
      if (this.frame >= this.frames - 1) this.show(-1);
      this.play.textContent = "Pause";
      this.timer = setInterval(() => {
        if (this.frame + 1 >= this.frames) this.stop();
        else this.show(this.frame + 1);
      }, 1000 / FRAMES_A_SECOND);
    }

    stop() {
      clearInterval(this.timer);
      this.timer = null;
      this.play.textContent = "Play";
    }

    // Shows an interval, here and as a line in the plots over time; the whole run if it is -1.
    show(frame) {
      this.frame = frame;
      this.slider.value = frame + 1;
      this.sayWhen();
      this.paint();
      const plots = Object.values(Clearway.plots || {}).concat(this.courses || []);
      const own = plots.map((plot) => plot.drawn).filter((drawn) => drawn.spec.x.group === "time");
      if (frame < 0) {
        if (own.length) own[0].hideCursor();
        return;
      }
      const [from, to] = this.interval(frame);
      for (const drawn of own) drawn.showCursor((from + to) / 2, false);
    }

    draw(width) {
      this.width = this.area.clientWidth;
      const least = 5 * Math.max(...this.spec.rows.map((_, row) => this.boxes.filter((box) => box.row === row).length));
      const w = Math.max(width || this.width || 700, least + 60);
      this.layOut(w);
      const { root } = this;
      root.replaceChildren();
      root.setAttribute("viewBox", "0 0 " + w + " " + this.height.toFixed(0));
      root.style.minWidth = Math.min(w, least + 60) + "px";
      this.under = svg("g", {}, root);
      this.under.style.setProperty("--thin", this.thin);
      this.drawRows(root);
      this.over = svg("g", { class: "over" }, root);
      this.paint();
    }

    // Places of rows and boxes, and of what stands for bundles.
    layOut(w) {
      const { spec, boxes } = this;
      const gutter = w < 560 ? 56 : 100;
      this.gutter = gutter;
      const bands = this.bands();
      const rows = spec.rows.map((row, place) => ({ ...row, place, boxes: boxes.filter((box) => box.row === place) }));
      for (const row of rows) placeAcross(row.boxes, gutter, w - 6);
      let y = 6;
      this.elements = [];
      for (const row of rows) {
        const above = bands.filter((band) => band.low === row.place);
        const lines = above.filter((band) => !band.isMatrix);
        const arcs = lines.find((band) => band.high === row.place);
        if (lines.some((band) => band.high !== row.place)) y += w < 560 ? 64 : 92;
        if (arcs) y += 14 + Math.min(110, arcHeight(arcs.pairs));
        for (const band of above.filter((one) => one.isMatrix)) {
          const own = rows[band.high].boxes;
          const high = Math.max(4, Math.min(13, 420 / own.length));
          y += 20;
          this.layMatrix(band, own, y, high);
          y += own.length * high + 6;
        }
        row.y = y;
        row.isNamed = row.boxes.every((box) => box.nodes === 1 && numberOf(box).length * 6.6 + 4 <= box.wide);
        row.high = row.boxes.every((box) => box.wide < 12) ? 12 : 18;
        for (const box of row.boxes) Object.assign(box, { y, high: row.high });
        y += row.high;
        if (row.place + 1 < rows.length) y += 4;
      }
      for (const band of bands) if (!band.isMatrix) this.layLines(band);
      // Many lines are thin.
      const lines = Math.max(1, ...bands.filter((band) => !band.isMatrix).map((band) => band.pairs.length * 2));
      this.thin = Math.max(0.35, Math.min(1, 60 / lines));
      this.rows = rows;
      this.height = y + 4;
    }

    // Pairs of boxes, by the rows that they are in.
    bands() {
      const bands = new Map();
      const { boxes } = this;
      for (const bundle of this.bundles) {
        const ends = [boxes[bundle.from], boxes[bundle.to]];
        const isUp = ends[0].row > ends[1].row || (ends[0].row === ends[1].row && ends[0].place > ends[1].place);
        const [high, low] = isUp ? [ends[1], ends[0]] : ends;
        const key = high.row + " " + low.row;
        if (!bands.has(key)) bands.set(key, { high: high.row, low: low.row, pairs: new Map() });
        const { pairs } = bands.get(key);
        const pair = high.place * boxes.length + low.place;
        if (!pairs.has(pair)) pairs.set(pair, { high, low, up: null, down: null });
        pairs.get(pair)[isUp ? "up" : "down"] = bundle;
      }
      return [...bands.values()].map((band) => {
        const pairs = [...band.pairs.values()];
        const isStar = new Set(pairs.map((pair) => pair.low)).size === pairs.length;
        return { ...band, pairs, isMatrix: pairs.length > MANY && !isStar };
      });
    }

    layMatrix(band, own, top, high) {
      const places = new Map(own.map((box, place) => [box, place]));
      band.top = top;
      own.forEach((box, place) => {
        if (place % Math.ceil(12 / high) === 0) this.elements.push({ name: box, x: this.gutter - 5, y: top + (place + 0.5) * high });
      });
      for (const { high: upper, low, up, down } of band.pairs) {
        const y = top + places.get(upper) * high;
        const wide = low.wide / 2;
        if (up) this.elements.push({ bundle: up, cell: [low.x, y, wide, high - 1] });
        if (down) this.elements.push({ bundle: down, cell: [low.x + wide, y, wide - 1, high - 1] });
      }
    }

    layLines(band) {
      const same = band.high === band.low;
      const tall = same ? arcHeight(band.pairs) : 0;
      for (const { high, low, up, down } of band.pairs) {
        const apart = Math.min(2, low.wide / 5, high.wide / 5);
        for (const [bundle, side] of [[up, -1], [down, 1]]) {
          if (!bundle) continue;
          const [x1, x2] = [high, low].map((box) => box.x + box.wide / 2 + (up && down ? side * apart : 0));
          if (!same) this.elements.push({ bundle, line: [x1, high.y + high.high, x2, low.y] });
          else if (high === low) this.elements.push({ bundle, cell: [low.x, low.y - 5, low.wide, 4] });
          else this.elements.push({ bundle, arc: [x1, x2, high.y, Math.min(110, 8 + (tall * Math.abs(x2 - x1)) / this.widest(band)) + side * 2] });
        }
      }
    }

    widest(band) {
      band.most ??= Math.max(1, ...band.pairs.map(({ high, low }) => Math.abs(high.x - low.x)));
      return band.most;
    }

    drawRows(root) {
      const { gutter } = this;
      for (const row of this.rows) {
        const text = svg("text", { class: "tick end", x: gutter - 8, y: row.y + row.high / 2, dy: "0.32em" }, root);
        const label = gutter < 60 ? row.kind : format("", row.nodes) + " × " + row.kind;
        text.textContent = shortened(label, gutter - 10);
        for (const box of row.boxes) {
          const { x, y, wide, high } = box;
          const shape = { class: "node", x: x.toFixed(2), y, width: Math.max(1, wide - (wide > 5 ? 2 : 0.5)).toFixed(2), height: high, rx: wide > 10 ? 2 : 0 };
          svg("rect", shape, root);
          if (!row.isNamed) continue;
          svg("text", { class: "node-name middle", x: x + (wide - 2) / 2, y: y + high / 2, dy: "0.34em" }, root).textContent = numberOf(box);
        }
      }
      for (const element of this.elements) {
        if (!element.name) continue;
        const text = svg("text", { class: "tick end", x: element.x, y: element.y, dy: "0.32em" }, root);
        text.textContent = shortened(element.name.name.split(" – ")[0], gutter - 8);
      }
    }

    // Colours of the bundles.
    paint() {
      const { under, metric } = this;
      under.replaceChildren();
      const values = metric ? this.values(metric) : 0;
      const most = metric ? this.most(metric) : 0;
      if (this.legend) drawScale(this.legend, metric, most);
      const strokes = Array.from({ length: LEVELS + 1 }, () => "");
      const fills = Array.from({ length: LEVELS + 1 }, () => "");
      let failed = "";
      for (const element of this.elements) {
        if (!element.bundle) continue;
        const { place } = element.bundle;
        const level = levelOf(at(values, place), most);
        if (this.downOf(place) > 0) failed += outline(element);
        if (element.cell) fills[level] += outline(element);
        else strokes[level] += outline(element);
      }
      fills.forEach((d, level) => {
        if (d) svg("path", { class: this.spec.totals ? "h" + level : "plain-cell", d }, under);
      });
      strokes.forEach((d, level) => {
        if (d) svg("path", { class: this.spec.totals ? "s" + level : "plain", d }, under);
      });
      if (failed) svg("path", { class: "failed", d: failed }, under);
      this.mark();
    }

    // The chosen path, and the elements that are pointed at or kept.
    mark() {
      const { over } = this;
      over.replaceChildren();
      if (this.path) {
        const own = new Set(this.path.bundles);
        const d = this.elements.filter((element) => element.bundle && own.has(element.bundle.place)).map(outline).join("");
        svg("path", { class: "route", d }, over);
      }
      for (const [element, name] of [[this.chosen, "kept"], [this.pointed, "chosen"]]) {
        if (!element) continue;
        const now = this.elements.filter((one) => element.bundle && one.bundle === element.bundle);
        const d = element.box ? boxOutline(element.box) : now.map(outline).join("");
        svg("path", { class: name, d }, over);
      }
    }

    position(event) {
      const frame = this.root.getBoundingClientRect();
      const factor = this.root.viewBox.baseVal.width / (frame.width || 1);
      return [(event.clientX - frame.left) * factor, (event.clientY - frame.top) * factor];
    }

    // The box or the bundle at a place; null if there is none.
    hit(event) {
      const [x, y] = this.position(event);
      const box = this.boxes.find((one) => inside([one.x, one.y, one.wide, one.high], x, y));
      if (box) return { box };
      let best = null;
      let least = REACH;
      for (const element of this.elements) {
        if (!element.bundle) continue;
        const far = distance(element, x, y);
        if (far < least) [best, least] = [element, far];
      }
      return best;
    }

    onKey(event) {
      const order = this.elements.filter((element) => element.bundle);
      const now = order.findIndex((element) => this.pointed && element.bundle === this.pointed.bundle);
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 16, ArrowUp: -16 }[event.key];
      if (step !== undefined) this.point(order[Math.max(0, Math.min(order.length - 1, now + step))]);
      else if (event.key === "Enter" && this.pointed) this.choose(this.pointed);
      else if (event.key === "Escape") this.choose(null);
      else return;
      event.preventDefault();
    }

    nameOf(bundle) {
      const [from, to] = [bundle.from, bundle.to].map((box) => this.boxes[box]);
      if (bundle.links === 1 && from.nodes === 1 && to.nodes === 1) return from.name + "-" + to.name;
      return from.name + " → " + to.name + ", " + format("", bundle.links) + (bundle.links === 1 ? " link" : " links");
    }

    point(element) {
      if (element === this.pointed) return;
      this.pointed = element;
      this.mark();
      const { tip } = this;
      tip.hidden = !element;
      if (!element) return;
      tip.replaceChildren();
      if (element.box) this.fillBoxTip(element.box);
      else this.fillTip(element.bundle);
      this.placeTip(element);
    }

    fillBoxTip(box) {
      const { tip } = this;
      html("div", "at", tip, box.name + (box.nodes > 1 ? ", " + format("", box.nodes) + " nodes" : ""));
      for (const [name, key] of [["out", "from"], ["in", "to"]]) {
        const own = this.bundles.filter((bundle) => this.boxes[bundle[key]] === box);
        const links = own.reduce((sum, bundle) => sum + bundle.links, 0);
        const rate = own.reduce((sum, bundle) => sum + bundle.rate, 0);
        const row = html("div", "row", tip);
        html("span", "", row, format("", links) + (links === 1 ? " link " : " links ") + name);
        html("b", "", row, format("bps", rate));
        if (!this.metric) continue;
        const value = this.sumOf(own, this.metric);
        const line = html("div", "row near", tip);
        html("span", "", line, this.metric.name + " " + name);
        html("b", "", line, print(this.metric, value));
      }
    }

    // The metric of several bundles: utilisation by rate, queues by the longest, the rest summed up.
    sumOf(bundles, metric) {
      const values = this.values(metric);
      const own = bundles.map((bundle) => [at(values, bundle.place) ?? 0, bundle.rate]);
      if (metric.key === "queue") return Math.max(0, ...own.map(([value]) => value));
      const sum = own.reduce((total, [value, rate]) => total + value * (metric.unit === "%" ? rate : 1), 0);
      const rates = own.reduce((total, [, rate]) => total + rate, 0);
      return metric.unit === "%" ? sum / (rates || 1) : sum;
    }

    fillTip(bundle) {
      const { tip, spec, frame } = this;
      html("div", "at", tip, this.nameOf(bundle));
      if (this.frames > 1) html("div", "at", tip, this.when.textContent);
      for (const metric of this.metrics) {
        const row = html("div", metric === this.metric ? "row near" : "row", tip);
        html("span", "", row, metric.name);
        html("b", "", row, print(metric, at(this.values(metric), bundle.place)));
      }
      const rate = html("div", "row", tip);
      html("span", "", rate, "Rate");
      html("b", "", rate, format("bps", bundle.rate));
      const down = this.downOf(bundle.place);
      if (down > 0) html("div", "at", tip, bundle.links === 1 ? "down" : down + " of " + bundle.links + " links down");
      if (frame < 0 && bundle.links > 1 && spec.totals && spec.totals.busiestName) {
        const busiest = print(METRICS[0], at(spec.totals.busiest, bundle.place));
        html("div", "at", tip, "busiest: " + spec.totals.busiestName[bundle.place] + ", " + busiest);
      }
    }

    placeTip(element) {
      const { tip, area } = this;
      const factor = (this.root.getBoundingClientRect().width || 1) / this.root.viewBox.baseVal.width;
      const [right, y] = element.box ? [element.box.x + element.box.wide, element.box.y + element.box.high] : middle(element);
      const x = right * factor - this.scroller.scrollLeft;
      const wanted = x + 12;
      tip.style.left = Math.max(0, wanted + tip.offsetWidth > area.clientWidth ? x - tip.offsetWidth - 12 : wanted) + "px";
      tip.style.top = y * factor + 8 + "px";
    }

    // Keeps an element in view, with its course over time below the map.
    choose(element) {
      this.chosen = element;
      this.mark();
      const { detail } = this;
      // Without a course and without paths there is nothing to keep in view.
      detail.hidden = !element || (this.frames < 2 && !this.spec.paths);
      if (detail.hidden) return;
      if (!this.parts) this.buildDetail();
      const bundles = element.box
        ? this.bundles.filter((bundle) => this.boxes[bundle.from] === element.box)
        : [element.bundle];
      this.parts.title.textContent = element.box ? "Out of " + element.box.name : this.nameOf(element.bundle);
      this.fillCourses(bundles);
      this.fillFlows(bundles);
    }

    buildDetail() {
      const { detail } = this;
      const title = html("h3", "", detail);
      const plots = html("div", "plots", detail);
      const flows = html("p", "map-flows", detail);
      this.parts = { title, plots, flows };
      this.courses = [];
    }

    fillCourses(bundles) {
      const { frames } = this.spec;
      if (this.frames < 2) return;
      const course = (metric) => {
        const kept = this.frame;
        const y = frames.ends.map((_, frame) => {
          this.frame = frame;
          return this.sumOf(bundles, metric);
        });
        this.frame = kept;
        return y;
      };
      const shown = this.metrics.filter((metric) => metric.key === "utilisation" || course(metric).some(Boolean));
      this.parts.plots.replaceChildren();
      for (const plot of this.courses) plot.drawn.forget();
      this.courses = shown.map((metric) => {
        const figure = html("figure", "", this.parts.plots);
        const caption = html("figcaption", "", figure);
        html("strong", "", caption, metric.name);
        const unit = metric.unit === "%" ? "1" : metric.unit;
        const series = { name: metric.name, shape: "interval", colour: 0, x: frames.ends, y: course(metric) };
        return Clearway.plot(html("div", "drawing", figure), {
          title: metric.name,
          x: { label: "time", unit: "us", from: 0, group: "time" },
          y: { label: metric.name.toLowerCase(), unit, from: 0, ...(metric.unit === "%" ? { to: 1 } : {}) },
          series: [series],
        });
      });
    }

    fillFlows(bundles) {
      const { flows } = this.parts;
      const own = new Set(bundles.map((bundle) => bundle.place));
      flows.replaceChildren();
      const paths = this.spec.paths || [];
      flows.hidden = !paths.length;
      const lead = html("span", "", flows);
      paths.forEach((path, place) => {
        if (!path.bundles.some((bundle) => own.has(bundle))) return;
        const button = html("button", "", flows, path.name);
        button.type = "button";
        button.addEventListener("click", () => this.showPath(place));
      });
      lead.textContent = flows.children.length > 1 ? "Slow flows that crossed it: " : "None of the slowest flows crossed it.";
    }

    // Draws the path of a flow; none if there is no such flow.
    showPath(place) {
      this.path = this.spec.paths[place] || null;
      this.menu.value = String(place);
      this.mark();
    }
  }

  // Boxes side by side, with gaps between groups.
  function placeAcross(boxes, left, right) {
    const gaps = boxes.reduce((count, box, place) => count + (place > 0 && box.group !== boxes[place - 1].group ? 1 : 0), 0);
    const room = right - left;
    const gap = gaps ? Math.min(10, (room * 0.2) / gaps) : 0;
    const wide = Math.min(64, (room - gaps * gap) / boxes.length);
    let x = left + (room - wide * boxes.length - gaps * gap) / 2;
    boxes.forEach((box, place) => {
      if (place > 0 && box.group !== boxes[place - 1].group) x += gap;
      Object.assign(box, { x, wide });
      x += wide;
    });
  }

  function numberOf(box) {
    return (box.name.match(/[\d.]+$/) || [""])[0];
  }

  function arcHeight(pairs) {
    return Math.min(100, 16 + pairs.length);
  }

  function outline({ line, arc, cell }) {
    if (line) return "M" + line[0].toFixed(1) + " " + line[1] + "L" + line[2].toFixed(1) + " " + line[3];
    if (cell) return rectangle(cell);
    const [x1, x2, y, high] = arc;
    const top = (y - high * 1.33).toFixed(1);
    return "M" + x1.toFixed(1) + " " + y + "C" + x1.toFixed(1) + " " + top + " " + x2.toFixed(1) + " " + top + " " + x2.toFixed(1) + " " + y;
  }

  function rectangle([x, y, wide, high]) {
    return "M" + x.toFixed(2) + " " + y.toFixed(2) + "h" + wide.toFixed(2) + "v" + high.toFixed(2) + "h-" + wide.toFixed(2) + "z";
  }

  function boxOutline(box) {
    return rectangle([box.x - 1, box.y - 1, box.wide, box.high + 2]);
  }

  function inside([x0, y0, wide, high], x, y) {
    return x >= x0 && x < x0 + wide && y >= y0 && y < y0 + high;
  }

  // Points along an arc, the ends among them.
  function pointsOf([x1, x2, y, high]) {
    return Array.from({ length: 17 }, (_, place) => {
      const t = place / 16;
      const across = x1 * (1 - t) ** 2 * (1 + 2 * t) + x2 * t ** 2 * (3 - 2 * t);
      return [across, y - 4 * high * t * (1 - t)];
    });
  }

  function toSegment([x1, y1, x2, y2], x, y) {
    const length = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
    const t = Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length));
    return Math.hypot(x - x1 - t * (x2 - x1), y - y1 - t * (y2 - y1));
  }

  function distance({ line, arc, cell }, x, y) {
    if (line) return toSegment(line, x, y);
    if (cell) return inside(cell, x, y) ? 0 : Infinity;
    const points = pointsOf(arc);
    return Math.min(...points.slice(1).map((point, place) => toSegment([...points[place], ...point], x, y)));
  }

  function middle({ line, arc, cell }) {
    if (line) return [(line[0] + line[2]) / 2, (line[1] + line[3]) / 2];
    if (cell) return [cell[0] + cell[2], cell[1] + cell[3]];
    return pointsOf(arc)[8];
  }

  function shortened(name, room) {
    const most = Math.max(3, Math.floor(room / 6.2));
    return name.length > most ? name.slice(0, most - 1) + "…" : name;
  }

  return (container, spec) => new FabricMap(container, spec);
})();
