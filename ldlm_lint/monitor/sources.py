"""The sources of a run's records: structured files first, console logs last, each with its own series."""

from __future__ import annotations

import gzip
import os
import queue
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ldlm_lint.monitor import structured
from ldlm_lint.monitor.lines import labelled
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.records import Read

CHUNK = 1 << 18
_AHEAD = 16
"""Chunks of standard input that may wait to be judged; the program that writes waits then."""
_HEAD = 1 << 16
# Folders that hold no logs, and may be large.
_SKIPPED = frozenset((".git", "node_modules", "__pycache__", ".venv", "venv", "site-packages", ".cache", "artifacts"))
_DEPTH = 4

# The preference of a kind: machine-readable files over printed output.
KINDS = ("trainer_state", "csv", "jsonl", "tfevents", "text")
_TEXTS = (".log", ".out", ".err", ".txt")
_NAMES = ("log", "stdout", "stderr", "std.log")
_COMPRESSED = ".gz"
_GZIP = b"\x1f\x8b"
_JSON_LINES = (".jsonl", ".ndjson")
# Files of these names are settings, models and results, however they end.
_OTHERS = ("config", "params", "hparams", "tokenizer", "vocab", "requirements", "args", "readme", "license", "index")


class SourceError(Exception):
    """An unreadable source; the text names it and the reason, and what to install if that helps."""


class NoLog(SourceError):
    """There is no log at a path: no file, or a folder without any."""


class MissingExtra(SourceError):
    """A source that requires a package that is not installed; the text says how to install it."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file with records. ``kind`` is one of `KINDS`; ``name`` is the shown name, relative to the user's path."""

    path: str
    kind: str
    name: str = ""


def find(path: str) -> list[Source]:
    """The sources at a path: the file itself, or those in a folder, structured ones first.

    In a folder, JSON with the same log as another kind is included: series never mix sources. Raises NoLog if there is
    nothing at the path.
    """
    if path == "-":
        return [Source("-", "text", "stdin")]
    if os.path.isfile(path) or _is_stream(path):
        return [Source(path, kind_of(path) or "text", os.path.basename(path))]
    if not os.path.isdir(path):
        raise NoLog(f"{path}: no such file or folder")
    found = [Source(file, kind, os.path.relpath(file, path)) for file in _files(path) if (kind := kind_of(file))]
    return sorted(_newest_states(found), key=lambda one: (KINDS.index(one.kind), one.name))


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isdir(path)


def _files(root: str) -> Iterator[str]:
    base = root.rstrip(os.sep).count(os.sep)
    for folder, folders, files in os.walk(root):
        deep = folder.count(os.sep) - base >= _DEPTH
        folders[:] = [] if deep else sorted(set(folders) - _SKIPPED)
        yield from (os.path.join(folder, name) for name in sorted(files))


def _newest_states(found: list[Source]) -> list[Source]:
    """Each checkpoint contains the history up to it, so the longest one in a folder is enough."""
    states: dict[str, Source] = {}
    for one in found:
        if one.kind == "trainer_state":
            run = _run_of(one.path)
            best = states.get(run)
            if best is None or _size(one.path) > _size(best.path):
                states[run] = one
    return [one for one in found if one.kind != "trainer_state" or one in states.values()]


def _run_of(state: str) -> str:
    """The folder of the run that a trainer's state belongs to, which is saved with each checkpoint."""
    folder = os.path.dirname(state)
    return os.path.dirname(folder) if os.path.basename(folder).startswith("checkpoint-") else folder


def _newest_state(state: str) -> str:
    """The state with the longest history of the run that this one belongs to; itself where there is no other."""
    run = _run_of(state)
    try:
        folders = [run, *(one.path for one in os.scandir(run or os.curdir) if one.name.startswith("checkpoint-"))]
    except FileNotFoundError:
        return state
    beside = [os.path.join(folder, os.path.basename(state)) for folder in folders]
    return max([state, *beside], key=_size)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:  # an old checkpoint was removed meanwhile
        return -1


def identity(source: Source) -> str:
    """The identity of a growing source: the file, or the run whose checkpoints contain the history so far."""
    if source.kind == "trainer_state":
        return f"{os.path.realpath(_run_of(source.path))}:{source.kind}"
    return os.path.realpath(source.path) if source.path != "-" else "-"


def unclear(path: str) -> bool:
    """Whether an empty file's kind will be known once it has content."""
    return os.path.isfile(path) and not _size(path) and not kind_of(path)


def kind_of(path: str) -> str:
    """The kind of a file, by its name and if necessary its first bytes; empty if it is not a log."""
    name = os.path.basename(path).lower()
    if name.endswith(_COMPRESSED):
        inner = name[: -len(_COMPRESSED)]
        named_log = inner.endswith((*_TEXTS, *_JSON_LINES)) or ".log." in inner or ".out." in inner or inner in _NAMES
        return ("jsonl" if _is_json_lines(_head(path)) else "text") if named_log and not inner.startswith(_OTHERS) else ""
    if "tfevents" in name:
        return "tfevents"
    if name.endswith("trainer_state.json"):
        return "trainer_state"
    if name.startswith(_OTHERS):
        return ""
    if name.endswith(".csv"):
        return "csv" if structured.is_metrics(_head(path)) else ""
    if name.endswith(_JSON_LINES):
        return "jsonl"
    if name.endswith(".json"):
        head = _head(path)
        return "jsonl" if _is_json_lines(head) else "trainer_state" if '"log_history"' in head else ""
    if name.endswith(_TEXTS) or ".log." in name or ".out." in name or name in _NAMES:
        return "jsonl" if _is_json_lines(_head(path)) else "text"
    return ""


