"""The pages of ``monitor`` in a headless Chromium: python -m pytest -m browser tests/test_monitor_browser.py."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from calling import Run
from chromium import DESK, PHONE, Chromium, Tab, chromium

pytestmark = pytest.mark.browser
LOST = "net::ERR_CONNECTION_REFUSED"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


def lines(rank: int, first: int, last: int, *, nan_from: int = 10**9, spike: int = -1) -> str:
    draw = random.Random(f"{rank} {first}")
    text = ""
    for step in range(first, last):
        loss = 1.8 + 6 * (1 + step / 30) ** -0.7 + draw.gauss(0, 0.02) + 3 * (spike <= step < spike + 4)
        said = "nan" if step >= nan_from else f"{loss:.4f}"
        text += f"[rank{rank}]: step: {step}/5000 | loss: {said} | grad_norm: {0.8 + draw.random() / 10:.3f} | memory: {31 + step / 200:.2f}GiB | tokens/s: {38000 + draw.gauss(0, 50):.0f}\n"
    return text


@pytest.fixture
def page(tmp_path: Path, run: Run) -> Path:
    """The page of a finished run of two ranks: a spike on both, NaN at the end of one."""
    logs = tmp_path / "run"
    logs.mkdir()
    for rank in range(2):
        (logs / f"rank{rank}.log").write_text(lines(rank, 0, 600, spike=300, nan_from=560 if rank else 10**9))
    place = tmp_path / "run.html"
    assert run("monitor", logs, "--html", place)[0] == 1
    return place


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_opens_from_disk_asks_for_nothing_and_is_accessible(browser: Chromium, page: Path, width: int, dark: bool) -> None:
    tab = browser.open(page, width=width, dark=dark)
    assert tab.problems() == []
    assert tab.requests == [page.as_uri()]
    assert tab.overflow() == 0
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.axe() == []


def test_two_runs_beside_each_other_are_accessible(browser: Chromium, tmp_path: Path, run: Run) -> None:
    for name, spike in (("a", -1), ("b", 500)):
        (tmp_path / f"{name}.log").write_text(lines(0, 0, 600, spike=spike))
    place = tmp_path / "two.html"
    run("monitor", "--compare", tmp_path / "a.log", tmp_path / "b.log", "--html", place)
    for width in (DESK, PHONE):
        tab = browser.open(place, width=width)
        assert tab.problems() == [] and tab.requests == [place.as_uri()] and tab.overflow() == 0 and tab.axe() == []


def test_the_values_are_read_with_the_arrow_keys_in_all_charts(browser: Chromium, page: Path) -> None:
    tab = browser.open(page)
    assert tab.text("#chart-panel-0 .readout") == "last values"
    tab.page.focus("#chart-panel-0 .reader")
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    assert [tab.text(f"#chart-panel-{number} .readout") for number in range(4)] == ["step 598"] * 4
    words = tab.evaluate("document.querySelector('#chart-panel-0 .reader').getAttribute('aria-valuetext')")
    assert words.startswith("step 598: rank0.log rank 0 2.") and words.endswith("rank1.log rank 1 not a number")
    tab.page.keyboard.press("Home")
    assert tab.text("#chart-panel-0 .readout") == "step 0"
    tab.page.keyboard.press("Escape")
    assert tab.text("#chart-panel-0 .readout") == "last values"


def test_the_values_are_read_with_the_pointer(browser: Chromium, page: Path) -> None:
    tab = browser.open(page)
    tab.page.locator("#chart-panel-0 .field").scroll_into_view_if_needed()
    box = tab.page.locator("#chart-panel-0 .field").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    step = int(tab.text("#chart-panel-0 .readout").removeprefix("step "))
    assert 298 <= step <= 301
    assert tab.evaluate("document.querySelector('#chart-panel-3 .cursor').getAttribute('visibility')") == "visible"
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 40)
    assert tab.text("#chart-panel-0 .readout") == "last values"


def test_a_number_on_a_curve_leads_to_its_alarm(browser: Chromium, page: Path) -> None:
    tab = browser.open(page)
    tab.page.locator("#chart-panel-0 a.marker text").first.click()
    assert tab.evaluate("location.hash") == "#alarm-1"
    assert tab.page.locator("#alarm-1").bounding_box()["y"] < 400


def test_the_page_is_complete_without_scripts(browser: Chromium, page: Path) -> None:
    tab = browser.open(page, script=False)
    assert tab.text("#verdict") == "3 alarms: 1 critical, 2 warnings"
    assert tab.page.locator("#chart-panel-0 .field path").first.is_visible()
    assert not tab.page.locator(".reader").first.is_visible()


class Monitor:
    """A monitor that serves a folder, until the end of the test."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "ldlm_lint", "monitor", "--serve", "--interval", "0.1", str(folder)]
        self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self.child.stderr is not None
        self.address = self.child.stderr.readline().split()[0]

    def stop(self) -> int:
        if self.child.poll() is None:
            os.kill(self.child.pid, signal.SIGINT)
        self.child.communicate(timeout=60)
        return self.child.returncode


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Monitor, Path]]:
    folder = tmp_path / "logs"
    running = Monitor(folder)
    yield running, folder
    running.stop()


def append(folder: Path, first: int, last: int, **options: int) -> None:
    folder.mkdir(exist_ok=True)
    for rank in range(2):
        with (folder / f"rank{rank}.log").open("a") as file:
            file.write(lines(rank, first, last, **options))


