"""Objects that run a stack of blocks of any kind, one after the other, without recomputing them: as one checkpointed segment
they save no memory.

    self.backbone = nn.Sequential(*[Block(width) for _ in range(depth)])
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.concepts.models import Models
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.vocabulary.blocks import CONTAINERS, SWITCH_ARGUMENT

_COPIES = frozenset({"copy.deepcopy", "copy.copy"})


class BlockStacks(Concept):
    """Answers for calls that build a part of a model, and for the classes of models."""

    def blocks_of(self, made: Call, model: Class) -> str:
        """The blocks that the object which a model makes in a call runs in turn, in words; empty if it runs no such blocks."""
        if not made.classes_of:
            whole = (one.what for one in self.code[Models].stacks(model) if one.call == made)
            return self._held_by(made) or next(whole, "")
        functions = [function for owner in made.classes_of[0].bases for function in owner.functions]
        calls = [call for function in functions for call in function.calls]
        if len(made.classes_of) > 1 or any(SWITCH_ARGUMENT.search(call.called_name) for call in calls):
            return ""
        return next(filter(None, map(self._held_by, calls)), "") or next((_run_in_turn(one) for one in functions if one.name == "forward"), "")

    def _held_by(self, container: Call) -> str:
        """The blocks that a container gets from a comprehension, or that a loop appends to it."""
        block = next(iter(self._blocks_in(container)), None)
        if block is None or not block.loops or self.code[Models].is_short(block.loops[0]):
            return ""
        while block.callee.outside_names & _COPIES and block.positional and isinstance(block.positional[0].unnamed, Call):
            block = block.positional[0].unnamed
        return f"every `{block.called_name}`"

    @staticmethod
    def _blocks_in(container: Call) -> Iterator[Call]:
        for given in container.positional[:1]:
            inner = given.base.unnamed if given.kind == "star" and given.base is not None else given.unnamed
            if container.called_name in CONTAINERS and inner.kind in ("comp", "dcomp"):
                inner = inner.operands[-1].unnamed
            elif container.called_name != "append" or not _is_module(inner):
                continue
            if isinstance(inner, Call):
                yield inner

    def is_one_of_many(self, model: Class) -> bool:
        """Whether a loop, or one function twice, makes objects of a class, which is then itself a block."""
        made = self.code[RecordedRuns].constructions(model)
        functions = [call.function for call in made]
        return any(call.loops for call in made) or len(functions) > len(set(functions)) or any(map(_is_called_in_loop, functions))


def _is_module(value: Expr) -> bool:
    return any(one.is_module for one in value.classes_of) or any(name.startswith("torch.nn.") for name in value.made_by)


def _run_in_turn(forward: Function) -> str:
    """The blocks of ``for block in self.blocks: x = block(x)``, whatever made them."""
    for loop in forward.loops:
        called = (call.callee.unnamed for call in loop.calls)
        if loop.kind == "for" and loop.value.kind == "attr" and any(one.kind == "elem" and one.base == loop.value for one in called):
            return f"every module of `{loop.value.name}`"
    return ""


def _is_called_in_loop(function: Function) -> bool:
    """Whether calls that lead to a function are in loops."""
    todo, seen = [function], {function}
    for one in todo:
        callers = () if one.is_module else one.callers
        if any(call.loops for call in callers):
            return True
        new = {call.function for call in callers} - seen
        seen |= new
        todo += sorted(new, key=lambda other: other.key)
    return False


__all__ = ["BlockStacks"]
