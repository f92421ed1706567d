// The page of a check: filters. Without this script all findings are shown and the form stays hidden.
(() => {
  const form = document.querySelector("form.filters");
  if (!form) return;
  const findings = [...document.querySelectorAll("details.finding")];
  const texts = new Map(findings.map((one) => [one, `${one.dataset.rule} ${one.textContent}`.toLowerCase()]));
  const groups = [...document.querySelectorAll("section.rule, section.consequence")];
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  form.hidden = false;

  const chosen = (name) => form.elements[name]?.value ?? "";
  const inFolder = (folder, wanted) => !wanted || folder === wanted || folder.startsWith(`${wanted}/`);

  function apply() {
    const consequences = new Set([...form.querySelectorAll('input[name="consequence"]:checked')].map((one) => one.value));
    const words = chosen("text").toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const one of findings) {
      const fits = consequences.has(one.dataset.consequence)
        && (!chosen("rule") || one.dataset.rule === chosen("rule"))
        && inFolder(one.dataset.folder, chosen("folder"))
        && (!chosen("fixable") || one.dataset.fixable === chosen("fixable"))
        && (!chosen("verdict") || one.dataset.verdict === chosen("verdict"))
        && words.every((word) => texts.get(one).includes(word));
      one.hidden = !fits;
      count += fits;
    }
    for (const group of groups) group.hidden = !group.querySelector("details.finding:not([hidden])");
    shown.textContent = `${count} of ${findings.length} shown`;
    nothing.hidden = count > 0;
  }

  function reset() {
    form.reset();
    apply();
    form.elements.text.focus();
  }

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("clear").addEventListener("click", reset);
  document.getElementById("clear-too").addEventListener("click", reset);
  for (const [id, open] of [["open-all", true], ["close-all", false]]) {
    document.getElementById(id).addEventListener("click", () => { for (const one of findings) if (!one.hidden) one.open = open; });
  }
  // A link to a finding that the filters hide shows it.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target?.closest("[hidden]")) return;
    form.reset();
    apply();
    target.scrollIntoView();
    (target.querySelector("summary") ?? target).focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select, textarea")) { event.preventDefault(); form.elements.text.focus(); }
  });
  apply();
})();
