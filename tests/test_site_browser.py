"""The built site in a headless Chromium, read from the disk: python -m pytest -m browser tests/test_site_browser.py.

Needs the extras ``browser`` and ``docs``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import DESK, PHONE, Chromium, Tab, chromium
from test_site import DOCS, FIRST, ROOT

from ldlm_lint.report.formats import FORMATS
from ldlm_lint.rules import ALL

pytestmark = pytest.mark.browser
PAGES = ("index.html", "rules.html", "rules/optimizer-not-fused.html", "rules/truncated-command.html", "search.html?q=fused", "peers.html")
PAGES += ("trophies.html", "formats.html", "cli.html")
ROWS = "[...document.querySelectorAll('#rules table tbody tr')].filter((row) => !row.hidden)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "trees", DOCS, folder / "html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_page_asks_nobody_logs_no_error_fits_and_is_accessible(browser: Chromium, site: Path, page: str, width: int, dark: bool) -> None:
    tab = browser.open(f"{site.as_uri()}/{page}", width=width, dark=dark)
    assert tab.problems() == []
    assert [address for address in tab.requests if not address.startswith((site.as_uri(), "data:"))] == []
    assert tab.overflow() == 0
    assert tab.axe() == []
    tab.page.context.close()


@pytest.mark.parametrize(("identifier", "symbol"), FIRST.items(), ids=FIRST)
def test_the_search_finds_an_identifier_at_its_rule_first(browser: Chromium, site: Path, identifier: str, symbol: str) -> None:
    tab = browser.open(f"{site.as_uri()}/index.html")
    tab.page.fill(".navbar-header-items .site-search input", identifier)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#search-results li .search-description")
    assert tab.text("#search-results li >> nth=0").splitlines()[0] == symbol
    assert tab.page.get_attribute("#search-results li a >> nth=0", "href").endswith(f"rules/{symbol}.html")
    tab.page.context.close()


def rules(browser: Chromium, site: Path, state: str = "", **settings: bool) -> Tab:
    return browser.open(f"{site.as_uri()}/rules.html{state}", **settings)


def consequences(tab: Tab) -> set[str]:
    return set(tab.evaluate(f"{ROWS}.map((row) => row.cells[0].innerText.trim())"))


def test_the_rules_are_filtered_by_keyboard_and_the_address_keeps_the_filter(browser: Chromium, site: Path) -> None:
    tab = rules(browser, site)
    assert tab.text(".rule-filter__state") == f"{len(ALL)} of {len(ALL)} rules"
    assert len(tab.evaluate(f"{ROWS}.map((row) => row.rowIndex)")) == len(ALL)
    tab.page.focus("#rule-filter-text")
    tab.page.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.innerText").startswith("hang ")
    tab.page.keyboard.press("Space")
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert consequences(tab) == {"hang", "crash"}
    tab.page.fill("#rule-filter-text", "timeout")
    found = tab.evaluate(f"{ROWS}.map((row) => row.cells[1].innerText.trim())")
    assert found and len(found) < len(ALL)
    assert tab.evaluate("location.hash") == "#q=timeout&consequence=hang,crash"

    again = rules(browser, site, "#q=timeout&consequence=hang,crash")
    assert again.evaluate(f"{ROWS}.map((row) => row.cells[1].innerText.trim())") == found
    assert again.text(".rule-filter__state") == f"{len(found)} of {len(ALL)} rules"
    again.click(".rule-filter__clear")
    assert len(again.evaluate(f"{ROWS}.map((row) => row.rowIndex)")) == len(ALL)
    assert again.evaluate("location.hash") == ""
    assert tab.problems() + again.problems() == []


def test_rules_are_filtered_by_fix_and_default(browser: Chromium, site: Path) -> None:
    tab = rules(browser, site, "#fix=safe&default=on")
    found = set(tab.evaluate(f"{ROWS}.map((row) => row.cells[1].innerText.trim())"))
    assert found == {rule.symbol for rule in ALL if rule.default and rule.applicability is not None and rule.applicability.label == "safe"}
    tab.page.fill("#rule-filter-text", "no such rule")
    assert tab.text(".rule-filter__state").startswith("No rule fits.")


def test_without_javascript_the_rules_are_a_plain_table(browser: Chromium, site: Path) -> None:
    tab = rules(browser, site, script=False)
    assert tab.page.locator("#rules table tbody tr").count() == len(ALL)
    assert tab.page.locator(".rule-filter").count() == 0
    assert tab.page.locator("#rules td a#optimizer-not-fused").count() == 1


def test_an_old_anchor_leads_to_the_page_of_the_rule(browser: Chromium, site: Path) -> None:
    tab = rules(browser, site, "#optimizer-not-fused")
    tab.page.wait_for_url("**/rules/optimizer-not-fused.html")
    assert tab.text("h1").startswith("optimizer-not-fused")


def test_the_reported_line_is_marked(browser: Chromium, site: Path) -> None:
    tab = browser.open(site / "rules" / "optimizer-not-fused.html")
    assert tab.text("article .highlight .hll >> nth=0").strip() == "optimizer = torch.optim.AdamW(model.parameters())  # <-- here"
    assert tab.page.locator("article .highlight .hll").count() == 1


def test_a_command_is_copied(browser: Chromium, site: Path) -> None:
    tab = browser.open(site / "index.html")
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.click(".commands .copy-button >> nth=1")
    tab.wait("document.querySelectorAll('.commands [role=status]')[1].textContent === 'Copied'")
    assert tab.evaluate("navigator.clipboard.readText()") == "ldlm-lint examples/latent-captions"


@pytest.mark.skipif("html" not in FORMATS, reason="this version has no HTML report")
def test_the_first_page_leads_to_the_report_of_the_example(browser: Chromium, site: Path) -> None:
    tab = browser.open(site / "index.html")
    tab.click("text=A report, live")
    tab.page.wait_for_url("**/report.html")
    assert tab.problems() == []
