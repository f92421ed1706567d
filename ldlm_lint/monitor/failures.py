"""Events of several lines: tracebacks, and the report of torchrun about the rank that failed first."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ldlm_lint.monitor.alarms import KINDS, Level
from ldlm_lint.monitor.events import Event, match, shortened
from ldlm_lint.monitor.records import Line

_START = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Warning|Iteration))(?::\s*(?P<text>.*))?$"
)
_FIELD = re.compile(r"\s*(?P<name>time|host|rank|exitcode|error_file|traceback|msg)\s*: (?P<value>.*)$")
_RANK = re.compile(r"(\d+) \(local_rank: (\d+)\)")
LONGEST = 400
_SIGNALS = {"-6": "SIGABRT", "-7": "SIGBUS", "-9": "SIGKILL", "-11": "SIGSEGV", "-15": "SIGTERM"}


@dataclass(slots=True)
class _Open:
    """A traceback of one process whose last line has not come yet."""

    lines: int = 0


@dataclass(slots=True)
class _Report:
    """The root cause in a `ChildFailedError`, field by field."""

    line: int
    actor: str
    fields: dict[str, str] = field(default_factory=dict)
    rooted: bool = False


class Failures:
    """Follows the tracebacks of each process, and matches all other lines one by one.

    Ranks write interleaved lines, so a traceback is continued by lines of its own rank only; if the log gives no rank,
    by indented lines. Quoted source in a traceback is not an event.
    """

    MOST = 256

    def __init__(self) -> None:
        self._open: dict[tuple[int | None, str], _Open] = {}
        self._report: _Report | None = None

    @property
    def busy(self) -> bool:
        """Whether an open event continues in the next lines, so that each of them must be read."""
        return bool(self._open) or self._report is not None

    def read(self, line: Line) -> Event | None:
        """The event that a line completes, if it does."""
        if self._report is not None:
            done = self._reported(line)
            # Its fields come from the report as a whole.
            if done is not None or _FIELD.match(line.text):
                return done
        process = line.rank, line.actor
        open_ = self._open.get(process)
        if open_ is not None:
            return self._continued(process, open_, line)
        if _START in line.text:
            if len(self._open) < self.MOST:
                self._open[process] = _Open()
            # A progress bar or a log prefix may be before it; an event on the same line does not happen.
            return None
        if "ChildFailedError" in line.text and line.text.lstrip().startswith("torch.distributed.elastic"):
            self._report = _Report(line.line, line.actor)
            return None
        return match(line)

    def close(self) -> Event | None:
        """The event of a torchrun report that the end of the log cuts off."""
        report, self._report = self._report, None
        return None if report is None else _child(report)

    def _continued(self, process: tuple[int | None, str], open_: _Open, line: Line) -> Event | None:
        text = line.text
        open_.lines += 1
        if not text.strip() or text[:1].isspace() or _START in text:
            if open_.lines > LONGEST:
                del self._open[process]
            return None
        del self._open[process]
        if text.startswith(_CHAINED):
            return None
        if "ChildFailedError" in text:
            self._report = _Report(line.line, line.actor)
            return None
        event = match(line)
        # An exception that ends a program is not a warning, whatever its text.
        if event is not None and (KINDS[event.kind].level if event.level is None else event.level) is Level.CRITICAL:
            return event
        found = _EXCEPTION.match(text)
        if found is None:
            return event
        return exception(line, found["name"], found["text"] or "")

    def _reported(self, line: Line) -> Event | None:
        report = self._report
        assert report is not None
        text = line.text.strip()
        if "Root Cause (first observed failure)" in text:
            report.rooted = True
            return None
        found = _FIELD.match(line.text)
        if found is not None:
            if report.rooted:
                report.fields.setdefault(found["name"], found["value"].strip())
            return None
        ended = report.rooted and "rank" in report.fields and text.startswith("====")
        if ended or line.line - report.line > LONGEST:
            self._report = None
            return _child(report) if ended else None
        return None


def exception(line: Line, name: str, text: str) -> Event | None:
    """The event of a traceback's last line; a deliberate exit is not one."""
    short = name.rsplit(".", 1)[-1]
    if short in ("SystemExit", "StopIteration") or short.endswith("Warning"):
        return None
    kind = "interrupted" if short == "KeyboardInterrupt" else "exception"
    said = shortened(f"{name}: {text}" if text else name)
    return Event(kind, line.line, line.rank, line.actor, said, {"name": name}, None)


def _child(report: _Report) -> Event:
    fields = report.fields
    if "rank" not in fields:
        text = "torchrun reports that a rank failed (ChildFailedError), but the log ends before the report names the rank"
        return Event("child-failed", report.line, None, report.actor, text, {}, Level.CRITICAL)
    ranks = _RANK.search(fields.get("rank", ""))
    code = fields.get("exitcode", "").split(" ")[0]
    details = {"exitcode": code} | {name: fields[name] for name in ("host", "time") if name in fields}
    if ranks:
        details.update(rank=ranks[1], local=ranks[2])
    if code in _SIGNALS:
        details["signal"] = _SIGNALS[code]
    rank = int(ranks[1]) if ranks else None
    words = f"rank {rank} failed first, exit code {code}"
    if "signal" in details:
        words += f" ({details['signal']})"
    said = fields.get("traceback", "")
    text = f"{words}: {said}" if said and not said.startswith(("To enable", "Traceback")) else words
    return Event("child-failed", report.line, rank, report.actor, shortened(text), details, Level.CRITICAL)
