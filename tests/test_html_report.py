"""``--format html``: what the page holds, that it is one file, and that nothing of a scanned repository acts in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from calling import Run
from pages import Element, checked

from ldlm_lint.report.html import findings
from ldlm_lint.report.html.findings import _changes

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "latent-captions"
@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, in a git repository, as the working directory."""
    copy = tmp_path / "latent-captions"
    shutil.copytree(EXAMPLE, copy)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    monkeypatch.chdir(copy)
    return copy


def findings_of(page: Element) -> list[Element]:
    return list(page.all("details", kind="finding"))


def test_the_page_holds_each_finding_worst_first_with_its_code(example: Path, run: Run) -> None:
    code, out, err = run("--format", "html")
    assert (code, err) == (1, "")
    page = checked(out)
    concise = run("--format", "concise", "--quiet", "--sort", "consequence")[1].splitlines()
    assert len(findings_of(page)) == len(concise)
    consequences = [one.attributes["data-consequence"] for one in page.all("section", kind="consequence")]
    assert consequences == list(dict.fromkeys(line.split(": ")[1].split(" ")[0] for line in concise))
    for finding in findings_of(page):
        assert list(finding.all("mark")), finding.attributes["id"]
        assert next(finding.all("p", kind="message")).text


def test_a_finding_shows_its_related_places_and_a_fix_that_git_applies(example: Path, run: Run) -> None:
    page = checked(run("--format", "html")[1])
    (loader,) = page.all("details", **{"id": "dataloader-without-persistent-workers-1"})
    (related,) = loader.all("ul", kind="related")
    # A related place with a finding of its own leads to it.
    (accumulation,) = page.all("details", id="accumulation-without-no-sync-1")
    assert [one.attributes["href"] for one in accumulation.all("a", kind="also")] == ["#ddp-find-unused-parameters-1"]
    assert "captions/trainer.py:81" in related.text and "enumerate(self.loader" in related.text
    (patch,) = loader.all("pre", id="patch-dataloader-without-persistent-workers-1")
    before = (example / "captions" / "data.py").read_text()
    subprocess.run(["git", "apply", "-"], input=patch.text, text=True, cwd=example, check=True)
    after = (example / "captions" / "data.py").read_text()
    assert after != before and "persistent_workers=config.num_workers > 0," in after
    assert "unsafe fix" in loader.text and "Why it is not safe." in loader.text
    (ignore,) = loader.all("code", id="ignore-dataloader-without-persistent-workers-1")
    assert ignore.text.startswith("# ldlm-lint: ignore[dataloader-without-persistent-workers] ")


def test_the_filters_offer_what_is_there(example: Path, run: Run) -> None:
    page = checked(run("--format", "html")[1])
    choices = {one.attributes["name"]: [option.attributes["value"] for option in one.all("option")] for one in page.all("select")}
    findings = findings_of(page)
    assert set(choices["rule"]) == {"", *(one.attributes["data-rule"] for one in findings)}
    assert set(choices["fixable"]) == {"", *(one.attributes["data-fixable"] for one in findings)}
    assert "captions" in choices["folder"] and "scripts" in choices["folder"]
    assert "verdict" not in choices


def test_the_launches_are_drawn_with_the_origin_of_each_value(example: Path, run: Run) -> None:
    page = checked(run("--format", "html")[1])
    (graph,) = page.all("div", kind="graph")
    boxes = [" ".join(node.classes[1:]) for node in graph.all() if "node" in node.classes]
    assert boxes == ["script", "launch", "program", "setting", "setting"]
    (launch,) = page.all("details", kind="launch")
    rows = {next(row.all("td")).text: row for row in launch.all("tr") if list(row.all("td"))}
    workers = rows["num_workers"]
    assert "16" in workers.text and "scripts/train.sh:30" in workers.text
    # The value is what a finding is about: its origin leads there.
    assert next(workers.all("a")).attributes["href"] == "#dataloader-too-many-workers-1"


def test_graph_draws_the_same_launches(example: Path, run: Run) -> None:
    code, out, _ = run("graph", "--html", "launches.html")
    assert code == 0 and "line 50: torchrun" in out
    page = checked((example / "launches.html").read_text(encoding="utf-8"))
    assert len(list(page.all("details", kind="launch"))) == 1
    assert run("graph", "--html", "-")[1] == (example / "launches.html").read_text(encoding="utf-8")
    assert run("graph", "--html", "missing/launches.html")[0] == 2