def shown_steps(tab: Tab) -> list[int]:
    """How many places each curve of the loss has."""
    return tab.evaluate("[...document.querySelectorAll('#chart-panel-0 path[data-xs]')].map((path) => path.dataset.xs.split(',').length)")


def test_the_curves_move_and_an_alarm_appears_while_two_logs_grow(browser: Chromium, served: tuple[Monitor, Path]) -> None:
    running, folder = served
    tab = browser.open(running.address)
    assert tab.text("#verdict") == "Waiting for the log" and str(folder) in tab.text("#state")
    append(folder, 0, 100)
    tab.wait("document.querySelectorAll('#chart-panel-0 path[data-xs]').length === 2")
    tab.wait("document.getElementById('tiles').textContent.includes('99')")
    before = tab.evaluate("document.querySelector('#chart-panel-0 path[data-xs]').getAttribute('d')")
    tab.evaluate("window.untouched = document.querySelector('#chart-panel-0 .field')")
    # The reader is in the middle of something: a table is open, a place is read by keyboard, the page is scrolled.
    tab.click("#values-panel-1 summary")
    tab.page.focus("#chart-panel-0 .reader")
    tab.page.keyboard.press("Home")
    tab.evaluate("scrollTo(0, 150)")
    append(folder, 100, 200)
    tab.wait("document.getElementById('tiles').textContent.includes('199')")
    assert tab.evaluate("document.querySelector('#chart-panel-0 path[data-xs]').getAttribute('d')") != before
    assert shown_steps(tab) == [200, 200]
    assert tab.text("#verdict") == "No alarms so far" and tab.text("#said") == ""
    assert tab.evaluate("document.activeElement.matches('#chart-panel-0 .reader')")
    assert tab.evaluate("document.querySelector('#chart-panel-0 .field') === window.untouched")
    assert tab.evaluate("document.getElementById('values-panel-1').open") and tab.text("#chart-panel-0 .readout") == "step 0"
    assert tab.evaluate("scrollY") == 150
    append(folder, 200, 300, spike=250)
    tab.wait("document.querySelector('#chart-panel-0 a.marker') !== null")
    assert tab.text("#said").startswith("New alarm: warning, Loss spike, rank0.log:251")
    assert tab.page.title().startswith("logs: 2 alarms: 2 warnings")
    assert tab.evaluate("document.activeElement.matches('#chart-panel-0 .reader')")
    tab.wait("/^Last line \\d+ s ago/.test(document.querySelector('.heard').textContent)")
    assert tab.problems() == []
    assert {urlsplit(address).hostname for address in tab.requests} == {"127.0.0.1"}
    assert tab.axe() == []


def test_the_theme_stays_and_a_paused_page_stands_still(browser: Chromium, served: tuple[Monitor, Path]) -> None:
    running, folder = served
    append(folder, 0, 50)
    tab = browser.open(running.address)
    tab.wait("document.querySelector('#tiles') !== null")
    tab.click("#theme")
    tab.click("#theme")
    tab.click("#pause")
    assert tab.text("#link-words").startswith("Paused")
    append(folder, 50, 120)
    tab.page.wait_for_timeout(2500)
    assert shown_steps(tab) == [50, 50]
    tab.click("#pause")
    tab.wait("document.getElementById('tiles').textContent.includes('119')")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_page_says_that_the_monitor_was_stopped_and_keeps_the_last_state(browser: Chromium, served: tuple[Monitor, Path]) -> None:
    running, folder = served
    append(folder, 0, 60)
    tab = browser.open(running.address)
    tab.expected = (LOST,)
    tab.wait("document.querySelector('#tiles') !== null")
    assert running.stop() == 0
    tab.wait("document.getElementById('link').classList.contains('lost')")
    assert "Connection lost" in tab.text("#link") and "Connection lost" in tab.text("#said")
    assert shown_steps(tab) == [60, 60] and tab.problems() == []
    assert tab.axe() == []


def test_nothing_of_a_hostile_log_acts_in_the_browser(browser: Chromium, served: tuple[Monitor, Path]) -> None:
    running, folder = served
    folder.mkdir()
    hostile = "<script>window.acted=1</script><img src=x onerror=\"window.acted=2\"><svg onload=window.acted=3>"
    tab = browser.open(running.address)
    (folder / "x'><svg onload=window.acted=4>.log").write_text("".join(f"step {step} {hostile} loss {2.5 - step / 100}\n" for step in range(50)) + f"ValueError: {hostile}\ntorch.OutOfMemoryError: CUDA out of memory. {hostile}\n")
    tab.wait("document.querySelector('[data-alarm]') !== null")
    assert tab.evaluate("window.acted") is None and "onerror" in tab.text("#alarms")
    assert tab.problems() == [] and {urlsplit(address).hostname for address in tab.requests} == {"127.0.0.1"}


@pytest.mark.parametrize("chosen", [False, True])
def test_a_dark_page_is_printed_in_light_colours(browser: Chromium, page: Path, chosen: bool) -> None:
    tab = browser.open(page, dark=True)
    if chosen:
        tab.click("#theme")
        tab.click("#theme")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(colour) != "rgb(255, 255, 255)"
    tab.page.emulate_media(media="print")
    assert tab.evaluate(colour) == "rgb(255, 255, 255)"
    assert not tab.page.locator(".reader").first.is_visible()
