"""What a value is read from the device for: some uses need it immediately on the host; others could read it later, or never.

    if torch.isnan(loss):                                         # decides now
    count = int(mask.sum()); padded = x[:count]                   # a size
    total += loss.item()                                          # is only added up
    answer = requests.post(url, json=ids.tolist()).json()         # leaves the process
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator

from ldlm_lint.concepts.agreement import Agreement
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.type_tests import is_told_from_tensors, may_be_array, root_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import HOMES, MAY_BE_ON_DEVICE
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.spots import Event, Spot
from ldlm_lint.program.walks import MOST, reached
from ldlm_lint.vocabulary.reading import (
    ANSWERS,
    COLLECTS,
    DECODES,
    FINITE,
    HANDS_ON,
    MAKES_SIZES,
    READS,
    SENDS,
    TAKES_HOST_VALUES,
)
from ldlm_lint.vocabulary.tensors import is_method_of_tensor

_THROUGH = frozenset({"op", "un", "bool", "cmp", "choice", "not", "phi", "copy", "comp", "seq"})
_WHOLE = frozenset({"phi", "copy", "op", "un", "comp", "seq", "choice"})
_MADE_OF_PARTS = frozenset({"item", "attr", "part", "copy", "phi", "choice", "op", "un", "cmp", "bool", "not", "seq", "elem", "comp", "star", "enter"})
_GIVES = frozenset({"bind", "write", "return", "yield", "store", "add"})
_LEARNS = frozenset({"backward", "step", "zero_grad"})
_GROWS = frozenset({"append", "extend", "insert", "update", "setdefault", "add"})
# An environment takes its actions, and packing its lengths, from the host; only their names show it.
_NEEDED_ON_HOST = lazily(r"(^|_)(actions?|act|acts|choice|lengths?|lens|seq_?lens?|sizes?|splits?)(_|$)", re.I)
_ACTION = lazily(r"(^|_)actions?(_|$)")


class Need(enum.Enum):
    """The purpose for which the host needs a value immediately."""

    DECIDES = "decides"
    FINITE = "finite"
    SIZES = "sizes"
    INDEXES = "indexes"


class _UnknownError(Exception):
    """Something that is not known, or that a model computes, is a part of a value."""


class Reads(Concept):
    """Answers for the expressions that a program reads from the device."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]

    def need_of(self, read: Expr) -> Need | None:
        """The immediate need for a read value or its variable; None if it could be read later."""
        finite = {read: _asks_finite(read)}
        for at in reached([read], _handed_on):
            if any(event.kind == "test" for event in at.events):
                return Need.FINITE if finite[at] else Need.DECIDES
            for user in at.users:
                need = _need_of_user(at, user)
                if need is not None:
                    return need
                finite[user] = finite.get(user, False) or finite[at] or _names_finite(user)
        return None

    def only_decides_what_runs(self, read: Expr, function: Function) -> bool:
        """Whether the conditions on a value only decide which statements run: these end the block, or call something, and
        give no tensor to what follows.

            if loss.item() > limit:                       # a value: scaled = torch.where(loss > limit, …)
                loss = loss * 0.5
            if int(self.steps.sum().item()) % every:      # only Python can skip a save
                return
        """
        made = list(reached([read], _handed_on))
        if any(user.test == one for one in made for user in one.users):
            return False
        arms = {guard for one in made for guard in one.guards_on if guard.is_test}
        called = [call for call in function.calls if not arms.isdisjoint(call.guards)]
        if not arms or not (called or any(guard.ends for guard in arms)):
            return False
        given = (event for event in function.events if event.kind in _GIVES and not arms.isdisjoint(event.spot.guards))
        return not any(map(_gives_tensor, given)) and not any(map(_changes_tensor, called))

    def is_added(self, read: Expr) -> bool:
        """Whether a value is added unchanged to a sum where it is read, and used nowhere else: ``total += loss.item()``."""
        return _is_added(read) and not _is_bound(read)

    def is_only_kept(self, read: Expr) -> bool:
        """Whether a read value or its variable is only shown, collected or summed up in its function."""
        return _is_kept(read, True, set())

    def has_to_be_on_host(self, read: Expr, spot: Spot) -> bool:
        """Whether a value that is read comes from the host, has to be there, or is one on which all ranks have agreed."""
        if self.code[Agreement].decides(read, spot.function) or self._is_only_sent(read):
            return True
        if not isinstance(read, Call):
            return False
        value = read.receiver if not read.positional else read.positional[0]
        if read.receiver is not None and read.callee.name in READS:
            value = read.receiver
            if self._is_sent(read) or _is_needed(read, value) or may_be_array(spot, value):
                return True
        return value is not None and is_told_from_tensors(spot, value)

    def _is_only_sent(self, tensor: Expr) -> bool:
        """Whether a tensor is only read to be sent: ``row[keep].tolist()``, where the list is sent."""
        methods = tensor.users
        reads = [call for one in methods if one.kind == "attr" and one.name in READS for call in one.users]
        return bool(reads) and len(reads) == len(methods) and all(map(self._is_sent, reads))

    def _is_sent(self, read: Expr) -> bool:
        """Whether another process, or a function of the host whose result is used, gets a value or what is made of it.

        What is only written down (a webhook without a read of its answer, a log) can wait.
        """
        return any(_sends(user, at) for at in reached([read], _led_to) for user in at.users)

    def are_of_batch(self, exprs: Iterable[Expr]) -> bool:
        """Whether expressions are surely made of a batch, and of nothing that a model, or anything unknown, computed: they
        could be where the batch is made."""
        try:
            behind = list(reached(exprs, self._made_of))
        except _UnknownError:
            return False
        return len(behind) < MOST and any(map(self._is_batch, behind))

    def _is_batch(self, expr: Expr) -> bool:
        """Whether an expression is what a loop of steps takes, or what a framework passes to a step."""
        if expr.kind == "param":
            return self._steps.is_whole(expr.function) and expr.function.name != "forward"
        return expr.kind == "elem" and expr.base is not None and self._steps.repeats(expr.base)

    def _made_of(self, expr: Expr) -> list[Expr]:
        """The expressions that one is made of. A number of Python comes from no model."""
        if self._is_batch(expr) or expr.kind in ("const", "none") or (expr.value and not expr.value & HOMES):
            return []
        if isinstance(expr, Call):
            return _made_of_call(expr)
        is_given = expr.kind == "param" or expr.owner_of_self is not None
        if not is_given and expr.kind in _MADE_OF_PARTS:
            return expr.operands
        found = expr.given or expr.set_to
        if not found:
            raise _UnknownError
        return found


