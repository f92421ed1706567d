"""DataLoaders: their settings, how often their workers start, and how long the training waits for batches."""

from __future__ import annotations

import os
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.evidence.model import plain
from ldlm_lint.evidence.statistics import quartiles
from ldlm_lint.probe import sites
from ldlm_lint.probe.observers.passes import LoaderPasses, PassTimes, ProcessStarts
from ldlm_lint.probe.observers.worker_load import WorkerLoad
from ldlm_lint.probe.session import Observer, Phase, Session

_SETTINGS = ("batch_size", "num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "timeout", "drop_last")
_MOST_WAITS = 5000
# An iteration that waits for this share of its time got a batch late.
_LATE = 0.10
_MOST_LOADERS = 200


@dataclass
class _Pass:
    """An iterator at work: whether its first batch is still to come, and when the last one was requested."""

    loader: _Loader
    times: PassTimes
    first: bool = True
    entered: float | None = None
    waited: float = 0.0
    clean: bool = False
    starved: bool = False
    step: int = 0


@dataclass
class _Loader:
    """One DataLoader. Times are seconds; a wait is steady unless it is an iterator's first."""

    record: dict[str, Any]
    iterators: int = 0
    worker_starts: int = 0
    batches: int = 0
    first_waits: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    # Per optimizer step: the waiting time, the whole time, and the waiting time while the device was idle: some
    # programs fetch all batches of a step in a row.
    steps: dict[int, list[float]] = field(default_factory=dict)
    evaluation_batches: int = 0
    starved: int = 0
    device_asked: int = 0
    passes: LoaderPasses = field(default_factory=LoaderPasses)
    load: WorkerLoad = field(default_factory=WorkerLoad)


class Loaders(Observer):
    """The loaders that this process created and iterated over."""

    topic = "loaders"

    def __init__(self) -> None:
        self._loaders: weakref.WeakKeyDictionary[Any, _Loader] = weakref.WeakKeyDictionary()
        self._records: list[_Loader] = []
        self._passes: weakref.WeakKeyDictionary[Any, _Pass] = weakref.WeakKeyDictionary()
        self._processes = ProcessStarts()

    def install(self, session: Session) -> None:
        loader = session.torch.utils.data.DataLoader
        session.patch(loader, "__init__", lambda original: self._constructor(session, original), self.topic)
        session.patch(loader, "__iter__", lambda original: self._starter(session, original), self.topic)
        self._processes.install(session, self.topic)
        base = getattr(session.torch.utils.data.dataloader, "_BaseDataLoaderIter", None)
        if base is None:
            session.unavailable[self.topic] = "this torch has no _BaseDataLoaderIter: waits are not seen"
            return
        session.patch(base, "__next__", lambda original: self._timer(session, original), self.topic)

    def _constructor(self, session: Session, original: Any) -> Any:
        def construct(loader: Any, *arguments: Any, **keywords: Any) -> None:
            original(loader, *arguments, **keywords)
            session.guard(self.topic, self._made, session, loader)

        return construct

    def _starter(self, session: Session, original: Any) -> Any:
        def start(loader: Any) -> Any:
            began, processes = time.perf_counter(), self._processes.seconds
            iterator = original(loader)
            lasted, spent = time.perf_counter() - began, self._processes.seconds - processes
            times = PassTimes(began, spent, lasted, getattr(loader, "num_workers", 0))
            session.guard(self.topic, self._started, session, loader, iterator, times)
            return iterator

        return start

    def _timer(self, session: Session, original: Any) -> Any:
        def following(iterator: Any) -> Any:
            if session.compiling():
                return original(iterator)
            marker = session.guard(self.topic, self._enter, session, iterator)
            try:
                batch = original(iterator)
            except StopIteration:
                session.guard(self.topic, self._ended, iterator)
                raise
            session.guard(self.topic, self._leave, session, iterator, marker)
            return batch

        return following

    def _made(self, session: Session, loader: Any, seen: bool = True) -> None:
        if len(self._records) >= _MOST_LOADERS:
            return
        record = {name: _plain(getattr(loader, name, None)) for name in _SETTINGS}
        record["site"] = sites.call_site(session.root, 4) if seen else None
        record["dataset"] = type(loader.dataset).__qualname__
        record["iterable"] = isinstance(loader.dataset, session.torch.utils.data.IterableDataset)
        record["sampler"] = type(getattr(loader, "sampler", None)).__qualname__
        self._loaders[loader] = made = _Loader(record)
        self._records.append(made)

    def _started(self, session: Session, loader: Any, iterator: Any, times: PassTimes) -> None:
        if loader not in self._loaders:
            # Made before watching began (`ldlm_lint.probe.watch`): place unknown.
            self._made(session, loader, seen=False)
        found = self._loaders.get(loader)
        if found is None:
            return
        found.iterators += 1
        several: int = getattr(loader, "num_workers", 0)
        # Persistent workers return the same iterator again.
        if several and iterator not in self._passes:
            found.worker_starts += 1
        self._passes[iterator] = _Pass(found, found.passes.begin(times))
        session.disturb("first batch")

    def _enter(self, session: Session, iterator: Any) -> Any:
        running = self._passes.get(iterator)
        if running is None:
            return None
        now = time.perf_counter()
        loader = running.loader
        loader.passes.asked(running.times, profiled=session.phase is Phase.PROFILE)
        if running.entered is not None and running.clean and len(loader.waits) < _MOST_WAITS:
            loader.waits.append(running.waited)
            shares = loader.steps.setdefault(running.step, [0.0, 0.0, 0.0])
            shares[0] += running.waited
            shares[1] += now - running.entered
            shares[2] += running.waited if running.starved else 0.0
        running.entered, running.step = now, session.step
        # A profiled iteration is slower than others, and an evaluation is not a training.
        running.clean = session.phase is not Phase.PROFILE and session.torch.is_grad_enabled()
        return _device_marker(session)

    def _leave(self, session: Session, iterator: Any, marker: Any) -> None:
        running = self._passes.get(iterator)
        if running is None or running.entered is None:
            return
        loader = running.loader
        running.waited = time.perf_counter() - running.entered
        running.times.came(running.waited)
        loader.batches += 1
        loader.load.batch(iterator)
        loader.evaluation_batches += not session.torch.is_grad_enabled()
        if running.first:
            running.first, running.clean = False, False
            if len(loader.first_waits) < _MOST_WAITS:
                loader.first_waits.append(running.waited)
        if marker is not None:
            loader.device_asked += 1
            # The device had finished before the batch arrived: it waited for data.
            running.starved = bool(marker.query())
            loader.starved += running.starved

    def _ended(self, iterator: Any) -> None:
        running = self._passes.get(iterator)
        if running is not None:
            running.times.ended(time.perf_counter())

    def collect(self, session: Session) -> Any:
        return [_record(one) for one in self._records if one.iterators] or None


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _device_marker(session: Session) -> Any:
    """An event on the stream of the work before this wait; a host that waits while it is pending does not starve the
    device.

    Not yet run on CUDA. Neither recording nor querying an event waits.
    """
    cuda = session.torch.cuda
    if session.device != "cuda" or not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    event = cuda.Event()
    event.record()
    return event


def _record(loader: _Loader) -> dict[str, Any]:
    shares = [wait / period for wait, period, _ in loader.steps.values() if period > 0]
    waited, seconds, starved = (sum(step[at] for step in loader.steps.values()) for at in range(3))
    return loader.record | {
        "iterators": loader.iterators,
        "worker_starts": loader.worker_starts,
        "batches": loader.batches,
        "evaluation_batches": loader.evaluation_batches,
        "first_waits": [round(one, 6) for one in loader.first_waits[:100]],
        "passes": [one.plain() for one in loader.passes.times],
        "wait_seconds": _quartiles(loader.waits),
        "wait_share": _quartiles(shares),
        "waits_in_all": {
            "seconds": round(seconds, 6),
            "waited": round(waited, 6),
            "starved": round(starved, 6),
            "late": sum(share >= _LATE for share in shares),
        },
        "worker_load": loader.load.plain(),
        "device_starved": loader.starved,
        "device_asked": loader.device_asked,
        "local_world_size": int(os.environ.get("LOCAL_WORLD_SIZE", "0") or 0),
    }


def _quartiles(values: list[float]) -> dict[str, Any]:
    return plain(quartiles(values)) if values else {"n": 0}
