"""Distributed samplers: the epoch of each shuffled pass."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.session import Observer, Session

_MOST = 200


class Samplers(Observer):
    """The `DistributedSampler`s of this process: ``epochs`` has the epoch of each pass, and whether a backward pass
    used it."""

    topic = "samplers"

    def __init__(self) -> None:
        self._records: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._all: list[dict[str, Any]] = []
        self._last: list[Any] | None = None

    def install(self, session: Session) -> None:
        kind = session.torch.utils.data.distributed.DistributedSampler

        def constructor(original: Any) -> Any:
            def construct(sampler: Any, *arguments: Any, **keywords: Any) -> None:
                original(sampler, *arguments, **keywords)
                session.guard(self.topic, self._made, session, sampler)

            return construct

        def starter(original: Any) -> Any:
            def start(sampler: Any) -> Any:
                begun = session.guard(self.topic, self._started, session, sampler)
                found = original(sampler)
                return found if begun is None else self._drawn(begun, found)

            return start

        def setter(original: Any) -> Any:
            def set_epoch(sampler: Any, *arguments: Any, **keywords: Any) -> None:
                session.guard(self.topic, self._set, sampler)
                return original(sampler, *arguments, **keywords)

            return set_epoch

        session.patch(kind, "__init__", constructor, self.topic)
        session.patch(kind, "__iter__", starter, self.topic)
        session.patch(kind, "set_epoch", setter, self.topic)

    def _made(self, session: Session, sampler: Any) -> None:
        record: dict[str, Any] = {
            "site": sites.call_site(session.root, 4),
            "class": type(sampler).__qualname__,
            "shuffle": bool(sampler.shuffle),
        }
        record |= {"epochs": [], "loops": [], "set_epoch_calls": 0, "replicas": sampler.num_replicas}
        self._records[sampler] = record
        if len(self._all) < _MOST:
            self._all.append(record)

    def _drawn(self, begun: list[Any], samples: Iterable[Any]) -> Iterator[Any]:
        """The samples of a pass; the last drawn pass is the one used by a backward pass."""
        for one in samples:
            self._last = begun
            yield one

    def on_backward(self, session: Session) -> None:
        if self._last is not None:
            self._last[1] = True

    def _started(self, session: Session, sampler: Any) -> list[Any] | None:
        """The pass that begins, as recorded."""
        record = self._records.get(sampler)
        if record is None or len(record["epochs"]) >= _MOST:
            return None
        begun = [int(sampler.epoch), False]
        record["epochs"].append(begun)
        loop = sites.call_site(session.root, 4)
        if loop is not None and loop not in record["loops"]:
            record["loops"].append(loop)
        return begun

    def _set(self, sampler: Any) -> None:
        if sampler in self._records:
            self._records[sampler]["set_epoch_calls"] += 1

    def collect(self, session: Session) -> Any:
        return [one for one in self._all if one["epochs"]] or None
