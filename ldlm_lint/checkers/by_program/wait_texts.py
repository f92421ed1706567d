"""The texts of messages about waits: the code, and the advice, by the purpose of the read."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import parts_of
from ldlm_lint.concepts.decided import Decided
from ldlm_lint.concepts.early_values import EarlyValues
from ldlm_lint.concepts.reading import Need, Reading
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.waits import Wait
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.program.atoms import HOMES
from ldlm_lint.program.handles import Function
from ldlm_lint.program.operands import operands
from ldlm_lint.vocabulary.reading import READS
from ldlm_lint.wording import quoted

_TESTED = "use `torch.where`, or test only every N steps"
_SHOWN = "show it only every N steps"
_COPIED = "keep %s on the GPU and copy it to the CPU only when you log"
_ALL_AT_ONCE = "read all of them at once with one `.tolist()`"
_FILLED = "use `torch.where`, which does not need the number of elements"
_FIXED = {
    "format": _SHOWN,
    "print": _SHOWN,
    "type": "keep it on the GPU and copy it to the CPU only when you log",
    "add_scalar": "write it only every N steps",
    "scale": "read the scale only every N steps",
    "repeat_interleave": "give `output_size` if the length of the result is known",
}
_OF_UNKNOWN_SIZE = ("nonzero", "unique", "masked_select", "argwhere", "where", "unique_consecutive")
_ON_HOST_FIRST = "compute it on the CPU before the batch is moved"


class _Advice(NamedTuple):
    """What to do instead of a wait: for a value that a batch alone decides, and for one that the model computed."""

    of_batch: str
    of_model: str


_DECIDED = _Advice(f"{_ON_HOST_FIRST}, or use `torch.where`", "decide it on the GPU: `torch.where`, `clamp` and `torch.maximum` take tensors")
_RUNS = _Advice(
    f"it decides which code runs: {_ON_HOST_FIRST}, or decide only every N steps",
    "it decides which code runs, and no tensor operation can: decide only every N steps, or count in Python",
)
_INDEXED = _Advice(_DECIDED.of_batch, "use `index_select` or `gather`, which take the index as a tensor")
_SIZED = _Advice("compute the size on the CPU before the batch is moved", "use a fixed size and a mask, or read all sizes with one `.tolist()`")
_BOUND = _Advice("compute the bound on the CPU before the batch is moved, or use a mask", "use a mask, or read all bounds with one `.tolist()`")
_SELECTED = _Advice(
    "select on the CPU before the batch is moved, or keep all rows and weigh them with the mask",
    "keep all rows and weigh them with the mask: `(x * mask).sum() / mask.sum()`",
)
_COUNTED = _Advice(
    f"only the GPU knows the size of its result; {_ON_HOST_FIRST}, or use a mask", "only the GPU knows the size of its result; use a mask or a fixed size"
)
_EXTREME = _Advice(f"{_ON_HOST_FIRST}, or use `torch.maximum` or `clamp`", "`torch.maximum`, `torch.minimum` and `clamp` give a tensor without a wait")
_OTHERWISE = _Advice("compute it before the batch is moved, or use `torch.where`", "use it as a tensor: `torch.where`, `clamp` and `torch.maximum` take one")
_BY_OPERATION = {"size": _SIZED, "slice": _BOUND, "mask": _SELECTED, "min": _EXTREME, "max": _EXTREME, "range": _SIZED, **dict.fromkeys(_OF_UNKNOWN_SIZE, _COUNTED)}
_BY_NEED = {Need.DECIDES: _DECIDED, Need.INDEXES: _INDEXED, Need.SIZES: _SIZED}
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
        self._early = view[EarlyValues]
        self._decided = Decided(view.program)

    def reading(self, wait: Wait) -> Reading:
        """The purposes of reads in the wait's module."""
        if wait.module.index not in self._readings:
            self._readings[wait.module.index] = Reading(wait.module)
        return self._readings[wait.module.index]

    def advice(self, wait: Wait) -> str:
        """The advice: a value that is needed immediately must be known earlier, or used on the GPU; any other can be read
        later."""
        name = wait.what.removeprefix("torch.").removeprefix("?")
        if name in _FIXED:
            return _FIXED[name]
        if name == "mask" and wait.module.nodes[wait.node][0] == "upd":
            return _FILLED
        if name in _BY_OPERATION:
            return self._of(wait, _BY_OPERATION[name])
        need = self.reading(wait).need_of(wait.node)
        if need is Need.FINITE:
            return _TESTED
        if self._is_one_of_many(wait):
            return _ALL_AT_ONCE
        if need is not None or name in ("test", "truth"):
            advice = _BY_NEED[need] if need is not None else _DECIDED
            only_runs = advice is _DECIDED and self._decided.is_only_what_runs(wait.module, self.reading(wait).made_of(wait.node))
            return self._of(wait, _RUNS if only_runs else advice)
        row = wait.module.nodes[wait.node]
        if row[0] == "call" and wait.module.nodes[row[1]][0] == "attr" and name in READS:
            written = self.view.expression_text(wait.module, row[1]).rpartition(".")[0].rstrip()
            return self._later(wait, written, f"`.{name}()`" if name not in ("cpu", "to") else "")
        if row[0] == "call" and row[2] and name in READS | _CONVERTS:
            return self._later(wait, parts_of(self.view, wait.module.base | wait.node)[0].text, f"`{name}()`")
        return f"keep it on the GPU if you only log it, otherwise {self._of(wait, _OTHERWISE)}"

    def _of(self, wait: Wait, advice: _Advice) -> str:
        """The advice for a value of the batch, if that is surely all that the value is made of."""
        read = [one for one in self._read(wait) if self.view.program.ask(wait.module.base | one) & HOMES]
        return advice.of_batch if read and self._early.are_of_batch(wait.module, read) else advice.of_model

    @staticmethod
    def _read(wait: Wait) -> list[int]:
        """The expressions that a waiting operation reads: of an index, or a call, what it is given."""
        module, row = wait.module, wait.module.nodes[wait.node]
        if row[0] in ("item", "upd"):
            return [one for one in operands(module.nodes[row[2]]) if one] if module.nodes[row[2]][0] in ("seq", "slice") else [row[2]]
        if row[0] != "call":
            return [wait.node]
        function = module.nodes[row[1]]
        return [*row[2], *(one for _, one in row[3]), *([function[1]] if function[0] == "attr" else [])]

    def _is_one_of_many(self, wait: Wait) -> bool:
        """Whether a loop inside of the step reads one entry of a tensor after another."""
        module, site = wait.module, wait.module.table.sites.get(wait.node)
        row = module.nodes[wait.node]
        if site is None or site.loop < 0 or site.loop in self.view[Steps].loops_of(Function(self.view, wait.function)):
            return False
        function = module.nodes[row[1]]
        value = function[1] if function[0] == "attr" and not row[2] else next(iter(row[2]), 0)
        read = module.plain(value)
        if read[0] == "item":
            return bool(module.plain(read[2])[0] in ("elem", "part"))
        return bool(read[0] == "elem" and self.view.program.ask(module.base | read[1]) & HOMES)

    def _later(self, wait: Wait, tensor: str, read: str) -> str:
        """The advice to keep a detached tensor and to read it only occasionally; outside of its function it may be
        needed."""
        text = tensor.removesuffix(".data")
        is_kept = self.reading(wait).is_only_kept(wait.node)
        if not read and not is_kept:
            return f"keep {quoted(text, _LONGEST)} on the GPU, or copy it only every N steps"
        kept = text if ".detach()" in text else f"{text}.detach()"
        shown = quoted(kept) if len(kept) <= _LONGEST else "the tensor"
        if not is_kept:
            return f"keep {shown} if you only log it, otherwise {self._of(wait, _OTHERWISE)}"
        return f"keep {shown} and call {read} only when you log" if read else _COPIED % shown

    def fix(self, wait: Wait) -> Fix | None:
        """``total += loss.detach()``: a read that only adds up can become a tensor without more ado."""
        source = self.view.source(wait.module)
        span = self.view.span(wait.module, wait.place, wait.end)
        if wait.what.removeprefix("?") != "item" or not self.reading(wait).is_added(wait.node) or not source.slice(span).endswith(_ITEM):
            return None
        edit = Edit(source.span(span.end - len(_ITEM), span.end), ".detach()")
        return Fix("add up the tensor instead of its value", (edit,), Applicability.DISPLAY, _READ_LATER)
