// What a page does: draws the plots that its data describe, switches the theme, shortens the table of settings.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = {};
  for (const plot of data.plots.plots) {
    for (const series of plot.series) series.x = data.plots.lists[series.x];
    const container = document.querySelector("[data-plot=" + plot.id + "]");
    if (container) plots[plot.id] = Clearway.plot(container, plot);
  }
  Clearway.plots = plots;
  for (const element of document.querySelectorAll(".plots")) {
    const own = [...element.querySelectorAll("[data-plot]")].map((container) => plots[container.dataset.plot]);
    // A live page draws its plots later.
    Clearway.shareLegend(element, own.filter(Boolean));
  }
  const map = document.getElementById("fabric-map");
  if (map && data.map) Clearway.network = Clearway.map(map, data.map);
  const heat = document.getElementById("heat");
  if (heat && data.heat) Clearway.heat(heat, data.heat);
  for (const element of document.querySelectorAll(".control")) element.hidden = false;

  const THEMES = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  // A browser may refuse storage to files.
  const remembered = () => {
    try {
      return localStorage.getItem("clearway-theme");
    } catch {
      return null;
    }
  };
  function show(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
    try {
      localStorage.setItem("clearway-theme", theme);
    } catch {
      // It is then forgotten when the page is closed.
    }
  }
  if (button) {
    const first = remembered();
    let place = Math.max(0, THEMES.indexOf(first));
    button.hidden = false;
    show(THEMES[place]);
    button.addEventListener("click", () => {
      place = (place + 1) % THEMES.length;
      show(THEMES[place]);
    });
  }

  const only = document.getElementById("only-changed");
  if (only) {
    only.addEventListener("change", () => {
      document.querySelector("table.settings").classList.toggle("short", only.checked);
    });
  }
})();