def _head(path: str) -> str:
    try:
        with gzip.open(path) if is_compressed(path) else open(path, "rb") as file:
            return _decoded(file.read(_HEAD))
    except (OSError, EOFError, zlib.error):
        return ""


def is_compressed(path: str) -> bool:
    """Whether a file, by its first bytes, was compressed by gzip, as logs are when they are rotated."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(2) == _GZIP
    except OSError:
        return False


def _decoded(data: bytes) -> str:
    return data.decode(_encoding(data), "replace")


def _encoding(data: bytes) -> str:
    """PowerShell redirects to UTF-16."""
    return "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"


def _is_json_lines(head: str) -> bool:
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    return bool(lines) and all(line.startswith('{"') for line in lines)


def read(
    source: Source, follow: bool = False, stop: Callable[[], bool] | None = None, poll: float = 0.5
) -> Iterator[Read | None]:
    """The lines of a source with their records, in order. Raises SourceError if it cannot be read.

    ``follow`` continues at the end until ``stop()``; it yields None if there is nothing new, checking every ``poll``
    seconds. A rotated or truncated file is read from its new beginning.
    """
    try:
        if source.kind in ("text", "jsonl"):
            yield from _lines(source, follow, stop or (lambda: False), poll)
            return
        yield from _again(source, follow, stop or (lambda: False), poll)
    except structured.MissingPackage as error:
        raise MissingExtra(f"{source.path}: {error}") from error
    except OSError as error:
        raise SourceError(f"{source.path}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise SourceError(f"{source.path}: incomplete or damaged gzip file ({error})") from error


def _again(source: Source, follow: bool, stop: Callable[[], bool], poll: float) -> Iterator[Read | None]:
    """A structured source; entries read before are skipped, since its writer appends."""
    reader = structured.READERS[source.kind](source.path)
    while follow and not stop():
        if isinstance(reader, structured.TrainerState):
            reader.path = _newest_state(reader.path)
        yield from reader.new(False)
        yield None
        time.sleep(poll)
    yield from reader.new(True)


def _lines(source: Source, follow: bool, stop: Callable[[], bool], poll: float) -> Iterator[Read | None]:
    if source.path == "-":
        import sys

        yield from _piped(sys.stdin.fileno(), poll) if follow else _stream(sys.stdin.buffer)
        return
    if is_compressed(source.path):
        with gzip.open(source.path) as file:
            yield from _stream(file)
        # It does not grow.
        while follow and not stop():
            yield None
            time.sleep(poll)
        return
    reader: LogReader | None = None
    tail = _Tail(Path(source.path))
    try:
        while True:
            for data in tail.new():
                if reader is None or tail.fresh:
                    yield from reader.close() if reader else ()
                    reader, tail.fresh = LogReader(labelled(_decoded(data[:_HEAD]))), False
                yield from reader.read(tail.decode(data))
            if not follow or stop():
                break
            yield None
            time.sleep(poll)
        yield from reader.close() if reader else ()
    finally:
        tail.close()


def _stream(file: object) -> Iterator[Read]:
    reader: LogReader | None = None
    while data := file.read1(CHUNK):  # type: ignore[attr-defined]
        reader = reader or LogReader(labelled(_decoded(data)))
        yield from reader.read(data)
    yield from reader.close() if reader else ()


def _piped(descriptor: int, poll: float) -> Iterator[Read | None]:
    """Standard input as it comes: a thread waits for it, so that earlier lines are judged and shown meanwhile."""
    chunks: queue.Queue[bytes] = queue.Queue(_AHEAD)

    def pump() -> None:
        # Read without Python's buffer, whose lock a waiting thread would still hold when the program ends.
        while data := os.read(descriptor, CHUNK):
            chunks.put(data)
        chunks.put(b"")

    threading.Thread(target=pump, daemon=True).start()
    reader: LogReader | None = None
    while True:
        try:
            data = chunks.get_nowait()
        except queue.Empty:
            yield None
            time.sleep(poll)
            continue
        if not data:
            break
        reader = reader or LogReader(labelled(_decoded(data[:_HEAD])))
        yield from reader.read(data)
    yield from reader.close() if reader else ()


class _Tail:
    """The bytes that are appended to a file, through rotation (another file of the name) and truncation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self.fresh = True
        self._read = 0
        self._utf16 = ""

    def new(self) -> Iterator[bytes]:
        """The unread bytes; ``fresh`` is set at the beginning of another log."""
        while True:
            while data := self._file.read(CHUNK):
                self._read += len(data)
                yield data
            if not self._begins_anew():
                return

    def decode(self, data: bytes) -> bytes | str:
        """UTF-8 is left to the reader, which handles characters split between chunks; UTF-16 is decoded."""
        if self._read == len(data):
            self._utf16 = "utf-16-be" if data[:2] == b"\xfe\xff" else "utf-16-le" if data[:2] == b"\xff\xfe" else ""
        return data.decode(self._utf16, "replace").lstrip("\ufeff") if self._utf16 else data

    def _begins_anew(self) -> bool:
        """Whether another log has the name now, which is opened, or the log was truncated.

        While the name belongs to nothing that can be read, the old log stays, since the next one may come later; the
        silence is reported. A pipe or device in its place is not opened: reading it may never end.
        """
        try:
            now, mine = os.stat(self._path), os.fstat(self._file.fileno())
            if (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino):
                if now.st_size >= self._read:
                    return False
                self._file.seek(0)
            elif stat.S_ISREG(now.st_mode):
                other = self._path.open("rb")
                self._file.close()
                self._file = other
            else:
                return False
        except OSError:
            return False
        self.fresh, self._read = True, 0
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
