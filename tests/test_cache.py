"""What is remembered is what would be found: after any change, for any two runs, whatever has become of the cache."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint import batch, engine
from ldlm_lint.cache import index, place, replay, stored
from ldlm_lint.cache.facts import Facts
from ldlm_lint.cache.session import Session
from ldlm_lint.cache.values import decode, encode
from ldlm_lint.cli import main
from ldlm_lint.code import table_of
from ldlm_lint.config import Config
from ldlm_lint.linting import lint_file
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.program import of_project
from ldlm_lint.project import tables

LOADER = "from torch.utils.data import DataLoader\n\n\ndef make(data):\n    return DataLoader(data, batch_size=8, num_workers=4)\n"
QUIET = LOADER.replace("num_workers=4", "num_workers=4, persistent_workers=True, prefetch_factor=8")
TRAIN = """\
from data import make


def train(model, optimizer, data):
    loader = make(data)
    for epoch in range(3):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
"""
NO_TRAINING = TRAIN.replace("for epoch in range(3)", "if True").replace(".backward()", "").replace("optimizer.step()", "pass")
SCRIPT = "#!/bin/bash\nexport NCCL_TIMEOUT=3600000\nexport TORCH_NCCL_ENABLE_MONITORING=0\ntorchrun --nproc_per_node 8 train.py\n"
BROKEN = "def make(:\n"
# What waits is looked at as long as a step of another file calls it.
WAITS = "def make(data):\n    return data.norm().item()\n"
STEP = TRAIN.replace("optimizer.step()", "optimizer.step()\n            print(make(batch.cuda()))")
CONTENTS = (LOADER, QUIET, TRAIN, NO_TRAINING, SCRIPT, BROKEN, WAITS, STEP, "", "x = 1\n", LOADER + "# ldlm-lint: ignore-file\n")
NAMES = ("data.py", "train.py", "sub/data.py", "other.py", "run.sh", "run")
SETTINGS = (
    "",
    '[tool.ldlm-lint]\nselect = ["ALL"]\n',
    '[tool.ldlm-lint]\nignore = ["71"]\n',
    '[tool.ldlm-lint]\nexclude = ["sub"]\ntarget-torch = "2.1"\n',
)
IGNORED = ("", "sub/\n", "other.py\nrun*\n", "*.py\n!train.py\n")


LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a cache of this test's own."""
    monkeypatch.setenv(place.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def project(tmp_path: Path, folder: Path) -> Path:
    return make_project(tmp_path / "project")


def make_project(root: Path) -> Path:
    """A loader that only another file shows to be iterated again and again, and a script."""
    for name, text in {"data.py": LOADER, "train.py": TRAIN, "run.sh": SCRIPT, "pyproject.toml": ""}.items():
        put(root / name, text)
    return root


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def settle(root: Path) -> None:
    """Wait until what was written counts as left alone; the times that decide cannot be set."""
    latest = max(max(one.lstat().st_ctime_ns, one.lstat().st_mtime_ns) for one in (root, *root.rglob("*")))
    time.sleep(max(latest + index.MARGIN_NS - time.time_ns(), 0) / 1e9 + 0.01)


def run(*words: str | Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(map(str, words)))
    return code, out.getvalue(), err.getvalue()


def check(*words: str | Path) -> tuple[int, str, str]:
    """The answer of a run with the cache, after it was compared with that of one without."""
    warm, cold = run("--format", "json", *words), run("--format", "json", replay.OFF, *words)
    assert warm == cold
    return warm


def rules(answer: tuple[int, str, str]) -> set[str]:
    return {finding["rule"] for finding in json.loads(answer[1])["findings"]}


EDITS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(CONTENTS)),
    st.tuples(st.just("game"), st.sampled_from(NAMES), st.sampled_from((LOADER.replace("4", "0"), LOADER))),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("write"), st.just("pyproject.toml"), st.sampled_from(SETTINGS)),
    st.tuples(st.just("write"), st.just("requirements.txt"), st.sampled_from(("torch==2.0.1\n", "torch>=2.6\n"))),
    st.tuples(st.just("write"), st.just(".gitignore"), st.sampled_from(IGNORED)),
    st.tuples(st.just("write"), st.just("sub/.gitignore"), st.sampled_from(IGNORED)),
    st.tuples(st.just("write"), st.just("sub/pyproject.toml"), st.sampled_from(SETTINGS)),
)


def edit(root: Path, kind: str, name: str, argument: str | None) -> None:
    path = root / name
    if kind == "write":
        if path.is_symlink():
            path.unlink()
        put(path, argument or "")
    elif kind == "game":
        # Same size and time as before, other content.
        before = path.stat() if path.is_file() else None
        put(path, argument or "")
        if before is not None:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif os.path.lexists(path) and argument and argument != name:
        target = root / argument
        target.parent.mkdir(exist_ok=True)
        if kind == "rename":
            path.replace(target)
        else:
            target.unlink(missing_ok=True)
            target.symlink_to(path)


