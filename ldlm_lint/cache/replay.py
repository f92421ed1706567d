"""Replays a whole run (output and exit code) while all its inputs are unchanged.

It determines the time of a run without changes, so it imports as little as possible.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence

from ldlm_lint.cache import place
from ldlm_lint.cache.index import Index
from ldlm_lint.cache.memo import Memo
from ldlm_lint.cache.stamp import key_of

TYPE_CHECKING = False  # as `typing` has it, which this module does without
if TYPE_CHECKING:
    from typing import TextIO

OFF = "--no-cache"
_COMMAND = "check"
VARIABLES = (
    *("NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "COLUMNS", "LINES", "PYTHONIOENCODING", "LANG", "LC_ALL"),
    *("GITHUB_WORKSPACE", "CI_PROJECT_DIR"),
)
"""What a report reads in the environment."""
_in_vain: dict[str, tuple[str, ...]] = {}


def key(argv: Sequence[str]) -> str:
    """The name of a check with these arguments, here and now, shown where this process shows it; raises OSError."""
    words = argv[1:] if list(argv[:1]) == [_COMMAND] else argv
    shown = [_terminal(stream) for stream in (sys.stdout, sys.stderr)]
    environment = [f"{name}={os.environ.get(name)}" for name in VARIABLES]
    return key_of("run", os.getcwd(), *shown, *environment, *words)


def _terminal(stream: TextIO | None) -> str:
    """The terminal state that output depends on: whether it goes to a terminal, and how wide that is."""
    try:
        return str(os.get_terminal_size(stream.fileno())) if stream is not None and stream.isatty() else ""
    except (OSError, ValueError):
        return "terminal"


def replayed(argv: Sequence[str]) -> int | None:
    """Print the recorded output of a check with these arguments and return its exit code; None if the check has to
    run.
    """
    if OFF in argv or tuple(argv) == _in_vain.pop("argv", None):
        return None
    folder = place.directory()
    if not place.is_ours(folder):
        return None
    try:
        memo = Memo.read(os.path.join(folder, "runs", f"{key(argv)}.run"))
    except OSError:
        return None
    if memo is None:
        return None
    # Only its name comes from the entry; files are written only here.
    index = Index(os.path.join(folder, "index", os.path.basename(memo.index)))
    holds = index.holds(memo.inputs)
    index.save()
    if not holds:
        return None
    return _show(memo.value)


def replayed_early(argv: Sequence[str]) -> int | None:
    """Like `replayed`, before the program is loaded; the later attempt is then skipped."""
    code = replayed(argv)
    if code is None:
        _in_vain["argv"] = tuple(argv)
    return code


def _show(value: bytes) -> int | None:
    try:
        run = json.loads(value)
        output, notes, code = str(run["output"]), str(run["notes"]), int(run["code"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout.write(output)
    sys.stdout.flush()
    sys.stderr.write(notes)
    return code


class Listener(io.TextIOBase):
    """A stream that passes everything on and records it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._heard: list[str] = []

    @property
    def heard(self) -> str:
        """The written text."""
        return "".join(self._heard)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self._stream.encoding

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write and record."""
        self._heard.append(text)
        return self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def close(self) -> None:
        """Do not close the stream: Python closes it at garbage collection, and an error of that flush would be lost."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream."""
        return self._stream.fileno()


def recorded(output: str, notes: str, code: int) -> bytes:
    """A run as a result to store."""
    return json.dumps({"output": output, "notes": notes, "code": code}).encode()
