"""Taking runs back: byte for byte, one after the other, and never over what somebody changed since."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import Enter, Run
from faults import Disk, faulty
from harness import Case, cases, contents, strip
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint import cli
from ldlm_lint.autofix import journal as journal_module
from ldlm_lint.autofix.journal import Journal
from ldlm_lint.autofix.undo import undo
from ldlm_lint.config import Config
from ldlm_lint.discover import discover
from ldlm_lint.writing import write_changed

BEAT = b"export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
IGNORED = b"export NCCL_TIMEOUT=7200\n"
LAUNCH = b"torchrun train.py\n"
FIX = ("--fix", "--unsafe-fixes", "--quiet")

posix = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX systems")


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT + IGNORED + LAUNCH, "scripts/two.sh": IGNORED + LAUNCH})


def tree(root: Path) -> dict[str, tuple[bytes, int, str]]:
    """All files outside of the journal: bytes, mode, where a link leads."""
    files = [one for one in root.rglob("*") if one.is_file() and ".ldlm-lint" not in one.relative_to(root).parts]
    return {
        one.relative_to(root).as_posix(): (
            one.read_bytes(),
            stat.S_IMODE(one.stat().st_mode),
            os.readlink(one) if one.is_symlink() else "",
        )
        for one in files
    }


def test_undo_says_what_it_did(project: Path, run: Run) -> None:
    before = tree(project)
    assert run(*FIX)[0] == 0
    assert tree(project) != before
    code, out, err = run("undo")
    assert (code, err) == (0, "")
    assert tree(project) == before
    assert out.startswith("restored run.sh\nrestored scripts/two.sh\nUndone: the run of 20")
    assert " UTC, 2 files restored (--fix --unsafe-fixes, excessive-heartbeat-timeout 1, " in out
    assert run("undo") == (1, "Nothing to undo.\n", "")


def test_runs_are_undone_one_after_the_other(project: Path, run: Run) -> None:
    states = [tree(project)]
    for flags in (("--fix", "--quiet"), ("--fix", "--unsafe-fixes", "--quiet", "--ignore", "ALL"), FIX):
        run(*flags)
        if tree(project) != states[-1]:
            states.append(tree(project))
    (project / "run.sh").write_bytes(BEAT + LAUNCH)
    states[-1] = tree(project)
    assert run("--add-ignores", "--quiet")[0] == 0
    assert len(states) == 3
    listed = run("undo", "--list")[1].splitlines()
    assert [line.split()[4] for line in listed] == ["applied"] * 3
    assert "--add-ignores" in listed[0]
    assert run("undo")[0] == 0
    assert tree(project) == states.pop()
    (project / "run.sh").write_bytes(BEAT.replace(b"12000000", b"1800") + LAUNCH)
    assert run("undo")[0] == 0
    assert run("undo", "--list")[1].count("undone") == 2
    assert run("undo")[0] == 0
    assert tree(project) == states[0]
    assert run("undo")[0] == 1


def test_a_file_that_changed_since_is_left_alone(project: Path, run: Run) -> None:
    before = tree(project)
    run(*FIX)
    (project / "run.sh").write_bytes(b"mine\n")
    changed = tree(project)
    code, out, err = run("undo")
    assert (code, out) == (3, "")
    assert err.startswith("error: run.sh changed after the run of ")
    assert err.endswith("ldlm-lint: error: nothing was undone; --partial undoes the other files\n")
    assert tree(project) == changed
    code, out, err = run("undo", "--partial")
    assert code == 0
    assert err.startswith("warning: run.sh changed after")
    assert "1 file restored" in out
    assert tree(project) == {**before, "run.sh": (b"mine\n", before["run.sh"][1], "")}
    assert run("undo")[0] == 1


def test_a_file_that_is_gone_or_a_link_now_is_left_alone(project: Path, run: Run) -> None:
    run(*FIX)
    fixed = (project / "run.sh").read_bytes()
    (project / "run.sh").unlink()
    assert run("undo")[2].startswith("error: run.sh was deleted after the run of ")
    assert not (project / "run.sh").exists()
    (project / "other.sh").write_bytes(fixed)
    (project / "run.sh").symlink_to("other.sh")
    assert run("undo")[0] == 3
    assert run("undo", "--partial")[0] == 0
    assert (project / "other.sh").read_bytes() == fixed
    assert (project / "scripts" / "two.sh").read_bytes() == IGNORED + LAUNCH


def test_a_file_with_its_old_bytes_is_no_obstacle(project: Path, run: Run) -> None:
    before = tree(project)
    run(*FIX)
    (project / "run.sh").write_bytes(before["run.sh"][0])
    code, out, _ = run("undo")
    assert code == 0
    assert "run.sh already has its old content\n" in out
    assert tree(project) == before


def test_undo_from_any_place_in_the_project(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").unlink()
    (project / ".git").mkdir()
    (project / "scripts" / "pyproject.toml").touch()
    before = tree(project)
    run(*FIX, ".")
    monkeypatch.chdir(project / "scripts")
    assert run("undo")[0] == 0
    assert tree(project) == before
    run(*FIX, ".")
    assert (project / "scripts" / ".ldlm-lint").is_dir()
    monkeypatch.chdir(project)
    assert run("undo")[0] == 1
    assert run("undo", "scripts/two.sh")[0] == 0
    assert tree(project) == before
    assert run("undo", "missing")[0] == 3


def test_a_directory_that_is_no_project(project: Path, run: Run) -> None:
    """Its journal is where the command runs, so that undo finds it there, whatever paths were named."""
    (project / "pyproject.toml").unlink()
    before = tree(project)
    run(*FIX, "scripts")
    assert (project / ".ldlm-lint").is_dir()
    assert not (project / "scripts" / ".ldlm-lint").exists()
    assert run("undo", "scripts")[0] == 0
    assert tree(project) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(project / "run.sh", 12345, 54321)
    monkeypatch.setattr(os, "chown", lambda *_: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted")))
    before = tree(project)
    code, out, err = run("--fix", "--unsafe-fixes")
    assert code == 3
    assert err == "error: run.sh: not fixed, and no other file either: cannot be written: Operation not permitted\n"
    assert "Nothing was fixed.\n" in out
    assert tree(project) == before
    # Who is not root is told so before anything is tried, and the other files are fixed.
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, out, err = run("--fix", "--unsafe-fixes", "run.sh")
    assert (code, err) == (3, "error: run.sh: not fixed: belongs to another user or group, which could not be kept\n")


def test_what_cannot_be_written_keeps_its_fixes_and_stops_no_other(project: Path, run: Run) -> None:
    (project / "run.sh").chmod(0o444)
    before = tree(project)
    code, out, err = run("--fix", "--unsafe-fixes")
    assert code == 3
    assert err == "error: run.sh: not fixed: is write-protected\n"
    assert "Fixed 1 finding in 1 file:\n" in out
    assert tree(project)["run.sh"] == before["run.sh"]
    assert run("undo")[0] == 0
    assert tree(project) == before
    (project / "run.sh").chmod(0o644)


@pytest.mark.parametrize("kind", ["file", "link", "runs-link", "foreign"])
def test_no_journal_no_fix(project: Path, run: Run, kind: str) -> None:
    place, elsewhere = project / ".ldlm-lint", project.parent / "elsewhere"
    elsewhere.mkdir()
    if kind == "file":
        place.write_text("")
    elif kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.mkdir()
    if kind == "runs-link":
        (place / "runs").symlink_to(elsewhere)
    if kind == "foreign":
        if not hasattr(os, "geteuid") or os.geteuid() != 0:
            pytest.skip("only root can give folders away")
        os.chown(place, 4711, 4711)
    before = tree(project)
    for flags in (("--fix", "--unsafe-fixes"), ("--add-ignores",)):
        code, out, err = run(*flags)
        assert code == 3
        assert err.startswith(("error: not fixed: ", "error: no comment written: "))
        assert ("belongs to another user" if kind == "foreign" else "is not a folder") in err
        assert re.search(r"(?m)^Nothing was (fixed|silenced)\.$", out)
        assert err.count("\n") == 1
    assert tree(project) == before
    assert os.listdir(elsewhere) == []
    assert run("undo")[0] in (1, 3)
    # A check writes nothing, so that all of this is nothing to it.
    assert run("--quiet")[2] == ""


def test_another_run_is_waited_for(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ldlm_lint.autofix.journal import Journal\n"
        "with Journal(Path(sys.argv[1])).held():\n"
        "    print('held', flush=True); time.sleep(float(sys.argv[2]))\n"
    )
    before = tree(project)
    for seconds, patience in ((60.0, 0.1), (0.3, 30.0)):
        holder = subprocess.Popen([sys.executable, "-c", code, str(project), str(seconds)], stdout=subprocess.PIPE)
        assert holder.stdout and holder.stdout.readline().strip() == b"held"
        monkeypatch.setattr(journal_module, "PATIENCE", patience)
        try:
            got, _, err = run(*FIX)
        finally:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        if seconds > 1:
            assert (got, tree(project)) == (3, before)
            assert "another run has locked" in err
        else:
            assert (got, err) == (0, "")


def test_several_runs_at_once(project: Path, run: Run) -> None:
    """One of them fixes; whoever comes later finds nothing to do, or files that changed since it read them."""
    before = tree(project)
    command = [sys.executable, "-m", "ldlm_lint", *FIX, "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert 0 in codes, said
    assert all(
        code == 0 if not err else code == 3 and "changed since it was read" in err
        for code, err in zip(codes, said, strict=True)
    )
    # One that was refused must not take back what another has done in the same way.
    assert [line.split()[4] for line in run("undo", "--list")[1].splitlines()] == ["applied"]
    assert run("undo")[0] == 0
    assert tree(project) == before


def test_old_runs_are_forgotten(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MOST_RUNS", 3)
    for number in range(5):
        (project / "run.sh").write_bytes(b"# %d\n" % number + IGNORED + LAUNCH)
        run(*FIX)
    assert len(run("undo", "--list")[1].splitlines()) == 3
    monkeypatch.setattr(journal_module, "MOST_BYTES", 1)
    (project / "run.sh").write_bytes(BEAT + LAUNCH)
    run(*FIX)
    assert len(run("undo", "--list")[1].splitlines()) == 1
    assert run("undo")[0] == 0
    assert (project / "run.sh").read_bytes() == BEAT + LAUNCH


def test_nothing_to_fix_leaves_no_journal(project: Path, run: Run) -> None:
    run("--fix", "--ignore", "ALL", "--quiet")
    run("--diff", "--unsafe-fixes")
    run("undo")
    assert not (project / ".ldlm-lint").exists()


def test_git_and_the_linter_do_not_see_it(project: Path, run: Run) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    run(*FIX)
    status = subprocess.run(["git", "status", "--short"], check=True, capture_output=True, text=True).stdout
    assert ".ldlm-lint" not in status
    (project / ".ldlm-lint" / "runs" / "bad.sh").write_bytes(BEAT)
    (project / "link").symlink_to(".ldlm-lint/runs")
    (project / "link.sh").symlink_to(".ldlm-lint/runs/bad.sh")
    found = discover([project], Config(root=project.as_posix()), project).files
    assert not [path for path, _ in found if ".ldlm-lint" in path.parts or path.name.startswith("link")]
    assert {"run.sh", "two.sh"} <= {path.name for path, _ in found}
    named = discover([project / ".ldlm-lint" / "runs" / "bad.sh"], Config(root=project.as_posix()), project)
    assert (named.files, named.excluded) == ((), 1)


@posix
def test_what_only_its_owner_may_read_stays_so(project: Path, run: Run) -> None:
    (project / "run.sh").chmod(0o600)
    before = tree(project)
    run(*FIX)
    assert stat.S_IMODE((project / ".ldlm-lint").stat().st_mode) == 0o700
    assert all(not one.stat().st_mode & 0o077 for one in (project / ".ldlm-lint").rglob("*"))
    run("undo")
    assert tree(project) == before


# Byte by byte over the fixtures of all rules.


def crlf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def mark(data: bytes) -> bytes:
    return data if data.startswith(b"\xef\xbb\xbf") else b"\xef\xbb\xbf" + data


def latin(data: bytes) -> bytes:
    return b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + data if data.isascii() else data


def bare(data: bytes) -> bytes:
    return data.rstrip(b"\r\n")


VARIANTS: dict[str, Callable[[bytes], bytes]] = {"crlf": crlf, "mark": mark, "latin": latin, "bare": bare}
MODES = (0o644, 0o755, 0o600)
FIXED = [case for case in cases() if case.bad and case.fixed.exists()]


def lay_out(root: Path, chosen: list[tuple[Case, str]]) -> None:
    """The bad files of cases in a variant, below a folder for each; some of them behind links."""
    for number, (case, variant) in enumerate(chosen):
        for name, data in contents(case.path).items():
            path = root / f"{number}_{variant}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            plain = path.suffix != ".py" and variant in ("mark", "latin")
            path.write_bytes(strip(data) if plain else VARIANTS[variant](strip(data)))
            path.chmod(MODES[number % len(MODES)])
            if number % 5 == 0 and os.name != "nt":
                real = path.with_name(f"real_{path.name}")
                path.rename(real)
                path.symlink_to(real.name)


def round_trip(root: Path, run: Run) -> int:
    """Fix all, undo all; returns how many files were changed in between."""
    before = tree(root)
    assert run(*FIX, "--select", "ALL", "--exit-zero", str(root))[0] == 0
    after = tree(root)
    assert {path: rest for path, (_, *rest) in before.items()} == {path: rest for path, (_, *rest) in after.items()}
    assert run("undo", str(root))[0] == 0
    assert tree(root) == before
    return sum(before[path] != after[path] for path in before)


def test_every_rule_there_and_back(tmp_path: Path, run: Run) -> None:
    """One bad case of each rule, in a variant of the bytes that differs from rule to rule."""
    root = tmp_path / "all"
    first = list({case.symbol: case for case in reversed(FIXED)}.values())
    names = list(VARIANTS)
    lay_out(root, [(case, names[number % len(names)]) for number, case in enumerate(first)])
    (root / "pyproject.toml").write_text("")
    assert round_trip(root, run) > len(first) // 3


@given(
    st.lists(
        st.dictionaries(st.sampled_from(("a.sh", "b/c.py", "b/d.yaml")), st.binary(max_size=40), min_size=1),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=25, deadline=None)
def test_any_bytes_and_any_runs_there_and_back(runs: list[dict[str, bytes]]) -> None:
    """Whatever runs wrote, undoing them one by one gives each state before, byte by byte."""
    # Without its fsync, which takes all the time.
    with tempfile.TemporaryDirectory() as name, faulty(Disk()):
        root = Path(name).resolve()
        (root / "b").mkdir()
        for path in ("a.sh", "b/c.py", "b/d.yaml"):
            (root / path).write_bytes(b"# begin\r\n")
        states = []
        for new in runs:
            before = {path: (root / path).read_bytes() for path in new}
            changed = {path: data for path, data in new.items() if data != before[path]}
            if changed:
                states.append(tree(root))
                old = {str(root / path): before[path] for path in changed}
                assert write_changed(Journal(root), old, {str(root / path): new[path] for path in changed}) == ()
        for state in reversed(states):
            assert undo(Journal(root)).run is not None
            assert tree(root) == state
        assert undo(Journal(root)).run is None


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_there_and_back(tmp_path: Path, run: Run, variant: str) -> None:
    changed = 0
    for number, case in enumerate(FIXED):
        root = tmp_path / str(number)
        root.mkdir()
        (root / "pyproject.toml").write_bytes(b"[tool.ldlm-lint]\n" + case.options())
        lay_out(root, [(case, variant)])
        before = tree(root)
        run(*FIX, "--select", "ALL", "--exit-zero", str(root))
        if tree(root) == before:
            continue
        changed += 1
        assert run("undo", str(root))[0] == 0
        assert tree(root) == before
    assert changed > len(FIXED) * 3 // 4
