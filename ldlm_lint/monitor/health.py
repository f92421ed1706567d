"""The health of a run: lines and records of any number of sources go in, alarms come out. Constant memory, no printing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.alarms import KINDS, Alarm, AlarmBook, Level
from ldlm_lint.monitor.culprit import Incident
from ldlm_lint.monitor.detectors.order import Silence, seconds
from ldlm_lint.monitor.events import Event, eventful
from ldlm_lint.monitor.failures import Failures
from ldlm_lint.monitor.judging import ProcessJudge, Series
from ldlm_lint.monitor.records import Line, Record
from ldlm_lint.monitor.series import CAPACITY
from ldlm_lint.monitor.sieve import PAUSES

MOST_PROCESSES = 1024
_BATCH = 64
_HANDLED = 5
"""Records after a traceback that show that the program went on."""
_ENDS = (
    "oom",
    "host-oom",
    "exception",
    "cuda-error",
    "hardware",
    "killed",
    "worker-died",
    "shared-memory",
    "disk-full",
)


class _Source:
    """One file: its processes, its open tracebacks, and the events that the end of the file will judge."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = Failures()
        self.processes: dict[tuple[int | None, str], ProcessJudge] = {}
        self.handled: list[tuple[Alarm, int]] = []
        self.waiting: list[tuple[Line | None, Sequence[Record]]] = []
        self.pauses: deque[int] = deque(maxlen=256)
        self.records = self.lines = 0
        self.since_incident = 0


