"""The pages of ``--format html`` and ``graph --html`` in a headless Chromium: python -m pytest -m browser tests/test_html_browser.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import Run
from chromium import DESK, PHONE, Chromium, Tab, chromium

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parent.parent
SHOWN = "[...document.querySelectorAll('details.finding')].filter((one) => !one.hidden).length"
HOSTILE = '<img src=x onerror=alert(1)></script><script>alert(2)</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def report(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)
    place = tmp_path / "report.html"
    assert run("--format", "html", "--output", place, "examples/latent-captions")[0] == 1
    return place


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_opens_from_disk_asks_for_nothing_and_is_accessible(browser: Chromium, report: Path, width: int, dark: bool) -> None:
    tab = browser.open(report, width=width, dark=dark)
    assert tab.problems() == []
    assert tab.requests == [report.as_uri()]
    assert tab.overflow() == 0
    tab.click("#open-all")
    assert tab.axe() == []


def _choose(tab: Tab, name: str, value: str) -> int:
    tab.page.select_option(f"select[name={name}]", value)
    return tab.evaluate(SHOWN)


def test_the_filters_work_together(browser: Chromium, report: Path) -> None:
    tab = browser.open(report)
    total = tab.evaluate(SHOWN)
    assert tab.text("#shown") == f"{total} of {total} shown" and total > 10
    assert _choose(tab, "rule", "excessive-collective-timeout") == 1
    assert tab.evaluate("[...document.querySelectorAll('section.consequence')].filter((one) => !one.hidden).length") == 1
    assert _choose(tab, "folder", "examples/latent-captions/scripts") == 0
    assert tab.page.is_visible("#nothing")
    tab.click("#clear-too")
    assert tab.evaluate(SHOWN) == total
    assert 0 < _choose(tab, "fixable", "safe") < total
    tab.click("#clear")
    tab.page.keyboard.press("Escape")
    tab.page.fill("input[name=text]", "persistent_workers")
    assert 0 < tab.evaluate(SHOWN) < total
    tab.click("#clear")
    tab.page.uncheck("input[name=consequence][value=slow]")
    slow = tab.evaluate("document.querySelectorAll('details.finding[data-consequence=slow]').length")
    assert tab.evaluate(SHOWN) == total - slow


def test_the_keyboard_alone_searches_and_opens_a_finding(browser: Chromium, report: Path) -> None:
    tab = browser.open(report)
    tab.page.keyboard.press("/")
    assert tab.evaluate("document.activeElement.name") == "text"
    tab.page.keyboard.type("timedelta")
    assert tab.evaluate(SHOWN) == 1
    tab.evaluate("document.querySelector('details.finding:not([hidden]) > summary').focus()")
    opened = tab.evaluate("document.activeElement.parentElement.open")
    tab.page.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.parentElement.open") is not opened


def test_a_value_of_the_graph_leads_to_its_finding_even_where_a_filter_hides_it(browser: Chromium, report: Path) -> None:
    tab = browser.open(report)
    tab.page.fill("input[name=text]", "no such word")
    assert tab.evaluate(SHOWN) == 0
    tab.click(".launch a[href='#dataloader-too-many-workers-1']")
    tab.wait("document.querySelector('#dataloader-too-many-workers-1').checkVisibility()")
    assert tab.evaluate("document.querySelector('#dataloader-too-many-workers-1').open")
    assert tab.evaluate("document.activeElement.parentElement.id") == "dataloader-too-many-workers-1"
    tab.page.hover(".graph a.node.launch")
    assert tab.evaluate("document.querySelectorAll('.graph .edge.chosen').length") > 1


def test_an_address_with_a_damaged_end_opens_the_page(browser: Chromium, report: Path) -> None:
    tab = browser.open(f"{report.as_uri()}#%E0%A4%A")
    tab.evaluate("location.hash = '#%'")
    tab.page.wait_for_timeout(50)
    assert tab.problems() == []
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("document.querySelectorAll('details:not([open])').length") == 0


def test_the_theme_lasts_and_the_patch_reaches_the_clipboard(browser: Chromium, report: Path) -> None:
    tab = browser.open(report)
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.click("#theme")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.page.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.click("button[data-copy='patch-excessive-collective-timeout-1']")
    tab.wait("document.getElementById('said').textContent.startsWith('Copied')")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == tab.evaluate("document.getElementById('patch-excessive-collective-timeout-1').textContent")
    assert copied.startswith("diff --git ")


def test_without_javascript_everything_but_the_filters_is_there(browser: Chromium, report: Path) -> None:
    tab = browser.open(report, script=False)
    assert not tab.page.is_visible("form.filters")
    assert tab.page.is_visible("details.finding") and tab.page.is_visible(".graph svg")


def test_a_hostile_repository_runs_nothing(browser: Chromium, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'x"><svg onload=alert(3)>.sh').write_text(
        f"export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000 # {HOSTILE}\ntorchrun '{HOSTILE}'.py --num_workers '{HOSTILE}'\n"
    )
    run("--format", "html", "--output", "report.html", ".")
    run("graph", "--html", "graph.html", ".")
    for name in ("report.html", "graph.html"):
        tab = browser.open(tmp_path / name)
        dialogs: list[str] = []
        heard = dialogs.append
        tab.page.on("dialog", lambda dialog, heard=heard: heard(dialog.message))
        tab.page.reload()
        assert (tab.problems(), dialogs) == ([], [])
        assert tab.evaluate("document.querySelectorAll('script').length") == 1
        assert tab.axe() == []


def test_a_report_of_130_findings_is_small(browser: Chromium, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "import torch\n\n\ndef train(model, loader):\n    opt = torch.optim.AdamW(model.cuda().parameters())\n    for batch in loader:\n        loss = model(batch)\n        loss.backward()\n        opt.step()\n        print(loss.item())\n"
    for number in range(65):
        (tmp_path / f"train{number}.py").write_text(f"{code}\n\ntrain(torch.nn.Linear(1, 1), [])\n")
    run("--format", "html", "--output", "report.html", ".")
    tab = browser.open(tmp_path / "report.html")
    assert tab.evaluate(SHOWN) >= 130
    assert (tmp_path / "report.html").stat().st_size <= 1_500_000
