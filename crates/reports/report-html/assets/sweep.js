// A sweep: a measure along one axis of the plan with a line for each value of another, a heat map of both, and a table that sorts.
(() => {
  const { svg, html, format } = Clearway;
  const sweep = JSON.parse(document.getElementById("data").textContent).sweep;
  const control = document.getElementById("sweep");
  if (!sweep || !control) return;
  const { axes, points, measures } = sweep;
  const LEVELS = 10;
  const MOST_LINES = 8;
  const grid = axes.reduce((product, axis) => product * axis.values.length, 1);
  // Drawn points have values of their own on every axis: nothing joins them.
  const scattered = points.length < grid / 2;
  const state = { measure: 0, by: "mean", x: 0, line: -1, fixed: axes.map(() => 0), sort: null };

  // The axis with the most quantities lies along x, the others make lines in their order.
  for (let place = 0; place < axes.length; place++) {
    const score = (axis) => (axis.numbers ? 1000 : 0) + axis.values.length;
    if (score(axes[place]) > score(axes[state.x])) state.x = place;
  }
  state.line = axes.findIndex((axis, place) => place !== state.x);

  function menu(label, options, chosen, act) {
    const box = html("label", "menu", control);
    html("span", "", box, label);
    const select = html("select", "", box);
    for (const [value, text] of options) {
      const option = html("option", "", select, text);
      option.value = value;
      option.selected = String(value) === String(chosen);
    }
    select.addEventListener("change", () => {
      act(select.value);
      const label = box.firstChild.textContent;
      draw();
      // The menus are made anew: the one in use stays in use.
      for (const other of control.children) if (other.firstChild.textContent === label) other.lastChild.focus();
    });
  }

  function menus() {
    control.replaceChildren();
    menu("Measure", measures.map((measure, place) => [place, measure.title]), state.measure, (value) => (state.measure = +value));
    const by = Object.keys(measures[0].by);
    if (by.length > 1) menu("Over seeds", by.map((name) => [name, name]), state.by, (value) => (state.by = value));
    if (axes.length < 2) return;
    const keys = axes.map((axis, place) => [place, axis.key]);
    menu("Along", keys, state.x, (value) => {
      if (+value === state.line) state.line = state.x;
      state.x = +value;
    });
    menu("Lines", keys.filter(([place]) => place !== state.x), state.line, (value) => (state.line = +value));
    if (scattered) return;
    axes.forEach((axis, place) => {
      if (place === state.x || place === state.line) return;
      menu(axis.key, axis.values.map((value, number) => [number, value]), state.fixed[place], (value) => (state.fixed[place] = +value));
    });
  }

  const estimates = () => measures[state.measure].by[state.by];
  const name = (point) => axes.map((axis, place) => axis.key + "=" + axis.values[points[point].place[place]]).join(" ");

  function words(point) {
    const { unit } = measures[state.measure];
    const [value, low, high, seeds] = estimates().rows[point];
    const range = low === null ? "no interval" : format(unit, low) + " to " + format(unit, high);
    return name(point) + ": " + format(unit, value) + " (" + range + ", " + seeds + (seeds === 1 ? " seed)" : " seeds)");
  }

  // Points of the chosen values on the axes that are not drawn.
  function chosen() {
    const all = points.map((_, number) => number);
    const known = all.filter((number) => estimates().rows[number][0] !== null);
    if (scattered) return known;
    return known.filter((number) =>
      axes.every((_, place) => place === state.x || place === state.line || points[number].place[place] === state.fixed[place]));
  }

  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((candidate) => candidate >= rough * 0.999);
    const list = [];
    for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) list.push(place * step);
    return list;
  }

  function heading(figure, title, note) {
    const caption = html("figcaption", "", figure);
    html("strong", "", caption, title);
    caption.append(" ");
    html("span", "note", caption, note);
  }

  // Positions along x: quantities where they belong, words one after the other.
  function alongOf(axis, from, to) {
    const numbers = axis.numbers;
    if (!numbers) {
      const step = (to - from) / axis.values.length;
      return { at: (value) => from + step * (value + 0.5), labels: axis.values.map((text, value) => [value, text]) };
    }
    const low = Math.min(...numbers);
    const high = Math.max(...numbers);
    const log = low > 0 && high / low >= 8;
    const map = (value) => (log ? Math.log(value) : value);
    const span = map(high) - map(low) || 1;
    const inner = [from + 14, to - 14];
    const at = (value) => inner[0] + ((map(numbers[value]) - map(low)) / span) * (inner[1] - inner[0]);
    return { at, labels: axis.values.map((text, value) => [value, text]) };
  }

  function upOf(list, top, bottom) {
    const rows = list.map((number) => estimates().rows[number]);
    const ends = rows.flatMap(([value, low, high]) => [value, low, high].filter((end) => end !== null));
    let low = Math.min(...ends);
    let high = Math.max(...ends);
    if (low >= 0 && low < high * 0.6) low = 0;
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    high += room;
    if (low !== 0) low -= room;
    return { at: (value) => bottom - ((value - low) / (high - low)) * (bottom - top), low, high };
  }

  function drawAlong() {
    const figure = document.getElementById("along");
    figure.replaceChildren();
    const list = chosen();
    const measure = measures[state.measure];
    const axis = axes[state.x];
    const several = state.line >= 0;
    heading(figure, measure.title + " along " + axis.key, state.by + " over seeds" + (several ? ", by " + axes[state.line].key : ""));
    if (list.length === 0) return html("p", "note", figure, "No run has it here.");
    const area = html("div", "area drawing", figure);
    const w = area.clientWidth || 480;
    const h = Math.max(230, Math.min(320, w * 0.6));
    const label = measure.title + " along " + axis.key + "; the table of all points has the numbers.";
    const root = svg("svg", { viewBox: "0 0 " + w + " " + h, role: "img", "aria-label": label }, area);
    const up = upOf(list, 12, h - 44);
    const marks = ticks(up.low, up.high, 5);
    const texts = marks.map((value) => format(measure.unit, value));
    const left = 14 + 6.4 * Math.max(...texts.map((text) => text.length));
    marks.forEach((value, place) => {
      svg("line", { class: "grid", x1: left, x2: w - 4, y1: up.at(value), y2: up.at(value) }, root);
      svg("text", { class: "end", x: left - 6, y: up.at(value) + 4 }, root).textContent = texts[place];
    });
    const along = alongOf(axis, left, w - 4);
    let last = -Infinity;
    for (const [value, text] of along.labels.slice().sort((a, b) => along.at(a[0]) - along.at(b[0]))) {
      const x = along.at(value);
      if (x - last < text.length * 6.4 + 8) continue;
      last = x;
      svg("text", { class: "middle", x: Math.min(x, w - 3.2 * text.length), y: h - 26 }, root).textContent = text;
    }
    svg("text", { class: "middle", x: (left + w) / 2, y: h - 6 }, root).textContent = axis.key;
    const lines = new Map();
    for (const number of list) {
      const key = several ? points[number].place[state.line] : 0;
      const group = scattered && axes[state.line] && axes[state.line].numbers ? 0 : key;
      if (!lines.has(group)) lines.set(group, []);
      lines.get(group).push(number);
    }
    let colour = 0;
    for (const [key, numbers] of [...lines].sort((a, b) => a[0] - b[0])) {
      numbers.sort((a, b) => along.at(points[a].place[state.x]) - along.at(points[b].place[state.x]));
      // Beside each other, where words leave room for that.
      const shift = axis.numbers ? 0 : (colour - (lines.size - 1) / 2) * Math.min(9, 60 / lines.size);
      drawLine(root, numbers, { along, up, shift, joined: !!axis.numbers && !scattered }, colour % MOST_LINES);
      colour++;
    }
    if (lines.size > 1) drawLegend(figure, [...lines.keys()].sort((a, b) => a - b));
  }

  function drawLine(root, numbers, { along, up, shift, joined }, colour) {
    const group = svg("g", { class: "c" + colour }, root);
    const rows = estimates().rows;
    const x = (number) => along.at(points[number].place[state.x]) + shift;
    if (joined) {
      const band = numbers.filter((number) => rows[number][1] !== null);
      if (band.length > 1) {
        const above = band.map((number) => x(number) + " " + up.at(rows[number][2]));
        const below = band.map((number) => x(number) + " " + up.at(rows[number][1])).reverse();
        svg("path", { class: "band", d: "M" + above.concat(below).join("L") + "Z" }, group);
      }
      const path = numbers.map((number) => x(number) + " " + up.at(rows[number][0]));
      svg("path", { class: "line", d: "M" + path.join("L") }, group);
    }
    for (const number of numbers) {
      const [value, low, high] = rows[number];
      if (low !== null) {
        const at = x(number);
        svg("path", { class: "bar", d: "M" + at + " " + up.at(low) + "V" + up.at(high) }, group);
      }
      const best = estimates().best.includes(number);
      const dot = svg("circle", { class: best ? "dot best" : "dot", cx: x(number), cy: up.at(value), r: best ? 6 : 4 }, group);
      svg("title", {}, dot).textContent = words(number);
    }
  }

  function drawLegend(figure, keys) {
    const list = html("ul", "keys", figure);
    keys.forEach((key, colour) => {
      const item = html("li", "c" + (colour % MOST_LINES), list);
      html("i", "", item);
      item.append(axes[state.line].values[key]);
    });
  }

  function drawMap() {
    const figure = document.getElementById("map");
    figure.replaceChildren();
    figure.hidden = state.line < 0 || scattered;
    if (figure.hidden) return;
    const measure = measures[state.measure];
    const [columns, rows] = [axes[state.x], axes[state.line]];
    heading(figure, measure.title, rows.key + " by " + columns.key);
    const list = chosen();
    const values = list.map((number) => estimates().rows[number][0]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    const area = html("div", "area", figure);
    const w = area.clientWidth || 480;
    const left = Math.min(w * 0.35, 10 + 6.6 * Math.max(...rows.values.map((text) => text.length)));
    const step = (w - left) / columns.values.length;
    const line = 34;
    const h = rows.values.length * line + 44;
    const label = "Heat map of " + measure.title + "; the table of all points has the numbers.";
    const root = svg("svg", { viewBox: "0 0 " + w + " " + h, role: "img", "aria-label": label }, area);
    rows.values.forEach((text, place) => {
      svg("text", { class: "end", x: left - 6, y: place * line + line / 2 + 4 }, root).textContent = text;
    });
    const width = Math.max(...columns.values.map((text) => text.length)) * 6.4 + 8;
    const every = Math.max(1, Math.ceil(width / step));
    columns.values.forEach((text, place) => {
      if (place % every) return;
      svg("text", { class: "middle", x: left + (place + 0.5) * step, y: h - 26 }, root).textContent = text;
    });
    svg("text", { class: "middle", x: (left + w) / 2, y: h - 6 }, root).textContent = columns.key;
    for (const number of list) {
      const [value] = estimates().rows[number];
      const level = 1 + Math.round(((value - low) / (high - low || 1)) * (LEVELS - 1));
      const x = left + points[number].place[state.x] * step;
      const y = points[number].place[state.line] * line;
      const cell = svg("g", {}, root);
      svg("rect", { class: "h" + level, x: x + 1, y: y + 1, width: Math.max(1, step - 2), height: line - 2, rx: 2 }, cell);
      const text = format(measure.unit, value);
      if (text.length * 6.6 < step - 4) {
        const side = level > 5 ? "cell over-hot" : "cell over-cold";
        svg("text", { class: side, x: x + step / 2, y: y + line / 2 + 4 }, cell).textContent = text;
      }
      svg("title", {}, cell).textContent = words(number);
      if (estimates().best.includes(number)) {
        svg("rect", { class: "chosen", x: x + 1, y: y + 1, width: Math.max(1, step - 2), height: line - 2, rx: 2 }, root);
      }
    }
    const scale = html("p", "scale", figure);
    html("span", "", scale, format(measure.unit, low));
    const bar = svg("svg", { width: 120, height: 10, viewBox: "0 0 120 10", "aria-hidden": "true" }, scale);
    for (let level = 1; level <= LEVELS; level++) {
      svg("rect", { class: "h" + level, x: (level - 1) * 12, y: 0, width: 12, height: 10 }, bar);
    }
    html("span", "", scale, format(measure.unit, high) + (["", "  (framed: the best point)"][estimates().best.length] ?? "  (framed: the best points)"));
  }

  function drawTable() {
    const box = document.getElementById("all-points");
    box.replaceChildren();
    const measure = measures[state.measure];
    const { rows, best, alike } = estimates();
    const columns = axes.map((axis, place) => ({
      title: axis.key,
      number: !!axis.numbers,
      order: (point) => (axis.numbers ? axis.numbers[points[point].place[place]] : axis.values[points[point].place[place]]),
      text: (point) => axis.values[points[point].place[place]],
    }));
    const width = (point) => (rows[point][1] === null ? null : rows[point][2] - rows[point][1]);
    const share = (part) => (part === null ? "–" : (part * 100).toFixed(1) + " %");
    const range = (point) =>
      rows[point][1] === null ? "–" : format(measure.unit, rows[point][1]) + " to " + format(measure.unit, rows[point][2]);
    columns.push(
      { title: measure.title, number: true, order: (point) => rows[point][0], text: (point) => format(measure.unit, rows[point][0]) },
      { title: "95 % interval", number: true, order: width, text: range },
      { title: "Seeds", number: true, order: (point) => rows[point][3], text: (point) => String(rows[point][3]) },
      { title: "Best in", number: true, order: (point) => rows[point][4], text: (point) => share(rows[point][4]) },
      { title: "Runs", number: false, order: (point) => points[point].state, text: (point) => points[point].state },
    );
    const first = axes.length;
    const sort = state.sort || { column: first, down: measure.more };
    const order = points.map((_, number) => number);
    const compare = (a, b) => {
      const [x, y] = [columns[sort.column].order(a), columns[sort.column].order(b)];
      // What is not known comes last in both directions.
      if (x === null || y === null) return (x === null) - (y === null);
      const before = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return sort.down ? -before : before;
    };
    order.sort((a, b) => compare(a, b) || a - b);
    const scroll = html("div", "scroll", box);
    scroll.tabIndex = 0;
    const table = html("table", "points", scroll);
    const head = html("tr", "", html("thead", "", table));
    columns.forEach((column, place) => {
      const cell = html("th", column.number ? "n" : "", head);
      cell.scope = "col";
      cell.setAttribute("aria-sort", place !== sort.column ? "none" : sort.down ? "descending" : "ascending");
      const mark = place !== sort.column ? "" : sort.down ? " ▾" : " ▴";
      const button = html("button", "sort", cell, column.title + mark);
      button.type = "button";
      button.addEventListener("click", () => {
        state.sort = { column: place, down: place === sort.column ? !sort.down : false };
        drawTable();
        document.querySelectorAll("#all-points button.sort")[place].focus();
      });
    });
    const body = html("tbody", "", table);
    for (const point of order) {
      const kind = best.includes(point) ? "best" : alike.includes(point) ? "alike" : "";
      const row = html("tr", kind, body);
      columns.forEach((column, place) => {
        const cell = html(place === 0 ? "th" : "td", column.number ? "n" : "", row, column.text(point));
        if (place === 0) cell.scope = "row";
      });
    }
  }

  function draw() {
    menus();
    document.getElementById("best").textContent = estimates().sentence;
    drawAlong();
    drawMap();
    drawTable();
  }

  draw();
  let before = control.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(control.clientWidth - before) < 2) return;
    before = control.clientWidth;
    drawAlong();
    drawMap();
  }).observe(control);
})();
