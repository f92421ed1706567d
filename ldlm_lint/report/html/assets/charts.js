"use strict";
// Charts: the values at a place, by pointer, by touch, or by the arrow keys on the slider below a plot. All charts of a
// page with the same unit show the same place. What is drawn is complete without this script.
(() => {
  const SLIDER = 1000;
  let place = null; // what is read: a unit of the x axis and a value on it; null: the last values

  function points(path) {
    // Parsed once for as long as the data stays: a page that follows a run replaces it.
    if (path.parsedFrom !== path.dataset.ys) {
      const parts = (text) => (text ? text.split(",") : []);
      path.parsed = {
        xs: parts(path.dataset.xs).map(Number),
        ys: parts(path.dataset.ys),
        spans: parts(path.dataset.spans).map((span) => span.split(":").map(Number)),
      };
      path.parsedFrom = path.dataset.ys;
    }
    return path.parsed;
  }

  function nearest(xs, x) {
    let best = -1;
    for (let at = 0; at < xs.length; at += 1) if (best < 0 || Math.abs(xs[at] - x) < Math.abs(xs[best] - x)) best = at;
    return best;
  }

  function valueAt(path, x) {
    const { xs, ys, spans } = points(path);
    const here = nearest(xs, x);
    return here < 0 || spans.some(([start, end]) => start <= x && x <= end) ? "not a number" : ys[here];
  }

  const shown = (x) => Number(x.toPrecision(8)).toLocaleString("en");

  const ends = (chart) => [Number(chart.dataset.low), Number(chart.dataset.high)];

  function read(chart) {
    const [low, high] = ends(chart);
    const cursor = chart.querySelector(".cursor"), at = chart.querySelector(".readout .at"), slider = chart.querySelector(".reader");
    const values = [...chart.querySelectorAll(".legend [data-line] .value")];
    if (place === null || place.unit !== chart.dataset.unit || place.x < low || place.x > high) {
      cursor.setAttribute("visibility", "hidden");
      at.textContent = "last values";
      for (const value of values) value.textContent = value.dataset.last;
      slider.value = String(SLIDER);
      slider.setAttribute("aria-valuetext", "last values");
      return;
    }
    const paths = [...chart.querySelectorAll(".field path[data-xs]")];
    // The longest line says which places there are.
    const longest = paths.reduce((best, path) => (points(path).xs.length > points(best).xs.length ? path : best), paths[0]);
    const found = longest ? nearest(points(longest).xs, place.x) : -1;
    if (found < 0) return;
    const x = points(longest).xs[found];
    const share = `${(100 * (x - low)) / (high - low)}%`;
    cursor.setAttribute("x1", share);
    cursor.setAttribute("x2", share);
    cursor.setAttribute("visibility", "visible");
    at.textContent = `${chart.dataset.unit} ${shown(x)}`;
    const words = [];
    paths.forEach((path, number) => {
      if (!values[number]) return;
      const value = valueAt(path, x);
      values[number].textContent = value;
      words.push(`${values[number].parentElement.querySelector(".name").textContent} ${value}`);
    });
    const position = String(Math.round((SLIDER * (place.x - low)) / (high - low)));
    if (slider.value !== position) slider.value = position;
    slider.setAttribute("aria-valuetext", `${at.textContent}: ${words.slice(0, 6).join(", ")}`);
  }

  function readAll() {
    for (const chart of document.querySelectorAll("figure.chart")) read(chart);
  }

  function moveTo(chart, x) {
    const [low, high] = ends(chart);
    place = x === null ? null : { unit: chart.dataset.unit, x: Math.min(high, Math.max(low, x)) };
    readAll();
  }

  function moveToShare(chart, share) {
    const [low, high] = ends(chart);
    moveTo(chart, low + share * (high - low));
  }

  // One point further, as the longest line of this chart has them: more than a step of the slider where points are few.
  function step(chart, by) {
    const paths = [...chart.querySelectorAll(".field path[data-xs]")];
    const xs = paths.map((path) => points(path).xs).reduce((best, each) => (each.length > best.length ? each : best), []);
    if (!xs.length) return;
    const next = place === null ? xs.length - 1 : nearest(xs, place.x) + by;
    moveTo(chart, xs[Math.min(xs.length - 1, Math.max(0, next))]);
  }

  const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 };
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".reader")) return;
    const chart = event.target.closest("figure.chart");
    if (event.key in KEYS) step(chart, KEYS[event.key]);
    else if (event.key === "Home") moveToShare(chart, 0);
    else if (event.key === "End") moveToShare(chart, 1);
    else if (event.key === "Escape") moveTo(chart, null);
    else return;
    event.preventDefault();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches(".reader")) moveToShare(event.target.closest("figure.chart"), Number(event.target.value) / SLIDER);
  });
  document.addEventListener("pointermove", (event) => {
    const field = event.target.closest && event.target.closest(".plot .field");
    if (!field) return;
    const box = field.getBoundingClientRect();
    moveToShare(field.closest("figure.chart"), (event.clientX - box.left) / box.width);
  });
  document.addEventListener("pointerout", (event) => {
    const from = event.target.closest && event.target.closest(".plot .field");
    const to = event.relatedTarget && event.relatedTarget.closest && event.relatedTarget.closest(".plot .field");
    if (from && !to && event.pointerType === "mouse") moveTo(from.closest("figure.chart"), null);
  });

  function ready() {
    for (const reader of document.querySelectorAll(".reader[hidden]")) reader.hidden = false;
    readAll();
  }
  // What a page that follows a run has put in place is read again.
  document.addEventListener("charts-changed", ready);
  ready();
})();
