"""Runs that end at every write, fsync and rename: files are old or new, and what follows brings them to one of both."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Disk, failing, faulty, interrupt, killed

from ldlm_lint.autofix.journal import Journal, JournalError
from ldlm_lint.autofix.transaction import TransactionError
from ldlm_lint.autofix.undo import undo
from ldlm_lint.cli import main
from ldlm_lint.writing import finish_interrupted, interrupted_note, write_changed

OLD = {
    "run.sh": b"export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\r\ntorchrun train.py\r\n",
    "scripts/two.sh": b"export NCCL_TIMEOUT=7200\ntorchrun train.py",
}
NEW = {"run.sh": b"torchrun train.py\r\n# shorter\r\n", "scripts/two.sh": b""}
POINTS = 100
"""More than any of the actions has; each test says itself that it came to the last."""

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own for each point")
Project = Callable[[str], Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    def make(name: str) -> Path:
        root = tmp_path / name
        (root / "scripts").mkdir(parents=True)
        (root / "pyproject.toml").touch()
        for path, data in OLD.items():
            (root / path).write_bytes(data)
        (root / "run.sh").chmod(0o755)
        return root

    return make


def contents(root: Path) -> dict[str, bytes]:
    """All files outside of the journal."""
    paths = [one for one in root.rglob("*") if one.is_file() and ".ldlm-lint" not in one.relative_to(root).parts]
    return {one.relative_to(root).as_posix(): one.read_bytes() for one in paths if one.name != "pyproject.toml"}


def fix(root: Path) -> tuple[str, ...]:
    """What writing a run says; nothing if all went well."""
    journal = Journal(root)
    finish_interrupted(journal)
    here = contents(root)
    changed = {path: data for path, data in NEW.items() if here[path] != data}
    before = {str(root / path): here[path] for path in changed}
    after = {str(root / path): data for path, data in changed.items()}
    return tuple(problem.message for problem in write_changed(journal, before, after, "not fixed", ("--fix",)))


def each_is_old_or_new(root: Path) -> bool:
    found = contents(root)
    return all(found[path] in (OLD[path], NEW[path]) for path in OLD)


def no_leftovers(root: Path) -> bool:
    journal = Journal(root)
    states = journal.states()
    inside = [one.name for one in journal.runs.rglob("*")] if journal.exists() else []
    return not any(name.endswith(".new") for name in inside) and all(name in inside for name in states)


@posix
@pytest.mark.parametrize("then", ["fix", "undo"])
def test_a_run_that_is_killed(project: Project, then: str) -> None:
    for at in range(POINTS):
        root = project(str(at))
        if not killed(lambda root=root: fix(root), at):
            break
        assert each_is_old_or_new(root)
        if then == "fix":
            assert fix(root) == ()
            assert contents(root) == NEW
        undo(Journal(root))
        assert contents(root) == OLD
        assert (root / "run.sh").stat().st_mode & 0o777 == 0o755
        assert no_leftovers(root)
        assert interrupted_note(Journal(root)) == ()
    assert 30 < at < POINTS - 1


@posix
@pytest.mark.parametrize("then", ["fix", "undo"])
def test_an_undo_that_is_killed(project: Project, then: str) -> None:
    for at in range(POINTS):
        root = project(str(at))
        assert fix(root) == ()
        if not killed(lambda root=root: undo(Journal(root)), at):
            break
        assert each_is_old_or_new(root)
        if then == "fix":
            fix(root)
            assert contents(root) == NEW
        undo(Journal(root))
        assert contents(root) == OLD
        assert no_leftovers(root)
        assert undo(Journal(root)).run is None
    assert 30 < at < POINTS - 1


@posix
def test_a_recovery_that_is_killed(project: Project) -> None:
    half = half_way(project)
    for at in range(POINTS):
        root = project(str(at))
        assert killed(lambda root=root: fix(root), half)
        assert interrupted_note(Journal(root))
        if not killed(lambda root=root: finish_interrupted(Journal(root)), at):
            break
        assert each_is_old_or_new(root)
        finish_interrupted(Journal(root))
        assert contents(root) == OLD
        assert no_leftovers(root)
    assert 5 < at < POINTS - 1


def test_a_run_that_comes_too_late(project: Project) -> None:
    """The same change, made by another run meanwhile: refused, and not taken back with what was refused."""
    root = project("late")
    before, after = ({str(root / path): data for path, data in one.items()} for one in (OLD, NEW))
    assert write_changed(Journal(root), before, after) == ()
    (problem,) = write_changed(Journal(root), before, after)
    assert problem.message == "not fixed, and no other file either: changed since it was read"
    assert contents(root) == NEW
    assert len(Journal(root).states()) == 1


@posix
def test_a_run_that_is_killed_when_all_is_written(project: Project) -> None:
    """Nothing is taken back that is whole; an undo then does what it was called for."""
    last = half_way(project) + 1
    for then in (finish_interrupted, undo):
        root = project(then.__name__)
        assert killed(lambda root=root: fix(root), last)
        assert contents(root) == NEW
        assert interrupted_note(Journal(root))
        done = then(Journal(root))
        if then is finish_interrupted:
            (note,) = done
            assert note.message.endswith("had written all its files and counts as done")
            assert contents(root) == NEW
            done = undo(Journal(root))
        assert done.restored == tuple(OLD)
        assert contents(root) == OLD


def half_way(project: Project) -> int:
    """The point between the first file and the second."""
    root = project("counted")
    with faulty(Disk()) as disk:
        fix(root)
    (found,) = [
        number for number, (name, path) in enumerate(disk.calls) if name == "replace" and path.endswith("two.sh")
    ]
    return found


@pytest.mark.parametrize("on", [False, True], ids=["once", "from-there-on"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=["full", "forbidden"])
def test_a_run_that_the_system_refuses(project: Project, number: int, on: bool) -> None:
    refused = 0
    for at in range(POINTS):
        root = project(str(at))
        try:
            with faulty(Disk(at, failing(number), on, reads=True)) as disk:
                said = fix(root)
        except JournalError as error:
            said = (str(error),)
        if len(disk.calls) <= at:
            break
        refused += bool(said)
        if said and "undo restores them" not in said[0]:
            assert contents(root) == OLD
        elif not said:
            assert contents(root) == NEW
        else:
            # Files could be replaced, and from the next call on nothing could be: not even taking back.
            assert on
            assert each_is_old_or_new(root)
        assert os.strerror(number) in "".join(said) or not said
        undo(Journal(root))
        assert contents(root) == OLD
        assert no_leftovers(root)
    assert refused > 30
    assert at < POINTS - 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=["full", "forbidden"])
def test_an_undo_that_the_system_refuses(project: Project, number: int) -> None:
    for at in range(POINTS):
        root = project(str(at))
        assert fix(root) == ()
        try:
            with faulty(Disk(at, failing(number), reads=True)) as disk:
                undo(Journal(root))
        except (JournalError, TransactionError) as error:
            assert os.strerror(number) in str(error)
            assert contents(root) == NEW
            undo(Journal(root))
        assert contents(root) == OLD
        assert undo(Journal(root)).run is None
        assert no_leftovers(root)
        if len(disk.calls) <= at:
            break
    assert 30 < at < POINTS - 1


def test_a_full_disk_never_stops_a_run_half_way(project: Project) -> None:
    """All that needs room comes before the first file is replaced."""
    root = project("counted")
    with faulty(Disk()) as disk:
        assert fix(root) == ()
    names = [name for name, _ in disk.calls]
    first = next(at for at, (name, path) in enumerate(disk.calls) if name == "replace" and path.endswith("run.sh"))
    assert not {"open", "write", "mkdir", "chmod"} & set(names[first:])


@pytest.mark.parametrize("action", ["fix", "undo"])
def test_a_key_that_is_pressed(project: Project, action: str) -> None:
    for at in range(POINTS):
        root = project(str(at))
        if action == "undo":
            assert fix(root) == ()
        before = contents(root)
        try:
            with faulty(Disk(at, interrupt)):
                fix(root) if action == "fix" else undo(Journal(root))
        except KeyboardInterrupt:
            assert contents(root) in (OLD, NEW)
            assert contents(root) == before or not interrupted_note(Journal(root))
        else:
            break
        undo(Journal(root))
        assert contents(root) == OLD
        assert no_leftovers(root)
    assert 30 < at < POINTS - 1


def test_what_a_power_cut_must_find_is_on_the_disk_in_time(project: Project) -> None:
    """Names and bytes of the journal before the first file is replaced, and all of these before the run counts as done."""
    root = project("durable")
    with faulty(Disk(reads=True)) as disk:
        assert fix(root) == ()
    calls = [
        (name, Path(path).relative_to(root).as_posix() if path.startswith("/") else path) for name, path in disk.calls
    ]
    files = [number for number, (name, path) in enumerate(calls) if name == "replace" and path in OLD]
    states = [number for number, (name, path) in enumerate(calls) if name == "replace" and path.endswith("/state")]
    synced = [calls[number - 1][1] for number, (name, _) in enumerate(calls) if name == "fsync" and number < files[0]]
    run = calls[states[0]][1].removesuffix("/state")
    assert {".", ".ldlm-lint", ".ldlm-lint/runs", run} <= set(synced)
    assert len(states) == 2
    assert states[0] < files[0] < files[1] < states[1]
    assert [calls[number + 1 : number + 3] for number in files] == [
        [("open", "."), ("fsync", calls[files[0] + 2][1])],
        [("open", "scripts"), ("fsync", calls[files[1] + 2][1])],
    ]
    for number, (name, _) in enumerate(calls):
        if name == "write":
            assert calls[number + 1][0] == "fsync"


@posix
@pytest.mark.parametrize("then", ["--fix", "undo"])
def test_the_command_that_is_killed(project: Project, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    flags = ["--fix", "--unsafe-fixes", "--quiet", "."]
    monkeypatch.chdir(project("fixed"))
    assert main(flags) == 0
    fixed = contents(Path.cwd())
    for at in range(POINTS):
        root = project(str(at))
        monkeypatch.chdir(root)
        if not killed(lambda: main(flags), at):
            break
        found = contents(root)
        assert all(found[path] in (OLD[path], fixed[path]) for path in OLD)
        if then == "--fix":
            assert main(flags) == 0
            assert contents(root) == fixed
        main(["undo"])
        assert contents(root) == OLD
        assert no_leftovers(root)
    assert 30 < at < POINTS - 1
