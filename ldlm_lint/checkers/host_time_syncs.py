"""The places of a file where the host waits for the device, those together that one edit would mend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.fitted_inputs import fits_inputs
from ldlm_lint.checkers.host_batches import trains_on_host
from ldlm_lint.checkers.host_time_calls import formatted, is_made_an_array, is_text, moves_to, root_name
from ldlm_lint.checkers.host_time_names import reaching
from ldlm_lint.checkers.host_time_needs import is_needed
from ldlm_lint.checkers.host_time_options import is_never_chosen
from ldlm_lint.checkers.host_time_values import DEVICE, HOST, Homes
from ldlm_lint.patterns import lazily
from ldlm_lint.python.agreed import is_agreed
from ldlm_lint.python.host_names import CONVERTS, PREDICATES, READS
from ldlm_lint.python.names import last_name, qualified, scope_of
from ldlm_lint.python.off_by_default import is_off_by_default
from ldlm_lint.python.places import function_of
from ldlm_lint.python.rarity import in_evaluation, is_rare
from ldlm_lint.python.type_tests import is_told_from_tensors, may_be_array
from ldlm_lint.python.walks import nodes_of

_WAITING = READS | CONVERTS | {"to"}
_FINITE_TESTS = lazily(r"^(math|numpy)\.(isnan|isinf|isfinite)$")
_MODULE = lazily(r"model|net|module|encoder|decoder|discriminator|generator", re.I)
_NO_TENSORS = (nodes.Const, nodes.Starred, nodes.JoinedStr, nodes.Dict, nodes.List, nodes.Tuple)
_PLACES = (nodes.Call, nodes.FormattedValue, nodes.BinOp, nodes.If, nodes.While, nodes.IfExp, nodes.Assert)
_WEIGHTS = lazily(r"state_dict|(^|[._])(model|module|ema|net|parameters|param|weights?)$|named_parameters")


class Sync(NamedTuple):
    """A place where the host waits; it ``branches`` where a condition on the device decides what is launched next."""

    node: nodes.NodeNG
    statement: nodes.NodeNG
    branches: bool


@dataclass
class Group:
    """Places of one function next to each other: the first is reported, the others are related to it."""

    first: Sync
    others: list[Sync] = field(default_factory=list)
    last: nodes.NodeNG | None = None

    @property
    def every(self) -> list[Sync]:
        """All places, in order."""
        return [self.first, *self.others]


class Syncs:
    """Finds the places of a module; conversions and conditions only where they are sure to meet a tensor.

    ``text`` is the text of its file.
    """

    def __init__(self, module: nodes.Module, text: bytes) -> None:
        self._module = module
        # What a call tests is asked only where a test by such a name may be meant.
        self._tests = any(name in text for name in (b"isnan", b"isinf", b"isfinite"))
        self._optimizes = b"optim" in text
        self._homes = Homes()

    def groups(self) -> list[Group]:
        """All places that are no rarities and in no evaluation, grouped."""
        found: list[Group] = []
        for sync in sorted(self._all(), key=lambda one: (one.node.lineno, one.node.col_offset)):
            if not any(_joins(group, sync) for group in reversed(found[-2:])):
                found.append(Group(sync, last=sync.statement))
        return found

    def _all(self) -> Iterator[Sync]:
        for node in nodes_of(self._module, _PLACES):
            # What is true of a whole statement is true of the places in it, and known sooner than where values live.
            if not self._may_wait(node) or in_evaluation(node) or is_rare(node) or is_agreed(node) or not _repeats(node):
                continue
            if trains_on_host(function_of(node)):
                continue
            for place, branches in self._at(node):
                chosen = not is_off_by_default(place) and not is_never_chosen(place)
                wanted = chosen and not is_told_from_tensors(place) and not self._fits_inputs(place)
                if _repeats(place) and not is_rare(place) and not is_agreed(place) and wanted:
                    yield Sync(place, _whole(node) if branches else place.statement(), branches)

    def _fits_inputs(self, place: nodes.NodeNG) -> bool:
        return self._optimizes and fits_inputs(function_of(place))

    def _may_wait(self, node: nodes.NodeNG) -> bool:
        """Whether a place formats a value, tests a predicate, or calls something that reads or converts."""
        if isinstance(node, nodes.FormattedValue):
            return not isinstance(node.value, _NO_TENSORS)
        if isinstance(node, nodes.BinOp):
            return node.op == "%" and is_text(node.left)
        if not isinstance(node, nodes.Call):
            return any(map(_is_predicate, _operands(node.test)))
        named = last_name(node.func) in _WAITING
        return named or bool(self._tests and node.args and all(map(_FINITE_TESTS.search, qualified(node.func))))

    def _at(self, node: nodes.NodeNG) -> Iterator[tuple[nodes.NodeNG, bool]]:
        if isinstance(node, nodes.Call):
            if self._reads(node):
                yield node, False
            elif self._converts(node):
                yield node, _FINITE_TESTS.search(next(iter(qualified(node.func)))) is not None
        elif isinstance(node, nodes.FormattedValue):
            if self._is_shown_tensor(node.value):
                yield node.value, False
        elif isinstance(node, nodes.BinOp):
            yield from ((one, False) for one in formatted(node.right) if self._is_shown_tensor(one))
        else:
            yield from ((one, True) for one in _operands(node.test) if self._decides(one))

    def _reads(self, call: nodes.Call) -> bool:
        """``x.item()``, ``x.tolist()``, ``x.cpu()``, ``x.to("cpu")``: all are methods of tensors, but of others too."""
        if not isinstance(call.func, nodes.Attribute):
            return False
        name, base = call.func.attrname, call.func.expr
        if name == "to":
            blocking = not any(one.arg == "non_blocking" for one in call.keywords)
            if not blocking or moves_to(call) != "cpu" or _is_new(base):
                return False
        elif name not in READS or call.keywords or not all(isinstance(one, nodes.Const) for one in call.args):
            return False
        home = self._homes.of(base)
        if home is HOST or _is_weights(base, name) or is_needed(call):
            return False
        if may_be_array(call, root_name(base)):
            return False
        if home is DEVICE or name == "item" or is_made_an_array(call):
            return True
        # Lists, modules and results of the host have methods of these names, or of this kind, too; a copy that nobody
        # takes, ``vae.cpu()``, moves a module.
        moves = isinstance(call.parent, nodes.Expr) or _is_module(base)
        return name in ("cpu", "to") and not moves and self._homes.trains(function_of(call))

    def _converts(self, call: nodes.Call) -> bool:
        name = last_name(call.func)
        if (
            isinstance(call.func, nodes.Name)
            and name in CONVERTS
            and scope_of(call.func) is None
            and not call.keywords
        ):
            return any(self._is_shown_tensor(one) for one in (call.args if name == "print" else call.args[:1]))
        if isinstance(call.func, nodes.Attribute) and name == "format" and isinstance(call.func.expr, nodes.Const):
            return any(map(self._is_shown_tensor, [*call.args, *(one.value for one in call.keywords)]))
        if call.args and all(map(_FINITE_TESTS.search, qualified(call.func))):
            return self._homes.of(call.args[0]) is DEVICE
        return False

    def _is_shown_tensor(self, node: nodes.NodeNG) -> bool:
        return not isinstance(node, _NO_TENSORS) and self._homes.of(node) is DEVICE

    def _decides(self, node: nodes.NodeNG) -> bool:
        """A comparison of a tensor, or a predicate over one, as a condition of Python."""
        # Of most conditions the form alone says no.
        return _is_predicate(node) and (self._homes.of(node) is DEVICE or _is_sync_predicate(node, self._homes))


def _operands(test: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    if isinstance(test, nodes.BoolOp):
        for value in test.values:
            yield from _operands(value)
    elif isinstance(test, nodes.UnaryOp) and test.op == "not":
        yield from _operands(test.operand)
    elif isinstance(test, nodes.Call) and last_name(test.func) == "bool" and test.args:
        return
    else:
        yield test


def _is_predicate(node: nodes.NodeNG, depth: int = 0) -> bool:
    if isinstance(node, nodes.Compare):
        return True
    if isinstance(node, nodes.Call):
        return last_name(node.func) in PREDICATES
    if isinstance(node, nodes.BinOp):
        return node.op in "|&" and _is_predicate(node.left, depth)
    if isinstance(node, nodes.UnaryOp):
        return _is_predicate(node.operand, depth)
    if isinstance(node, nodes.Name) and depth < 2:
        values = [getattr(one.parent, "value", None) for one in reaching(node)]
        return bool(values) and all(value is not None and _is_predicate(value, depth + 1) for value in values)
    return False


def _is_sync_predicate(node: nodes.NodeNG, homes: Homes) -> bool:
    """``torch.equal`` and ``torch.allclose`` wait and return a bool."""
    if not isinstance(node, nodes.Call) or not qualified(node.func) <= {"torch.equal", "torch.allclose"}:
        return False
    return any(homes.of(one) is DEVICE for one in node.args)


def _is_weights(base: nodes.NodeNG, name: str) -> bool:
    """Copies of a model's weights belong to checkpoints, and moving a module is no read of a tensor."""
    if name == "item":
        return False
    around = (one for one in base.node_ancestors() if isinstance(one, nodes.ComprehensionScope))
    parts = [base, *(one.iter for scope in around for one in scope.generators)]
    return any(_WEIGHTS.search(part.as_string().removesuffix("()").removesuffix(".items")) for part in parts)


