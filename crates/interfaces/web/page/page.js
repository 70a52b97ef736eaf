// The playground: an editor for a scenario, a worker that runs it, and its results.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const LIMIT = 120_000;
  const MOST_TEXT = 256 * 1024;
  const PAUSE = 250;

  function html(name, parent, text) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

  // The bytes that come out of a stream; an error if there are more than `most`.
  async function drain(stream, most) {
    const parts = [];
    let length = 0;
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > most) {
        reader.cancel();
        throw new Error("more than " + most + " bytes");
      }
      parts.push(value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  const through = (bytes, transform, most) => drain(new Blob([bytes]).stream().pipeThrough(transform), most);

  // A worker and what it was asked. Ending it ends a run, whatever the run is doing.
  class Engine {
    constructor(module) {
      this.module = module;
      this.asked = new Map();
      this.count = 0;
    }

    start() {
      const address = URL.createObjectURL(new Blob([data.worker], { type: "text/javascript" }));
      this.worker = new Worker(address);
      URL.revokeObjectURL(address);
      this.worker.onmessage = ({ data: message }) => this.take(message);
      this.worker.postMessage({ module: this.module });
    }

    take(message) {
      const asked = this.asked.get(message.id);
      if (!asked) return;
      if (message.progress) {
        if (asked.onProgress) asked.onProgress(message.progress);
        return;
      }
      this.asked.delete(message.id);
      if (message.answer !== undefined) {
        this.memory = message.memory;
        asked.resolve(JSON.parse(message.answer));
        return;
      }
      let said = null;
      try {
        said = JSON.parse(message.said);
      } catch {
        // It says nothing.
      }
      const text = "error: the run broke off: " + message.fault + "\n  fix: run a smaller scenario, or use the program `clearway`";
      asked.resolve(said && said.error ? said : { error: { text } });
    }

    ask(call, request, onProgress) {
      if (!this.worker) this.start();
      const id = this.count++;
      return new Promise((resolve) => {
        this.asked.set(id, { resolve, onProgress });
        this.worker.postMessage({ id, call, request: JSON.stringify(request), limit: LIMIT });
      });
    }

    stop() {
      if (this.worker) this.worker.terminate();
      this.worker = null;
      for (const { resolve } of this.asked.values()) resolve(null);
      this.asked.clear();
    }
  }

  const text = $("text");
  // One worker checks while another runs.
  let checker = null;
  let runner = null;
  let settings = [];
  let about = null;
  let results = [];
  let shown = 0;

  // Lines and their faults.

  let faulty = 0;
  function drawLines() {
    const count = text.value.split("\n").length;
    const lines = $("lines");
    lines.replaceChildren();
    for (let line = 1; line <= count; line++) {
      html(line === faulty ? "b" : "span", lines, line + "\n");
    }
    lines.style.height = text.clientHeight + "px";
    lines.scrollTop = text.scrollTop;
  }

  function say(message, wrong) {
    $("fault").textContent = message;
    $("fault").classList.toggle("wrong", Boolean(wrong));
  }

  let asked = 0;
  async function check() {
    const own = ++asked;
    const answer = await checker.ask("check", { text: text.value });
    if (own !== asked || !answer) return;
    if (answer.error) {
      faulty = answer.error.line || 0;
      say(answer.error.text, true);
    } else {
      faulty = 0;
      settings = answer.settings;
      const { flows, packet_hops: hops, operations } = answer.work;
      const work = operations === undefined ? flows + " flows, " + prefixed(hops) + " packet-hops" : operations + " operations";
      say([answer.hosts + " hosts, " + work + ".", ...answer.warnings].join("\n"));
    }
    drawLines();
  }

  function prefixed(value) {
    for (const [factor, prefix] of [[1e9, " G"], [1e6, " M"], [1e3, " K"]]) {
      if (value >= factor) return (value / factor).toPrecision(3) + prefix;
    }
    return String(value);
  }

  let waiting = null;
  function changed() {
    drawLines();
    clearTimeout(waiting);
    if (checker) waiting = setTimeout(check, PAUSE);
  }

  // Completion.

  const list = $("completion");
  let offers = [];
  let chosen = 0;

  // The section of a place in the text, such as `topology` or `workload`; "" at the top.
  function sectionAt(before) {
    const heads = before.match(/^\s*\[\[?\s*[^\]\n]+/gm);
    return heads ? heads[heads.length - 1].replace(/[[\s]/g, "") : "";
  }

  const own = (section) => settings.filter((one) => one.section.replace(/\[\d+\]$/, "") === section);

  function offersAt(place) {
    const before = text.value.slice(0, place);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const head = line.match(/^\s*\[\[?([\w-]*)$/);
    if (head) {
      const names = [...new Set(settings.map((one) => one.section.replace(/\[\d+\]$/, "")))].filter(Boolean);
      return names.filter((name) => name.startsWith(head[1])).map((name) => ({ word: name, typed: head[1], hint: "" }));
    }
    const section = sectionAt(before);
    const key = line.match(/^\s*([\w-]*)$/);
    if (key) {
      const known = own(section).filter((one) => one.key.startsWith(key[1]) && one.key !== key[1]);
      return known.map((one) => ({ word: one.key, typed: key[1], after: " = ", hint: one.value + " · " + one.meaning }));
    }
    const value = line.match(/^\s*([\w-]+)\s*=\s*"?([\w-]*)$/);
    if (!value) return [];
    const setting = own(section).find((one) => one.key === value[1]);
    if (!setting) return [];
    const quoted = /"[\w-]*$/.test(line);
    return setting.words.filter((word) => word.startsWith(value[2]) && word !== value[2])
      .map((word) => ({ word: quoted ? word + '"' : '"' + word + '"', typed: value[2], hint: "" }));
  }

  function drawOffers() {
    list.replaceChildren();
    list.hidden = offers.length === 0;
    text.setAttribute("aria-expanded", String(!list.hidden));
    if (list.hidden) return;
    offers.slice(0, 40).forEach((offer, place) => {
      const item = html("li", list);
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(place === chosen));
      html("code", item, offer.word);
      if (offer.hint) html("span", item, offer.hint);
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        chosen = place;
        accept();
      });
    });
    const before = text.value.slice(0, text.selectionStart);
    const row = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n") - 1;
    const top = 10 + row * 20 - text.scrollTop;
    const room = text.clientHeight;
    list.style.left = Math.min(44 + column * 7.8 - text.scrollLeft, Math.max(0, text.clientWidth - 300)) + "px";
    list.style.top = (top + list.offsetHeight > room && top > list.offsetHeight + 20 ? top - list.offsetHeight - 22 : Math.min(top, Math.max(0, room - list.offsetHeight))) + "px";
    const item = list.children[chosen];
    if (item) item.scrollIntoView({ block: "nearest" });
  }

  function complete() {
    offers = offersAt(text.selectionStart);
    chosen = 0;
    drawOffers();
  }

  function close() {
    offers = [];
    drawOffers();
  }

  function accept() {
    const offer = offers[chosen];
    close();
    if (!offer) return;
    const place = text.selectionStart;
    text.setRangeText(offer.word + (offer.after || ""), place - offer.typed.length, place, "end");
    changed();
    if (offer.after) complete();
  }

  text.addEventListener("input", (event) => {
    changed();
    if (event.inputType === "insertText") complete();
    else close();
  });
  text.addEventListener("scroll", () => {
    $("lines").scrollTop = text.scrollTop;
    close();
  });
  text.addEventListener("blur", close);
  text.addEventListener("click", close);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    else if (event.key === " " && event.ctrlKey) complete();
    else if (list.hidden) return;
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const count = Math.min(offers.length, 40);
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      drawOffers();
    } else if (event.key === "Enter" || event.key === "Tab") accept();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(drawLines).observe(text);

  // Runs.

  const wanted = () => [...document.querySelectorAll("#choices input:checked")].map((input) => input.value);

  async function run() {
    if ($("run").disabled) return;
    const transports = wanted();
    const variants = transports.length ? transports.map((name) => ({ name, set: ["transport.kind=" + name] })) : [{ name: "as written", set: [] }];
    $("run").disabled = true;
    $("stop").hidden = false;
    results = [];
    const source = text.value;
    for (const variant of variants) {
      const begin = performance.now();
      const tell = ([share, hops, us]) => {
        const part = share > 0 ? Math.floor(share * 100) + " % of the flows, " : "";
        $("progress").textContent = variant.name + ": " + part + prefixed(hops) + " packet-hops, " + us.toFixed(1) + " µs";
      };
      $("progress").textContent = variant.name + "…";
      const answer = await runner.ask("run", { text: source, set: variant.set }, tell);
      if (!answer) {
        $("progress").textContent = "Stopped.";
        break;
      }
      if (answer.error) {
        $("progress").textContent = "";
        say((variants.length > 1 ? variant.name + ": " : "") + answer.error.text, true);
        if (variant.set.length === 0) faulty = answer.error.line || 0;
        drawLines();
        break;
      }
      results.push({ ...variant, ...answer, source, seconds: (performance.now() - begin) / 1000 });
      const cut = answer.summary.status === "interrupted" ? " Stopped after " + LIMIT / 60_000 + " minutes: the results are those until then." : "";
      $("progress").textContent = "Done in " + results.reduce((sum, one) => sum + one.seconds, 0).toFixed(2) + " s." + cut;
    }
    $("stop").hidden = true;
    $("run").disabled = false;
    drawResults();
  }

  function drawResults() {
    $("results").hidden = results.length === 0;
    if (!results.length) return;
    const table = $("table");
    table.replaceChildren();
    const head = html("tr", html("thead", table));
    html("th", head, "");
    for (const result of results) html("th", head, result.name);
    const body = html("tbody", table);
    const names = [...new Set(results.flatMap((result) => result.tiles.map((tile) => tile.name)))];
    const line = (name, cell) => {
      const row = html("tr", body);
      const first = html("th", row, name);
      first.scope = "row";
      for (const result of results) cell(html("td", row), result);
    };
    for (const name of names) {
      line(name, (cell, result) => {
        const tile = result.tiles.find((one) => one.name === name);
        cell.textContent = tile ? tile.value : "–";
        if (tile && tile.under) html("span", cell, tile.under);
      });
    }
    line("Digest", (cell, result) => {
      html("code", cell, result.digest);
    });
    const tabs = $("tabs");
    tabs.replaceChildren();
    results.forEach((result, place) => {
      const button = html("button", tabs, "Report: " + result.name);
      button.type = "button";
      button.addEventListener("click", () => showReport(place));
    });
    tabs.hidden = results.length < 2;
    showReport(0);
  }

  function showReport(place) {
    shown = place;
    [...$("tabs").children].forEach((button, number) => button.setAttribute("aria-pressed", String(number === place)));
    $("command").textContent = results[place].command;
    $("report").srcdoc = results[place].report;
  }

  function save(name, type, content) {
    const link = html("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  $("run").addEventListener("click", run);
  $("stop").addEventListener("click", () => runner.stop());
  $("save").addEventListener("click", () => save("scenario.toml", "application/toml", text.value));
  $("save-report").addEventListener("click", () => save("report.html", "text/html", results[shown].report));
  $("save-summary").addEventListener("click", () => save("summary.json", "application/json", JSON.stringify(results[shown].summary, null, 2) + "\n"));

  // A link that contains the scenario: after # is its text, compressed. It is never run before somebody presses the button.

  async function share() {
    const bytes = await through(new TextEncoder().encode(text.value), new CompressionStream("deflate-raw"), MOST_TEXT);
    const link = location.href.replace(/#.*/, "") + "#" + toBase64(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      $("progress").textContent = "Copied; it is also the address of this page now.";
    } catch {
      $("progress").textContent = "The address of this page now contains the scenario.";
    }
  }
  $("share").addEventListener("click", share);

  // Opens the scenario of the address; false if it has none.
  async function openLink() {
    const code = location.hash.slice(1);
    if (!code) return false;
    try {
      if (!/^[\w-]+$/.test(code)) throw new Error("other letters than those of base64");
      const bytes = fromBase64(code.replace(/-/g, "+").replace(/_/g, "/"));
      const plain = await through(bytes, new DecompressionStream("deflate-raw"), MOST_TEXT);
      text.value = new TextDecoder("utf-8", { fatal: true }).decode(plain);
      $("gallery").value = "";
      $("about").textContent = "From the link.";
      changed();
      return true;
    } catch (error) {
      $("about").textContent = "The link holds no scenario: " + error.message + ".";
      return false;
    }
  }

  function open(name) {
    const scenario = about.scenarios.find((one) => one.name === name);
    if (!scenario) return;
    text.value = scenario.text;
    text.scrollTop = 0;
    $("gallery").value = name;
    changed();
  }

  async function begin() {
    const bytes = await through(fromBase64(data.module), new DecompressionStream("gzip"), 64 << 20);
    const module = await WebAssembly.compile(bytes);
    checker = new Engine(module);
    runner = new Engine(module);
    about = await checker.ask("describe", {});
    $("version").textContent = "Version " + about.version + " (" + about.revision + ").";
    const gallery = $("gallery");
    html("option", gallery, "your own").value = "";
    for (const { name } of about.scenarios) html("option", gallery, name).value = name;
    const describe = () => {
      const scenario = about.scenarios.find((one) => one.name === gallery.value);
      $("about").textContent = scenario ? scenario.about : "";
    };
    gallery.addEventListener("change", () => {
      open(gallery.value);
      describe();
    });
    for (const { name, about: hint } of about.transports) {
      const label = html("label", $("choices"));
      label.title = hint;
      const input = html("input", label);
      input.type = "checkbox";
      input.value = name;
      html("span", label, name);
    }
    if (!(await openLink())) {
      open("quickstart");
      if (!location.hash) describe();
    }
    addEventListener("hashchange", openLink);
    $("run").textContent = "Run";
    $("run").disabled = false;
  }

  begin().catch((error) => {
    $("run").textContent = "Not available";
    say("The simulator cannot be loaded in this browser: " + error.message, true);
  });

  Object.assign(globalThis, { Playground: { run, results: () => results, open, ask: (...request) => runner.ask(...request), memory: () => runner.memory } });
})();
