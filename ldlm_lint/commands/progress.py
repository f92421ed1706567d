"""A progress bar on stderr while files are linted, on terminals only."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

    from ldlm_lint.model import Report

DELAY = 1.0
"""Seconds that a run may take without being asked how long it will be."""
_PAUSE = 0.1
"""Seconds between two drawings."""
Told = Callable[[int, int], None]


@contextlib.contextmanager
def bar(*, quiet: bool, stream: TextIO | None = None) -> Iterator[Told | None]:
    """The callback for the number of finished files and of all files; None without a terminal.

    The bar appears after `DELAY` seconds and is erased at the end, also by Ctrl-C.
    """
    # Not `sys.stderr`, which may be recorded: a bar is not part of a run's output.
    stream = sys.__stderr__ if stream is None else stream
    if quiet or stream is None or not stream.isatty() or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        yield None
        return
    drawn = _Bar(stream)
    try:
        yield drawn.tell
    finally:
        drawn.close()


def watched(*, quiet: bool) -> Callable[..., Report]:
    """`ldlm_lint.engine.run` under a bar; each run has its own, so that nothing is drawn between runs."""

    def run(*arguments: Any, **options: Any) -> Report:
        from ldlm_lint import engine

        with bar(quiet=quiet) as progress:
            return engine.run(*arguments, progress=progress, **options)

    return run


class _Bar:
    """A bar created on demand; it draws only when it is called, since no thread may exist during a fork."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._due = time.monotonic() + DELAY
        self._progress: Progress | None = None

    def tell(self, done: int, total: int) -> None:
        """Draw, unless it is too early or too soon."""
        now = time.monotonic()
        if now < self._due and (done < total or self._progress is None):
            return
        self._due = now + _PAUSE
        if self._progress is None:
            self._progress = _made(self._stream, total)
        self._progress.update(self._progress.task_ids[0], completed=done, total=total)
        self._progress.refresh()

    def close(self) -> None:
        """Wipe the bar away."""
        if self._progress is not None:
            self._progress.stop()


def _made(stream: TextIO, total: int) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ldlm_lint.report.console import console_of

    made = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console_of(stream),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    made.add_task("checking", total=total)
    made.start()
    return made
