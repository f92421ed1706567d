"""Activation checkpointing: which modules recompute their forward inside a backward pass, and through which calls."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.probe import sites
from ldlm_lint.probe.observers.models import models_of
from ldlm_lint.probe.observers.stacks import Stack
from ldlm_lint.probe.session import Observer, Session

_MOST_SITES = 200


@dataclass
class Segment:
    """One call of ``checkpoint()`` in the source. `widest` is how many blocks of a stack one recomputation ran."""

    site: dict[str, Any] | None
    reentrant: bool
    calls: int = 0
    recomputations: int = 0
    inputs_without_gradient: int = 0
    widest: dict[str, int] = field(default_factory=dict)
    modules: list[weakref.ref[Any]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    steps_without_gradients: int = 0
    steps_with_gradients: int = 0


class ActivationCheckpointing(Observer):
    """Recomputed modules by class, and the segments that torch's own function was called for."""

    topic = "activation_checkpointing"

    def __init__(self) -> None:
        self._recomputed: dict[str, int] = {}
        self._segments: dict[tuple[Any, ...], Segment] = {}
        self._running: list[tuple[Segment, dict[int, tuple[Stack, set[int]]]]] = []
        self._peak: dict[str, Any] = {}
        self._steps = 0
        self._observing = True

    def install(self, session: Session) -> None:
        self._models = models_of(session)
        self._models.listeners.append(self._entered)
        module = importlib.import_module("torch.utils.checkpoint")
        session.patch(module, "_checkpoint_without_reentrant_generator", self._generator(session), self.topic)
        function = getattr(module, "CheckpointFunction", None)
        if function is not None:
            session.patch(function, "forward", self._forward(session), self.topic)

    def _entered(self, module: Any, in_backward: bool) -> None:
        if not in_backward:
            return
        name = type(module).__qualname__
        self._recomputed[name] = self._recomputed.get(name, 0) + 1
        block = self._models.block_of(module)
        if block is not None and self._running:
            self._running[-1][1].setdefault(id(block[0]), (block[0], set()))[1].add(block[1])

    def _generator(self, session: Session) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def generate(function: Any, *arguments: Any, **keywords: Any) -> Any:
                if session.compiling() or not self._observing:
                    return original(function, *arguments, **keywords)
                segment = session.guard(self.topic, self._called, session, function, False)
                return original(self._tracked(segment, function), *arguments, **keywords)

            return generate

        return wrap

    def _forward(self, session: Session) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def forward(context: Any, function: Any, preserve: Any, *arguments: Any) -> Any:
                if session.compiling() or not self._observing:
                    return original(context, function, preserve, *arguments)
                segment = session.guard(self.topic, self._called, session, function, True)
                if segment is not None and not any(getattr(context, "needs_input_grad", ())):
                    segment.inputs_without_gradient += 1
                return original(context, self._tracked(segment, function), preserve, *arguments)

            return forward

        return wrap

    def _called(self, session: Session, function: Any, reentrant: bool) -> Segment | None:
        site = sites.call_site(session.root, 5)
        key = (site and site["path"], site and site["line"], reentrant)
        if key not in self._segments and len(self._segments) >= _MOST_SITES:
            return None
        segment = self._segments.setdefault(key, Segment(site, reentrant))
        segment.calls += 1
        module = function if isinstance(function, session.torch.nn.Module) else getattr(function, "__self__", None)
        known = any(one() is module for one in segment.modules)
        if isinstance(module, session.torch.nn.Module) and not known and len(segment.modules) < _MOST_SITES:
            segment.modules.append(weakref.ref(module))
            segment.names.add(type(module).__qualname__)
        return segment

    def _tracked(self, segment: Segment | None, function: Any) -> Any:
        """The segment's function, which also records what one run of it inside a backward pass covers."""
        if segment is None:
            return function

        def run(*arguments: Any, **keywords: Any) -> Any:
            self._running.append((segment, {}))
            try:
                return function(*arguments, **keywords)
            finally:
                self._ran(*self._running.pop())

        return run

    def _ran(self, segment: Segment, stacks: dict[int, tuple[Stack, set[int]]]) -> None:
        segment.recomputations += bool(stacks)
        for stack, blocks in stacks.values():
            segment.widest[stack.name] = max(segment.widest.get(stack.name, 0), len(blocks))

    def after_step(self, session: Session) -> None:
        if not self._observing:
            return
        self._steps += 1
        # After the step: a closure computes the gradients inside of it.
        for segment in self._segments.values():
            modules = [one for one in (held() for held in segment.modules) if one is not None]
            trained = [one for module in modules for one in module.parameters() if one.requires_grad]
            if trained:
                segment.steps_without_gradients += all(one.grad is None for one in trained)
                segment.steps_with_gradients += all(one.grad is not None for one in trained)

    def stop_observing(self, session: Session) -> None:
        self._observing = False

    def profiled(self, session: Session, profile: Any) -> None:
        self._peak = {"cpu_profile_bytes": peak_bytes(profile)}

    def collect(self, session: Session) -> Any:
        if session.device == "cuda":
            # Never reset: the program may read the peak itself.
            statistics = session.torch.cuda.memory_stats()
            self._peak["cuda_peak_bytes"] = statistics.get("allocated_bytes.all.peak")
        return {
            "steps": self._steps,
            "recomputed": dict(sorted(self._recomputed.items())),
            "segments": [_record(one) for one in self._segments.values()],
            "peak": self._peak,
        }


def _record(segment: Segment) -> dict[str, Any]:
    kept = ("site", "reentrant", "calls", "recomputations", "inputs_without_gradient", "widest")
    return {name: getattr(segment, name) for name in kept} | {
        "steps_without_gradients": segment.steps_without_gradients,
        "steps_with_gradients": segment.steps_with_gradients,
        "modules": sorted(segment.names),
    }


def peak_bytes(profile: Any) -> int | None:
    """The most bytes above the start that the profiled iteration held on the CPU; None without memory events."""
    results = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    if results is None:
        return None
    events = [one for one in results.events() if one.name() == "[memory]" and "CPU" in str(one.device_type())]
    held = most = 0
    for event in sorted(events, key=lambda one: one.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most if events else None