def _is_module(base: nodes.NodeNG) -> bool:
    name = last_name(base)
    return root_name(base) == name and _MODULE.search(name) is not None


def _is_new(base: nodes.NodeNG) -> bool:
    return isinstance(base, nodes.Call) and last_name(base.func)[:1].isupper()


def _repeats(node: nodes.NodeNG) -> bool:
    """Whether a place stands in a function or a loop; when a ``lambda`` runs nobody knows."""
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return True
        if isinstance(parent, nodes.Lambda):
            return False
    return any(isinstance(one, (nodes.For, nodes.While)) for one in node.node_ancestors())


def _whole(node: nodes.NodeNG) -> nodes.NodeNG:
    """The statement of a condition; of an ``elif`` the whole chain."""
    statement = node.statement()
    while (
        isinstance(statement.parent, nodes.If)
        and [statement] == statement.parent.orelse
        and isinstance(statement, nodes.If)
    ):
        statement = statement.parent
    return statement


def _joins(group: Group, sync: Sync) -> bool:
    """Take a place into a group where it stands in its last statement or in the next one, in the same block."""
    last = group.last
    if last is None or function_of(last) is not function_of(sync.statement):
        return False
    same = sync.statement is group.every[-1].statement
    if not same and sync.branches != group.first.branches and not _opens(group, sync):
        return False
    if not same and not _opens(group, sync):
        reached = _sibling_around(last, sync)
        if reached is None:
            return False
        group.last = reached
    group.others.append(sync)
    return True


