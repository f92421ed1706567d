"""The conditions on a node that may select one of several ranks.

The guards of a node are words: `RANK` if a condition certainly tests the rank, or selects a single process (``if not
distributed:``), `OTHERS` if it selects all other ranks, and the names of deciding variables and functions (``if
self.is_saver():``), which only the project can resolve.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings
from ldlm_lint.python.rank_arms import is_of_others
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

RANK, OTHERS = "*", "+"
_CACHE = "_ldlm_guards"
_WORDS = "_ldlm_guard_words"
_RANKS = "_ldlm_tests_rank"
_BEFORE = "_ldlm_demanded_before"
_DEPTH = 3
_RANK_WORD = lazily(
    r"(?<!lora_)rank(?!ing|s$|ed|er)|is_?main|main_?(proc|rank|thread|worker|node)|^main$"
    r"|is_?master|^master$|master_?(proc|rank|node|worker)"
    r"|is_?(primary|root|chief|leader|coordinator|global_zero|world_zero|writer|zero)|root_?(proc|rank)"
    r"|process_?(index|id)$|proc_?id"
    r"|world_process_zero|zero_only|should_save|host_?id",
    re.I,
)
# Numbers of a device or a worker, which mention a rank where they are compared with 0.
_NUMBER = lazily(
    r"(^|_)(gpu|device|dev|proc|process|worker|node|local)(_?(id|idx|index|num))?$|^(idx|id|index|r)$", re.I
)
_MANY = lazily(
    r"distributed|^ddp|_ddp$|use_ddp|multi_?(gpu|proc|node)|world_?size|n_?gpus?$|num_(gpus|devices|processes|ranks)"
    r"|n?procs$|parallel"
    r"|is_(initialized|available)|device_count|get_world_size|DDP$",
    re.I,
)
_EXITS = {"exit", "_exit", "quit"}


@functools.lru_cache(1 << 14)
def _speaks_of_rank(name: str) -> bool:
    return _RANK_WORD.search(name) is not None


def guards_of(node: nodes.NodeNG) -> tuple[str, ...]:
    """The guards of a node, of its own function, of the functions and classes around it, and of their decorators."""
    statement = node.statement()
    return tuple(sorted({*_inside(node, statement), *_of_statement(statement)}))


def _inside(node: nodes.NodeNG, statement: nodes.NodeNG) -> Iterator[str]:
    """The conditions inside a statement: ``rank == 0 and save()``, ``save() if main else None``."""
    child = node
    while child is not statement and child.parent is not None:
        parent = child.parent
        if isinstance(parent, nodes.BoolOp):
            for value in parent.values[: parent.values.index(child)]:
                yield from words(value, holds=parent.op == "and")
        elif isinstance(parent, nodes.IfExp) and child is not parent.test:
            yield from words(parent.test, holds=child is parent.body)
        elif isinstance(child, nodes.Lambda) and isinstance(parent, nodes.Call) and child in parent.args:
            # ``on_first_rank(lambda: save())``: who gets the function decides who calls it, like a decorator.
            name = _last_name(parent)
            yield RANK if _speaks_of_rank(name) else name
        child = parent


def _of_statement(statement: nodes.NodeNG) -> frozenset[str]:
    """The guards of a statement; cached on its node: the statements of a block share most of them."""
    known: frozenset[str] | None = statement.__dict__.get(_CACHE)
    if known is not None:
        return known
    # From the outside in, so that nested blocks do not walk to the module repeatedly.
    chain = [statement]
    while (above := _statement_above(chain[-1])) is not None and _CACHE not in above.__dict__:
        chain.append(above)
    found: frozenset[str] = above.__dict__[_CACHE] if above is not None else frozenset()
    for one in reversed(chain):
        found = one.__dict__[_CACHE] = found.union(_of_block(one))
    return found


def _statement_above(statement: nodes.NodeNG) -> nodes.NodeNG | None:
    parent = statement.parent
    return None if parent is None or isinstance(parent, nodes.Module) else parent.statement()


def _of_block(statement: nodes.NodeNG) -> Iterator[str]:
    """The guards of a statement from its parent, earlier statements of the block and its decorators."""
    parent = statement.parent
    if isinstance(parent, nodes.If):
        yield from words(parent.test, holds=statement in parent.body)
    yield from _demanded_before(statement)
    if isinstance(statement, nodes.FunctionDef) and statement.decorators:
        for decorator in statement.decorators.nodes:
            name = _last_name(decorator)
            # ``@hydra.main`` and its like start the program; they choose no process.
            if name != "main":
                yield RANK if _speaks_of_rank(name) else name


def _demanded_before(statement: nodes.NodeNG) -> frozenset[str]:
    """The guards from earlier statements of a block; computed for the whole block together."""
    if _BEFORE not in statement.__dict__:
        found: frozenset[str] = frozenset()
        for one in block_of(statement):
            one.__dict__[_BEFORE] = found
            if one.__class__ is nodes.If or one.__class__ is nodes.Assert:
                found = found.union(_demanded_behind(one))
    return statement.__dict__.get(_BEFORE, frozenset())


def _demanded_behind(statement: nodes.If | nodes.Assert) -> set[str]:
    if isinstance(statement, nodes.Assert):
        return words(statement.test, holds=True)
    if leaves(statement.body):
        return words(statement.test, holds=False)
    return words(statement.test, holds=True) if leaves(statement.orelse) else set()


def block_of(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The block of a statement; empty if it is not part of a block, such as a handler."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement.parent, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return []


def leaves(block: list[nodes.NodeNG]) -> bool:
    """Whether a block ends the function, the pass of the loop, or the program."""
    last = block[-1] if block else None
    if isinstance(last, (nodes.Return, nodes.Raise, nodes.Continue, nodes.Break)):
        return True
    return isinstance(last, nodes.Expr) and isinstance(last.value, nodes.Call) and _last_name(last.value) in _EXITS


def words(test: nodes.NodeNG, *, holds: bool) -> set[str]:
    """The guards of a condition, when it is true or false."""
    # Every statement below a condition needs them; cached on its node.
    known: dict[bool, set[str]] = test.__dict__.setdefault(_WORDS, {})
    if holds not in known:
        if tests_rank(test):
            known[holds] = {OTHERS} if is_of_others(test, holds, _is_rank) else {RANK}
        else:
            known[holds] = {RANK} if _alone(test, holds) else set(_truths(test))
    return known[holds]


def _is_rank(name: str) -> bool:
    return _speaks_of_rank(name) or _NUMBER.search(name) is not None


def tests_rank(test: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a condition certainly tests the rank, for any rank."""
    # If a variable holds a condition, all conditions on the variable use that one.
    known: dict[int, bool] = test.__dict__.setdefault(_RANKS, {})
    if depth not in known:
        known[depth] = _finds_rank(test, depth)
    return known[depth]


