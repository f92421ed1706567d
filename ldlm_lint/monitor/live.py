"""Following logs as they grow: the sources are read in turns, alarms are shown as they come, until the user stops."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

from ldlm_lint.monitor import sources
from ldlm_lint.monitor.alarms import KINDS, Alarm, Level
from ldlm_lint.monitor.detectors.order import seconds
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.records import Read
from ldlm_lint.monitor.report import figure, place, shown, told
from ldlm_lint.report.cells import clean

POLL = 0.5
REFRESH = 2.0
MOST_LINES = 20_000
"""Lines that are taken from one source before the next one has its turn."""
ROWS, ALARMS = 12, 6


class Quiet:
    """Silence of all sources together by the wall clock: 10 times the usual gap between news, 3 times the longest."""

    FACTOR, OVER, FEWEST = 10.0, 3.0, 5

    def __init__(self, least: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.least, self.clock = least, clock
        self.last = clock()
        self.gaps: list[float] = []
        self.told = False

    def news(self) -> None:
        """Something was read."""
        now = self.clock()
        self.gaps = [*self.gaps[-99:], now - self.last]
        self.last, self.told = now, False

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


def follow(
    health: Health,
    found: Sequence[sources.Source],
    stream: TextIO,
    *,
    least_silence: float,
    stop: Callable[[], bool] = lambda: False,
    poll: float = POLL,
) -> None:
    """Follow the sources until ``stop()`` or Ctrl-C; a terminal gets a live view, anything else a line per alarm."""
    console = _console(stream)
    reading = {one.name: sources.read(one, follow=True, stop=stop, poll=0) for one in found}
    quiet = Quiet(least_silence)
    told: set[int] = set()
    # Ctrl-C is how a user ends it: the report follows.
    with contextlib.suppress(KeyboardInterrupt), _live(console) as live:
        while reading:
            news = _turn(health, reading, quiet)
            _silent(health, found[0].name, quiet)
            health.poll()
            if live is not None:
                live.update(_view(health, console))
            else:
                _tell(health, told, stream)
            if not news:
                time.sleep(poll)


def _turn(health: Health, reading: dict[str, Iterator[Read | None]], quiet: Quiet) -> bool:
    """Read what is new of each source; whether there was anything."""
    news = False
    for name, source in list(reading.items()):
        for _ in range(MOST_LINES):
            try:
                read = next(source)
            except StopIteration:
                del reading[name]
                break
            except sources.SourceError as error:
                del reading[name]
                if not reading:
                    raise
                print(f"warning: {error}", file=sys.stderr)
                break
            if read is None:
                break
            health.take(name, *read)
            news = True
    if news:
        quiet.news()
    return news


def _silent(health: Health, source: str, quiet: Quiet) -> None:
    gone = quiet.silence()
    if gone is None:
        return
    place_ = health.sources.get(source)
    text = f"nothing new for {seconds(gone[0])}; by the gaps so far something was due within {seconds(gone[1])}"
    line = place_.lines if place_ else 0
    alarm = Alarm("silence", KINDS["silence"].level, source, text, line, series="clock", numbers={"seconds": gone[0]})
    health.book.add(alarm, int(quiet.last))


def _console(stream: TextIO) -> Any:
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _live(console: Any) -> AbstractContextManager[Any]:
    from rich.live import Live

    return (
        Live(console=console, refresh_per_second=1 / REFRESH, transient=True) if console.is_terminal else nullcontext()
    )


def _tell(health: Health, told_: set[int], stream: TextIO) -> None:
    for alarm in health.book.alarms:
        if id(alarm) not in told_ and alarm.level > Level.INFO:
            told_.add(id(alarm))
            print(f"{alarm.level.word} {alarm.kind}  {place(alarm)}: {next(told(alarm))}", file=stream, flush=True)


def _view(health: Health, console: Any) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    width = max(16, console.width - 70)
    for one in shown(health)[0][:ROWS]:
        label = f"{one.key.source}: {one.key.label}" if len(health.sources) > 1 else one.key.label
        rows.add_row(
            Text(clean(label)), figure(one.curve.last), one.curve.sparkline(min(width, 60)), f"n {one.curve.count:,}"
        )
    alarms = [one for one in health.book.alarms if one.level > Level.INFO][-ALARMS:]
    lines = [
        Text.assemble(
            (one.level.word, "red" if one.level is Level.CRITICAL else "yellow"),
            f" {one.kind}  {place(one)}: {next(told(one))}",
        )
        for one in alarms
    ]
    return Group(rows, *(lines or [Text("no alarms", "green")]), Text("Ctrl-C ends with the report", "dim"))
