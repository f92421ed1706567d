"""The texts of messages about waits: the code, and the advice, by the purpose of the read."""

from __future__ import annotations

import ast

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.expressions import end_of
from ldlm_lint.concepts.reading import Need, Reading
from ldlm_lint.concepts.waits import Wait
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.wording import quoted

_NEEDED = "compute it on the CPU before the batch is moved, or use `torch.where`"
_TESTED = "use `torch.where`, or test only every N steps"
_SHOWN = "show it only every N steps"
_COPIED = "keep %s on the GPU and copy it to the CPU only when you log"
_SIZED = "only the GPU knows the size of its result; compute it on the CPU before the batch is moved, or use a mask"
_FIXED = {
    "mask": "use `torch.where`, which does not need the number of elements",
    "size": "compute the size on the CPU before the batch is moved",
    "slice": "compute the bound on the CPU before the batch is moved, or use a mask",
    "format": _SHOWN,
    "print": _SHOWN,
    "type": "keep it on the GPU and copy it to the CPU only when you log",
    "add_scalar": "write it only every N steps",
    "scale": "read the scale only every N steps",
    "repeat_interleave": "give `output_size` if the length of the result is known",
    **dict.fromkeys(("nonzero", "unique", "masked_select", "argwhere", "where", "unique_consecutive"), _SIZED),
}
_LATER = "keep it on the GPU if you only log it, otherwise compute it before the batch is moved, or use `torch.where`"
_READS = frozenset({"item", "tolist", "cpu", "to", "numpy"})
_CONVERTS = frozenset({"float", "int", "bool"})
# A longer tensor is named by the beginning of the message already.
_LONGEST = 40
_READ_LATER = "the sum becomes a tensor, and code that reads it must call `.item()` there"
_ITEM = ".item()"


class WaitTexts:
    """The texts of the waits of a project."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._readings: dict[int, Reading] = {}

    def reading(self, wait: Wait) -> Reading:
        """The purposes of reads in the wait's module."""
        if wait.module.index not in self._readings:
            self._readings[wait.module.index] = Reading(wait.module)
        return self._readings[wait.module.index]

    def advice(self, wait: Wait) -> str:
        """The advice: a value that is needed immediately must be known earlier, any other can be read later."""
        name = wait.what.removeprefix("torch.").removeprefix("?")
        if name in _FIXED:
            return _FIXED[name]
        need = self.reading(wait).need_of(wait.node)
        if need is Need.FINITE:
            return _TESTED
        if need is not None or name in ("test", "truth"):
            return _NEEDED
        call = self._written(wait)
        if call is None or not (name in _READS or name in _CONVERTS):
            return _LATER
        if isinstance(call.func, ast.Attribute) and name in _READS:
            return self._later(wait, call.func.value, f"`.{name}()`" if name not in ("cpu", "to") else "")
        return self._later(wait, call.args[0], f"`{name}()`") if call.args else _LATER

    def _later(self, wait: Wait, tensor: ast.expr, read: str) -> str:
        """The advice to keep a detached tensor and to read it only occasionally; outside of its function it may be
        needed."""
        text = ast.unparse(tensor).removesuffix(".data")
        is_kept = self.reading(wait).is_only_kept(wait.node)
        if not read and not is_kept:
            return f"keep {quoted(text, _LONGEST)} on the GPU, or copy it only every N steps"
        kept = text if ".detach()" in text else f"{text}.detach()"
        shown = quoted(kept) if len(kept) <= _LONGEST else "the tensor"
        if not is_kept:
            return f"keep {shown} if you only log it, otherwise compute it before the batch is moved, or use `torch.where`"
        return f"keep {shown} and call {read} only when you log" if read else _COPIED % shown

    def _written(self, wait: Wait) -> ast.Call | None:
        written = self.view.expressions(wait.module).get(wait.place, ())
        return next((one for one in written if isinstance(one, ast.Call) and end_of(one) == wait.end), None)

    def fix(self, wait: Wait) -> Fix | None:
        """``total += loss.detach()``: a read that only adds up can become a tensor without more ado."""
        source = self.view.source(wait.module)
        span = self.view.span(wait.module, wait.place, wait.end)
        if wait.what.removeprefix("?") != "item" or not self.reading(wait).is_added(wait.node) or not source.slice(span).endswith(_ITEM):
            return None
        edit = Edit(source.span(span.end - len(_ITEM), span.end), ".detach()")
        return Fix("add up the tensor instead of its value", (edit,), Applicability.DISPLAY, _READ_LATER)