def test_a_page_without_findings_says_so(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fine.py").write_text("print('fine')\n")
    code, out, _ = run("--format", "html")
    page = checked(out)
    assert code == 0 and "No findings." in page.text
    assert not findings_of(page) and not list(page.all("form"))


def test_what_could_not_be_checked_is_on_the_page(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("--format", "html", "gone")
    assert code == 3 and err == ""
    assert "no such file or directory" in checked(out).text


HOSTILE = '<img src=x onerror=alert(1)>"\'&amp;</script><script>alert(2)</script>{{ 7 * 7 }}{% raw %}'


def test_names_code_and_messages_of_a_hostile_repository_stay_text(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a<b onclick=x>"
    folder.mkdir()
    (folder / 'x"><svg onload=alert(3)>.sh').write_text(f"# {HOSTILE}\nexport TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000 # {HOSTILE}\ntorchrun '{HOSTILE}'.py --num_workers '{HOSTILE}'\n")
    (tmp_path / "train.py").write_text(f"# {HOSTILE}\nimport torch\nopt = torch.optim.AdamW(model.parameters(), lr={HOSTILE!r})  # \u202e\nloss.backward()\nopt.step()\n", encoding="utf-8")
    code, out, _ = run("--format", "html", "--select", "ALL")
    page = checked(out)
    assert code == 1
    assert len(list(page.all("script"))) == 1 and not list(page.all("img"))
    assert "<img src=x onerror=alert(1)>" in page.text and "49{%" not in page.text
    assert "\u202e" not in out
    assert any("a<b onclick=x>" in one.attributes["data-folder"] for one in findings_of(page))


def test_a_patch_that_a_page_would_change_is_not_offered_for_copying(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
    (tmp_path / "unix.sh").write_bytes(script.encode())
    (tmp_path / "windows.sh").write_bytes(script.replace("\n", "\r\n").encode())
    page = checked(run("--format", "html")[1])
    offered = {
        one.attributes["data-rule"]: [pre for pre in one.all("pre") if pre.attributes.get("id", "").startswith("patch-")]
        for one in findings_of(page)
        if "unix.sh" in one.text
    }
    assert any(offered.values())
    for one in findings_of(page):
        if "windows.sh" in next(one.all("span", kind="place")).text:
            assert not [pre for pre in one.all("pre") if pre.attributes.get("id", "").startswith("patch-")]


def test_a_page_is_made_anew_where_only_the_launches_have_changed(example: Path, run: Run) -> None:
    def workers() -> str:
        page = checked(run("--format", "html", "scripts")[1])
        rows = {next(row.all("td")).text: row for row in page.all("tr") if list(row.all("td"))}
        return rows["data.num_workers"].text

    assert "configs/base.json:10" in workers()
    config = example / "configs" / "base.json"
    config.write_text("\n" + config.read_text())
    assert "configs/base.json:11" in workers()


@pytest.mark.parametrize("name", ["train.py", "run.sh", "config.json"])
def test_a_report_never_overwrites_what_is_checked(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("{}\n")
    code, _, err = run("--format", "html", "--output", name, name)
    assert code == 2 and f"--output {name}: the report would overwrite an input" in err
    if name != "config.json":
        # A folder may hold an older JSON report; no report is a program.
        assert run("--format", "html", "--output", name)[0] == 2
    assert (tmp_path / name).read_text() == "{}\n"


def test_long_lines_with_many_fixes_make_no_long_page(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scalers = "; ".join(f"s{number} = torch.cuda.amp.GradScaler()" for number in range(40))
    (tmp_path / "train.py").write_text(f"import torch\n{scalers}; text = '{'<' * 100_000}'\n")
    page = run("--format", "html")[1]
    assert len(findings_of(checked(page))) == 40
    assert len(page) < 300_000 and 'id="patch-' not in page


def test_long_values_of_many_launches_make_no_long_page(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    launches = "torchrun --nproc_per_node 8 $X.py --num_workers $X --lr $X\n" * 40
    (tmp_path / "run.sh").write_text(f"X={'9' * 50_000}\n{launches}")
    page = run("graph", "--html", "-")[1]
    assert len(list(checked(page).all("details", kind="launch"))) == 40 and "999…" in page
    assert len(page) < 400_000


def test_of_very_many_findings_the_page_has_the_worst(example: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [one.attributes["id"] for one in findings_of(checked(run("--no-cache", "--format", "html")[1]))]
    monkeypatch.setattr(findings, "MOST_FINDINGS", 5)
    page = checked(run("--no-cache", "--format", "html")[1])
    assert [one.attributes["id"] for one in findings_of(page)] == everything[:5]
    (left_out,) = page.all(id="left-out")
    assert f"5 worst findings. {len(everything) - 5} more are left out" in left_out.text


def test_a_closed_finding_says_how_its_message_differs_from_the_first(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, limit in (("a.sh", 12000000), ("b.sh", 12000000), ("c.sh", 8000)):
        (tmp_path / name).write_text(f"export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={limit}\ntorchrun train.py\n")
    page = checked(run("--format", "html", "--select", "excessive-heartbeat-timeout")[1])
    differs = [[part.text for part in one.all("span", kind="differs")] for one in findings_of(page)]
    messages = [next(one.all("p", kind="message")).text for one in findings_of(page)]
    assert differs[0] == [] and messages[0] == messages[1] != messages[2]
    assert differs[1] == [] and len(differs[2]) == 1


def test_a_patch_of_a_repository_elsewhere_applies_at_its_top(example: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    page = checked(run("--format", "html", example)[1])
    (patch,) = page.all("pre", id="patch-optimizer-not-fused-1")
    subprocess.run(["git", "apply", "--check", "-"], input=patch.text, text=True, cwd=example, check=True)


def test_removed_and_added_lines_that_look_like_headers_of_a_patch_are_shown() -> None:
    patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n"
    assert list(_changes(patch)) == [
        *(("place", "a"), ("place", "@@ -1,2 +1,2 @@"), ("removed", "--- old"), ("added", "+++ new"), ("", " same"), ("place", "b")),
    ]