@LINKS
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_warm_is_cold_after_any_edits(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place_of_all, pytest.MonkeyPatch.context() as patch:
        patch.setenv(place.VARIABLE, os.path.join(place_of_all, "cache"))
        root = make_project(Path(os.path.realpath(place_of_all)) / "project")
        check(root)
        for _ in range(4):
            edit(root, *data.draw(EDITS))
            check(*data.draw(st.sampled_from(((root,), (root / "data.py",), (root, "--select", "ALL"), (root / "sub",)))))


def test_an_unchanged_run_is_shown_again_without_linting(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(project)
    first = run(project)
    # Nothing but the status of the files is looked at.
    monkeypatch.setattr(index, "_READ", dict.fromkeys(index._READ))
    monkeypatch.setattr("ldlm_lint.commands.check.run", None)
    assert run(project) == run("check", project) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda root: put(root / "train.py", NO_TRAINING),
        lambda root: (root / "train.py").unlink(),
        lambda root: put(root / "pyproject.toml", SETTINGS[2]),
        lambda root: put(root / ".gitignore", "data.py\n"),
        lambda root: put(root.parent / "pyproject.toml", SETTINGS[2]) or (root / "pyproject.toml").unlink(),
    ],
    ids=["other file", "other file deleted", "configuration", "ignore file", "configuration above"],
)
def test_findings_go_with_what_they_rest_on(project: Path, change: Callable[[Path], object]) -> None:
    assert "dataloader-without-persistent-workers" in rules(check(project))
    change(project)
    assert "dataloader-without-persistent-workers" not in rules(check(project))


def test_what_a_step_comes_to_only_now_is_looked_at(project: Path) -> None:
    put(project / "data.py", WAITS)
    assert "host-sync-in-training-loop" not in rules(check(project))
    put(project / "train.py", STEP)
    assert "host-sync-in-training-loop" in rules(check(project))
    put(project / "train.py", TRAIN)
    assert "host-sync-in-training-loop" not in rules(check(project))


def test_one_changed_file_takes_its_neighbours_from_the_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(project)
    put(project / "data.py", "# moved\n" + LOADER)
    read: list[str] = []
    monkeypatch.setattr(batch, "lint_file", lambda path, *rest: read.append(path.name) or lint_file(path, *rest))
    found = run("--format", "json", project)
    assert read == ["data.py"]
    assert found == run("--format", "json", replay.OFF, project)


def test_one_changed_file_takes_the_tables_of_its_neighbours_from_the_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(project)
    put(project / "data.py", "# moved\n" + LOADER)
    made: list[str] = []
    for maker in (tables, of_project):
        monkeypatch.setattr(maker, "table_of", lambda tree: made.append("made") or table_of(tree))
    found = run("--format", "json", project)
    assert made == ["made"]
    assert found == run("--format", "json", replay.OFF, project)


def test_same_size_and_time_but_other_content_is_seen(project: Path) -> None:
    settle(project)
    path = project / "data.py"
    check(project)
    before = path.stat()
    path.write_text(LOADER.replace("num_workers=4", "num_workers=0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert "dataloader-without-persistent-workers" not in rules(check(project))


def test_a_file_written_within_the_same_tick_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of the file system stands still: both contents have one status.
    path = tmp_path / "file"
    path.write_text("old")
    status = path.stat()
    monkeypatch.setattr(index.os, "stat", lambda _: status)
    known = index.Index()
    before = known.look("file", str(path))
    path.write_text("new")
    assert known.look("file", str(path)) != before


def test_a_cache_below_the_project_is_no_part_of_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.VARIABLE, str(project / ".cache" / "ldlm-lint"))
    first = run(project)
    assert replay.replayed([str(project)]) == first[0]


def test_an_overlay_is_asked_before_the_cache(project: Path, folder: Path) -> None:
    check(project)
    session = Session(str(folder), project.as_posix())
    overlay = {(project / "data.py").as_posix(): QUIET.encode()}
    report = engine.run([project], Config.load(project), base=project, overlay=overlay, session=session)
    cold = engine.run([project], Config.load(project), base=project, overlay=overlay)
    assert report.findings == cold.findings
    session.close()
    assert "dataloader-without-persistent-workers" in rules(check(project))


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "swapped", "directory"])
def test_a_damaged_cache_is_none(project: Path, folder: Path, damage: str) -> None:
    whole = check(project)
    files = [entry.path for entry in place.entries(str(folder))]
    assert files
    contents = [Path(path).read_bytes() for path in files]
    for number, path in enumerate(map(Path, files)):
        data = contents[number]
        path.unlink()
        if damage == "directory":
            path.mkdir()
        elif damage == "swapped":
            path.write_bytes(contents[number - 1])
        else:
            middle = len(data) // 2
            flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
            path.write_bytes({"empty": b"", "truncated": data[:middle], "flipped": flipped}[damage])
    assert check(project) == whole


