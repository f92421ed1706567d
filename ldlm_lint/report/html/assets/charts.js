"use strict";
// Charts: the values at a place, by pointer, by touch, or by the arrow keys on the slider below a plot. All charts of a
// page with the same unit show the same place. What is drawn is complete without this script.
(() => {
  const SLIDER = 1000;
  let place = null; // where the readers are, as a share of the plot from 0 to 1; null: at the last values

  function points(path) {
    // Parsed once for as long as the data stays: a page that follows a run replaces it.
    if (path.parsedFrom !== path.dataset.ys) {
      const numbers = (text) => (text ? text.split(",") : []);
      path.parsed = { xs: numbers(path.dataset.xs).map(Number), ys: numbers(path.dataset.ys) };
      path.parsedFrom = path.dataset.ys;
    }
    return path.parsed;
  }

  function nearest(xs, x) {
    let best = -1;
    for (let at = 0; at < xs.length; at += 1) if (best < 0 || Math.abs(xs[at] - x) < Math.abs(xs[best] - x)) best = at;
    return best;
  }

  const shown = (x) => Number(x.toPrecision(8)).toLocaleString("en");

  function read(chart) {
    const low = Number(chart.dataset.low), high = Number(chart.dataset.high);
    const cursor = chart.querySelector(".cursor"), at = chart.querySelector(".readout .at"), slider = chart.querySelector(".reader");
    const values = [...chart.querySelectorAll(".legend [data-line] .value")];
    if (place === null) {
      cursor.setAttribute("visibility", "hidden");
      at.textContent = "last values";
      for (const value of values) value.textContent = value.dataset.last;
      return;
    }
    const paths = [...chart.querySelectorAll(".field path[data-xs]")];
    const wanted = low + place * (high - low);
    // The longest line says which places there are.
    const longest = paths.reduce((best, path) => (points(path).xs.length > points(best).xs.length ? path : best), paths[0]);
    const found = longest ? nearest(points(longest).xs, wanted) : -1;
    if (found < 0) return;
    const x = points(longest).xs[found];
    const share = `${(100 * (x - low)) / (high - low)}%`;
    cursor.setAttribute("x1", share);
    cursor.setAttribute("x2", share);
    cursor.setAttribute("visibility", "visible");
    at.textContent = `${chart.dataset.unit} ${shown(x)}`;
    const words = [];
    paths.forEach((path, number) => {
      const { xs, ys } = points(path);
      const here = nearest(xs, x);
      const value = here < 0 ? "no number" : ys[here];
      if (!values[number]) return;
      values[number].textContent = value;
      words.push(`${values[number].parentElement.querySelector(".name").textContent} ${value}`);
    });
    if (slider.value !== String(Math.round(place * SLIDER))) slider.value = String(Math.round(place * SLIDER));
    slider.setAttribute("aria-valuetext", `${at.textContent}: ${words.slice(0, 6).join(", ")}`);
  }

  function readAll() {
    for (const chart of document.querySelectorAll("figure.chart")) read(chart);
  }

  function moveTo(share) {
    place = share === null ? null : Math.min(1, Math.max(0, share));
    readAll();
  }

  // One point further, as the longest line of this chart has them: more than a step of the slider where points are few.
  function step(chart, by) {
    const paths = [...chart.querySelectorAll(".field path[data-xs]")];
    const low = Number(chart.dataset.low), high = Number(chart.dataset.high);
    const xs = paths.map((path) => points(path).xs).reduce((best, each) => (each.length > best.length ? each : best), []);
    if (!xs.length) return;
    const here = place === null ? xs.length - 1 : nearest(xs, low + place * (high - low));
    const next = Math.min(xs.length - 1, Math.max(0, place === null ? here : here + by));
    moveTo((xs[next] - low) / (high - low));
  }

  const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 };
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".reader")) return;
    const chart = event.target.closest("figure.chart");
    if (event.key in KEYS) step(chart, KEYS[event.key]);
    else if (event.key === "Home") moveTo(0);
    else if (event.key === "End") moveTo(1);
    else if (event.key === "Escape") moveTo(null);
    else return;
    event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches(".reader")) moveTo(Number(event.target.value) / SLIDER);
  });
  document.addEventListener("pointermove", (event) => {
    const field = event.target.closest && event.target.closest(".plot .field");
    if (!field) return;
    const box = field.getBoundingClientRect();
    moveTo((event.clientX - box.left) / box.width);
  });
  document.addEventListener("pointerout", (event) => {
    const from = event.target.closest && event.target.closest(".plot .field");
    const to = event.relatedTarget && event.relatedTarget.closest && event.relatedTarget.closest(".plot .field");
    if (from && !to && event.pointerType === "mouse") moveTo(null);
  });

  function ready() {
    for (const reader of document.querySelectorAll(".reader[hidden]")) reader.hidden = false;
    readAll();
  }
  // What a page that follows a run has put in place is read again.
  document.addEventListener("charts-changed", ready);
  ready();
})();
