"""The window in which one whole iteration is profiled; it yields to the program's own profiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ldlm_lint.probe.native_log import without_warnings
from ldlm_lint.probe.session import Phase, Session

TOPIC = "profiled step"
# Iterations with a change to evaluation mode are skipped this often; some programs make one in each.
MOST_SPOILT = 2


class Window:
    """A torch.profiler window over one iteration: operators, memory, and kernels where there is an accelerator."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profile: Any = None
        self._starting = False
        self._openings = 0
        self._undo: Callable[[], None] | None = None
        self._log_again: Callable[[], None] | None = None
        self.spoilt = False

    def watch_for_others(self) -> None:
        """Have a profiler that the program starts close the window first: two at a time spoil the program's result."""
        module = self._session.torch.autograd.profiler
        for owner, name in ((module.profile, "_prepare_trace"), (module.profile, "__enter__")):
            self._session.patch(owner, name, self._giving_way, TOPIC)
        for name in ("emit_nvtx", "emit_itt"):
            if hasattr(module, name):
                self._session.patch(getattr(module, name), "__enter__", self._giving_way, TOPIC)

    def _giving_way(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(*arguments: Any, **options: Any) -> Any:
            if self._profile is not None and not self._starting:
                self.drop("the program started its own profiler")
            return original(*arguments, **options)

        return enter

    def open(self) -> bool:
        """Begin to profile; False, with the reason noted, where it cannot be done."""
        session = self._session
        if TOPIC in session.unavailable:
            return False
        if self._others_run():
            session.unavailable[TOPIC] = "the program runs its own profiler"
            return False
        if getattr(session.torch._C, "_current_graph_task_id", lambda: -1)() != -1:
            # The state of a profiler belongs to the thread's state, which the engine restores after the pass.
            session.unavailable[TOPIC] = "the optimizer steps inside the backward pass"
            return False
        self.spoilt = False
        self._openings += 1
        session.guard(TOPIC, self._start)
        if self._profile is not None and self._openings <= MOST_SPOILT:
            self._undo = session.patch(session.torch.nn.Module, "train", self._ending_at_evaluation, TOPIC)
        return self._profile is not None

    def _others_run(self) -> bool:
        torch = self._session.torch
        enabled = getattr(torch.autograd.profiler, "_is_profiler_enabled", None)
        if enabled is None:
            enabled = getattr(torch.autograd, "_profiler_enabled", lambda: False)()
        return bool(enabled)

    def _ending_at_evaluation(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """An iteration with a whole evaluation in it is not representative, and its profile may not fit into memory."""

        def train(module: Any, mode: bool = True) -> Any:
            if not mode and not self._session.compiling() and self._profile is not None:
                self._end()
                self.spoilt = True
            return original(module, mode)

        return train

    def _end(self) -> Any:
        """Stop the profile and return it if that went well; the window is shut then in any case."""
        session, profile = self._session, self._profile
        self._profile = None
        if self._undo is not None:
            self._undo()
            self._undo = None
        stopped = session.guard(TOPIC, self._stop, profile)
        self._end_silence()
        return profile if stopped else None

    def _end_silence(self) -> None:
        if self._log_again is not None:
            self._log_again()
            self._log_again = None

    def _start(self) -> None:
        profiler = self._session.torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self._session.device == "cuda":
            activities.append(profiler.ProfilerActivity.CUDA)
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        self._starting = True
        try:
            profile = profiler.profile(activities=activities, profile_memory=True)
            self._log_again = without_warnings(self._session.torch)
            profile.start()
            self._profile = profile
        finally:
            self._starting = False
            if self._profile is None:
                self._end_silence()

    def close(self) -> None:
        """End the window and pass the profile to the observers."""
        session = self._session
        profile = self._end() if self._profile is not None else None
        if profile is not None:
            for observer in session.observers:
                session.guard(observer.topic, observer.profiled, session, profile)

    def drop(self, reason: str) -> None:
        """End the window without a result."""
        if self._profile is not None:
            self._end()
        self._session.unavailable.setdefault(TOPIC, reason)
        self._session.phase = Phase.TIME

    def forget(self) -> None:
        """Leave an open window to the process that this one was forked from."""
        self._profile = None
        self._end_silence()

    @staticmethod
    def _stop(profile: Any) -> bool:
        profile.stop()
        return True
