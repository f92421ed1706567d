"""The pages of measurements in a headless Chromium: python -m pytest -m browser tests/test_html_measured_browser.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import DESK, PHONE, Chromium, Tab, chromium
from test_html_measured import RECORD, compared, hostile_pages, memory_evidence, samples

from ldlm_lint.bench import page as bench
from ldlm_lint.evidence import files
from ldlm_lint.evidence.verdicts import assess
from ldlm_lint.report.html import memory, verdicts

pytestmark = pytest.mark.browser
PAGES = ("bench", "verdicts", "memory", "hostile bench", "hostile verdicts", "hostile memory")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    found = files.read(RECORD)
    launch = found[0].run.command
    texts = {
        "bench": bench.page(compared(samples(1.3, after={0: 2.0, 1: float("nan"), 2: 1.5}))),
        "verdicts": verdicts.page(assess(found, "").judgements, verdicts.Subject(found, ["a note"], launch=launch)),
        "memory": memory.page(memory_evidence(2**29), ["ldlm-lint", "probe", "memory", "a:b"], "512MiB"),
        **{f"hostile {name}": text for name, text in hostile_pages().items()},
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def opened(browser: Chromium, written: Path, name: str, **options: object) -> Tab:
    return browser.open(written / f"{name}.html", **options)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk_asks_for_nothing_and_is_accessible(
    browser: Chromium, written: Path, name: str, width: int, dark: bool
) -> None:
    tab = opened(browser, written, name, width=width, dark=dark)
    assert tab.problems() == []
    assert len(tab.requests) == 1 and tab.requests[0].startswith("file://")
    assert tab.overflow() == 0
    assert tab.evaluate("document.images.length + document.querySelectorAll('main script').length") == 0
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.axe() == []


def test_a_command_is_copied_by_keyboard(browser: Chromium, written: Path) -> None:
    tab = opened(browser, written, "verdicts")
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.focus("#next-command-1 + button")
    tab.page.keyboard.press("Enter")
    tab.wait("document.getElementById('said').textContent.startsWith('Copied')")
    assert tab.evaluate("navigator.clipboard.readText()") == tab.text("#next-command-1")


def test_each_strip_of_an_interval_is_seen(browser: Chromium, written: Path) -> None:
    tab = opened(browser, written, "bench", width=PHONE)
    boxes = tab.evaluate(
        "[...document.querySelectorAll('.intervals li .whisker, .intervals li .point')]"
        ".filter((one) => one.closest('.strip')).map((one) => one.getBoundingClientRect())"
        ".map((box) => [box.left, box.right])"
    )
    assert len(boxes) == 4 * 4 and all(0 <= left <= right <= PHONE for left, right in boxes)


def test_a_page_is_complete_without_its_script_and_on_paper(browser: Chromium, written: Path) -> None:
    tab = opened(browser, written, "verdicts", script=False)
    assert tab.page.locator("article.verdict").count() == 19
    assert tab.page.locator("article.verdict >> visible=true").count() == 19
    printed = opened(browser, written, "bench")
    printed.page.emulate_media(media="print")
    assert not printed.page.is_visible("button[data-copy]") and printed.page.is_visible("#chart-losses")
