// Makes the table of rules one that can be filtered. The state of the filter is in the address, after "#", to be linked to:
// rules.html#consequence=hang,crash&fix=safe&default=on&q=nccl . An old anchor, rules.html#NAME, leads to the rule's page.
(() => {
  "use strict";

  const table = document.querySelector("#rules table");
  const CONSEQUENCE = 0, NAME = 1, SUMMARY = 2, FIX = 3, DEFAULT = 4, CODE = 5;
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    consequence: row.cells[CONSEQUENCE].textContent.trim(),
    fix: row.cells[FIX].textContent.trim(),
    default: row.cells[DEFAULT].textContent.trim(),
    name: row.cells[NAME].textContent.trim(),
    text: [NAME, SUMMARY, CODE].map((cell) => row.cells[cell].textContent.toLowerCase()).join(" "),
  }));

  function leadOldAnchors() {
    const name = location.hash.slice(1);
    if (rows.some((row) => row.name === name)) location.replace(`rules/${name}.html`);
  }

  const GROUPS = [
    { key: "consequence", label: "Consequence", values: [...new Set(rows.map((row) => row.consequence))] },
    { key: "fix", label: "Fix", values: ["safe", "unsafe", "display", "-"].filter((value) => rows.some((row) => row.fix === value)) },
    { key: "default", label: "Runs", values: ["on", "opt-in"] },
  ];
  const SHOWN = { "fix -": "none", "default on": "by default", "default opt-in": "opt-in" };

  const form = document.createElement("form");
  form.className = "rule-filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the rules");
  form.addEventListener("submit", (event) => event.preventDefault());

  const field = document.createElement("input");
  field.type = "search";
  field.id = "rule-filter-text";
  field.placeholder = "Name, code or word";
  field.autocomplete = "off";
  field.spellcheck = false;
  const label = document.createElement("label");
  label.htmlFor = field.id;
  label.textContent = "Filter";
  const line = document.createElement("div");
  line.className = "rule-filter__line";
  line.append(label, field);
  form.append(line);

  const chips = [];
  for (const group of GROUPS) {
    const set = document.createElement("div");
    set.className = "rule-filter__group";
    set.setAttribute("role", "group");
    const title = document.createElement("span");
    title.id = `rule-filter-${group.key}`;
    title.textContent = group.label;
    set.setAttribute("aria-labelledby", title.id);
    const buttons = document.createElement("div");
    set.append(title, buttons);
    for (const value of group.values) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.setAttribute("aria-pressed", "false");
      const count = rows.filter((row) => row[group.key] === value).length;
      chip.textContent = `${SHOWN[`${group.key} ${value}`] ?? value} ${count}`;
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        changed();
      });
      buttons.append(chip);
      chips.push({ chip, key: group.key, value });
    }
    form.append(set);
  }

  const state = document.createElement("p");
  state.className = "rule-filter__state";
  state.setAttribute("role", "status");
  const clear = document.createElement("button");
  clear.type = "button";
  clear.className = "rule-filter__clear";
  clear.textContent = "Clear the filter";
  clear.addEventListener("click", () => { field.value = ""; for (const { chip } of chips) chip.setAttribute("aria-pressed", "false"); changed(); field.focus(); });
  const end = document.createElement("div");
  end.className = "rule-filter__line";
  end.append(state, clear);
  form.append(end);

  function pressed(key) {
    return chips.filter((chip) => chip.key === key && chip.chip.getAttribute("aria-pressed") === "true").map((chip) => chip.value);
  }

  function apply() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Object.fromEntries(GROUPS.map(({ key }) => [key, pressed(key)]));
    let shown = 0;
    for (const entry of rows) {
      const fits = words.every((word) => entry.text.includes(word))
        && GROUPS.every(({ key }) => !wanted[key].length || wanted[key].includes(entry[key]));
      entry.row.hidden = !fits;
      shown += fits;
    }
    state.textContent = shown ? `${shown} of ${rows.length} rules` : `No rule fits. ${rows.length} rules in all.`;
    clear.hidden = shown === rows.length && !field.value;
  }

  function changed() {
    apply();
    const parameters = new URLSearchParams();
    if (field.value) parameters.set("q", field.value);
    for (const { key } of GROUPS) if (pressed(key).length) parameters.set(key, pressed(key).join(","));
    const text = parameters.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", text ? `#${text}` : location.href.replace(/#.*/, ""));
  }

  function restore() {
    if (location.hash && !location.hash.includes("=")) { leadOldAnchors(); apply(); return; }
    const parameters = new URLSearchParams(location.hash.slice(1));
    field.value = parameters.get("q") ?? "";
    for (const { chip, key, value } of chips) {
      chip.setAttribute("aria-pressed", String((parameters.get(key) ?? "").split(",").includes(value)));
    }
    apply();
  }

  // On a narrow screen rows are shown as cards, which takes the roles of a table from its elements: they are said again.
  table.setAttribute("role", "table");
  for (const part of [table.tHead, ...table.tBodies]) part.setAttribute("role", "rowgroup");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    for (const cell of row.cells) cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
  }
  for (const { row, consequence } of rows) {
    const badge = document.createElement("span");
    badge.className = `consequence consequence--${consequence}`;
    badge.textContent = consequence;
    row.cells[CONSEQUENCE].replaceChildren(badge);
  }
  const before = table.closest(".pst-scrollable-table-container") ?? table;
  before.before(form);
  field.addEventListener("input", changed);
  window.addEventListener("hashchange", restore);
  restore();
})();