def _handed_on(expr: Expr) -> list[Expr]:
    """The numbers, tests and lists that are made of an expression."""
    return [user for user in expr.users if user.kind in _THROUGH or (isinstance(user, Call) and expr in user.positional and user.called_name in HANDS_ON | FINITE)]


def _names_finite(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.called_name in FINITE


def _asks_finite(expr: Expr) -> bool:
    """``torch.isnan(x)``, ``x.isnan().any()``."""
    return any(map(_names_finite, reached([expr], lambda at: at.operands if at.kind in ("call", "attr", "not", "bool") else [])))


def _need_of_user(value: Expr, user: Expr) -> Need | None:
    if user.kind == "slice" or (isinstance(user, Call) and value in user.positional and user.called_name in MAKES_SIZES):
        return Need.SIZES
    return Need.INDEXES if user.kind == "item" and user.index == value else None


def _gives_tensor(event: Event) -> bool:
    """Whether a statement may give a tensor to later ones."""
    return _may_be_tensor(event.added or event.expr.put or event.expr)


def _may_be_tensor(expr: Expr) -> bool:
    return expr.unnamed.kind not in ("none", "const") and (not expr.value or expr.may_be_tensor)


def _changes_tensor(call: Call) -> bool:
    """Whether a call changes a tensor in place, puts one into a container, or is part of learning."""
    name = call.called_name
    if name in _LEARNS or (name.endswith("_") and not name.endswith("__")) or any(loop.kind == "comp" for loop in call.loops[:1]):
        return True
    return name in _GROWS and any(map(_may_be_tensor, call.arguments))


def _is_bound(expr: Expr) -> bool:
    return any(event.kind == "bind" for event in expr.events)


def _is_added(expr: Expr) -> bool:
    return any(event.kind == "add" and event.added == expr for event in expr.events)


def _is_kept(expr: Expr, may_be_bound: bool, seen: set[Expr]) -> bool:
    if _is_added(expr) or any(event.kind == "write" for event in expr.events):
        return True
    users = [one for one in expr.users if one not in seen and not _is_idle(one)]
    if expr.returned_by or len(seen) > MOST or (_is_bound(expr) and not may_be_bound):
        return False
    seen.update(users)
    return bool(users) and all(_keeps(expr, one, seen) for one in users)


def _is_idle(expr: Expr) -> bool:
    """Whether a use of a value leads nowhere: carried on by a loop and never read."""
    return expr.kind in ("phi", "copy") and not expr.users and not expr.returned_by


def _keeps(value: Expr, user: Expr, seen: set[Expr]) -> bool:
    """Whether a use shows, collects or adds up a value."""
    if user.kind in ("map", "fstr", "upd", "dcomp"):
        return True
    if isinstance(user, Call) and value != user.callee:
        is_statement = not user.users and not _is_bound(user) and not user.returned_by
        return is_statement or _is_kept(user, user.called_name in HANDS_ON, seen)
    return user.kind in _WHOLE and _is_kept(user, True, seen)


def _is_needed(read: Call, tensor: Expr) -> bool:
    """Whether a method that reads a tensor provides something that must be on the host: actions for an environment, lengths
    for packing, costs for a solver.

    A number that tensors are created or sliced with does not belong to them: it can be computed before the batch is
    moved.
    """
    names = {tensor.last_name, _name_of(root_of(tensor)), *_names_given(read)}
    if read.callee.name == "item" and not read.returned_by:
        if any(map(_ACTION.search, names)):
            return True
    elif any(map(_NEEDED_ON_HOST.search, names)):
        return True
    taken = reached([read], lambda at: [user for user in at.users if user.kind != "cmp"])
    users = ((at, user) for at in taken for user in at.users)
    return any(isinstance(user, Call) and at != user.callee and user.called_name in TAKES_HOST_VALUES for at, user in users)


def _name_of(expr: Expr) -> str:
    """The name of a parameter or of another module's value, or the one that it is bound to; empty if there is none."""
    if expr.kind in ("param", "free", "impf"):
        return expr.name
    return next((event.name for event in reversed(expr.events) if event.kind == "bind"), "")


def _names_given(expr: Expr) -> set[str]:
    """The variables that a value, or the result of its statement, is bound to."""
    behind = reached([expr], lambda at: [] if _is_bound(at) else at.users)
    return {_name_of(at) for at in behind if _is_bound(at)}


def _led_to(expr: Expr) -> Iterator[Expr]:
    """What a value is handed on to: what is made of it, a container, a parameter of a function of the project, its
    result."""
    for user in expr.users:
        if user.kind == "cmp" or user.value & MAY_BE_ON_DEVICE:
            # A tensor that is made of it is not on the host.
            continue
        yield user
        if isinstance(user, Call) and expr != user.callee:
            if user.receiver is not None and user.callee.name in COLLECTS:
                yield from user.receiver.containers
            yield from user.parameters_for(expr)
    for function in expr.returned_by:
        yield from function.callers


def _sends(user: Expr, value: Expr) -> bool:
    """Whether a call hands an argument to another process, or to the host, and its answer is used."""
    if not isinstance(user, Call) or value == user.callee:
        return False
    leaves = user.called_name in DECODES or any(one.partition(".")[0] in SENDS for one in _packages(user.callee))
    return leaves and (user.called_name in ANSWERS or bool(user.users) or bool(user.returned_by))


def _packages(function: Expr) -> Iterator[str]:
    """The names of other packages that a function has, or the object whose method it is, or what made that."""
    for at in reached([function], _maker):
        yield from at.outside_names | at.made_by


def _maker(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return [expr.callee]
    base = [expr.base] if expr.base is not None and expr.kind in ("attr", "copy", "enter") else []
    return expr.given or expr.set_to or base


def _made_of_call(call: Call) -> list[Expr]:
    """The expressions that a result is made of, unless a model of the project computes it, or something unknown."""
    if call.targets:
        if any(_is_module(one.owner) for one in call.targets):
            raise _UnknownError
        return call.results
    names, receiver = call.callee.outside_names, call.receiver
    if receiver is not None and not names and is_method_of_tensor(call.callee.name):
        return [*call.arguments, receiver]
    if not names or not all(name.startswith(("torch.", "builtins.")) for name in names):
        raise _UnknownError
    return call.arguments


def _is_module(owner: Class | None) -> bool:
    return owner is not None and owner.is_module


__all__ = ["Need", "Reads"]
