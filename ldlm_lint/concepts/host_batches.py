"""Loops that put each batch on the CPU before their model sees it: such a training computes on the host."""

from __future__ import annotations

from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import Through

_MOVES = frozenset({"to", "cuda", "npu", "xpu"})


class HostBatches(Concept):
    """Answers for the functions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Function, bool] = {}

    def trains_on(self, function: Function) -> bool:
        """Whether a function trains on batches and puts every part of them on the CPU: ``batch[key] = value.to("cpu")``."""
        if function not in self._known:
            stored = (event.expr for event in function.events if event.kind == "store")
            on_host = any(self._is_batch(one) and one.put is not None and self._is_moved_to_host(one.put) for one in stored)
            self._known[function] = on_host and not any(map(self._moves, function.calls))
        return self._known[function]

    def _is_batch(self, stored: Expr) -> bool:
        """Whether a container is the batch of a step's loop."""
        behind = stored.origins(Through.NAMES | Through.PARTS)
        return any(one.kind == "elem" and one.base is not None and self.code[Steps].repeats(one.base) for one in behind)

    def _is_moved_to_host(self, expr: Expr) -> bool:
        call = expr.plain
        if not isinstance(call, Call):
            return False
        return call.called_name == "cpu" or (call.called_name == "to" and bool(call.positional) and self.program.is_cpu(call.positional[0].value))

    def _moves(self, call: Call) -> bool:
        """Whether a call moves something to the device in a loop."""
        return bool(call.loops) and call.receiver is not None and call.called_name in _MOVES and not self._is_moved_to_host(call)


__all__ = ["HostBatches"]
