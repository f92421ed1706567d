"""Lints files in several processes: same results in the same order; a process that dies loses one file only."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ldlm_lint.config import Configured
from ldlm_lint.linting import Overlay, internal_error, lint_file
from ldlm_lint.model import FileResult, Span
from ldlm_lint.processors import File, forks, size_of
from ldlm_lint.projects import Projects

_CHUNKS_EACH = 8
_DIED = "two processes died while linting it"


class WorkerError(Exception):
    """A process that ended in the middle of a file: killed, out of memory, or crashed in a library."""


def linted(
    files: Sequence[File], configured: Configured, overlay: Overlay, projects: Projects, count: int
) -> Iterator[FileResult]:
    """The results of files, in order, from ``count`` processes.

    If one dies, a single new process does the remaining files one by one: if it dies too, that file gets a finding that
    says so, and the rest goes to another process. Ctrl-C ends all processes.
    """
    if _can_fork():
        projects.warm()
    chunks = _chunks(files, count * _CHUNKS_EACH)
    done: list[list[FileResult] | None] = [None] * len(chunks)
    with _pool(configured, overlay, projects, count) as pool:
        futures = [pool.submit(_lint, chunk) for chunk in chunks]
        for place, future in enumerate(futures):
            try:
                done[place] = future.result()
            except BrokenProcessPool:
                continue
            if None not in done[: place + 1]:
                yield from done[place] or ()
                done[place] = []
    yield from _one_by_one(zip(chunks, done, strict=True), configured, overlay, projects)


def _one_by_one(
    chunks: Iterable[tuple[list[File], list[FileResult] | None]], configured: Configured, overlay: Overlay, projects: Projects
) -> Iterator[FileResult]:
    """The existing results, and those of the other files from one process at a time."""
    waiting: deque[tuple[File, FileResult | None]] = deque()
    for chunk, results in chunks:
        if results is None:
            waiting.extend((file, None) for file in chunk)
        else:
            # Results that were passed on already are not kept.
            waiting.extend(zip(chunk, results, strict=False))
    while waiting:
        with _pool(configured, overlay, projects, 1) as pool:
            yield from _until_death(waiting, pool)


def _until_death(waiting: deque[tuple[File, FileResult | None]], pool: ProcessPoolExecutor) -> Iterator[FileResult]:
    while waiting:
        file, result = waiting.popleft()
        if result is not None:
            yield result
            continue
        try:
            yield pool.submit(_lint, [file]).result()[0]
        except BrokenProcessPool as broken:
            name, error = file[0].as_posix(), WorkerError(_DIED).with_traceback(broken.__traceback__)
            yield FileResult(name, (internal_error(Span(name, 0, 0), error),))
            return


def _can_fork() -> bool:
    """Whether this process may be forked: no other thread may hold a lock."""
    return forks() and threading.active_count() == 1


@contextlib.contextmanager
def _pool(configured: Configured, overlay: Overlay, projects: Projects, count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are ended when they are not needed any more, in the midst of a file too."""
    context = multiprocessing.get_context("fork" if _can_fork() else "spawn")
    pool = ProcessPoolExecutor(count, context, _begin, (configured, dict(overlay), projects))
    try:
        yield pool
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)


_work: tuple[Configured, Overlay, Projects] | None = None


def _begin(configured: Configured, overlay: Overlay, projects: Projects) -> None:
    """Prepare a worker process; its parent handles Ctrl-C."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work = configured, overlay, projects


def _lint(chunk: Sequence[File]) -> list[FileResult]:
    assert _work is not None
    configured, overlay, projects = _work
    wants = projects.wants_table
    return [_small(lint_file(path, kind, configured.of(path.as_posix()), overlay, {}, wants)) for path, kind in chunk]


def _small(result: FileResult) -> FileResult:
    """A result in a smaller form for another process."""
    if result.table is None:
        return result
    from ldlm_lint.project.tables import small

    return result._replace(table=small(result.table))


def _chunks(files: Sequence[File], count: int) -> list[list[File]]:
    """The files in their order, in about as many parts of about as many bytes."""
    sizes = [size_of(file) + 1 for file in files]
    most = sum(sizes) / count
    chunks: list[list[File]] = []
    taken = most
    for file, size in zip(files, sizes, strict=True):
        if taken >= most:
            chunks.append([])
            taken = 0
        chunks[-1].append(file)
        taken += size
    return chunks
