"use strict";
// A followed run: asks the monitor for the part of the page that changes, and puts in what differs. Focus, scrolling, open
// details and the theme stay, since elements that did not change are left alone.
(() => {
  const EVERY = 1000, SLOWER = 5000, LONGEST = 20000; // milliseconds: between two questions, after a failure, for one answer
  const run = document.getElementById("run");
  const link = document.getElementById("link"), words = document.getElementById("link-words"), pause = document.getElementById("pause");
  const said = document.getElementById("said");
  let etag = null, paused = false, connected = true, skew = 0;
  let known = alarms();

  function alarms() {
    return new Map([...run.querySelectorAll("[data-alarm]")].map((card) => [card.dataset.alarm, card.dataset.words]));
  }

  // What the reader decides on an element and the server does not know of.
  const kept = (element, name) => (element.tagName === "DETAILS" && name === "open") || (element.tagName === "INPUT" && name !== "aria-label") || element.classList.contains("cursor");

  function morph(old, now) {
    if (old.isEqualNode(now)) return;
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value && !kept(old, name)) old.setAttribute(name, value);
    const wanted = [...now.childNodes];
    const byId = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
    let at = old.firstChild;
    for (const next of wanted) {
      const same = next.id ? byId.get(next.id) : at && at.nodeName === next.nodeName && !at.id ? at : null;
      if (!same) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (same !== at) old.insertBefore(same, at);
      else at = at.nextSibling;
      if (same.nodeType === Node.ELEMENT_NODE) morph(same, next);
      else if (same.nodeValue !== next.nodeValue) same.nodeValue = next.nodeValue;
    }
    while (at) {
      const after = at.nextSibling;
      at.remove();
      at = after;
    }
  }

  function put(html) {
    const now = new DOMParser().parseFromString(html, "text/html").body;
    const holder = document.createElement("div");
    for (const { name, value } of run.attributes) holder.setAttribute(name, value);
    holder.append(...now.childNodes);
    morph(run, holder);
    document.dispatchEvent(new Event("charts-changed"));
    const state = document.getElementById("state");
    document.title = `${run.dataset.name}: ${state.dataset.verdict} · ldlm-lint monitor`;
    const current = alarms();
    const fresh = [...current].filter(([number]) => !known.has(number)).map(([, text]) => text);
    if (fresh.length) said.textContent = `New alarm${fresh.length > 1 ? "s" : ""}: ${fresh.join("; ")}`;
    known = current;
    tick();
  }

  function duration(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  }

  function tick() {
    if (!connected || paused) return;
    for (const ago of run.querySelectorAll("[data-heard]")) {
      const text = `${duration((Date.now() + skew - Number(ago.dataset.heard)) / 1000)} ago`;
      if (ago.textContent !== text) ago.textContent = text;
    }
  }

  function show(isConnected, text) {
    if (connected !== isConnected) said.textContent = text;
    connected = isConnected;
    link.classList.toggle("lost", !isConnected);
    words.textContent = text;
  }

  async function ask() {
    const controller = new AbortController();
    const limit = setTimeout(() => controller.abort(), LONGEST);
    try {
      const answer = await fetch("run", { headers: etag ? { "If-None-Match": etag } : {}, signal: controller.signal, cache: "no-store" });
      // 503: the monitor has too many readers at this moment.
      if (answer.status !== 200 && answer.status !== 304) throw new Error(String(answer.status));
      const date = Date.parse(answer.headers.get("Date"));
      // The clock of another machine, if this page came through a tunnel; both are rounded to a second.
      if (Math.abs(date - Date.now()) > 5000) skew = date - Date.now();
      if (answer.status === 200) {
        const html = await answer.text();
        etag = answer.headers.get("ETag");
        if (!paused) put(html);
        else etag = null;
      }
      show(true, paused ? "Paused: the page shows an earlier state, the run continues" : "Live: the page follows the run");
      return true;
    } catch {
      show(false, "Connection lost: the monitor was stopped. The page shows the last state; start the command again to continue.");
      return false;
    } finally {
      clearTimeout(limit);
    }
  }

  async function loop() {
    const answered = paused || (await ask());
    // In the background the title alone is seen.
    setTimeout(loop, answered && !document.hidden ? EVERY : SLOWER);
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    link.classList.toggle("paused", paused);
    if (connected) words.textContent = paused ? "Paused: the page shows an earlier state, the run continues" : "Live: the page follows the run";
  });
  setInterval(tick, 1000);
  tick();
  loop();
})();
