"""The site: every page is there, every link of the repository leads somewhere, and the pictures are what is printed."""

from __future__ import annotations

import http.server
import posixpath
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ldlm_lint.rules import ALL, by_symbol

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_links  # noqa: E402
import screenshots  # noqa: E402
import site_pages  # noqa: E402
import trophies  # noqa: E402

REPOSITORY = "https://example.org/repository"
_FENCE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.M)
TROPHIES = trophies.read(trophies.DATA.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    """The pages of the site by their place: those that are generated, and those of docs/ as it shows them."""
    found = dict(site_pages.pages(REPOSITORY))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        place = path.relative_to(ROOT / "docs").as_posix()
        if place != "rules.md":
            found[place] = site_pages.linked(path.read_text(encoding="utf-8"), f"docs/{place}", REPOSITORY)
    return found


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown makes them."""
    titles = _HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def links(text: str) -> Iterator[str]:
    """The links of a page, those in code left out."""
    yield from _LINK.findall(_FENCE.sub("", text))


def test_each_rule_has_a_page(site: dict[str, str]) -> None:
    assert {place for place in site if place.startswith("rules/")} == {
        "rules/index.md",
        *(f"rules/{rule.symbol}.md" for rule in ALL),
    }
    assert all(site[f"rules/{rule.symbol}.md"].startswith(f"# {rule.symbol}\n") for rule in ALL)
    assert all(f"]({rule.symbol}.md)" in site["rules/index.md"] for rule in ALL)


def test_every_link_leads_to_a_page_of_the_site_or_a_file_of_the_repository(site: dict[str, str]) -> None:
    lost = []
    for place, text in site.items():
        for link in links(text):
            if link.startswith(REPOSITORY):
                target = re.sub(r"^/(?:blob|tree)/main/|#.*", "", link.removeprefix(REPOSITORY))
                known = (ROOT / target).exists()
            elif re.match(r"https?:", link):
                continue
            else:
                path, _, anchor = link.partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
                known = (target in site and (not anchor or anchor in anchors(site[target]))) or (
                    not anchor and (ROOT / "docs" / target).is_file()
                )
            if not known:
                lost.append((place, link))
    assert lost == []


def test_the_navigation_names_every_page_of_docs() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named: list[object] = [settings["nav"]]
    pages: set[str] = set()
    while named:
        one = named.pop()
        if isinstance(one, str):
            pages.add(one)
        else:
            named += one.values() if isinstance(one, dict) else one  # type: ignore[attr-defined]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written - pages <= {"rules.md", *(place for place in written if place.startswith("evidence/"))}
    assert pages - written == {"index.md", "changelog.md", "contributing.md", "rules/index.md"}


@pytest.mark.parametrize("picture", screenshots.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_what_the_command_prints(picture: screenshots.Picture) -> None:
    kept = (screenshots.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert kept == screenshots.drawn(picture), "python scripts/screenshots.py"
    # It is shown where nothing may be fetched from a third party.
    assert re.findall(r"https?://[^\"]*", kept) == ["http://www.w3.org/2000/svg"]


def test_the_trophies_are_those_of_the_data() -> None:
    assert trophies.PAGE.read_text(encoding="utf-8") == trophies.page(TROPHIES)
    assert all(one.rule in by_symbol and re.fullmatch(r"[0-9a-f]{40}", one.commit) and one.line > 0 for one in TROPHIES)
    assert all(not Path(one.path).is_absolute() and one.why.endswith(".") for one in TROPHIES)


def test_a_trophy_is_found_again_in_a_working_tree_at_its_commit(tmp_path: Path) -> None:
    tree = tmp_path / "project"
    tree.mkdir()
    (tree / "run.sh").write_text("export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tree, check=True)
    commit = trophies._git("rev-parse", "HEAD", cwd=tree)
    there = trophies.Trophy("somebody/project", commit, "run.sh", 1, "excessive-heartbeat-timeout", "Why.")
    elsewhere = trophies.Trophy("somebody/project", commit, "run.sh", 2, "excessive-heartbeat-timeout", "Why.")

    assert list(trophies.missing([there, elsewhere], tmp_path)) == [elsewhere]


@pytest.mark.network
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Needs the extra ``docs``: python -m pytest -m network tests/test_site.py."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "rules").glob("*/index.html"))) == len(ALL)


def test_addresses_are_asked_and_only_those_that_are_gone_fail() -> None:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response({"/there": 200, "/gone": 404, "/shy": 403, "/ill": 503}[self.path])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: the test's output is its own."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    text = f"[a]({base}/there#part), {base}/gone. <{base}/shy>\n```\n{base}/code\n```\n[b]({base}/ill)"
    try:
        addresses = check_links.named([text, f"{base}/there"])
        verdicts = [check_links.answer(address, pause=0) for address in addresses]
    finally:
        server.shutdown()
        server.server_close()
    assert addresses == [f"{base}/{name}" for name in ("gone", "ill", "shy", "there")]
    assert verdicts == ["gone: 404", "unknown: 503", "unknown: 403", "ok"]
