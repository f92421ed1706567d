"""Code for older versions of torch: branches by ``torch.__version__``, or by whether torch has a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.vocabulary.past import NUMBERS, PAST, VERSION_NAMES

_DEPTH = 8
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The number of a comparison belongs to the older side itself.
_INCLUSIVE = {"<=", ">", "=="}
_ORDERS = {*_MIRRORED, "=="}
_ENDS = {"exit", "_exit", "abort"}


class OlderTorch(NamedTuple):
    """A line with code for versions of torch before ``before``, which the code runs on as well."""

    line: int
    before: tuple[int, int]


def older_torch(module: nodes.Module) -> list[OlderTorch]:
    """Every branch of a file that serves a torch before some version; a check that rejects old versions is not one."""
    found = [*_by_version(module), *_by_name(module)]
    return sorted(found, key=lambda one: (one.before, one.line))


def _by_version(module: nodes.Module) -> Iterator[OlderTorch]:
    for node in nodes_of(module, nodes.Compare):
        if len(node.ops) != 1 or _refuses(node):
            continue
        operator, right = node.ops[0]
        sides = ((node.left, right, operator), (right, node.left, _MIRRORED.get(operator, operator)))
        for version, number, order in sides:
            told = _number(number) if order in _ORDERS and _is_version(version) else None
            part = _part_of(version) if told is not None else None
            # The minor number alone is meaningless.
            if told is not None and part in (None, 0):
                behind = (told[0], told[1] + 1) if part is None else (told[0] + 1, 0)
                yield OlderTorch(node.lineno or 1, behind if order in _INCLUSIVE else told)


def is_of_the_past(test: nodes.NodeNG, truth: bool) -> bool:
    """Whether a test has this outcome only with torch before 2.0: ``parse(torch.__version__) < parse("1.8")``."""
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1:
        return False
    operator, right = test.ops[0]
    if operator not in _MIRRORED or not _is_version(test.left) or _part_of(test.left) is not None:
        return False
    told = _number(right)
    return told is not None and told < PAST and truth == (operator in ("<", "<="))


def _by_name(module: nodes.Module) -> Iterator[OlderTorch]:
    """``hasattr(torch, "compile")``, and ``try: from torch.amp import GradScaler`` with a handler."""
    for call in nodes_of(module, nodes.Call):
        if last_name(call.func) == "hasattr" and len(call.args) == 2 and not _refuses(call):
            name = call.args[1].value if isinstance(call.args[1], nodes.Const) else None
            yield from _lacking(call, (f"{owner}.{name}" for owner in qualified(call.args[0])))
    for statement in nodes_of(module, nodes.ImportFrom):
        parent = statement.parent
        if isinstance(parent, nodes.Try) and statement in parent.body and not any(map(_ends, parent.handlers)):
            yield from _lacking(statement, (f"{statement.modname}.{name}" for name, _ in statement.names))


def _lacking(node: nodes.NodeNG, names: Iterator[str]) -> Iterator[OlderTorch]:
    versions = (tables.first_version(name) for name in names)
    yield from (OlderTorch(node.lineno or 1, one) for one in versions if one is not None)


def _is_version(node: nodes.NodeNG | None, depth: int = 0) -> bool:
    """Whether an expression derives from torch's version: parsed, split, cut or bound to a name before."""
    if node is None or depth > _DEPTH:
        return False
    if isinstance(node, nodes.Attribute) and qualified(node) & VERSION_NAMES:
        return True
    if isinstance(node, nodes.Name):
        return bool(qualified(node) & VERSION_NAMES) or _is_version(only_binding(node), depth + 1)
    if isinstance(node, nodes.Call):
        owner = [node.func.expr] if isinstance(node.func, nodes.Attribute) else []
        return any(_is_version(one, depth + 1) for one in (*owner, *node.args))
    if isinstance(node, (nodes.ListComp, nodes.GeneratorExp)):
        return any(_is_version(one.iter, depth + 1) for one in node.generators)
    inner = {nodes.Subscript: "value", nodes.Attribute: "expr"}.get(type(node))
    return inner is not None and _is_version(getattr(node, inner), depth + 1)


def _part_of(node: nodes.NodeNG | None, depth: int = 0) -> int | None:
    """The index of the version number in an expression: 0 for ``int(torch.__version__.split(".")[0])``; None for the
    whole."""
    if depth > _DEPTH:
        return None
    if isinstance(node, nodes.Name):
        return _part_of(only_binding(node), depth + 1)
    if isinstance(node, nodes.Call):
        return _part_of(node.args[0], depth + 1) if isinstance(node.func, nodes.Name) and node.args else None
    index = node.slice.value if isinstance(node, nodes.Subscript) and isinstance(node.slice, nodes.Const) else None
    return index if isinstance(index, int) else None


def _number(node: nodes.NodeNG) -> tuple[int, int] | None:
    """The version that an expression names: ``"2.0"``, ``Version("2.0")``, ``(2, 0)``, ``2``."""
    if isinstance(node, nodes.Call) and len(node.args) == 1:
        return _number(node.args[0])
    parts = node.elts if isinstance(node, (nodes.Tuple, nodes.List)) else [node]
    values = [one.value for one in parts if isinstance(one, nodes.Const)]
    if not values or len(values) != len(parts):
        return None
    if isinstance(values[0], str):
        return _of_text(values[0])
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values):
        return None
    return _of_text(str(values[0])) if len(values) == 1 else (int(values[0]), int(values[1]))


def _of_text(text: str) -> tuple[int, int] | None:
    match = NUMBERS.match(text)
    return (whole(match[1]), whole(match[2] or "0")) if match else None


def _refuses(test: nodes.NodeNG) -> bool:
    """Whether a test is in an assertion, or decides about an error: no version is supported there."""
    for parent in test.node_ancestors():
        if isinstance(parent, nodes.Assert):
            return True
        if isinstance(parent, nodes.If):
            return _ends(parent) or (bool(parent.orelse) and _ends_in(parent.orelse))
        if isinstance(parent, nodes.FunctionDef):
            return False
    return False


def _ends(block: nodes.If | nodes.ExceptHandler) -> bool:
    return _ends_in(block.body)


def _ends_in(body: list[nodes.NodeNG]) -> bool:
    """Whether statements end in an error or leave the program."""
    last = body[-1] if body else None
    call = last.value if isinstance(last, nodes.Expr) else None
    return isinstance(last, nodes.Raise) or (isinstance(call, nodes.Call) and last_name(call.func) in _ENDS)
