// The launch graph: the edges of the launch that is looked at stand out.
(() => {
  const edges = [...document.querySelectorAll(".graph .edge")];
  const choose = (key) => { for (const edge of edges) edge.classList.toggle("chosen", edge.dataset.launch === key); };
  for (const node of document.querySelectorAll(".graph a.node")) {
    const key = node.getAttribute("href").slice(1);
    for (const kind of ["mouseenter", "focus", "click"]) node.addEventListener(kind, () => choose(key));
  }
  for (const launch of document.querySelectorAll("details.launch")) launch.addEventListener("toggle", () => { if (launch.open) choose(launch.id); });
})();
