"use strict";
// Every page: the theme, copy buttons, and everything opened for a printer. A page is complete without this script.
(() => {
  const root = document.documentElement;
  const said = document.getElementById("said");
  const themes = ["system", "light", "dark"];
  const stored = {
    get() { try { return localStorage.getItem("ldlm-lint-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("ldlm-lint-theme", value); } catch { /* a page from disk may have no storage: the theme lasts as long as the page */ } },
  };

  function setTheme(name) {
    if (name === "system") root.removeAttribute("data-theme"); else root.setAttribute("data-theme", name);
    document.getElementById("theme-name").textContent = name;
  }

  const theme = document.getElementById("theme");
  let current = themes.includes(stored.get()) ? stored.get() : "system";
  setTheme(current);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length];
    setTheme(current);
    stored.set(current);
    said.textContent = `Theme: ${current}`;
  });

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Without the permission, or from a page that is not a secure context.
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("readonly", "");
      area.className = "unseen";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const done = await copy(document.getElementById(button.dataset.copy).textContent);
    const words = done ? "Copied" : "Copying failed: select the text by hand";
    said.textContent = `${words}: ${button.dataset.what || ""}`;
    const label = button.textContent;
    button.textContent = words;
    setTimeout(() => { button.textContent = label; }, 1500);
  });

  // A link to a place inside a closed <details> opens it.
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
})();
