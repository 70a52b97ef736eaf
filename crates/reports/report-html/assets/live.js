// What a live page does: asks how far the run is, draws what has been sampled, and passes on what the buttons say.
//
// GET api/state?since=EPOCH.COUNT gives the samples that are new; all of them if the epoch is another one, for then neighbours
// have been merged. A sample is [end in µs, length in µs, [[curve, value], ...]], a curve is [metric, subject]. `map` is the last interval
// of the map: { from, to, values }, with a column of values for each metric.
(() => {
  const BUSY = 300;
  const IDLE = 700;
  const PATIENCE = 6;
  const MOST = 8;
  // What is drawn, and how: of each plot its metrics, and of each metric how its values are drawn and joined.
  const PLOTS = JSON.parse(document.getElementById("data").textContent).live;
  const EVENTS = new Set(PLOTS.flatMap((plot) => plot.series.filter((series) => series.per_us).map((series) => series.metric)));

  const element = (id) => document.getElementById(id);
  const say = (id, text) => {
    if (element(id).textContent !== text) element(id).textContent = text;
  };

  let epoch = -1;
  let curves = [];
  let samples = [];
  let state = null;
  let asked = 0;
  let failures = 0;
  let speed = null;
  let before = null;
  // The subjects that are drawn, each in the place of its colour, by metric.
  const shown = new Map();
  const plots = {};

  function take(answer) {
    if (answer.epoch !== epoch) {
      epoch = answer.epoch;
      samples = [];
    }
    curves = answer.curves;
    samples = samples.slice(0, answer.from).concat(answer.samples);
    return answer.samples.length > 0;
  }

  // Each metric and subject to its values, one for each sample.
  function tables() {
    const values = new Map();
    for (const [metric, subject] of curves) {
      if (!values.has(metric)) values.set(metric, new Map());
      values.get(metric).set(subject, new Array(samples.length).fill(null));
    }
    samples.forEach(([, length, entries], place) => {
      for (const [curve, value] of entries) {
        const [metric, subject] = curves[curve];
        const events = EVENTS.has(metric) && length > 0;
        values.get(metric).get(subject)[place] = events && value !== null ? value / length : value;
      }
    });
    return values;
  }

  // The subjects with the greatest peaks, or the first; who stays keeps its place and so its colour.
  function choose(metric, own, ranked) {
    let subjects = [...own.keys()];
    if (ranked) {
      const peak = (subject) => own.get(subject).reduce((most, value) => (value > most ? value : most), 0);
      const peaks = new Map(subjects.map((subject) => [subject, peak(subject)]));
      subjects.sort((a, b) => peaks.get(b) - peaks.get(a));
    }
    subjects = subjects.slice(0, MOST);
    const places = (shown.get(metric) || []).map((subject) => (subjects.includes(subject) ? subject : null));
    for (const subject of subjects) {
      if (places.includes(subject)) continue;
      const free = places.indexOf(null);
      if (free < 0) places.push(subject);
      else places[free] = subject;
    }
    shown.set(metric, places.filter((subject) => subject !== null));
  }

  function seriesOf(plot, values, x) {
    const drawn = ({ shape, join }, name, y, colour) => ({ name, shape, join: join || undefined, colour, x, y });
    const none = () => new Array(x.length).fill(null);
    if (plot.of_run) {
      return plot.series.map((one, place) => drawn(one, one.label, (values.get(one.metric) || new Map()).get("run") || none(), place));
    }
    const one = plot.series[0];
    const own = values.get(one.metric) || new Map();
    if (!plot.like) choose(one.metric, own, plot.ranked);
    return (shown.get(plot.like || one.metric) || []).map((subject, place) => drawn(one, subject, own.get(subject) || none(), place));
  }

  function draw() {
    if (samples.length === 0) return;
    const values = tables();
    const x = samples.map(([end]) => end);
    for (const plot of PLOTS) {
      const container = document.querySelector("[data-plot=" + plot.id + "]");
      if (!container) continue;
      const series = seriesOf(plot, values, x);
      if (series.length === 0) continue;
      const spec = {
        title: plot.id,
        x: { label: "simulated time", unit: "us", log: false, from: 0, group: "time" },
        y: { label: plot.label, unit: plot.unit, log: false, from: 0 },
        series,
        rules: [],
      };
      if (plots[plot.id]) plots[plot.id].update(spec);
      else plots[plot.id] = Clearway.plot(container, spec);
    }
    const goodput = values.get("goodput_bps");
    if (goodput) say("goodput-now", Clearway.format("bps", goodput.get("run")[samples.length - 1]));
  }

  function measure(answer) {
    const now = performance.now();
    if (before && answer.status === "running" && now > before.now) {
      const latest = (answer.hops - before.hops) / (now - before.now) * 1000;
      speed = speed === null ? latest : speed * 0.6 + latest * 0.4;
    }
    if (answer.status !== "running") speed = null;
    before = { now, hops: answer.hops };
  }

  // Of so many packet-hops at the present speed; nothing where it is not known.
  function timeToGo(hops) {
    if (!(speed > 0) || !(hops > 0)) return "";
    const seconds = hops / speed;
    if (seconds < 100) return ", " + Math.ceil(seconds) + " s to go";
    if (seconds < 6000) return ", " + Math.round(seconds / 60) + " min to go";
    return ", " + (seconds / 3600).toFixed(1) + " h to go";
  }

  const ENDED = ["complete", "incomplete", "interrupted"];

  function tell(answer) {
    const { status, now, until, flows, ending } = answer;
    const ended = ENDED.includes(status);
    const held = status === "paused" || status === "pausing";
    say("status", status);
    element("status").className = "status " + (held ? "paused" : status === "running" ? "running" : "over");
    say("hold", held ? "Resume" : "Pause");
    const running = held || status === "running";
    for (const id of ["hold", "until", "go", "stop"]) element(id).disabled = !running;
    say("now", Clearway.format("us", now));
    // As one types it, with all of its digits.
    const exact = (us) => Number(us.toFixed(6)) + "us";
    say("exact", exact(now) + (until === null ? "" : ", pauses at " + exact(until)));
    say("sent", Clearway.format("", flows.sent));
    say("total", "of " + Clearway.format("", flows.total));
    say("speed", speed === null ? "–" : Clearway.format("", Number(speed.toPrecision(3))));
    const expected = answer.expected_hops;
    const of = expected > 0 && !ended ? " of " + Clearway.format("", expected) : " in all";
    say("hops", Clearway.format("", answer.hops) + of + timeToGo(expected - answer.hops));
    // Connections of jobs are done at the end, and so are flows that end together: hops tell how far it is.
    const sent = flows.total > 0 ? flows.sent / flows.total : 0;
    const done = expected > 0 ? Math.min(0.99, answer.hops / expected) : sent;
    element("progress").value = ended ? sent : done;
    if (ended && ending && element("ending").hidden) conclude(ending);
  }

  function conclude(ending) {
    for (const { name, value, under } of ending.figures) {
      const tile = Clearway.html("div", "", element("figures"));
      Clearway.html("dt", "", tile, name);
      const figure = Clearway.html("dd", "", tile);
      Clearway.html("b", "", figure, value);
      figure.append(" ");
      Clearway.html("span", "", figure, under);
    }
    say("folder", ending.folder);
    element("report").hidden = ending.report === null;
    if (ending.reason) warn("Incomplete: " + ending.reason + ".");
    element("ending").hidden = false;
  }

  function warn(text) {
    say("message", text);
    element("message").hidden = text === "";
  }

  function lose() {
    say("status", "no answer");
    element("status").className = "status lost";
    for (const id of ["hold", "until", "go", "stop"]) element(id).disabled = true;
    warn("The program does not answer any more; what is shown is the last that it said.");
  }

  // What the server answers; null if it does not.
  async function request(address, options) {
    try {
      const reply = await fetch(address, options);
      return await reply.json();
    } catch {
      return null;
    }
  }

  // Asks once. A later question makes the answer to an earlier one void.
  async function ask() {
    const number = ++asked;
    const answer = await request("api/state?since=" + epoch + "." + samples.length, { cache: "no-store" });
    if (number !== asked) return;
    if (answer === null) {
      failures += 1;
      if (failures === PATIENCE) {
        lose();
        return;
      }
    } else {
      failures = 0;
      const news = take(answer);
      measure(answer);
      state = answer;
      tell(answer);
      if (news) draw();
      if (answer.map && Clearway.network) {
        const { from, to, values } = answer.map;
        Clearway.network.update(values, "From " + Clearway.format("us", from) + " to " + Clearway.format("us", to) + " of simulated time.");
      }
      if (ENDED.includes(answer.status)) return;
    }
    setTimeout(() => {
      if (number === asked) ask();
    }, state && state.status === "paused" ? IDLE : BUSY);
  }

  async function order(what) {
    warn("");
    const answer = await request("api/control", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(what),
    });
    if (answer && answer.error) warn(answer.error);
    ask();
  }

  element("hold").addEventListener("click", () => {
    const held = state && (state.status === "paused" || state.status === "pausing");
    order({ action: held ? "resume" : "pause" });
  });
  element("step").addEventListener("submit", (event) => {
    event.preventDefault();
    order({ action: "step", until: element("until").value.trim() });
  });
  element("stop").addEventListener("click", () => order({ action: "stop" }));
  Clearway.plots = plots;
  ask();
})();
