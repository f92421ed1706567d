"""What lies on a disk beside the code (evidence, a baseline, the journal, the cache) and may come from anybody: odd values end in words."""

from __future__ import annotations

import copy
import json
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import Enter, Run
from dossiers import LOADER, REFUTED, TRAIN, UNUSED, VERIFIED, WRAP, judged, site, written

from ldlm_lint import baseline
from ldlm_lint.autofix.runs import RunError, parse
from ldlm_lint.cache import stored
from ldlm_lint.evidence.model import EvidenceError, from_json
from ldlm_lint.tomlfile import ConfigError

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
ODD: tuple[object, ...] = (
    *(None, True, -1, 0, 1.5, 10**400, float("inf"), float("nan"), "", "x", "\ud800", "\x1b[31m\n", "../../../etc/passwd"),
    *("/dev/zero", "9" * 5000, [], {}, [[]], [None], {"a": None}),
)
LONG = (b"", b"\xff", b"\0", b"[" * 100_000, b'{"schema":' * 50_000, b"9" * 10_000)


def places(value: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a document stand; of a list the first two."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*at, key))


def mutants(document: Any) -> Iterator[Any]:
    """The document with one value taken out, or an odd one in its place."""
    for at in places(document):
        for odd in (*ODD, places):
            changed = [copy.deepcopy(document)]
            inner: Any = changed
            for key in (0, *at)[:-1]:
                inner = inner[key]
            last = (0, *at)[-1]
            if odd is not places:
                inner[last] = odd
            elif at:
                del inner[last]
            yield changed[0]


def test_evidence(tmp_path: Path, enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "train.py": TRAIN})
    places_ = [site(root / "train.py", line, root) for line in (WRAP, LOADER)]
    (file,) = written(tmp_path / "e", root, judged(UNUSED, VERIFIED, places_[:1]), judged(UNUSED, REFUTED, places_[1:])).iterdir()
    document = json.loads(file.read_text())
    accepted = []
    for mutant in mutants(document):
        try:
            from_json(mutant)
            accepted.append(mutant)
        except EvidenceError:
            pass
    assert len(accepted) > 100
    for mutant in accepted[::40]:
        file.write_text(json.dumps(mutant))
        code, out, err = run("check", "--no-cache", "--evidence", file)
        assert code == 1 and "\x1b" not in out + err and "report this" not in err


def test_baselines(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "run.sh": BEAT})
    assert run("baseline")[0] == 0
    file = root / ".ldlm-lint-baseline.json"
    refused = 0
    for data in (*LONG, *(json.dumps(one).encode() for one in mutants(json.loads(file.read_text())))):
        file.write_bytes(data)
        try:
            baseline.read(file)
        except ConfigError:
            refused += 1
    assert refused > 100
    for data in LONG:
        file.write_bytes(data)
        code, out, err = run("check", "--no-cache")
        assert (code, out) == (2, "") and ".ldlm-lint-baseline.json" in err


def test_journals(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "run.sh": BEAT})
    assert run("check", "--fix", "--unsafe-fixes", "--no-cache")[0] == 0
    (folder,) = (root / ".ldlm-lint" / "runs").iterdir()
    file, fixed = folder / "journal.json", (root / "run.sh").read_bytes()
    accepted = []
    for mutant in mutants(json.loads(file.read_text())):
        try:
            parse(json.dumps(mutant).encode(), folder.name)
            accepted.append(mutant)
        except RunError:
            pass
    for data in (*LONG, *(json.dumps(one).encode() for one in accepted if one["files"] and one["files"][0]["path"] != "run.sh")):
        file.write_bytes(data)
        code, _, err = run("undo")
        assert code in (2, 3) and "report this" not in err
        assert (root / "run.sh").read_bytes() == fixed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and links of POSIX systems")
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "nothing"])
@pytest.mark.parametrize("name", ["journal.json", "0.before", "state", "../../lock", "../../runs"])
def test_what_is_no_file_of_a_journal(name: str, kind: str, enter: Enter, run: Run, tmp_path: Path) -> None:
    root = enter({"pyproject.toml": "", "run.sh": BEAT})
    run("check", "--fix", "--unsafe-fixes", "--no-cache")
    (folder,) = (root / ".ldlm-lint" / "runs").iterdir()
    place = Path(os.path.normpath(folder / name))
    place.rename(tmp_path / "aside")
    {"pipe": os.mkfifo, "link": lambda one: one.symlink_to("/etc/passwd"), "folder": Path.mkdir, "nothing": lambda _: None}[kind](place)
    before = Path("/etc/passwd").read_bytes()
    for words in (["undo", "--list"], ["check", "--no-cache"], ["check", "--fix", "--no-cache"], ["undo"]):
        code, _, err = run(*words)
        assert code in (0, 1, 2, 3) and "report this" not in err
    assert Path("/etc/passwd").read_bytes() == before


def test_a_cache_that_somebody_tampered_with(enter: Enter, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = enter({"p/pyproject.toml": "", "p/run.sh": BEAT, "p/a.py": TRAIN})
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    # Its files have been left alone for long, so that the index is believed.
    monkeypatch.setattr("ldlm_lint.cache.index.MARGIN_NS", -(10**18))
    shown = run("check", "p", "--format", "concise")
    entries = {one: one.read_bytes() for one in (tmp_path / "cache").rglob("*.index")}
    assert entries and run("check", "p", "--format", "concise") == shown
    tried = 0
    for place, data in entries.items():
        for mutant in mutants(json.loads(zlib.decompress(data[stored._HEAD :]))):
            if tried % 7 == 0:
                stored.write(str(place), (zlib.compress(json.dumps(mutant).encode()),))
                assert run("check", "p", "--format", "concise") == shown
            tried += 1
    assert tried > 100 and root.exists()


@pytest.mark.parametrize("value", [b"[" * 100_000, b"{}", b"null", b'{"output": "", "notes": "", "code": Infinity}', b'{"output": 1, "notes": [], "code": {}}'])
def test_an_answer_that_is_none(value: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    from ldlm_lint.cache.replay import _show

    assert _show(value) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="a device that is always full")
@pytest.mark.parametrize("words", [["check", "--format", "json"], ["check"], ["check", "--diff", "--unsafe-fixes"], ["rules"], ["graph"]])
def test_a_full_disk_behind_stdout(words: list[str], enter: Enter, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ldlm_lint.cli import main

    enter({"pyproject.toml": "", "run.sh": BEAT, "train.py": TRAIN})
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = main(words)
    assert (code, capsys.readouterr().err) == (3, "ldlm-lint: error: the output cannot be written: No space left on device\n")