class Exploit:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.place),)


def test_only_values_of_ours_are_read(tmp_path: Path) -> None:
    fix = Fix("set it", (Edit(Span("/a", 1, 2), "x"),), Applicability.SAFE)
    assert decode(encode((fix, frozenset({"a"}), {"k": [1.5, None, b"x"]}))) == (fix, frozenset({"a"}), {"k": [1.5, None, b"x"]})
    for poison in (Exploit(tmp_path / "made"), engine.run, Path("/")):
        with pytest.raises(ValueError, match="no value"):
            decode(pickle.dumps(poison))
    assert not (tmp_path / "made").exists()


def test_poisoned_facts_run_nothing(project: Path, folder: Path, tmp_path: Path) -> None:
    whole = check(project)
    for path in map(Path, (entry.path for entry in place.entries(str(folder)))):
        if path.suffix == ".run":
            path.unlink()
            continue
        if path.suffix == ".facts":
            pack = Facts(str(path))
            for name, (content, *_) in list(pack._places.items()):
                pack.put(name, str(content), pickle.dumps(Exploit(tmp_path / "made")))
            assert pack.save()
    assert check(project) == whole
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners as POSIX has them")
def test_a_directory_of_somebody_else_is_not_used(project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(project)
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(place.os, "geteuid", lambda: folder.stat().st_uid + 1)
    monkeypatch.setattr(stored, "read", None)
    monkeypatch.setattr(stored, "write", None)
    check(project)


def test_a_cache_that_cannot_be_written_costs_nothing_else(project: Path, folder: Path) -> None:
    folder.write_text("a file is in its place")
    code, _, err = check(project)
    assert (code, err) == (1, "")


def test_a_full_disk_leaves_no_half_entry(project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(stored.os, "replace", full)
        whole = check(project)
        assert [entry for entry in place.entries(str(folder))] == []
    assert check(project) == whole


def test_the_cache_stays_within_its_limit(tmp_path: Path) -> None:
    assert place.prepare(str(tmp_path))
    for number in range(20):
        path = tmp_path / "runs" / f"{number}.run"
        assert stored.write(str(path), (bytes(1000),))
        os.utime(path, (number, number))
    assert stored.read(str(tmp_path / "runs" / "0.run")) == bytes(1000)
    place.bound(str(tmp_path), written=20_000, limit=10_000)
    kept = {Path(entry.path).stem for entry in place.entries(str(tmp_path))}
    assert sum(entry.stat().st_size for entry in place.entries(str(tmp_path))) <= 10_000
    # What was read last goes last, however old it is.
    assert "0" in kept
    assert "1" not in kept


def test_clean_removes_what_is_ours_alone(project: Path, folder: Path) -> None:
    check(project)
    put(folder / "notes.txt", "mine")
    code, out, _ = run("clean")
    assert (code, out.startswith("Removed ")) == (0, True)
    assert [path.name for path in folder.rglob("*")] == ["notes.txt"]
    assert "Nothing to remove" in run("clean")[1]
    assert check(project)[0] == 1


def test_two_runs_share_a_cache(project: Path) -> None:
    cold = run(replay.OFF, "--format", "json", project)
    command = [sys.executable, "-m", "ldlm_lint", "check", "--format", "json", str(project)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {one.communicate()[0] for one in runs} == {cold[1]}
    assert run("--format", "json", project) == cold


@pytest.mark.parametrize("words", [("--fix",), ("--diff",), ("--output", "report.json"), ("--since", "HEAD"), ("--show-files",)])
def test_a_run_that_does_more_than_print_is_done_anew(project: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    kept: list[object] = []
    monkeypatch.setattr(replay, "recorded", lambda *run: kept.append(run) or b"")
    run(*words, ".")
    assert not kept


@pytest.mark.parametrize("name", ["NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "GITHUB_WORKSPACE"])
def test_the_environment_of_a_report_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replay.key(["check"])
    monkeypatch.setenv(name, "7")
    assert replay.key(["check"]) != before


def test_every_variable_that_reports_read_counts() -> None:
    package = Path(replay.__file__).parents[1]
    read = {
        name
        for path in (*package.glob("report/*.py"), package / "commands/render.py", package / "commands/output.py")
        for name in re.findall(r"""(?:environ(?:\.get\(|\[)|getenv\(|workspace=)["'](\w+)""", path.read_text())
    }
    assert read
    assert read <= {*replay.VARIABLES}
