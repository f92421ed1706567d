"""A document of ours at every point where writing it may end: what was there stays whole, or the new one is."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from collected import for_every
from faults import Disk, failing, faulty, interrupt

from ldlm_lint import baseline
from ldlm_lint.autofix.write import WriteError
from ldlm_lint.commands.output import write_file
from ldlm_lint.model import Identity

POINTS = 40
OLD = {Identity("E9101", "train.py", "main", "0" * 16): 1}
NEW = {Identity("E9101", "train.py", "main", "1" * 16): count for count in range(1, 3)}
FAULTS: dict[str, Callable[[str], None]] = {
    "Ctrl-C": interrupt,
    "full disk": failing(errno.ENOSPC),
    "read-only tree": failing(errno.EROFS),
}


class Document(NamedTuple):
    """What is there before (None where nothing is), what shall be there, and what writes it."""

    before: bytes | None
    after: bytes
    write: Callable[[Path], object]


DOCUMENTS = {
    "a report": Document(None, b"{}\n" * 1000, lambda path: write_file(path.as_posix(), b"{}\n" * 1000)),
    "a report again": Document(b"[]\n", b"{}\n" * 1000, lambda path: write_file(path.as_posix(), b"{}\n" * 1000)),
    "a baseline": Document(None, baseline.render(NEW).encode(), lambda path: baseline.write(path, NEW, path.parent)),
    "a baseline again": Document(
        baseline.render(OLD).encode(),
        baseline.render(NEW).encode(),
        lambda path: baseline.write(path, NEW, path.parent),
    ),
}


def _carried_out(document: Document, path: Path, disk: Disk) -> bool:
    """Whether a document was written without anything said of the fault."""
    try:
        with faulty(disk):
            document.write(path)
    except (OSError, WriteError, KeyboardInterrupt):
        return False
    return True


@for_every("fault", FAULTS)
@for_every("kind", DOCUMENTS)
def test_a_document_is_the_old_one_or_the_new_one(kind: str, fault: str, tmp_path: Path) -> None:
    document = DOCUMENTS[kind]
    for at in range(POINTS):
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "document.json"
        if document.before is not None:
            path.write_bytes(document.before)
        disk = Disk(at, FAULTS[fault])
        done = _carried_out(document, path, disk)
        found = path.read_bytes() if path.exists() else None
        assert found == document.after if done else found in (document.before, document.after)
        assert os.listdir(folder) == ([path.name] if found is not None else [])
        if len(disk.calls) <= at:
            break
    assert 4 <= at < POINTS - 1
