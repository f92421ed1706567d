"""A headless Chromium for tests of pages: what a page logs, throws, asks for and violates, and how it looks.

Needs the extra `browser` (Playwright, axe) and a Chromium on this machine: Playwright downloads none. `LDLM_CHROMIUM` names
the program if it is not on the PATH.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK, PHONE = 1280, 390
"""Widths in CSS pixels."""
_VIOLATIONS = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`);
});
"""


@dataclass
class Tab:
    """One page in the browser. ``page`` is Playwright's, for what has no method here."""

    page: Any
    console: list[str] = field(default_factory=list)
    """Errors and warnings on the console."""
    exceptions: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """The addresses that the page asked for, its own first; those that were blocked too."""
    expected: tuple[str, ...] = ()
    """Parts of console messages that a test causes on purpose."""

    def problems(self) -> list[str]:
        """Everything that must not happen: console errors, exceptions, violations of the content security policy."""
        console = [one for one in self.console if not any(part in one for part in self.expected)]
        return [*console, *self.exceptions, *self.evaluate("window.__violations || []")]

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """The value of an expression or a function of JavaScript."""
        return self.page.evaluate(script, argument)

    def click(self, selector: str) -> None:
        """Click the element that a CSS selector finds."""
        self.page.click(selector)

    def text(self, selector: str) -> str:
        """The text of an element as it is shown."""
        return self.page.inner_text(selector)

    def wait(self, expression: str, seconds: float = 15.0) -> None:
        """Wait until an expression of JavaScript is true; fails with it after so many seconds."""
        waited = 0.0
        while not self.evaluate(expression):
            assert waited < seconds, f"never true: {expression}"
            self.page.wait_for_timeout(50)
            waited += 0.05

    def screenshot(self, path: Path, *, width: int | None = None, whole: bool = True) -> None:
        """A PNG of the page, at a width in CSS pixels; ``whole`` goes down to its end."""
        if width is not None:
            self.page.set_viewport_size({"width": width, "height": 900})
        self.page.screenshot(path=str(path), full_page=whole)

    def overflow(self) -> int:
        """By how many CSS pixels the page is wider than its window."""
        return self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def axe(self) -> list[str]:
        """What axe-core has against the page, a line for each violation with the elements concerned."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the extra `browser`")
        found = axe.Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:4]]}" for one in found]


class Chromium:
    """A running browser; each `open` is a context of its own, without storage of another."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def open(self, where: str | Path, *, width: int = DESK, dark: bool = False, script: bool = True) -> Tab:
        """Open an address, or a file from disk, in light or dark; ``script`` False switches JavaScript off."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        tab = Tab(context.new_page())
        tab.page.add_init_script(_VIOLATIONS)
        tab.page.on("console", lambda said: said.type in ("error", "warning") and tab.console.append(said.text))
        tab.page.on("pageerror", lambda error: tab.exceptions.append(str(error)))
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tab.page.goto(where.resolve().as_uri() if isinstance(where, Path) else where)
        return tab


def program() -> str:
    """The path of the browser; skips the test where there is none."""
    found = os.environ.get("LDLM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium on the PATH ({', '.join(NAMES)}), and LDLM_CHROMIUM names none")
    return found


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A headless browser until the end of the block; skips the test where Playwright or the browser is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
    path = program()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield Chromium(browser)
        finally:
            browser.close()
