"""The server's end of the pipe to the linting process: starts it, sends requests, and restarts it when it dies or
hangs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ldlm_lint

# The time limit for one buffer, in seconds; a longer lint counts as hung.
LONGEST = 60.0
# An answer is one line, which is long for a file with thousands of findings.
_LONGEST_LINE = 256 * 1024 * 1024
# Not -m, which would put the working directory, an untrusted repository, before the standard library.
_PROGRAM = (
    "import sys; sys.path[:] = [one for one in sys.path if one]; sys.path.append(sys.argv[1]);"
    "from ldlm_lint.server.worker import main; main()"
)

Message = dict[str, Any]


class LinkError(Exception):
    """The linting process gave no answer; the text says why."""


class DiedError(LinkError):
    """The linting process ended before it answered, of this request or of something else."""


class UsageAnswer(Exception):
    """The configuration is unusable; the text says why, ``faults`` where: values with ``path``, ``line`` and
    ``message``."""

    def __init__(self, message: str, faults: Sequence[Message] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class _Child:
    """One linting process, and the pending requests."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.waiting: dict[int, asyncio.Future[Message]] = {}
        self.reading = asyncio.create_task(self._read())

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and not self.reading.done()

    def write(self, message: Message) -> None:
        assert self.process.stdin is not None
        # That it has died is noticed by the reader.
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(json.dumps(message).encode("ascii") + b"\n")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ConnectionError):
            while line := await self.process.stdout.readline():
                answer = json.loads(line)
                future = self.waiting.get(answer["id"])
                if future is not None and not future.done():
                    future.set_result(answer)
        code = await self.process.wait()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(DiedError(f"the linting process ended with code {code}"))


class Link:
    """The linting process, started on demand; ``greeting`` makes the first messages for a new process."""

    def __init__(self, greeting: Callable[[], Iterable[Message]]) -> None:
        self._greeting = greeting
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._closed = False

    async def start(self) -> _Child:
        """The process, started unless it runs; raises LinkError if it cannot be."""
        async with self._starting:
            if self._closed:
                raise LinkError("the server is shutting down")
            if self._child is None or not self._child.alive:
                self._child = _Child(await self._spawned())
                for message in self._greeting():
                    self._child.write(message)
            return self._child

    def tell(self, **message: object) -> None:
        """Send a message without an answer; a process that is not running yet gets it with the greeting."""
        if self._child is not None and self._child.alive:
            self._child.write(message)

    async def ask(self, **message: object) -> Any:
        """The result of a request; raises LinkError, or UsageAnswer for a configuration that cannot be used."""
        child = await self.start()
        number = next(self._numbers)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        child.waiting[number] = future
        child.write({"id": number, **message})
        try:
            answer = await asyncio.wait_for(future, LONGEST)
        except asyncio.TimeoutError as error:
            child.kill()
            await asyncio.wait([child.reading])
            raise LinkError(f"no answer after {LONGEST:.0f} s") from error
        finally:
            child.waiting.pop(number, None)
        if "usage" in answer:
            raise UsageAnswer(answer["usage"], answer["faults"])
        if "error" in answer:
            raise LinkError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        if self._child is not None:
            self._child.kill()

    @staticmethod
    async def _spawned() -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _PROGRAM, str(Path(ldlm_lint.__file__).parent.parent)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )
        except OSError as error:
            raise LinkError(f"the linting process cannot be started: {error}") from error
