// What is shown of links by colours: the metrics, the scale and the choice of a metric.
Clearway.links = (() => {
  const { svg, html, format } = Clearway;
  const LEVELS = 10;
  const METRICS = [
    { key: "utilisation", name: "Utilisation", unit: "%" },
    { key: "queue", name: "Peak queue", unit: "B" },
    { key: "marks", name: "Marks", unit: "" },
    { key: "drops", name: "Drops", unit: "" },
    { key: "pauses", name: "Pauses", unit: "" },
    { key: "paused", name: "Time paused", unit: "us" },
  ];

  // The greatest value of a metric; each column is a list, or one value for all.
  function greatest(panels, key) {
    let most = 0;
    for (const panel of panels) {
      const values = Array.isArray(panel[key]) ? panel[key] : [panel[key]];
      for (const value of values) if (value > most) most = value;
    }
    return most;
  }

  function print(metric, value) {
    if (metric.unit !== "%") return format(metric.unit, value);
    return (value === 0 ? "0" : (value * 100).toFixed(1)) + " %";
  }

  // 0 is for nothing at all; everything else is visible.
  function levelOf(value, most) {
    if (!(value > 0) || !(most > 0)) return 0;
    return Math.min(LEVELS, Math.max(1, Math.ceil((value / most) * LEVELS)));
  }

  // Radio buttons, one for each metric; `choose` is called with a metric that was chosen.
  function buildChoices(container, group, metrics, columns, chosen, choose) {
    const bar = html("div", "choices", container);
    bar.setAttribute("role", "radiogroup");
    bar.setAttribute("aria-label", "What the colours show");
    for (const metric of metrics) {
      const label = html("label", "", bar);
      const input = html("input", "", label);
      input.type = "radio";
      input.name = group;
      input.value = metric.key;
      input.checked = metric === chosen;
      html("span", "", label, metric.name);
      if (greatest(columns, metric.key) === 0 && metric !== chosen) {
        input.disabled = true;
        label.title = "zero on all links";
      }
      input.addEventListener("change", () => choose(metric));
    }
    return bar;
  }

  function drawScale(legend, metric, top) {
    legend.replaceChildren();
    html("span", "", legend, metric.name + "  " + print(metric, 0));
    const bar = svg("svg", { width: 132, height: 10, viewBox: "0 0 132 10", "aria-hidden": "true" }, legend);
    for (let level = 0; level <= LEVELS; level++) {
      svg("rect", { class: "h" + level, x: level * 12, y: 0, width: 12, height: 10 }, bar);
    }
    html("span", "", legend, print(metric, top));
  }

  return { LEVELS, METRICS, greatest, levelOf, print, buildChoices, drawScale };
})();