class Health:
    """Judges lines and records as they are read.

    ``since`` is the first step that counts, ``rank`` the only rank that counts (None: all); ``silence`` the least gap
    in a log's own clock that is an alarm, in seconds; ``capacity`` how many points of a series are kept, with
    ``broken`` including non-finite ones.
    """

    def __init__(
        self,
        *,
        since: int = 0,
        rank: int | None = None,
        silence: float = 120.0,
        capacity: int = CAPACITY,
        broken: bool = False,
    ) -> None:
        self.book = AlarmBook()
        self.since, self.rank, self.silence, self.capacity = since, rank, silence, capacity
        self.broken = broken
        self.sources: dict[str, _Source] = {}
        self.incident: Incident | None = None
        self._incident_alarm: Alarm | None = None
        self.ranks: set[int] = set()
        self._ended: dict[int, str] = {}
        self.events = 0

    def take(self, source: str, line: Line | None, records: Sequence[Record]) -> None:
        """Take one line with its records in; ``line`` is None for structured sources."""
        place = self.sources.get(source)
        if place is None:
            place = self.sources[source] = _Source(source)
        place.waiting.append((line, records))
        if len(place.waiting) >= _BATCH:
            self._read(place)

    def _read(self, place: _Source) -> None:
        """Read the pending lines; in a batch without any trigger only the records are used."""
        waiting, place.waiting = place.waiting, []
        text = "\n".join([line.text for line, _ in waiting if line is not None])
        watched = place.failures.busy or eventful(text)
        pausing = any(map(text.__contains__, PAUSES))
        for line, records in waiting:
            if line is not None:
                place.lines = line.line
                if watched or pausing:
                    self._line(place, line, watched)
            for record in records:
                judge = place.processes.get((record.rank, record.actor)) or self._new(place, record)
                if judge is None:
                    continue
                place.records += 1
                if judge.add(record):
                    self._flush(judge, final=False)

    def _line(self, place: _Source, line: Line, watched: bool) -> None:
        event = place.failures.read(line) if watched else None
        if event is not None:
            self._event(place, event)
        elif any(map(line.text.__contains__, PAUSES)):
            place.pauses.append(line.line)

    def _new(self, place: _Source, record: Record) -> ProcessJudge | None:
        if self.rank is not None and record.rank not in (None, self.rank):
            return None
        if len(place.processes) >= MOST_PROCESSES:
            return None
        if record.rank is not None:
            self.ranks.add(record.rank)
        judge = place.processes[record.rank, record.actor] = ProcessJudge(
            place.name,
            record.rank,
            record.actor,
            capacity=self.capacity,
            silence=Silence(self.silence, place.pauses),
            since=self.since,
            broken=self.broken,
        )
        return judge

    def _flush(self, judge: ProcessJudge, final: bool = True) -> None:
        for alarm, position in judge.flush(final):
            self.book.add(alarm, position)

    def poll(self) -> None:
        """Judge incomplete blocks: before a report, and whenever a followed log has nothing new."""
        for place in self.sources.values():
            self._read(place)
            for judge in place.processes.values():
                if judge.pending:
                    self._flush(judge)
            self._handled(place)
        self._judge_incident()

    def close(self) -> None:
        """Judge the rest at the end of all sources."""
        for place in self.sources.values():
            self._read(place)
            if (event := place.failures.close()) is not None:
                self._event(place, event)
        self.poll()

    @property
    def records(self) -> int:
        """How many records were taken in."""
        return sum(one.records for one in self.sources.values())

    @property
    def series(self) -> Iterator[Series]:
        """All series, in the order of their first record."""
        for place in self.sources.values():
            for judge in place.processes.values():
                for shape in judge.shapes.values():
                    yield from shape.series

    def _event(self, place: _Source, event: Event) -> None:
        if self.rank is not None and event.rank not in (None, self.rank) and event.kind != "nccl-timeout":
            return
        self.events += 1
        if event.rank is not None:
            self.ranks.add(event.rank)
        judge = place.processes.get((event.rank, event.actor)) or next(iter(place.processes.values()), None)
        if event.kind == "overflow":
            self._overflow(place, event, judge)
            return
        alarm = _alarm(place.name, event)
        if judge is not None and judge.pending:
            alarm.step = judge.pending[-1].step
        if event.kind == "nccl-timeout":
            self._timed_out(place, event, alarm)
            return
        if event.kind in _ENDS and event.rank is not None and self.incident is None:
            self._ended[event.rank] = event.text
        self.book.add(alarm, event.line)
        if event.kind in ("exception", "oom", "cuda-error"):
            place.handled.append((alarm, place.records))
            del place.handled[:-16]

    def _overflow(self, place: _Source, event: Event, judge: ProcessJudge | None) -> None:
        """Overflows are how loss scaling works; a streak of them is not."""
        if judge is None:
            return
        judge.context.overflows = True
        self._flush(judge)
        numbers = judge.overflow.overflow(event.rank, event.details)
        if numbers is None:
            return
        alarm = _alarm(place.name, event)
        alarm.kind, alarm.level, alarm.step = "skipped-steps", KINDS["skipped-steps"].level, judge.overflow.step
        alarm.numbers = dict(numbers)
        alarm.message = f"{numbers['messages']:.0f} optimizer steps close together were skipped; the last: {event.text}"
        self.book.add(alarm, event.line)

    def _timed_out(self, place: _Source, event: Event, alarm: Alarm) -> None:
        went_on = place.since_incident and place.records - place.since_incident > 4 * _HANDLED
        if self.incident is None or went_on:
            self._judge_incident()
            self.incident, self._incident_alarm = Incident(), alarm
            self.book.add(alarm, event.line)
            alarm.count = 0
        place.since_incident = place.records
        assert self._incident_alarm is not None
        self._incident_alarm.count += 1
        self._incident_alarm.last_line = event.line
        self.incident.add(event.rank, event.details)

    def _judge_incident(self) -> None:
        incident, alarm = self.incident, self._incident_alarm
        if incident is None or alarm is None:
            return
        verdict = incident.verdict(self.ranks, self._ended)
        work = next((one for one in incident.group.values() if one.op), None)
        what = f"{work.op} number {work.seq}" if work is not None else "a collective"
        waited = f" after {seconds(incident.waited_ms / 1000)}" if incident.waited_ms else ""
        ranks = incident.waiting
        alarm.message = f"{what} timed out{waited}, reported by {len(ranks) or 'no named'} rank{'s' * (len(ranks) != 1)}; {verdict.reason}"
        alarm.ranks = ranks
        alarm.numbers = {
            "culprits": list(verdict.culprits),
            "timeout_ms": incident.limit_ms,
            "waited_ms": incident.waited_ms,
        }
        if work is not None and work.seq is not None:
            alarm.numbers.update(seq=work.seq, op=work.op)

    def _handled(self, place: _Source) -> None:
        """A traceback after which the training continued was handled: a note."""
        for alarm, records in place.handled:
            if place.records - records >= _HANDLED and alarm.level is Level.CRITICAL:
                alarm.level = Level.WARNING
                alarm.message += " (training continued)"


def _alarm(source: str, event: Event) -> Alarm:
    details: dict[str, float | int | str | list[int]] = dict(event.details)
    return Alarm(
        kind=event.kind,
        level=KINDS[event.kind].level if event.level is None else event.level,
        source=source,
        message=event.text,
        line=event.line,
        ranks=() if event.rank is None else (event.rank,),
        numbers=details,
    )
