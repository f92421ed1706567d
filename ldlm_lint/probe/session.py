"""What every observer of a watched program is given: patches that can be taken back, call sites, phases, notes.

The program's results must stay as they are: no synchronisation, no random numbers, no gradient, no change of a
compiled graph. Whatever goes wrong in the probe's own code is noted and ends that observer, never the program.
"""

from __future__ import annotations

import enum
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


class Phase(enum.Enum):
    """Steps are observed first (with costly hooks), then one is profiled, then the rest is timed with few hooks."""

    OBSERVE = "observe"
    PROFILE = "profile"
    TIME = "time"


class Observer:
    """One topic that is watched. All methods but `collect` may do nothing; each runs guarded (see `Session.guard`)."""

    topic = ""

    def install(self, session: Session) -> None:
        """Patch what is needed; torch has just been imported, the program's own modules mostly not yet."""

    def on_backward(self, session: Session) -> None:
        """A top-level backward pass is about to begin."""

    def before_step(self, session: Session, optimizer: Any) -> None:
        """An optimizer is about to step (any of them); gradients are whole here."""

    def after_step(self, session: Session) -> None:
        """The anchor optimizer has stepped: iteration `session.step` is over (1-based)."""

    def stop_observing(self, session: Session) -> None:
        """The first phase is over: take costly hooks away."""

    def profiled(self, session: Session, profile: Any) -> None:
        """One whole iteration was profiled; ``profile`` is the finished torch.profiler.profile."""

    def collect(self, session: Session) -> Any:
        """What was seen, as plain JSON values: a list of records or one mapping; None for nothing. Called once, last."""
        return None


@dataclass
class Session:
    """One watched process. `step` counts the anchor optimizer's finished steps, `phase` is where the watcher is."""

    torch: Any
    root: str
    observers: Sequence[Observer] = ()
    step: int = 0
    phase: Phase = Phase.OBSERVE
    device: str = "cpu"
    overhead_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _dead: set[str] = field(default_factory=set)

    def patch(self, owner: Any, name: str, wrap: Callable[[Any], Any], topic: str) -> Callable[[], None]:
        """Replace ``owner.name`` by ``wrap(original)`` and return what takes it back (also done at the end).

        A name that this torch does not have is noted as unavailable for ``topic`` and nothing happens.
        """
        original = getattr(owner, name, None)
        if original is None:
            where = getattr(owner, "__name__", type(owner).__name__)
            self.unavailable.setdefault(topic, f"{where}.{name} does not exist in torch {self.torch.__version__}")
            return lambda: None
        replaced = functools.wraps(original)(wrap(original)) if callable(original) else wrap(original)
        own = name in vars(owner)
        setattr(owner, name, replaced)

        def undo() -> None:
            # Somebody may have wrapped our wrapper meanwhile; taking it away would take theirs away, too.
            if getattr(owner, name, None) is replaced:
                setattr(owner, name, original) if own else delattr(owner, name)

        self._undo.append(undo)
        return undo

    def guard(self, topic: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run the probe's own code: an error in it ends this topic with a note, and the time it takes is counted."""
        if topic in self._dead:
            return None
        began = time.perf_counter()
        try:
            return work(*arguments)
        except Exception as error:
            self._dead.add(topic)
            self.unavailable[topic] = f"the probe's own error ({type(error).__name__}: {error})"
            return None
        finally:
            self.overhead_seconds += time.perf_counter() - began

    def compiling(self) -> bool:
        """Whether torch.compile is tracing: a hook must then return at once, or the user's graph breaks."""
        return bool(self.torch.compiler.is_compiling()) if hasattr(self.torch, "compiler") else False

    def take_back(self) -> None:
        """Take all patches back, the last one first."""
        while self._undo:
            self._undo.pop()()
