"""Evidence on disk: one JSON file per process, written completely or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

from ldlm_lint.evidence.model import Evidence, EvidenceError, from_json, plain, to_json

PATTERN = "evidence-*.json"
# The file that is being written.
PARTS = ".evidence-*.json.part"
MOST_BYTES = 64_000_000


def name_of(evidence: Evidence) -> str:
    """The file's name: ``evidence-rank0-4711.json``, or ``evidence-micro-4711.json`` for an experiment."""
    run = evidence.run
    return f"evidence-{f'rank{run.rank}' if run.kind == 'watch' else run.kind}-{run.pid}.json"


def write(evidence: Evidence, folder: Path, name: str = "", *, compact: bool = False) -> Path:
    """Write one file into a folder (made if missing), atomically, and return its path; raises OSError.

    ``name`` is for a process that leaves more than one file; it must match `PATTERN`. ``compact`` is for evidence that
    is soon written again: one line, in a fraction of the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or name_of(evidence))
    part = path.with_name(f".{path.name}.part")
    # NaN and infinities are values here (a loss, a norm); they are written the way Python reads them.
    text = _compact(evidence) if compact else json.dumps(to_json(evidence), indent=1)
    part.write_text(text + "\n", encoding="utf-8")
    os.replace(part, path)
    return path


def _compact(evidence: Evidence) -> str:
    """One line; observations are plain values but for a few, and are not copied."""
    head = to_json(dataclasses.replace(evidence, observations={}))
    try:
        return json.dumps({**head, "observations": evidence.observations}, default=plain)
    except TypeError:  # a key that is not a plain value
        return json.dumps(to_json(evidence))


def read(place: Path) -> list[Evidence]:
    """The evidence of a file, or of all evidence files of a folder, in the order of run and rank.

    Raises EvidenceError, naming the file, for a missing or too large file, or one that is not evidence.
    """
    return _in_order([_read(path) for path in _paths(place)])


def gather(places: Iterable[Path]) -> tuple[list[Evidence], list[str]]:
    """The evidence of several files or folders, each file once, and sentences about files that are not evidence.

    Raises EvidenceError for a folder without evidence, and if no file can be read.
    """
    paths = {path.resolve(): path for place in places for path in _paths(place)}
    found: list[Evidence] = []
    faults: list[str] = []
    for path in paths.values():
        try:
            found.append(_read(path))
        except EvidenceError as error:
            faults.append(str(error))
    if not found:
        raise EvidenceError("; ".join(faults))
    return _in_order(found), faults


def _paths(place: Path) -> list[Path]:
    paths = sorted(place.glob(PATTERN)) if place.is_dir() else [place]
    if not paths:
        raise EvidenceError(f"{place}: no evidence here (no {PATTERN})")
    return paths


def _in_order(evidence: Collection[Evidence]) -> list[Evidence]:
    """The runs by their beginning, the ranks of each in order: rank 1 may have begun a second before rank 0."""
    begun: dict[str, str] = {}
    for one in evidence:
        begun[one.run.run_id] = min(one.run.started, begun.get(one.run.run_id, one.run.started))
    return sorted(evidence, key=lambda one: (begun[one.run.run_id], one.run.run_id, one.run.rank, one.run.pid))


def _read(path: Path) -> Evidence:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise EvidenceError(f"{path}: not a regular file")
        if status.st_size > MOST_BYTES:
            raise EvidenceError(f"{path}: larger than {MOST_BYTES} bytes")
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: not JSON ({error})") from error
    except EvidenceError as error:
        raise EvidenceError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error
