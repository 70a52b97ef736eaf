// Buttons that open the scenarios of the book in the playground, which `cargo xtask web` puts beside the book. Only blocks of sections of a
// scenario have one, and none that needs a file.
(() => {
  const SECTIONS = ["topology", "switch", "transport", "injection", "workload", "event", "fast-forward", "observe"];
  const base = typeof path_to_root === "string" ? path_to_root : "";

  function isScenario(text) {
    const heads = [...text.matchAll(/^\[\[?([\w-]+)/gm)].map((head) => head[1]);
    const isWhole = ["topology", "switch", "transport", "workload"].some((section) => heads.includes(section));
    return isWhole && heads.every((head) => SECTIONS.includes(head)) && !/^file = /m.test(text);
  }

  async function packed(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return btoa(letters).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }

  for (const code of document.querySelectorAll("code.language-toml")) {
    const text = code.textContent;
    if (!isScenario(text)) continue;
    const link = document.createElement("a");
    link.textContent = "Run in the playground";
    link.href = base + "playground/index.html";
    link.className = "try";
    packed(text).then((address) => {
      link.href += "#" + address;
    });
    code.parentElement.after(link);
  }
})();