def _finds_rank(test: nodes.NodeNG, depth: int) -> bool:
    for node in nodes_of(test, (nodes.Name, nodes.Attribute)):
        if _speaks_of_rank(node.attrname if isinstance(node, nodes.Attribute) else node.name):
            return True
    held = (one for name in _truth_names(test) for one in _conditions(name)) if depth < _DEPTH else ()
    if any(tests_rank(one, depth + 1) for one in held):
        return True
    keys = (constant(node.slice) for node in nodes_of(test, nodes.Subscript))
    if any(isinstance(key, str) and _speaks_of_rank(key) for key in keys):
        return True
    return any(map(_compares_with_zero, nodes_of(test, (nodes.Compare, nodes.UnaryOp))))


def _conditions(name: nodes.Name) -> Iterator[nodes.NodeNG]:
    """The conditions that a variable holds: ``main = rank == 0``, ``writer = Writer() if main else None``."""
    for binding in bindings(name):
        statement = binding.parent if isinstance(binding, nodes.AssignName) else None
        if not isinstance(statement, (nodes.Assign, nodes.AnnAssign)):
            continue
        value = statement.value
        if isinstance(value, nodes.IfExp):
            yield value.test
        elif isinstance(value, nodes.Call):
            yield value.func
        elif isinstance(value, (nodes.Compare, nodes.BoolOp, nodes.UnaryOp, nodes.Attribute, nodes.Name)):
            yield value
        if isinstance(statement.parent, nodes.If) and statement in statement.parent.body:
            yield statement.parent.test


def _compares_with_zero(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.UnaryOp):
        return node.op == "not" and bool(_NUMBER.search(_last_name(node.operand)))
    operator, right = node.ops[0]
    options = right.elts if isinstance(right, (nodes.Tuple, nodes.List, nodes.Set)) else [right]
    zero = any(type(known := constant(one)) is int and known == 0 for one in options)
    return zero and operator in ("==", "!=", "in", "not in", "is", ">") and bool(_NUMBER.search(_last_name(node.left)))


def _alone(test: nodes.NodeNG, holds: bool) -> bool:
    """Whether a condition on the number of processes leaves one of them only."""
    if isinstance(test, nodes.BoolOp):
        # All parts of an ``and`` hold where it holds, all parts of an ``or`` fail where it fails.
        every = (test.op == "and") is holds
        parts = [_alone(value, holds) for value in test.values]
        return any(parts) if every else all(parts)
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return _alone(test.operand, not holds)
    if isinstance(test, nodes.Compare):
        return _counts_many(test.left) and _is_one(test) is holds
    return _counts_many(test) and not holds


def _counts_many(node: nodes.NodeNG) -> bool:
    last = _last_name(node)
    if isinstance(node, nodes.Call) and last in ("len", "bool", "int", "hasattr", "isinstance"):
        return last not in ("hasattr", "isinstance") and bool(node.args) and _counts_many(node.args[0])
    return bool(_MANY.search(last))


def _is_one(compare: nodes.Compare) -> bool:
    """``world_size == 1``, ``<= 1``, ``< 2``, ``is None``, ``== False``; not ``> 1`` and the like."""
    operator, right = compare.ops[0]
    value = constant(right)
    if operator in ("==", "is"):
        return value is not True and (value is None or value in (0, 1, -1))
    return (operator, value) in (("<=", 1), ("<", 2))


def _truth_names(test: nodes.NodeNG) -> Iterator[nodes.Name]:
    return (node for node in _truth_nodes(test) if isinstance(node, nodes.Name))


def _truths(test: nodes.NodeNG) -> Iterator[str]:
    return filter(None, map(_last_name, _truth_nodes(test)))


def _truth_nodes(test: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The names, attributes, items and calls whose truth, or being None, a condition tests."""
    if isinstance(test, nodes.BoolOp):
        for value in test.values:
            yield from _truth_nodes(value)
    elif isinstance(test, nodes.UnaryOp):
        yield from _truth_nodes(test.operand)
    elif isinstance(test, nodes.Compare) and isinstance(test.ops[0][1], nodes.Const):
        yield from _truth_nodes(test.left) if test.ops[0][1].value in (None, True, False) else ()
    elif isinstance(test, (nodes.Call, nodes.Name, nodes.Attribute, nodes.Subscript)):
        yield test


def _last_name(node: nodes.NodeNG) -> str:
    if isinstance(node, nodes.Call):
        return _last_name(node.func)
    if isinstance(node, nodes.Subscript):
        key = constant(node.slice)
        return key if isinstance(key, str) else ""
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")
