"""The watcher of one training process: counts iterations, moves the observers through the phases, creates the evidence.

An iteration ends where the anchor, the first optimizer that steps, has stepped; in a program without optimizers it ends
where the next top-level backward pass begins. Observers see the first iterations with all their hooks, one iteration is
profiled, the others are only timed (`Phases`).
"""

from __future__ import annotations

import importlib
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ldlm_lint.probe.callers import closure_of, then, with_closure
from ldlm_lint.probe.place import settle
from ldlm_lint.probe.profiling import TOPIC as PROFILED
from ldlm_lint.probe.profiling import Window
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.timing import Clock
from ldlm_lint.probe.untraced import kept_out

CORE = "watcher"
WRITING = "evidence"
# Another optimizer that steps so often while the anchor does not: the anchor is no longer in use.
FORSAKEN_AFTER = 100
# A program whose optimizers never step after so many backward passes is counted by these.
MOST_BACKWARDS = 256


def observed_steps(steps: int) -> int:
    """How many of ``steps`` iterations are observed, so that one can be profiled and one timed.

    >>> [observed_steps(steps) for steps in (1, 2, 3, 4, 5, 20)]
    [1, 1, 1, 2, 3, 3]
    """
    return max(1, min(3, steps - 2))


class Watcher:
    """Watches this process from `start` to `finish`.

    ``steps`` is how many iterations are watched; after the last one ``on_done`` is called, from inside the optimizer's
    step, and may raise to end the program; ``on_step`` after each iteration, outside of the timed or profiled part.
    ``observers`` default to all modules of `ldlm_lint.probe.observers`. With ``timing`` all iterations are in the last
    phase: none is observed or profiled.
    """

    def __init__(
        self,
        torch: Any,
        root: str,
        steps: int,
        *,
        observers: Sequence[Observer] | None = None,
        on_done: Callable[[], None] | None = None,
        on_step: Callable[[], None] | None = None,
        timing: bool = False,
    ) -> None:
        if observers is None:
            from ldlm_lint.probe.observers import observers as all_observers

            observers = all_observers()
        self.session = Session(torch, root, observers)
        if timing:
            self.session.phase = Phase.TIME
        self.steps = steps
        self.clock = Clock()
        self.window = Window(self.session)
        self.done = False
        self._on_done = on_done
        self._on_step = on_step
        # Its own hooks outlive those of the observers: a program that swallows the exit gets it again.
        self._hooks = Session(torch, root)
        self._observed = observed_steps(steps)
        self._stack: list[int] = []
        self._anchor: weakref.ref[Any] | None = None
        self._others: dict[int, int] = {}
        self._optimizers_made = False
        self._by_backward = False
        self._began = time.perf_counter()

    def start(self) -> None:
        """Install the hooks; the program's own modules are best imported after it."""
        session = self.session
        for observer in session.observers:
            session.guard(observer.topic, observer.install, session)
        session.guard(CORE, self._hook)

    def _hook(self) -> None:
        torch, hooks = self.session.torch, self._hooks
        hooks.patch(torch.autograd, "backward", self._backward_wrapper, CORE)
        self.session.patch(torch.optim.Optimizer, "__init__", self._made_wrapper, CORE)
        self.window.watch_for_others()
        # Not an attribute of torch.optim, which deletes the name.
        module = importlib.import_module("torch.optim.optimizer")
        for name, hook in (("pre", self._before_step), ("post", self._after_step)):
            register = getattr(module, f"register_optimizer_step_{name}_hook", None)
            if register is None:
                self.session.unavailable[CORE] = f"torch {torch.__version__} has no global optimizer hooks"
                return
            hooks.on_take_back(register(hook).remove)

    def _made_wrapper(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            self._optimizers_made = True
            return original(optimizer, *arguments, **options)

        return made

    def _backward_wrapper(self, original: Callable[..., Any]) -> Callable[..., Any]:
        current = getattr(self.session.torch._C, "_current_graph_task_id", lambda: -1)

        def backward(*arguments: Any, **options: Any) -> Any:
            # Reentrant checkpointing calls it from inside a pass.
            if not self.session.compiling() and current() == -1:
                self._before_backward()
            return original(*arguments, **options)

        return backward

    def _before_backward(self) -> None:
        session = self.session
        counts = self._anchor is None and (not self._optimizers_made or session.backwards >= MOST_BACKWARDS)
        if counts and session.backwards:
            self._by_backward = True
            self._iteration_over()
        session.backwards += 1
        self.clock.backward()
        if not self.done:
            for observer in session.observers:
                session.guard(observer.topic, observer.on_backward, session)

    @kept_out
    def _before_step(self, optimizer: Any, arguments: Any = (), options: Any = None) -> Any:
        """The replacement closure if torch passes one to the step: gradients are complete after it."""
        if self.session.compiling():
            return None
        identity = id(optimizer)
        # A step that raised has left its marker.
        if identity in self._stack:
            del self._stack[self._stack.index(identity) :]
        self._stack.append(identity)
        if self.done or len(self._stack) > 1:
            return None
        session = self.session
        if self._anchor is None:
            session.guard(CORE, self._first_step, optimizer)
        closure = closure_of(arguments, options or {})
        session.callers.stepping(closure)
        if closure is None:
            self._gradients_whole(optimizer)
            return None
        return with_closure(arguments, options or {}, then(closure, lambda: self._gradients_whole(optimizer)))

    def _gradients_whole(self, optimizer: Any) -> None:
        session = self.session
        for observer in session.observers:
            session.guard(observer.topic, observer.before_step, session, optimizer)

    def _first_step(self, optimizer: Any) -> None:
        self._anchor = weakref.ref(optimizer)
        self._by_backward = False
        settle(self.session, optimizer)

    @kept_out
    def _after_step(self, optimizer: Any, *_: Any) -> None:
        if self.session.compiling():
            return
        nested = bool(self._stack) and self._stack[0] != id(optimizer)
        if id(optimizer) in self._stack:
            del self._stack[self._stack.index(id(optimizer)) :]
        if nested:
            return
        if self.done:
            self._again()
        elif self._is_anchor(optimizer):
            self._iteration_over()

    def _is_anchor(self, optimizer: Any) -> bool:
        anchor = self._anchor() if self._anchor is not None else None
        if anchor is optimizer:
            self._others.clear()
            return True
        steps = self._others[id(optimizer)] = self._others.get(id(optimizer), 0) + 1
        if anchor is None or steps > FORSAKEN_AFTER:
            self._anchor = weakref.ref(optimizer)
            self._others.clear()
            return True
        return False

    def _iteration_over(self) -> None:
        session = self.session
        if self.done:
            self._again()
            return
        session.step += 1
        self.clock.iteration(session.phase, session.disturbances)
        session.disturbances.clear()
        if self._by_backward and session.step == 1:
            session.guard(CORE, settle, session)
        if session.phase is Phase.OBSERVE:
            session.callers.stepped(session.root)
        for observer in session.observers:
            session.guard(observer.topic, observer.after_step, session)
        self._next_phase()
        self.clock.restart()
        if session.step >= self.steps:
            self.done = True
            self._again()

    def _next_phase(self) -> None:
        session = self.session
        profiles = self._phase_over()
        if self._on_step is not None:
            session.guard(WRITING, self._on_step)
        if profiles:
            session.phase = Phase.PROFILE if self.window.open() else Phase.TIME

    def _phase_over(self) -> bool:
        """End the phase if it is over; whether the next iteration is to be profiled."""
        session = self.session
        more = session.step < self.steps
        if session.phase is Phase.PROFILE:
            if self.window.spoilt and more:
                return True
            self.window.close()
            session.phase = Phase.TIME
        elif session.phase is Phase.OBSERVE and session.step >= self._observed:
            for observer in session.observers:
                session.guard(observer.topic, observer.stop_observing, session)
            if more:
                return True
            session.unavailable.setdefault(PROFILED, f"{self.steps} steps are too few to profile one")
            session.phase = Phase.TIME
        return False

    def _again(self) -> None:
        if self._on_done is not None:
            self._on_done()

    def finish(self) -> dict[str, Any]:
        """End watching and return the observations by topic; the hooks of the observers are removed."""
        session = self.session
        self.done = True
        if session.phase is Phase.PROFILE:
            self.window.drop("the program ended inside the profiled iteration")
        elif session.phase is Phase.OBSERVE:
            session.unavailable.setdefault(PROFILED, f"the program ended after {session.step} steps")
        session.guard(CORE, settle, session)
        for observer in session.observers:
            session.guard(observer.topic, observer.conclude, session)
        seen = {one.topic: session.guard(one.topic, one.collect, session) for one in session.observers}
        session.take_back()
        return self._whole(seen)

    def glance(self) -> tuple[dict[str, Any], dict[str, str]]:
        """The observations so far, and what could not be observed and why, both by topic; watching continues."""
        session = self.session
        seen: dict[str, Any] = {}
        unseen: dict[str, str] = {}
        if session.phase is not Phase.TIME:
            unseen[PROFILED] = f"the program ended after {session.step} steps"
        for observer in session.observers:
            if session.is_dead(observer.topic):
                continue
            try:
                seen[observer.topic] = observer.collect(session)
            except Exception as error:  # a thread of the program changes the data meanwhile; the next attempt may succeed
                unseen[observer.topic] = f"could not be read while the program ran ({type(error).__name__}: {error})"
        return self._whole(seen), {**unseen, **session.unavailable}

    def _whole(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The observations of the topics with the watcher's own."""
        session, seconds = self.session, self.seconds
        found: dict[str, Any] = {"steps": self.clock.summary(session, self._unit())}
        found |= {topic: one for topic, one in seen.items() if one is not None}
        found["overhead"] = {
            "share_of_run": session.overhead_seconds / seconds if seconds else 0.0,
            "topics": {
                topic: {"calls": int(calls), "seconds": spent} for topic, (calls, spent) in session.overhead.items()
            },
        }
        return found

    def forked(self) -> None:
        """This is a forked child now: a window that was open is the parent's."""
        self.window.forget()
        if self.session.phase is Phase.PROFILE:
            self.session.phase = Phase.TIME

    def release(self) -> None:
        """Remove the watcher's own hooks, too: no further exit is needed."""
        self._hooks.take_back()

    def _unit(self) -> str:
        return "backward" if self._by_backward else "optimizer step"

    @property
    def seconds(self) -> float:
        """Seconds since the watcher was created."""
        return time.perf_counter() - self._began
