"""Backward passes: the calls that compute gradients, and the losses that they run backward.

    loss.backward()    engine.backward(loss)    fabric.manual_backward(loss)    loss_scaler(loss, optimizer)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.program.atoms import HOMES, MASK
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.vocabulary.losses import STEPPERS

BACKWARD = ("backward", "manual_backward")


class BackwardPasses(Concept):
    """The backward passes of a program."""

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """All of them, without those in methods of that name, which only hand on."""
        named = (Call(self.code, call) for name in BACKWARD for call in self.program.calls.get(name, ()))
        return (*(call for call in named if self._is_one(call)), *self._stepping)

    def steps_itself(self, call: Call) -> bool:
        """Whether a backward pass also steps the optimizer: an object of another package runs it."""
        return call in self._stepping

    def loss(self, call: Call) -> Expr | None:
        """What is run backward: the receiver, or the argument of an engine."""
        row, module = call.row, call.module
        if self.steps_itself(call):
            return Expr(self.code, module.base | row[2][0])
        receiver = call.receiver
        assert receiver is not None
        if not row[2]:
            return receiver if not self._is_own_object(receiver) else None
        is_engine = call.callee.last_name == "manual_backward" or not self.program.ask(receiver.key) & HOMES
        return Expr(self.code, module.base | row[2][0]) if is_engine and module.nodes[row[2][0]][0] != "const" else None

    def _is_one(self, call: Call) -> bool:
        receiver = call.receiver
        return receiver is not None and receiver.last_name != "()super" and not self._hands_on(call)

    @staticmethod
    def _hands_on(call: Call) -> bool:
        """Whether a call is in a method called like a backward pass: callers of the method run backward."""
        return call.function.name in BACKWARD and call.function.owner is not None

    @cached_property
    def _stepping(self) -> dict[Call, None]:
        """The calls of objects of other packages that run a loss backward and step the optimizer, by their names where they
        are created and passed on."""
        program = self.program
        made = [call for name in sorted({one.rpartition(".")[2] for one in STEPPERS}) for call in program.calls.get(name, ())]
        names = {name for call in made if self._is_stepper(call) for name in program.names_of(call)}
        return dict.fromkeys(self._calls_of_steppers(names))

    def _calls_of_steppers(self, names: set[str]) -> Iterator[Call]:
        for key in (key for name in sorted(names) for key in self.program.calls.get(name, ())):
            call = Call(self.code, key)
            if call.row[2] and self._is_stepper(call.callee.key):
                yield call

    def _is_stepper(self, key: int) -> bool:
        return any(fields[1] in STEPPERS for fields in self.program.atoms.kinds(self.program.ask(key), "o"))

    def _is_own_object(self, receiver: Expr) -> bool:
        """Whether something is an object of a class of the project: its ``backward()`` is a method, and it is not a loss."""
        value, kinds = self.program.ask(receiver.key), self.program.atoms.kinds
        return self.program.class_of_self(receiver.module, receiver.key & MASK) is not None or bool(kinds(value, "i") or kinds(value, "self"))
