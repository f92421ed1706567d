"""Limits the processor time of one piece of work, so that a hostile file cannot block the others.

The time is counted by a timer of the process, whose signal Python delivers to the main thread only. Elsewhere (Windows,
other threads, a process that uses ``SIGPROF`` itself) nothing is counted, and only the limits of size and depth apply.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

FILE_SECONDS = 10.0
"""Processor seconds for one file; the slowest files of real repositories take less than one."""
PROJECT_SECONDS = 0.02
"""Processor seconds for each file of a project that a question about all of them may take, beyond those for one."""
FRAMES = 8_000
"""Frames of Python that the questions to a linked program may take: `ldlm_lint.program.solver.DEPTH` of them, each through up to forty functions."""
_LEAST = 0.05
# Fired again until the work has ended: an exception that is raised inside of a finalizer is lost.
_AGAIN = 0.2


class OverBudgetError(Exception):
    """Work that was given up; the text says after how much time."""


class _Expired(BaseException):
    """Raised by the timer during the work; no ``except Exception`` in between may catch it."""


_armed = False


def available() -> bool:
    """Whether work of this thread can be limited."""
    return _handler() in (signal.SIG_DFL, _expire)


def _handler() -> object:
    """What the signal of the timer runs; None if this thread has no timer."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return None
    return signal.getsignal(signal.SIGPROF)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OverBudgetError if the work inside takes more processor seconds; inside limited work the outer limit
    applies."""
    global _armed
    if _armed or (handler := _handler()) not in (signal.SIG_DFL, _expire):
        yield
        return
    if handler is not _expire:
        signal.signal(signal.SIGPROF, _expire)
    try:
        try:
            _armed = True
            signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
            yield
        finally:
            _armed = False
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _Expired:
        # It may have been raised in the ``finally`` above.
        _armed = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        raise OverBudgetError(f"gave up after {seconds:.3g} s of processor time") from None


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Run work for limited work with a budget of its own; meanwhile the outer budget is paused."""
    global _armed
    if not _armed:
        yield
        return
    left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
    _armed = False
    try:
        yield
    finally:
        _armed = True
        signal.setitimer(signal.ITIMER_PROF, max(left, _LEAST), _AGAIN)


@contextlib.contextmanager
def deep() -> Iterator[None]:
    """Allow questions to a linked program the stack depth that they need; callers that ask more than a few do it
    inside.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@dataclass(slots=True)
class Clock:
    """The time limit for each question to a project; each question that exceeds the limit halves it for the following
    ones.
    """

    share: float = 1.0

    @contextlib.contextmanager
    def running(self, files: int) -> Iterator[None]:
        """Limit one question of a project of so many files; raises OverBudgetError."""
        try:
            with limited(max(self.share * (FILE_SECONDS + PROJECT_SECONDS * files), _LEAST)):
                yield
        except OverBudgetError:
            self.share /= 2
            raise


def _expire(_signal: int, _frame: object) -> None:
    if _armed:
        raise _Expired
