"""``--since``: which lines count as changed, what git is kept from doing, and one clear line for what it cannot tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.changes import UNCHANGED, WHOLE, Changes, FileChanges
from ldlm_lint.cli import main
from ldlm_lint.gitdiff import GitError, changes_since, parse

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
IGNORED = "export NCCL_TIMEOUT=7200\n"
LOADER = """\
from torch.utils.data import DataLoader


def train(dataset, model, epochs):
    loader = DataLoader(
        dataset,
        num_workers=4,
        persistent_workers=True,
        prefetch_factor=4,
    )
    for epoch in range(epochs):
        for batch in loader:
            model(batch).backward()
"""
SELECT = ("72", "dataloader-without-persistent-workers")
Run = Callable[..., tuple[int, list[tuple[str, int]], str]]


def git(*arguments: str, cwd: Path | None = None) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, cwd=cwd)


def commit() -> None:
    git("add", "-A")
    git("commit", "-qm", "state", "--allow-empty")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "repo"
    root.mkdir()
    monkeypatch.chdir(root)
    git("init", "-q", "-b", "main")
    (root / "pyproject.toml").write_text(f"[tool.ldlm-lint]\nselect = {list(SELECT)}\n")
    (root / "run.sh").write_text(BEAT + "\necho start\n")
    (root / "train.py").write_text(LOADER)
    commit()
    return root


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, list[tuple[str, int]], str]:
        code = main(["check", "--format", "json", *arguments])
        captured = capsys.readouterr()
        found = json.loads(captured.out)["findings"] if captured.out else []
        return code, [(one["path"], one["line"]) for one in found], captured.err

    return call


def test_only_findings_on_changed_lines(project: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == (1, [("run.sh", 1)], "")
    assert run("--since", "HEAD") == (0, [], "")
    (project / "run.sh").write_text(BEAT + IGNORED + "\necho start\n")
    assert run("--since", "HEAD") == (1, [("run.sh", 2)], "")
    commit()
    assert run("--since", "HEAD")[1] == []
    assert run("--since", "HEAD~1")[1] == [("run.sh", 2)]
    assert run("--since", "main~1")[1] == [("run.sh", 2)]
    assert main(["check", "--since", "HEAD"]) == 0
    assert capsys.readouterr().out == "No findings.\n2 files read, 2 findings on unchanged lines.\n"


@pytest.mark.parametrize("state", ["working-tree", "staged", "new-staged", "untracked", "ignored-but-named", "intent"])
def test_the_state_of_a_file(project: Path, run: Run, state: str) -> None:
    if state in ("working-tree", "staged"):
        (project / "run.sh").write_text("# here\n" + BEAT.replace("12", "13"))
    else:
        (project / "new.sh").write_text("\n" + BEAT)
    if state == "ignored-but-named":
        (project / ".gitignore").write_text("new.sh\n")
    if "staged" in state or state == "intent":
        git("add", *(["-N"] if state == "intent" else []), "run.sh", *(["new.sh"] if state != "staged" else []))
    named = "run.sh" if state in ("working-tree", "staged") else "new.sh"
    assert run("--since", "HEAD", named) == (1, [(named, 2)], "")


def test_a_line_taken_out_of_a_statement_changes_it(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOADER.replace("        persistent_workers=True,\n", ""))
    assert run("--since", "HEAD") == (1, [("train.py", 5)], "")


def test_a_line_taken_out_beside_a_statement_does_not(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT + "echo start\n")
    assert run("--since", "HEAD")[1] == []


def test_a_file_that_moved_has_no_changed_lines(project: Path, run: Run) -> None:
    git("mv", "run.sh", "launch.sh")
    assert run("--since", "HEAD")[1] == []
    text = (project / "launch.sh").read_text()
    (project / "launch.sh").write_text(text + IGNORED)
    assert run("--since", "HEAD")[1] == [("launch.sh", 4)]


def test_from_another_directory_and_through_a_link(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "run.sh").write_text(BEAT + IGNORED)
    (project.parent / "link").symlink_to(project)
    monkeypatch.chdir(project.parent)
    assert run("--since", "HEAD", "repo")[1] == [("repo/run.sh", 2)]
    assert run("--since", "HEAD", "link")[1] == [("link/run.sh", 2)]


ODD = ["a b.sh", 'quo"te.sh', "tab\t.sh", "über.sh", "back\\slash.sh", "+++ b.sh", "-rf.sh", ":top.sh", "*.sh", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.parametrize("name", ODD)
def test_odd_names(project: Path, run: Run, name: str) -> None:
    (project / "d").mkdir()
    (project / "d" / name).write_text("#!/bin/bash\n" + BEAT)
    commit()
    assert run("--since", "HEAD", "d")[1] == []
    (project / "d" / name).write_text("#!/bin/bash\n" + BEAT + "++ x\n-- y\n" + IGNORED)
    assert run("--since", "HEAD", "d")[1] == [(f"d/{name}", 5)]


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r"])
def test_line_endings(project: Path, run: Run, ending: str) -> None:
    (project / "run.sh").write_bytes(f"a=1\n{BEAT}".replace("\n", ending).encode())
    commit()
    (project / "run.sh").write_bytes(f"a=1\n{BEAT}{IGNORED}".replace("\n", ending).encode())
    # A file without \n is one line for git, and all of it changed.
    changed = [("run.sh", 3)] if "\n" in ending else run()[1]
    assert run("--since", "HEAD")[1] == changed


def test_settings_and_attributes_of_the_repository_change_nothing(project: Path, run: Run) -> None:
    for key, value in {
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.interHunkContext": "9",
        "diff.context": "9",
        "diff.relative": "true",
        "color.ui": "always",
        "core.quotePath": "true",
        "diff.renames": "false",
        "diff.submodule": "log",
    }.items():
        git("config", key, value)
    (project / ".gitattributes").write_text("*.sh -diff\n*.py binary\n")
    text = BEAT + "\n" * 9
    (project / "run.sh").write_text(text)
    commit()
    (project / "run.sh").write_text("\n" + text + IGNORED)
    (project / "train.py").write_text(LOADER.replace("        persistent_workers=True,\n", ""))
    assert run("--since", "HEAD")[1] == [("run.sh", 12), ("train.py", 5)]


@pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts")
def test_nothing_that_the_repository_names_is_run(project: Path, run: Run, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $@" >> {sprung}\ncat\n')
    trap.chmod(0o755)
    hooks = project / ".git" / "hooks"
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "interactive.diffFilter"),
        *("diff.trap.command", "diff.trap.textconv", "filter.trap.clean", "filter.trap.smudge"),
        *("filter.odd=name.clean", "filter.odd=name.process", "core.alternateRefsCommand", "alias.diff", "pager.diff"),
    ):
        git("config", key, str(trap))
    git("config", "filter.trap.required", "true")
    (project / ".gitattributes").write_text("*.sh diff=trap filter=trap\n*.py filter=odd=name\n")
    (project / "run.sh").write_text(BEAT + IGNORED)
    (project / "train.py").write_text("\n" + LOADER)
    index = (project / ".git" / "index").read_bytes()
    sprung.unlink(missing_ok=True)
    assert run("--since", "HEAD")[1] == [("run.sh", 2)]
    assert not sprung.exists()
    assert (project / ".git" / "index").read_bytes() == index


def test_a_partial_clone_fetches_nothing(project: Path, run: Run, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{project}", str(clone))
    git("config", "remote.origin.uploadpack", f"touch {sprung}; false", cwd=clone)
    (clone / "run.sh").write_text(BEAT)
    git("read-tree", "HEAD", cwd=clone)
    code, found, err = run("--since", "HEAD", str(clone))
    assert (code, found) == (2, [])
    assert err.startswith("ldlm-lint: error: --since: git diff failed: ")
    assert not sprung.exists()


@pytest.mark.parametrize(
    "revision, words",
    [
        ("no-such-branch", '"no-such-branch" is not a revision of '),
        ("--output=x", "argument --since: expected one argument"),
        ("", '"" is not a git revision'),
        ("HEAD\nx", "is not a git revision"),
        ("main..HEAD", '"main..HEAD" is not a revision of '),
        ("HEAD:run.sh", "is not a revision of "),
    ],
)
def test_what_is_no_revision(project: Path, run: Run, revision: str, words: str) -> None:
    code, _, err = run("--since", revision)
    assert code == 2
    assert err.startswith("ldlm-lint: error: ")
    assert words in err.replace("\\n", "\n")
    assert not (project / "x").exists()


def test_an_option_instead_of_a_revision_is_refused(project: Path) -> None:
    for revision in ("--output=x", "-O", "--no-index"):
        with pytest.raises(GitError, match="is not a git revision"):
            changes_since(project, revision)
    assert main(["check", "--since=--output=x"]) == 2
    assert not (project / "x").exists()


def test_without_a_repository(project: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "run.sh").write_text(BEAT)
    code, _, err = run("--since", "HEAD", str(tmp_path / "plain"))
    assert code == 2
    assert err.startswith(f"ldlm-lint: error: --since needs a git repository, but there is none at {tmp_path.as_posix()}/plain: ")
    assert err.count("\n") == 1
    monkeypatch.setenv("PATH", "")
    code, _, err = run("--since", "HEAD")
    assert code == 2
    assert "--since needs git, but git cannot be run" in err


def test_a_shallow_clone_says_so(project: Path, run: Run, tmp_path: Path) -> None:
    commit()
    git("clone", "-q", "--depth=1", f"file://{project}", str(tmp_path / "clone"))
    code, _, err = run("--since", "HEAD~1", str(tmp_path / "clone"))
    assert code == 2
    assert err.endswith("; this is a shallow clone without older commits\n")


def test_a_hook_s_environment_does_not_lead_elsewhere(
    project: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "-q", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert run("--since", "HEAD")[:2] == (0, [])


def test_files_of_a_submodule_are_not_new(project: Path, run: Run, tmp_path: Path) -> None:
    inner = project / "third_party"
    inner.mkdir()
    git("init", "-q", cwd=inner)
    (inner / "run.sh").write_text(BEAT)
    git("add", "-A", cwd=inner)
    git("commit", "-qm", "x", cwd=inner)
    assert run("--since", "HEAD")[1] == [("third_party/run.sh", 1)]
    git("add", "third_party")
    git("commit", "-qm", "submodule")
    assert run("--since", "HEAD")[1] == []


def test_what_cannot_be_read_or_parsed(project: Path, run: Run) -> None:
    (project / "bad.sh").write_bytes(b"# caf\xe9\n")
    (project / "cut.py").write_text("x = (\n\n\n")
    commit()
    assert run("--since", "HEAD") == (3, [("bad.sh", 1)], "")
    (project / "cut.py").write_text("x = (\n\n\ny = 1\n")
    assert ("cut.py", 1) in run("--since", "HEAD")[1]


def test_only_changed_lines_are_fixed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run.sh").write_text(IGNORED + "a=1\n" + "torchrun train.py\n")
    commit()
    (project / "run.sh").write_text(IGNORED + "a=1\nb=2\n" + IGNORED + "torchrun train.py\n")
    assert main(["check", "--since", "HEAD", "--fix", "run.sh"]) == 0
    assert (project / "run.sh").read_text() == IGNORED + "a=1\nb=2\n" + "torchrun train.py\n"
    assert "Fixed 1 finding in 1 file:\n" in capsys.readouterr().out


def test_with_a_baseline_the_defect_on_the_changed_line_is_the_new_one(
    project: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["baseline"]) == 0
    capsys.readouterr()
    (project / "run.sh").write_text(BEAT + "\n" + BEAT)
    commit()
    (project / "run.sh").write_text(BEAT.strip() + " \n\n" + BEAT)
    assert run("--since", "HEAD") == (1, [("run.sh", 1)], "")
    assert run("--since", "HEAD~1") == (1, [("run.sh", 3)], "")


PATCH = b"""\
diff --git a/a.sh b/a.sh
--- a/a.sh
+++ b/a.sh
@@ -1 +1,2 @@
-++ b/other.sh
+++ b/other.sh
+@@ -1 +1 @@
\\ No newline at end of file
@@ -9,2 +9,0 @@ def f():
-x
-y
diff --git a/gone.sh b/gone.sh
--- a/gone.sh
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def test_a_patch_is_read_by_its_counts() -> None:
    assert parse(PATCH) == {"a.sh": FileChanges(((1, 2),), (9,))}


@for_every(
    "first, last, expected",
    [(1, 2, False), (1, 3, True), (4, 4, True), (5, 6, False), (7, 8, True), (7, 7, False), (8, 8, False)],
)
def test_lines_touch_a_change(first: int, last: int, expected: bool) -> None:
    assert FileChanges(((3, 4),), (7,)).touch(first, last) is expected


def test_changes_move_with_what_fixes_write() -> None:
    changes = Changes({"/p/a": FileChanges(((2, 3),), (4,))}, frozenset({"/p/a", "/p/b"}))
    before = {"/p/a": b"1\n2\n3\n4\n5\n", "/p/b": b"1\n", "/p/c": b"1\n"}
    after = changes.after(before, {"/p/a": b"0\n1\n2\n3\n4\n5\n", "/p/b": b"1\n2\n", "/p/c": b""})
    assert after.of("/p/a") == FileChanges(((1, 1), (3, 4)), (5,))
    assert after.of("/p/b") == FileChanges(((2, 2),))
    assert after.of("/p/c") == WHOLE
    assert changes.after(before, {"/p/a": b"2\n3\n4\n5\n"}).of("/p/a") == FileChanges(((1, 2),), (0, 3))
    assert changes.of("/p/b") == UNCHANGED
