"""Segments of activation checkpointing: what a call of torch's ``checkpoint`` runs, and what the reentrant implementation does
not support in it.

    hidden = checkpoint(self.block, hidden, mask, use_reentrant=False)

The reentrant implementation is an autograd function of the tensors among the inputs: it takes no keywords for the function,
does not look into containers, and gives gradients only if one of these tensors requires one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.recomputing import CHECKPOINT, Recomputing
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.modules import FROZEN_WHEN_MADE, OWN_KEYWORDS
from ldlm_lint.vocabulary.tensors import LEARNS_NOTHING

_DEFAULT_CONTEXT = "torch.utils.checkpoint.noop_context_fn"
_ASKS = frozenset({"requires_grad", "requires_grad_"})


class Segment(NamedTuple):
    """A call of ``checkpoint``: the function that it runs, and the inputs that it passes by position."""

    call: Call
    run: Expr
    inputs: list[Expr]

    @property
    def keywords(self) -> set[str] | None:
        """The keywords that it passes on to its function; None if it unpacks a mapping."""
        return None if self.call.unpacked else set(self.handed)

    @property
    def handed(self) -> list[str]:
        """Those that are written in it."""
        return [name for name, _ in self.call.keywords if name and name not in OWN_KEYWORDS]

    @property
    def has_stars(self) -> bool:
        """Whether it unpacks inputs."""
        return any(one.kind == "star" for one in self.inputs)

    @property
    def fails_for(self) -> list[str]:
        """The keyword-only parameters of its function that make it fail, whichever function of the project that is."""
        found = [] if self.has_stars else [one.refuses(self.inputs, self.keywords) for one in self.run.signatures]
        return found[0] if found and all(found) else []

    @property
    def is_taken(self) -> bool | None:
        """Whether its function takes all that it passes on; None if that is not known."""
        given = None if self.has_stars else self.keywords
        found = {one.takes(self.inputs, given) for one in self.run.signatures} if given is not None else set()
        return found.pop() if len(found) == 1 else None


class Misuse(NamedTuple):
    """What the reentrant implementation does not support in a call: arguments that it rejects, by their names, or else an
    input, a container of tensors or one that requires no gradient."""

    rejected: list[str]
    input: Expr | None = None


class Segments(Concept):
    """The segments of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._untrained = code[Untrained]
        self._asking: dict[Function, bool] = {}

    @cached_property
    def all(self) -> list[Segment]:
        """All calls of ``checkpoint`` that write out the function to run."""
        calls = (call for call in self.code.calls({CHECKPOINT}) if CHECKPOINT in call.callee.outside_names)
        return [Segment(call, call.positional[0], call.positional[1:]) for call in calls if call.positional and call.positional[0].kind != "star"]

    @cached_property
    def _misuses(self) -> dict[Call, Misuse]:
        found = ((one.call, self._found_in(one)) for one in self.all if self.code[Recomputing].is_reentrant(one.call))
        return {call: misuse for call, misuse in found if misuse is not None}

    def misuse(self, call: Call) -> Misuse | None:
        """What the implementation that a call uses does not support in it."""
        return self._misuses.get(call)

    @cached_property
    def failing(self) -> dict[Call, list[str]]:
        """The calls that fail for keyword-only parameters of their functions, with these."""
        found = ((one.call, one.fails_for) for one in self.all)
        return {call: names for call, names in found if names}

    def _found_in(self, segment: Segment) -> Misuse | None:
        if segment.handed:
            return Misuse(segment.handed)
        option = next((name for name, given in segment.call.keywords if _is_for_the_other(name, given)), None)
        if option is not None:
            return Misuse([option])
        given = None if segment.has_stars else self._container(segment) or self._gradless(segment)
        return Misuse([], given) if given is not None else None

    def _container(self, segment: Segment) -> Expr | None:
        """A container with a tensor that gets no gradient; if nothing else is passed, with anything that may be one."""
        containers = [one for one in segment.inputs if one.unnamed.kind in ("seq", "map")]
        is_alone = len(containers) == len(segment.inputs)
        for container in containers:
            parts = container.unnamed.entries or container.unnamed.operands
            if any(map(self._carries_gradient, parts)) or (is_alone and not all(_learns_nothing(one, segment.call.function) for one in parts)):
                return container
        return None

    def _carries_gradient(self, value: Expr) -> bool:
        """Whether a value is surely the output of a layer that trains, or computed from one."""
        ways = list(_ways(value))
        return all(isinstance(one, Call) and self._computes(one) for one in ways)

    def _computes(self, call: Call) -> bool:
        callee = call.callee
        if callee.outside_names:
            return CHECKPOINT in callee.outside_names or (_is_of_torch(callee.outside_names) and any(map(self._carries_gradient, call.positional)))
        is_layer = any(_is_of_torch(frozenset([one])) for one in callee.made_by) or any(one.is_module for one in callee.classes_of)
        return is_layer and not self._untrained.trains_nothing(call)

    def _gradless(self, segment: Segment) -> Expr | None:
        """The first input, if it surely requires no gradient and no other one does."""
        call, function = segment.call, segment.call.function
        if not segment.inputs or not self._starts_anew(segment.inputs[0], call) or self._untrained.records_nothing(call) or self._asks_for_gradients(function):
            return None
        return segment.inputs[0] if all(_learns_nothing(one, function) or self._starts_anew(one, call) for one in segment.inputs[1:]) else None

    def _asks_for_gradients(self, function: Function) -> bool:
        """Whether a function makes inputs require gradients, or tests for that before it checkpoints."""
        if function not in self._asking:
            self._asking[function] = any(one.name in _ASKS for one in function.expressions) or any(write.name in _ASKS for write in function.writes)
        return self._asking[function]

    def _starts_anew(self, value: Expr, call: Call) -> bool:
        """Whether no gradient flows from an input of a call to what it was computed from; its own result in the pass of a loop
        before does not count."""
        ways = [one for one in _ways(value) if one != call]
        return bool(ways) and all(map(self._is_cut_off, ways))

    def _is_cut_off(self, value: Expr) -> bool:
        while value.kind in ("item", "part", "attr") and value.base is not None:
            value = value.base.unnamed
        if not isinstance(value, Call):
            return False
        if value.called_name == "detach" and value.receiver is not None and not value.arguments:
            return True
        # The indices that an embedding gets carry no gradient.
        made = (one.plain for one in value.callee.set_to)
        is_embedding = any(isinstance(one, Call) and not one.callee.outside_names.isdisjoint(FROZEN_WHEN_MADE) for one in made)
        return self._untrained.records_nothing(value) or (is_embedding and self._untrained.trains_nothing(value))


def _ways(value: Expr) -> Iterator[Expr]:
    """What a value may be, through names that hold it."""
    return (one for one in value.origins(Through.NAMES) if one.kind not in ("copy", "phi"))


def _is_of_torch(names: frozenset[str]) -> bool:
    return all(one.startswith("torch.") for one in names)


def _is_for_the_other(name: str, given: Expr) -> bool:
    if name == "context_fn":
        return given.constant is not None and _DEFAULT_CONTEXT not in given.outside_names
    return name == "debug" and given.is_just(True)


def _learns_nothing(value: Expr, function: Function) -> bool:
    """Whether a value requires no gradient in any model: a number, or by its name in a function a mask, an index, a size."""
    return value.kind == "const" or value.is_of_python or LEARNS_NOTHING.search(value.called_in(function).rpartition(".")[2]) is not None


__all__ = ["Misuse", "Segment", "Segments"]
