"""Schedules lints: one buffer at a time, not while the user types, the last touched buffer first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable


class Schedule:
    """Jobs by key; each runs when its delay has passed without another touch."""

    def __init__(self, job: Callable[[str], Awaitable[None]]) -> None:
        self._job = job
        self._due: dict[str, float] = {}
        self._running = ""
        self._changed = asyncio.Event()
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    def touch(self, key: str, delay: float, *, later: bool = False) -> None:
        """Run the job of a key ``delay`` seconds from now; with ``later`` unless it is planned already."""
        if later and key in self._due:
            return
        self._due.pop(key, None)
        # The end of the dictionary is what was touched last.
        self._due[key] = asyncio.get_running_loop().time() + delay
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def forget(self, key: str) -> None:
        """Cancel the job of a key."""
        self._due.pop(key, None)
        self._settle(key)

    async def settled(self, key: str) -> None:
        """Wait until no job is planned or running for a key."""
        if key in self._due or key == self._running:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(key, []).append(future)
            await future

    def close(self) -> None:
        """Stop running jobs."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            key = next((one for one in reversed(self._due) if self._due[one] <= now), None)
            if key is None:
                await self._wait(min(self._due.values(), default=None), now)
                continue
            del self._due[key]
            self._running = key
            try:
                await self._job(key)
            finally:
                self._running = ""
                if key not in self._due:
                    self._settle(key)

    async def _wait(self, until: float | None, now: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), None if until is None else until - now)
        self._changed.clear()

    def _settle(self, key: str) -> None:
        for future in self._waiters.pop(key, ()):
            if not future.done():
                future.set_result(None)
