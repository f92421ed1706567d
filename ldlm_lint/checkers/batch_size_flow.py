"""The meaning of batch numbers, from their origins and uses: ranks, and accumulation steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.python.micro_batches import is_steps, name_of
from ldlm_lint.python.names import last_name
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_world_size

if TYPE_CHECKING:
    from typing import TypeGuard

_NAMED = (nodes.Name, nodes.Attribute, nodes.Subscript, nodes.AssignName, nodes.AssignAttr)
_OWNERS = ("self", "cls")
_MOST_NAMES = 50


def names_in(node: nodes.NodeNG) -> Iterator[str]:
    """The last names of all variables, attributes, called functions and constant keys in an expression."""
    for one in nodes_of(node, _NAMED):
        if (name := name_of(one)) and name not in _OWNERS:
            yield name


def names_behind(node: nodes.NodeNG) -> set[str]:
    """The names in an expression, and in the values of its variables, transitively."""
    found: set[str] = set()
    waiting = [node]
    while waiting and len(found) < _MOST_NAMES:
        expression = waiting.pop()
        fresh = [one for one in nodes_of(expression, nodes.Name) if one.name not in found]
        found.update(names_in(expression))
        found.update(_variables_read(expression))
        waiting += filter(None, map(only_binding, fresh))
    return found


def _variables_read(node: nodes.NodeNG) -> Iterator[str]:
    """``WORLD_SIZE`` of ``os.environ.get("WORLD_SIZE")``."""
    for call in nodes_of(node, nodes.Call):
        if last_name(call.func) in ("get", "getenv") and call.args and isinstance(call.args[0], nodes.Const):
            yield str(call.args[0].value)


def counts_ranks(node: nodes.NodeNG) -> bool:
    """Whether a number of ranks, GPUs or nodes is in an expression, or in the values of its variables."""
    return any(map(is_world_size, names_behind(node)))


def is_of_one_rank(node: nodes.NodeNG) -> bool:
    """Whether a variable holds the share of one rank: ``target // world_size``, also if it is divided again."""
    return any(counts_ranks(divisor) for _, divisor in _divisions(node))


def leaves_nothing(left: nodes.NodeNG, right: nodes.NodeNG) -> bool:
    """Whether a division, and those behind its left side, have only literal numbers and no remainder."""
    for one, divisor in ((left, right), *_divisions(left)):
        number, by = constant(one), constant(divisor)
        if not _is_number(number) or not _is_number(by) or by <= 0 or number % by:
            return False
    return True


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _divisions(node: nodes.NodeNG) -> Iterator[tuple[nodes.NodeNG, nodes.NodeNG]]:
    """The divisions that a number is the result of, the last one first."""
    for _ in range(_MOST_NAMES):
        if isinstance(node, nodes.Name):
            bound = only_binding(node)
        elif isinstance(node, nodes.Call) and last_name(node.func) == "int" and len(node.args) == 1:
            bound = node.args[0]
        else:
            bound = None
        node = bound if bound is not None else node
        if isinstance(node, nodes.BinOp) and node.op in ("//", "/"):
            yield node.left, node.right
            node = node.left
        elif bound is None:
            return


def holds_steps(target: nodes.NodeNG) -> bool:
    """Whether the target of an assignment is the number of accumulation steps, by its name or its use."""
    return is_accumulation(name_of(target)) or any(map(is_steps, _uses(target)))


def _uses(target: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The places that read a variable in its scope, or an attribute of the same object in the class around it."""
    if isinstance(target, nodes.AssignName):
        scope = target.scope()
        yield from (one for one in nodes_of(scope, nodes.Name) if one.name == target.name and scope_of(one) is scope)
    elif isinstance(target, nodes.AssignAttr) and isinstance(target.expr, nodes.Name):
        holder = target.scope().parent
        around = holder.scope() if holder is not None and target.expr.name == "self" else target.scope()
        for one in nodes_of(around, nodes.Attribute):
            if one.attrname == target.attrname and getattr(one.expr, "name", "") == target.expr.name:
                yield one


__all__ = ["counts_ranks", "holds_steps", "is_of_one_rank", "leaves_nothing", "names_behind", "names_in"]
