"""The session for observers of a watched program: revertible patches, call sites, phases, notes.

The program's results must not change: no synchronisation, no random numbers, no gradient, no change of a compiled
graph. An error in the probe's own code is noted and ends that observer, never the program.
"""

from __future__ import annotations

import enum
import functools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.probe import untraced
from ldlm_lint.probe.callers import Callers
from ldlm_lint.probe.frames import uncounted


class Phase(enum.Enum):
    """Steps are observed first (with costly hooks), then one is profiled, then the rest is timed with few hooks."""

    OBSERVE = "observe"
    PROFILE = "profile"
    TIME = "time"


class _Work(threading.local):
    """How many of the probe's own pieces of code are running in this thread, one inside the other."""

    depth: int = 0


class Observer:
    """One observed topic. All methods except `collect` may do nothing; each runs guarded (see `Session.guard`)."""

    topic = ""

    def install(self, session: Session) -> None:
        """Install the patches; torch has just been imported, the program's own modules mostly not yet."""

    def on_backward(self, session: Session) -> None:
        """A top-level backward pass is about to begin."""

    def before_step(self, session: Session, optimizer: Any) -> None:
        """An optimizer is about to step (any of them); gradients are complete here."""

    def after_step(self, session: Session) -> None:
        """The anchor optimizer has stepped: iteration `session.step` is over (1-based)."""

    def stop_observing(self, session: Session) -> None:
        """The first phase is over: take costly hooks away."""

    def profiled(self, session: Session, profile: Any) -> None:
        """One whole iteration was profiled; ``profile`` is the finished torch.profiler.profile."""

    def conclude(self, session: Session) -> None:
        """Watching ends: make the last observations, and stop everything that is not reverted with the patches. Called
        once, before the last `collect`; waiting for the device is allowed here."""

    def collect(self, session: Session) -> Any:
        """The observations as plain JSON values: a list of records or one mapping; None if empty.

        Called after each iteration, so that a process that is killed leaves evidence: cheap, without waiting for the
        device, and without effect on later observations. The values are written immediately and not kept.
        """
        return None


@dataclass
class Session:
    """One watched process. `step` counts the anchor optimizer's finished steps, `phase` is the phase of the watcher.

    `root` (absolute) is the project's; `device` the type of the device of the anchor's parameters, known from the first
    `before_step` on; rank and world size are the process group's from then on, before it the environment's (`group` has
    them where there was a group). A program without optimizer steps is counted by its top-level backward passes: then
    `before_step` is never called.
    """

    torch: Any
    root: str
    observers: Sequence[Observer] = ()
    step: int = 0
    phase: Phase = Phase.OBSERVE
    device: str = "cpu"
    overhead_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    group: tuple[int, int] | None = None
    backwards: int = 0
    uses_compile: bool = False
    callers: Callers = field(default_factory=Callers)
    overhead: dict[str, list[float]] = field(default_factory=dict)
    disturbances: set[str] = field(default_factory=set)
    _undo: list[Callable[[], None]] = field(default_factory=list)
    fragile: list[Any] = field(default_factory=list)
    # Called when a checkpoint was saved: snapshots of the evidence are written now.
    after_save: Callable[[], None] = lambda: None
    _before_compile: list[Callable[[], None]] = field(default_factory=list)
    _dead: set[str] = field(default_factory=set)
    _work: _Work = field(default_factory=_Work)
    _evaluate_frames: Callable[[Any], Any] = field(default=lambda _: None)

    def patch(self, owner: Any, name: str, wrap: Callable[[Any], Any], topic: str) -> Callable[[], None]:
        """Replace ``owner.name`` by ``wrap(original)`` and return the function that reverts it (also done at the end).

        A name that this torch does not have is noted as unavailable for ``topic`` and nothing happens. Static and
        class methods stay what they are: ``wrap`` gets the plain function behind them.
        """
        if getattr(owner, name, None) is None:
            where = getattr(owner, "__name__", type(owner).__name__)
            self.unavailable.setdefault(topic, f"{where}.{name} does not exist in torch {self.torch.__version__}")
            return lambda: None
        own = name in vars(owner)
        kept = vars(owner)[name] if own else getattr(owner, name)
        kind = type(kept) if isinstance(kept, (staticmethod, classmethod)) else None
        original = kept.__func__ if kind else kept
        wrapped = uncounted(wrap(original))
        if callable(original):
            wrapped = functools.wraps(original)(wrapped)
        replaced = kind(wrapped) if kind else wrapped
        setattr(owner, name, replaced)

        def undo() -> None:
            # Other code may have wrapped our wrapper meanwhile; removing ours would remove theirs, too.
            if vars(owner).get(name) is replaced:
                setattr(owner, name, kept) if own else delattr(owner, name)

        self._undo.append(undo)
        return undo

    def on_take_back(self, undo: Callable[[], None]) -> None:
        """Have ``undo`` called with the patches when all is taken back (a hook handle's ``remove``)."""
        self._undo.append(undo)

    def before_compile(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` when the program first calls torch.compile: it removes patches that dynamo would trace."""
        self._before_compile.append(undo)

    def compiles(self) -> None:
        """The program is about to call torch.compile: from now on the probe's own work is kept from dynamo."""
        self.uses_compile = True
        self._evaluate_frames = untraced.frame_evaluation(self.torch)
        untraced.hide_frames(self.torch)
        while self._before_compile:
            self._before_compile.pop()()

    def guard(self, topic: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run the probe's own code: an error in it ends this topic with a note, and the time it takes is counted."""
        if topic in self._dead:
            return None
        began = time.perf_counter()
        self._work.depth += 1
        callback = self._evaluate_frames(None)
        try:
            return work(*arguments)
        except Exception as error:
            self._dead.add(topic)
            self.unavailable[topic] = f"the probe's own error ({type(error).__name__}: {error})"
            return None
        finally:
            self._evaluate_frames(callback)
            self._work.depth -= 1
            if not self._work.depth:
                self._spent(topic, time.perf_counter() - began)

    @property
    def is_at_work(self) -> bool:
        """Whether the probe's own code is running in this thread: its calls do not belong to the program."""
        return self._work.depth > 0

    def is_dead(self, topic: str) -> bool:
        """Whether an error of the probe's own has ended a topic."""
        return topic in self._dead

    def _spent(self, topic: str, seconds: float) -> None:
        self.overhead_seconds += seconds
        spent = self.overhead.setdefault(topic, [0, 0.0])
        spent[0] += 1
        spent[1] += seconds

    def disturb(self, why: str) -> None:
        """The running iteration is not representative (an iterator's first batch, a saved file): keep its time
        apart.
        """
        self.disturbances.add(why)

    def compiling(self) -> bool:
        """Whether torch.compile is tracing: a hook must then return immediately, or the user's graph breaks."""
        compiler: Any = getattr(self.torch, "compiler", None)
        return bool(compiler.is_compiling()) if hasattr(compiler, "is_compiling") else False

    def take_back(self) -> None:
        """Take all patches back, the last one first."""
        while self._undo:
            self._undo.pop()()