def _opens(group: Group, sync: Sync) -> bool:
    """Whether a value is read in the first statement under the condition that the group ends with."""
    branch = group.every[-1].statement
    return isinstance(branch, nodes.If) and group.every[-1].branches and branch.body[0] is sync.statement


def _sibling_around(last: nodes.NodeNG, sync: Sync) -> nodes.NodeNG | None:
    """The statement that holds a place: the next one of the block, or ``last`` itself where it is a block of reads."""
    statement = sync.statement
    if isinstance(last.parent, nodes.If) and statement.parent is last.parent and not sync.branches:
        return statement
    block: list[nodes.NodeNG] = []
    for name in ("body", "orelse", "handlers", "finalbody"):
        part = getattr(last.parent, name, None)
        if isinstance(part, list) and last in part:
            block = part
    if not block:
        return None
    at = block.index(last)
    if sync.branches:
        return statement if block[at + 1 : at + 2] == [statement] else None
    for one in block[at : at + 2]:
        if one is statement or any(parent is one for parent in statement.node_ancestors()):
            return one
    # Values are often computed and read by turns.
    between = block[at + 1 : at + 2]
    reads_next = block[at + 2 : at + 3] == [statement]
    return statement if reads_next and isinstance(between[0], nodes.Assign) else None


__all__ = ["Group", "Sync", "Syncs"]
