// Small things that work without: buttons that copy, and the filter of the table of rules (rules.js is loaded by it).
(() => {
  "use strict";

  const root = document.documentElement.dataset.content_root ?? "./";

  function addCopyButton(block, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-button";
    button.textContent = "Copy";
    const said = document.createElement("span");
    said.className = "visually-hidden";
    said.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text());
        said.textContent = "Copied";
        button.textContent = "Copied";
      } catch (error) {
        said.textContent = `Not copied: ${error.message}`;
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
    });
    block.append(button, said);
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const block of document.querySelectorAll(".copy")) {
      addCopyButton(block, () => block.querySelector("code").textContent);
    }
    for (const block of document.querySelectorAll("article div.highlight")) {
      addCopyButton(block, () => block.querySelector("pre").textContent);
    }
    const table = document.querySelector("#rules table");
    if (table) {
      const script = document.createElement("script");
      script.src = `${root}_static/rules.js`;
      document.head.append(script);
    }
  });
})();
