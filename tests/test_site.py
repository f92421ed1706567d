"""The site: every page is in its navigation, every link leads somewhere, and what it shows was printed by the command."""

from __future__ import annotations

import http.server
import json
import posixpath
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.report.formats import FORMATS
from ldlm_lint.rules import ALL, by_symbol, relevance

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_links  # noqa: E402
import screenshots  # noqa: E402
import trophies  # noqa: E402
from website import landing, pages, report, search  # noqa: E402

DOCS = ROOT / "docs"
# Files whose links are followed, as GitHub shows them.
LINKING = [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))]
_FENCE = re.compile(r"^( *)(`{3,}).*?^\1\2$", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.M)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
TROPHIES = trophies.read(trophies.DATA.read_text(encoding="utf-8"))
NAVIGATION = pages.navigation((DOCS / "index.md").read_text(encoding="utf-8"))


def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub makes them of headings, and those that it names itself."""
    titles = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(_ANCHOR.findall(text))


def links(text: str) -> Iterator[str]:
    """The links of a page to other files and places, those in code left out."""
    found = _LINK.findall(_CODE.sub("", _FENCE.sub("", text)))
    return (link for link in found if not re.match(r"https?:|mailto:", link))


def read(place: str) -> str:
    """A file of the repository."""
    return (ROOT / place).read_text(encoding="utf-8")


@for_every("place", LINKING)
def test_every_link_leads_to_a_file_and_a_heading(place: str) -> None:
    lost = []
    for link in links(read(place)):
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
        known = (ROOT / target).exists() and (not anchor or not target.endswith(".md") or anchor in anchors(read(target)))
        if not known:
            lost.append(link)
    assert lost == []


def test_no_page_of_the_site_links_to_the_anchors_that_rules_had_before_they_had_pages() -> None:
    assert [place for place in LINKING if place.startswith("docs/") and any("rules.md#" in link for link in links(read(place)))] == []


def test_the_navigation_names_every_page_and_the_trophies_lead() -> None:
    named = [entry.page for entries in NAVIGATION.values() for entry in entries]
    written = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert len(named) == len(set(named))
    assert {page for page in written if not page.startswith(("rules/", "evidence/"))} - {"index"} == set(named) - {"evidence/README"}
    assert named[:2] == ["trophies", "rules"]
    assert all(f"/rules/{rule.symbol}\n" in pages.site_text("rules", read("docs/rules.md")) for rule in ALL)
    assert "/evidence/gpu\n" in pages.site_text("evidence/README", read("docs/evidence/README.md"))


def test_links_to_files_that_are_no_page_lead_to_the_repository() -> None:
    text = "[a](../ldlm_lint/rules) [b](ci.md#github) [c](../CHANGELOG.md) [d](https://x.org) [e](../action.yml) [f](findings.schema.json)"
    assert pages.linked(text, "docs/formats.md") == (
        f"[a]({pages.REPOSITORY}/tree/main/ldlm_lint/rules) [b](ci.md#github) [c](changelog.md) [d](https://x.org) "
        f"[e]({pages.REPOSITORY}/blob/main/action.yml) [f](findings.schema.json)"
    )
    assert pages.linked("[a](docs/ci.md)", "CHANGELOG.md") == "[a](ci.md)"
    assert pages.linked("[a](../formats.md)", "docs/evidence/gpu.md") == "[a](../formats.md)"


def test_the_comparison_names_the_number_of_rules() -> None:
    assert re.search(rf"^\| `ldlm-lint` \| [\d.]+ \| .* \| {len(ALL)} \|$", read("docs/peers.md"), re.M)


# What people type who have met the name in their code or in an error message.
FIRST = {
    "weights_only": "checkpoint-load-unspecified",
    "find_unused_parameters": "ddp-find-unused-parameters",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "excessive-heartbeat-timeout",
    "persistent_workers": "dataloader-without-persistent-workers",
    "prefetch_factor": "dataloader-without-prefetch",
    "pin_memory": "dataloader-without-pin-memory",
    "fused": "optimizer-not-fused",
    "use_reentrant": "checkpoint-without-use-reentrant",
    "no_sync": "accumulation-without-no-sync",
    "set_epoch": "sampler-without-set-epoch",
    "NCCL_IB_TIMEOUT": "nccl-ib-timeout-out-of-range",
}


@for_every(("identifier", "symbol"), FIRST.items(), ids=FIRST)
def test_an_identifier_is_found_first_at_the_rule_that_is_about_it(identifier: str, symbol: str) -> None:
    assert search.ranking()[identifier][0].symbol == symbol


def test_identifiers_are_those_in_backquotes() -> None:
    assert relevance.identifiers("pass `fused=True` to `torch.optim.AdamW`, not to `lr` or eps") == {"fused", "True", "torch.optim.AdamW", "AdamW"}


def test_each_place_in_a_ranking_costs_a_character_until_the_entry_would_be_dropped() -> None:
    assert [search.entry("fused", place) for place in (0, 2, 9)] == ["fused", "fused..", "fused....."]
    first, second = search.ranking()["use_reentrant"][:2]
    assert relevance.relevance(first, "use_reentrant") >= relevance.relevance(second, "use_reentrant")


def test_the_first_page_shows_what_the_command_prints_of_the_example() -> None:
    example = landing.example()
    assert example.code == 1
    assert re.fullmatch(r"Found \d+ findings: \d+ hang, .*", example.summary)
    script, loader = example.changes
    assert (script.path, loader.path) == (f"{report.EXAMPLE}/scripts/train.sh", f"{report.EXAMPLE}/captions/data.py")
    before = [text for _, text in script.side("-")]
    start = script.line - 1
    assert (ROOT / script.path).read_text(encoding="utf-8").splitlines()[start : start + len(before)] == before
    assert (True, "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000") in script.side("-")
    assert any(changed and "persistent_workers=" in text for changed, text in loader.side("+"))


def test_a_patch_is_split_into_its_changes() -> None:
    patch = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -3,2 +3,2 @@ def f():\n a\n-b\n+c\n@@ -9 +9 @@\n\n-d\n--- a/y.sh\n+++ b/y.sh\n@@ -1 +1 @@\n-e\n+f\n"
    found = list(landing.changes(patch))
    assert [(change.path, change.line) for change in found][:2] == [("x.py", 3), ("x.py", 9)]
    assert list(found[0].side("-")) == [(False, "a"), (True, "b")]
    assert list(found[0].side("+")) == [(False, "a"), (True, "c")]


def test_lines_of_output_are_told_apart() -> None:
    output = "slow: r (R1)\nmessage\n --> a.py:1:2\n1 | x\n  | ^\n  ...\n2 + y\n  - z\nhelp: do\nnote: but\n"
    kinds = [kind for kind, _ in landing.terminal_lines(output)]
    assert kinds == ["title", "text", "place", "code", "code", "code", "code", "code", "note", "note"]


def test_the_report_of_the_example_is_written_where_the_format_exists(tmp_path: Path) -> None:
    assert report.write(tmp_path / "report.html") == ("html" in FORMATS)
    assert (tmp_path / "report.html").exists() == ("html" in FORMATS)


@pytest.mark.parametrize("picture", screenshots.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_what_the_command_prints(picture: screenshots.Picture) -> None:
    kept = (screenshots.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert kept == screenshots.drawn(picture), "python scripts/screenshots.py"
    # It is shown where nothing may be fetched from a third party.
    assert re.findall(r"https?://[^\"]*", kept) == ["http://www.w3.org/2000/svg"]


def test_the_trophies_are_those_of_the_data() -> None:
    assert trophies.PAGE.read_text(encoding="utf-8") == trophies.page(TROPHIES, trophies.outputs()), "python scripts/trophies.py"
    assert all(one.rule in by_symbol and re.fullmatch(r"[0-9a-f]{40}", one.commit) and one.line > 0 for one in TROPHIES)
    assert all(not Path(one.path).is_absolute() and one.why.endswith(".") for one in TROPHIES)


@pytest.mark.parametrize("trophy", [trophy for trophy in TROPHIES if trophy.shown], ids=lambda trophy: trophy.rule)
def test_what_was_printed_for_a_trophy_is_what_this_version_prints(trophy: trophies.Trophy) -> None:
    """The repository is not here: that its recorded message is made of the rule's present template is."""
    title, message, place, *_ = trophies.outputs()[trophy.url].splitlines()
    rule = by_symbol[trophy.rule]
    template = re.sub(r"%\\?\(\w+\\?\)[a-z]", ".+", re.escape(rule.message)).replace("%%", "%")
    stale = "python scripts/trophies.py --record"
    assert title == f"{rule.consequence.value}: {rule.symbol} ({rule.code}), 1 place", stale
    assert re.fullmatch(template, message), stale
    assert f"{trophy.path}:{trophy.line}:" in place, stale


def test_what_is_printed_for_a_trophy_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "project"
    tree.mkdir()
    (tree / "run.sh").write_text("export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n")
    there = trophies.Trophy("somebody/project", "0" * 40, "run.sh", 1, "excessive-heartbeat-timeout", "Why.", shown=True)
    elsewhere = trophies.Trophy("somebody/project", "0" * 40, "run.sh", 2, "excessive-heartbeat-timeout", "Why.", shown=True)
    assert trophies.printed_for(there, tree).startswith("hang: excessive-heartbeat-timeout (W7201), 1 place\n")
    with pytest.raises(ValueError, match=r"run\.sh#L2 is not printed"):
        trophies.printed_for(elsewhere, tree)

    recorded = tmp_path / "trophies.json"
    monkeypatch.setattr(trophies, "OUTPUTS", recorded)
    monkeypatch.setattr(trophies, "checkout", lambda *_: tree)
    trophies.record([there], None)
    assert list(json.loads(recorded.read_text())) == [there.url]
    assert trophies.outputs()[there.url] in trophies.page([there], trophies.outputs())


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
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-d", tmp_path / "trees", DOCS, tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "site" / "rules").glob("*.html"))) == len(ALL)


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
