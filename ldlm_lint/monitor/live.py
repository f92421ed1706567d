"""Following logs as they grow: the sources are read in turn, alarms are shown immediately, until the user stops."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from ldlm_lint.monitor import sources
from ldlm_lint.monitor.alarms import KINDS, Alarm, Level
from ldlm_lint.monitor.arrivals import Arrivals
from ldlm_lint.monitor.detectors.order import seconds
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.now import Now
from ldlm_lint.monitor.progress import LOOKED_AT, Progress
from ldlm_lint.monitor.records import Read
from ldlm_lint.monitor.report import place, told
from ldlm_lint.monitor.view import GpuWatch, local_gpus, view

if TYPE_CHECKING:
    from ldlm_lint.monitor.serving import Board

INTERVAL = 1.0
"""Seconds between two looks at logs that had nothing new, and between two drawings of the view."""
MOST_LINES = 20_000
"""Lines that are taken from one source before the next one has its turn."""


class Quiet:
    """Silence of all sources together by the wall clock: 10 times the usual gap between news, 3 times the longest."""

    FACTOR, OVER, FEWEST = 10.0, 3.0, 5

    def __init__(self, least: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.least, self.clock = least, clock
        self.last = clock()
        self.begun = False
        self.gaps: list[float] = []
        self.told = False

    def news(self) -> None:
        """New lines were read. The time until the first line does not count as a gap."""
        now = self.clock()
        if self.begun:
            self.gaps = [*self.gaps[-99:], now - self.last]
        self.last, self.told, self.begun = now, False, True

    def silence(self) -> tuple[float, float] | None:
        """The seconds without news and the limit, the first time the limit is passed."""
        if self.told or len(self.gaps) < self.FEWEST:
            return None
        usual = sorted(self.gaps)[len(self.gaps) // 2]
        limit = max(self.least, self.FACTOR * usual, self.OVER * max(self.gaps))
        gone = self.clock() - self.last
        if gone <= limit:
            return None
        self.told = True
        return gone, limit

    @property
    def lasting(self) -> float | None:
        """The seconds without news while they are beyond the limit, in whole minutes; else None."""
        return (self.clock() - self.last) // 60 * 60 or self.clock() - self.last if self.told else None


def follow(
    health: Health,
    found: Sequence[sources.Source],
    stream: TextIO,
    *,
    least_silence: float,
    stop: Callable[[], bool] = lambda: False,
    poll: float = INTERVAL,
    arrivals: Arrivals | None = None,
    gpus: GpuWatch | None = None,
    board: Board | None = None,
) -> dict[str, Progress]:
    """Follow the sources until ``stop()`` or Ctrl-C; a terminal gets a live view, anything else a line per alarm.

    ``arrivals`` says which sources come later; ``gpus`` is for viewers (None: those that NVML shows). ``board`` shows
    the run to browsers, also after the logs have ended, until Ctrl-C. Returns how far each source is.
    """
    logs = _Logs(health, found, arrivals, Quiet(least_silence), stop)
    told: set[int] = set()
    gpus = gpus or local_gpus()
    # Ctrl-C is how a user ends it: the report follows.
    with contextlib.suppress(KeyboardInterrupt), _screen(stream, gpus) as screen:
        due = 0.0
        while (going_on := logs.going_on()) or (board is not None and not stop()):
            news = logs.turn()
            health.poll()
            if screen is None:
                logs.say_waiting()
                _tell(health, told, stream)
            elif not news or time.monotonic() >= due:
                screen.draw(health, logs, board.address if board is not None else "")
                due = time.monotonic() + poll
            if board is not None:
                board.offer(health, logs.now(gpus, ended=not going_on))
            if not news:
                board.rest(poll) if board is not None else time.sleep(poll)
    return logs.progress


class _Logs:
    """The sources that are read in turns, and those that are waited for."""

    def __init__(
        self,
        health: Health,
        found: Sequence[sources.Source],
        arrivals: Arrivals | None,
        quiet: Quiet,
        stop: Callable[[], bool],
    ) -> None:
        self.health, self.arrivals, self.quiet, self.stop = health, arrivals, quiet, stop
        self.reading: dict[str, Iterator[Read | None]] = {}
        self.progress: dict[str, Progress] = {}
        self._said: set[str] = set()
        self._add(found)

    @property
    def waiting(self) -> list[str]:
        """The paths without a log so far."""
        return list(self.arrivals.waiting) if self.arrivals else []

    def going_on(self) -> bool:
        """Whether a source is being read or may still appear."""
        return bool(self.reading) or (self.arrivals is not None and not self.arrivals.finished and not self.stop())

    def turn(self) -> bool:
        """Read new lines of each source; returns whether there were any."""
        if self.arrivals is not None:
            self._add(self.arrivals.look(follow=True))
        news = [self._read(name, source) for name, source in list(self.reading.items())]
        if any(news):
            self.quiet.news()
        self._silent()
        return any(news)

    def now(self, gpus: GpuWatch, ended: bool) -> Now:
        """The state of the run for viewers, besides its health."""
        heard = [one.heard for one in self.progress.values() if one.heard is not None]
        return Now(
            dict(self.progress), tuple(self.waiting), gpus.now, max(heard, default=None), self.quiet.lasting, ended
        )

    def say_waiting(self) -> None:
        """Report once for each missing path that the monitor waits for it; not among the alarms, which a program may
        parse."""
        for path in self.waiting:
            if path not in self._said:
                self._said.add(path)
                print(f"waiting for {path}", file=sys.stderr, flush=True)

    def _add(self, found: Sequence[sources.Source]) -> None:
        for one in found:
            self.reading[one.name] = sources.read(one, follow=True, stop=self.stop, poll=0)
            self.progress.setdefault(one.name, Progress(one))

    def _read(self, name: str, source: Iterator[Read | None]) -> bool:
        newest: deque[Read] = deque(maxlen=LOOKED_AT)
        caught_up = False
        for _ in range(MOST_LINES):
            try:
                read = next(source)
            except StopIteration:
                del self.reading[name]
                break
            except sources.SourceError as error:
                self._failed(name, error)
                break
            if read is None:
                caught_up = True
                break
            self.health.take(name, *read)
            newest.append(read)
        if newest:
            self.progress[name].take(newest, caught_up)
        return bool(newest)

    def _failed(self, name: str, error: sources.SourceError) -> None:
        del self.reading[name]
        gone = self.progress[name].source
        if self.arrivals is not None and not os.path.exists(gone.path):
            self.arrivals.forget(gone)
            return
        if not self.reading and not self.waiting:
            raise error
        print(f"warning: {error}", file=sys.stderr)

    def _silent(self) -> None:
        gone = self.quiet.silence()
        if gone is None:
            return
        source = next(iter(self.health.sources))
        text = f"no new line for {seconds(gone[0])}; the gaps so far make {seconds(gone[1])} the limit"
        line = self.health.sources[source].lines
        level = KINDS["silence"].level
        alarm = Alarm("silence", level, source, text, line, series="clock", numbers={"seconds": gone[0]})
        self.health.book.add(alarm, int(self.quiet.last))


class _Screen:
    """The live view of a terminal."""

    def __init__(self, live: Any, console: Any, gpus: GpuWatch) -> None:
        self._live, self._console, self._gpus = live, console, gpus

    def draw(self, health: Health, logs: _Logs, address: str) -> None:
        """Draw it again."""
        width, height = self._console.size
        made = view(health, logs.progress, logs.waiting, self._gpus.now, width, height, address)
        self._live.update(made, refresh=True)


@contextlib.contextmanager
def _live(console: Any, gpus: GpuWatch) -> Iterator[_Screen]:
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _Screen(live, console, gpus)


def _screen(stream: TextIO, gpus: GpuWatch) -> AbstractContextManager[_Screen | None]:
    """A live view if the stream is a terminal, else None."""
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    return _live(console, gpus) if console.is_terminal else nullcontext()


def _tell(health: Health, told_: set[int], stream: TextIO) -> None:
    for alarm in health.book.alarms:
        if id(alarm) not in told_ and alarm.level > Level.INFO:
            told_.add(id(alarm))
            print(f"{alarm.level.word} {alarm.kind}  {place(alarm)}: {next(told(alarm))}", file=stream, flush=True)
