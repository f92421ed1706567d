"""SIGTERM in a watched process: the observations are written first, then the process dies of the signal as usual.

Launchers end the other ranks with it when one fails. These may be blocked in a collective, where no Python code of the
main thread runs, so a thread waits at the descriptor that the interpreter's own signal handler writes to.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

# Seconds for the main thread to handle the signal before the waiting thread acts.
PATIENCE = 2.0


class Termination:
    """Has ``write`` called when the process is terminated, unless the program handles the signal itself."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._seen = threading.Event()
        self._leave = os._exit

    def install(self) -> None:
        """Install the handler if there is none; only the main thread of the interpreter can."""
        if threading.current_thread() is not threading.main_thread() or not hasattr(os, "register_at_fork"):
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if before != -1:
            # The program waits there itself; without the thread a blocked process would not die.
            signal.set_wakeup_fd(before)
            os.close(reading)
            os.close(writing)
            return
        signal.signal(signal.SIGTERM, self._handle)
        threading.Thread(target=self._wait, args=(reading,), name="ldlm-probe-sigterm", daemon=True).start()

    def _ours(self) -> bool:
        return signal.getsignal(signal.SIGTERM) == self._handle

    def forked(self) -> None:
        """A forked child dies immediately: the thread and the descriptor belong to its parent."""
        if self._ours():
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._seen.set()
        self._write()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self, reading: int) -> None:
        while True:
            if signal.SIGTERM in os.read(reading, 1) and self._ours() and not self._seen.wait(PATIENCE):
                self._write()
                self._leave(128 + signal.SIGTERM)
