// Puts the description of each page (descriptions.js) below its search result.
(() => {
  "use strict";

  const results = document.getElementById("search-results");
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href).href;

  function describe() {
    for (const item of results.querySelectorAll("ul.search > li:not([data-described])")) {
      item.dataset.described = "";
      const link = item.querySelector("a");
      const page = link.href.slice(root.length).replace(/\.html.*/, "");
      const text = window.PAGE_DESCRIPTIONS[decodeURIComponent(page)];
      if (!text) continue;
      const paragraph = document.createElement("p");
      paragraph.className = "search-description";
      paragraph.textContent = text;
      item.append(paragraph);
    }
  }

  new MutationObserver(describe).observe(results, { childList: true, subtree: true });
  describe();
})();