// A heat map of links: Clearway.heat(container, { panels: [...] }); one colour scale for all panels.
Clearway.heat = (() => {
  const { svg, html } = Clearway;
  const { LEVELS, METRICS, greatest, levelOf, print, buildChoices, drawScale } = Clearway.links;

  function valueAt(panel, key, place) {
    if (panel.names[place] === null) return null;
    const values = panel[key];
    return Array.isArray(values) ? values[place] : values;
  }

  class HeatMap {
    constructor(container, spec) {
      this.container = container;
      this.panels = spec.panels;
      this.metric = METRICS[0];
      container.replaceChildren();
      container.classList.add("heat");
      buildChoices(container, "heat-metric", METRICS, this.panels, this.metric, (metric) => {
        this.metric = metric;
        this.draw();
      });
      this.legend = html("p", "scale", container);
      const grid = html("div", "panels", container);
      this.views = this.panels.map((panel) => this.buildView(grid, panel));
      this.draw();
      new ResizeObserver(() => {
        if (this.views.some((view) => Math.abs(view.area.clientWidth - view.width) > 1)) this.draw();
      }).observe(container);
      addEventListener("beforeprint", () => this.draw(372));
      addEventListener("afterprint", () => this.draw());
    }

    buildView(grid, panel) {
      const figure = html("figure", "panel", grid);
      html("figcaption", "", figure, panel.title);
      const area = html("div", "area", figure);
      const root = svg("svg", { tabindex: 0, role: "img", "aria-label": panel.title }, area);
      const tip = html("div", "tip", area);
      tip.setAttribute("role", "status");
      tip.hidden = true;
      const view = { panel, area, root, tip, width: 0, place: 0 };
      root.addEventListener("pointermove", (event) => this.onPointer(view, event));
      root.addEventListener("pointerdown", (event) => this.onPointer(view, event));
      root.addEventListener("pointerleave", () => this.hide(view));
      root.addEventListener("blur", () => this.hide(view));
      root.addEventListener("keydown", (event) => this.onKey(view, event));
      return view;
    }

    draw(width) {
      const most = greatest(this.panels, this.metric.key);
      const top = this.metric.unit === "%" ? Math.max(1, most) : most;
      drawScale(this.legend, this.metric, top);
      for (const view of this.views) this.drawView(view, top, width);
    }

    drawView(view, top, width) {
      const { panel, root } = view;
      view.width = view.area.clientWidth;
      const w = width || view.width || 400;
      const [rows, columns] = [panel.rows.length, panel.columns.length];
      const left = 10 + 6.2 * Math.min(16, Math.max(...panel.rows.map((name) => name.length)));
      const cellWidth = Math.min(26, (w - left - 2) / columns);
      const cellHeight = Math.max(3, Math.min(18, 340 / rows));
      const gap = Math.min(cellWidth, cellHeight) > 7 ? 1 : 0;
      Object.assign(view, { left, cellWidth, cellHeight, above: 18 });
      const h = view.above + rows * cellHeight + 2;
      root.replaceChildren();
      root.setAttribute("viewBox", "0 0 " + w + " " + h.toFixed(1));
      const paths = Array.from({ length: LEVELS + 1 }, () => "");
      for (let place = 0; place < panel.names.length; place++) {
        const value = valueAt(panel, this.metric.key, place);
        if (value === null) continue;
        const x = left + (place % columns) * cellWidth;
        const y = view.above + Math.floor(place / columns) * cellHeight;
        const [wide, high] = [(cellWidth - gap).toFixed(2), (cellHeight - gap).toFixed(2)];
        paths[levelOf(value, top)] += "M" + x.toFixed(2) + " " + y.toFixed(2) + "h" + wide + "v" + high + "h-" + wide + "z";
      }
      paths.forEach((d, level) => {
        if (d) svg("path", { class: "h" + level, d }, root);
      });
      this.drawNames(view, rows, columns);
      view.over = svg("path", { class: "chosen" }, root);
    }

    drawNames(view, rows, columns) {
      const { panel, root, left, cellWidth, cellHeight, above } = view;
      const short = (name) => (name.length > 16 ? name.slice(0, 15) + "…" : name);
      const everyRow = Math.ceil(13 / cellHeight);
      for (let row = 0; row < rows; row += everyRow) {
        const y = (above + (row + 0.5) * cellHeight).toFixed(1);
        svg("text", { class: "tick end", x: left - 5, y, dy: "0.32em" }, root).textContent = short(panel.rows[row]);
      }
      const longest = Math.max(...panel.columns.map((name) => Math.min(16, name.length)));
      const everyColumn = Math.ceil((longest * 6.2 + 10) / cellWidth);
      for (let column = 0; column < columns; column += everyColumn) {
        const x = (left + column * cellWidth).toFixed(1);
        const name = short(panel.columns[column]);
        if (Number(x) + name.length * 6.2 > root.viewBox.baseVal.width) continue;
        svg("text", { class: "tick", x, y: above - 6 }, root).textContent = name;
      }
    }

    onPointer(view, event) {
      const frame = view.root.getBoundingClientRect();
      const factor = view.root.viewBox.baseVal.width / (frame.width || 1);
      const column = Math.floor(((event.clientX - frame.left) * factor - view.left) / view.cellWidth);
      const row = Math.floor(((event.clientY - frame.top) * factor - view.above) / view.cellHeight);
      const { rows, columns } = view.panel;
      if (column < 0 || row < 0 || column >= columns.length || row >= rows.length) this.hide(view);
      else this.show(view, row * columns.length + column);
    }

    onKey(view, event) {
      const columns = view.panel.columns.length;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = view.place + step;
      if (next >= 0 && next < view.panel.names.length) this.show(view, next);
    }

    show(view, place) {
      const { panel, tip, left, cellWidth, cellHeight, above } = view;
      const name = panel.names[place];
      if (name === null) {
        this.hide(view);
        return;
      }
      view.place = place;
      const columns = panel.columns.length;
      const x = left + (place % columns) * cellWidth;
      const y = above + Math.floor(place / columns) * cellHeight;
      view.over.setAttribute("d", "M" + x + " " + y + "h" + cellWidth + "v" + cellHeight + "h-" + cellWidth + "z");
      tip.replaceChildren();
      html("div", "at", tip, name);
      for (const metric of METRICS) {
        const row = html("div", metric === this.metric ? "row near" : "row", tip);
        html("span", "", row, metric.name);
        html("b", "", row, print(metric, valueAt(panel, metric.key, place)));
      }
      if (valueAt(panel, "links", place) > 1) {
        html("div", "at", tip, "busiest: " + panel.busiestName[place] + ", " + print(METRICS[0], valueAt(panel, "busiest", place)));
      }
      tip.hidden = false;
      const factor = (view.area.clientWidth || 1) / view.root.viewBox.baseVal.width;
      const wanted = (x + cellWidth) * factor + 10;
      const room = view.area.clientWidth - tip.offsetWidth;
      tip.style.left = (wanted > room ? Math.max(0, x * factor - tip.offsetWidth - 10) : wanted) + "px";
      tip.style.top = (y + cellHeight) * factor + 4 + "px";
    }

    hide(view) {
      view.tip.hidden = true;
      view.over.removeAttribute("d");
    }
  }

  return (container, spec) => new HeatMap(container, spec);
})();
