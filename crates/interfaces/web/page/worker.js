// The worker of the playground: holds the module, and answers one request after another.
//
// Messages to it: { module } first, then { id, call: "describe" | "check" | "run", request, limit }. From it: { id, answer, memory } with the
// JSON and the memory of the module, { id, progress: [share, hops, simulated us] }, or { id, fault } if the module is unusable.
const REPORTS_EVERY = 100;
let module = null;
let exports = null;
let running = null;

function instantiate() {
  const progress = (share, hops, us) => {
    const now = performance.now();
    if (now - running.told >= REPORTS_EVERY) {
      running.told = now;
      postMessage({ id: running.id, progress: [share, hops, us] });
    }
    return now - running.begin > running.limit ? 1 : 0;
  };
  exports = new WebAssembly.Instance(module, { clearway: { progress } }).exports;
  call("describe", "");
}

function call(name, request) {
  const bytes = new TextEncoder().encode(request);
  const place = exports.clearway_input(bytes.length);
  new Uint8Array(exports.memory.buffer, place, bytes.length).set(bytes);
  exports["clearway_" + name]();
  return output();
}

function output() {
  const bytes = new Uint8Array(exports.memory.buffer, exports.clearway_output(), exports.clearway_output_length());
  return new TextDecoder().decode(bytes);
}

onmessage = ({ data }) => {
  if (data.module) {
    module = data.module;
    return;
  }
  const now = performance.now();
  running = { id: data.id, begin: now, told: now, limit: data.limit || Infinity };
  try {
    if (!exports) instantiate();
    postMessage({ id: data.id, answer: call(data.call, data.request), memory: exports.memory.buffer.byteLength });
  } catch (fault) {
    // A module that has trapped is not used again. What it says of the defect is in its output.
    let said = "";
    try {
      said = exports ? output() : "";
    } catch {
      // It says nothing.
    }
    exports = null;
    postMessage({ id: data.id, fault: String(fault), said });
  }
};
