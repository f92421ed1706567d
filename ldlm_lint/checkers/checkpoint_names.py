"""The name of a numbered file, cut at its number: the parts of a path before and after it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.checkpoint_counters import identifiers, is_text, loop_counters
from ldlm_lint.patterns import lazily
from ldlm_lint.python.checkpoint_words import COUNTER
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.scopes import visible
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.untrusted_numbers import whole

_INTEGER = lazily(r"(0>?\d*)?d?")
_PERCENT = lazily(r"%(?:%|(?P<width>0\d+)?(?P<kind>[dis]))")
_JOINS = {"Path", "PurePath", "PosixPath"}
_AS_IS = {"os.path.abspath", "os.path.expanduser", "os.path.normpath", "os.fspath", "os.path.realpath"}
_TOTAL = lazily(
    r"^(max|total|num|n|max_train|train|every)_(epochs|steps|iters|iterations|updates)$|^(epochs|steps|iters|iterations|updates)$"
)
_VARYING = lazily(
    r"(?<![a-z])(time|timestamp|date|now|loss|acc|accuracy|score|metric|fid|psnr|bleu|ppl|wer|reward|lr|seed|rank|gpu|device|tag|kind|mode"
    r"|phase|suffix)(?![a-z])",
    re.I,
)
_DEPTH = 6
_PURE = {
    "join",
    "joinpath",
    "format",
    "str",
    "zfill",
    "int",
    "Path",
    "PurePath",
    "abspath",
    "expanduser",
    "normpath",
    "fspath",
    "realpath",
}


class Value(NamedTuple):
    """An expression whose value is a part of a path; ``whole`` if it is formatted like an integer."""

    node: nodes.NodeNG
    whole: bool = False


Part = str | Value


class Numbered(NamedTuple):
    """A path whose last component holds one running number: the parts before and after it, and the folder's parts."""

    folder: tuple[Part, ...]
    before: tuple[Part, ...]
    number: nodes.NodeNG
    after: tuple[Part, ...]


def numbered(path: nodes.NodeNG, save: nodes.Call) -> Numbered | None:
    """The name that a save gives its file, if only one running number changes from save to save."""
    folder, name = _split(list(_joined(parts_of(path))))
    counting = loop_counters(save, path)
    places = [index for index, part in enumerate(name) if isinstance(part, Value) and _is_counter(part.node, counting)]
    if len(places) != 1 or any(isinstance(part, Value) and _counts(part.node, counting) for part in folder):
        return None
    number = name[places[0]]
    before, after = tuple(name[: places[0]]), tuple(name[places[0] + 1 :])
    if not (isinstance(number, Value) and number.whole and _rises(number.node) and _runs(number.node, counting)):
        return None
    if not all(isinstance(part, str) or is_fixed(part.node) for part in (*before, *after)) or _runs_together(
        before, after
    ):
        return None
    return Numbered(tuple(folder), before, number.node, after)


def parts_of(path: nodes.NodeNG, depth: int = 0) -> list[Part]:
    """The texts and values that a path consists of, in order, with a slash between components."""
    if depth > _DEPTH:
        return [Value(path)]
    if is_text(path):
        return [path.value]
    if isinstance(path, nodes.JoinedStr):
        return [part for one in path.values for part in _of_formatted(one, depth)]
    if isinstance(path, nodes.BinOp):
        return _of_operation(path, depth)
    if isinstance(path, nodes.Call):
        return _of_call(path, depth)
    value = _only_value(path) if isinstance(path, nodes.Name) else None
    return parts_of(value, depth + 1) if value is not None and is_textual(value) else [Value(path)]


def is_textual(node: nodes.NodeNG) -> bool:
    """Whether an expression is a text or a path, by its form."""
    if isinstance(node, nodes.BinOp):
        return node.op in ("/", "+", "%") and (is_textual(node.left) or is_textual(node.right))
    if isinstance(node, nodes.Call):
        return (
            last_name(node.func) in ("join", "format", "str", "zfill", "joinpath", *_JOINS)
            or qualified(node.func) <= _AS_IS
        )
    return is_text(node) or isinstance(node, nodes.JoinedStr)


def is_plain(path: nodes.NodeNG) -> bool:
    """Whether an expression may be evaluated again."""
    if isinstance(path, nodes.Name):
        # A file opened by a `with` is still being written.
        return all(isinstance(one.parent, (nodes.Assign, nodes.AnnAssign)) for one in visible(path, path.name))
    calls = (one.func for one in nodes_of(path, nodes.Call))
    return all(getattr(one, "attrname", getattr(one, "name", "")) in _PURE for one in calls) and not any(
        nodes_of(path, (nodes.NamedExpr, nodes.Await, nodes.Yield))
    )


def is_fixed(node: nodes.NodeNG) -> bool:
    """Whether a value in a name is one setting of the run, such as ``args.name``, not a tag, metric or time."""
    if isinstance(node, nodes.Name):
        value = _only_value(node)
        return isinstance(value, nodes.Attribute) and is_fixed(value) and not _VARYING.search(node.name)
    if not isinstance(node, nodes.Attribute) or _VARYING.search(node.attrname):
        return False
    owner = node.expr
    while isinstance(owner, nodes.Attribute):
        owner = owner.expr
    assigned = [one for one in nodes_of(node.root(), nodes.AssignAttr) if one.attrname == node.attrname]
    return isinstance(owner, nodes.Name) and len(assigned) <= 1


def _of_formatted(node: nodes.NodeNG, depth: int) -> list[Part]:
    if not isinstance(node, nodes.FormattedValue):
        return parts_of(node, depth + 1)
    spec = "".join(str(getattr(one, "value", "?")) for one in node.format_spec.values) if node.format_spec else ""
    if node.conversion not in (None, -1):
        return [Value(node)]
    textual = is_textual(node.value) or isinstance(node.value, nodes.Name)
    if not spec and textual and (found := parts_of(node.value, depth + 1)) != [Value(node.value)]:
        return found
    return [Value(node.value, _INTEGER.fullmatch(spec) is not None)]


def _of_operation(node: nodes.BinOp, depth: int) -> list[Part]:
    if node.op == "/":
        return [*parts_of(node.left, depth + 1), "/", *parts_of(node.right, depth + 1)]
    if node.op == "+" and is_textual(node):
        return [*parts_of(node.left, depth + 1), *parts_of(node.right, depth + 1)]
    if node.op == "%" and is_text(node.left):
        values = node.right.elts if isinstance(node.right, nodes.Tuple) else [node.right]
        return _percent(node.left.value, values, depth) or [Value(node)]
    return [Value(node)]


def _percent(text: str, values: list[nodes.NodeNG], depth: int) -> list[Part]:
    """The parts of ``"model_%03d.pt" % epoch``; empty if the format is another one."""
    found: list[Part] = []
    position, waiting = 0, iter(values)
    for match in _PERCENT.finditer(text):
        found.append(text[position : match.start()])
        position = match.end()
        if match["kind"] is None:
            found.append("%")
        elif (value := next(waiting, None)) is not None:
            found += _value(value, depth) if not match["width"] else [Value(value, match["kind"] != "s")]
    rest = text[position:]
    complete = (
        "%" not in "".join(part for part in found if isinstance(part, str)) + rest and next(waiting, None) is None
    )
    return [*found, rest] if complete and "%(" not in text else []


def _of_call(node: nodes.Call, depth: int) -> list[Part]:
    last, owner = last_name(node.func), getattr(node.func, "expr", None)
    if node.keywords and last != "format":
        return [Value(node)]
    if qualified(node.func) <= {"os.path.join"} or last in _JOINS:
        return [
            part for index, one in enumerate(node.args) for part in (["/"] if index else []) + parts_of(one, depth + 1)
        ]
    if last == "joinpath" and owner is not None:
        return [part for one in (owner, *node.args) for part in ["/", *parts_of(one, depth + 1)]][1:]
    if qualified(node.func) <= _AS_IS and len(node.args) == 1:
        return parts_of(node.args[0], depth + 1)
    if isinstance(node.func, nodes.Name) and last == "str" and len(node.args) == 1:
        return _value(node.args[0], depth)
    if last == "zfill" and isinstance(owner, nodes.Call) and last_name(owner.func) == "str" and len(owner.args) == 1:
        return [Value(owner.args[0], True)]
    if last == "format" and is_text(owner):
        return _braces(owner.value, node, depth) or [Value(node)]
    return [Value(node)]


def _value(node: nodes.NodeNG, depth: int) -> list[Part]:
    """A value that is inserted unchanged: the parts of a text, or a number."""
    found = parts_of(node, depth + 1)
    return [Value(node, True)] if found == [Value(node)] else found


def _braces(text: str, call: nodes.Call, depth: int) -> list[Part]:
    """The parts of ``"model_{:03d}.pt".format(epoch)``; empty if the fields are not plain ones."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    found: list[Part] = []
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return []
    for index, (literal, name, spec, conversion) in enumerate(fields):
        found.append(literal)
        if name is None:
            continue
        place = whole(name) if name.isdecimal() else index
        value = keywords.get(name) if name and not name.isdecimal() else dict(enumerate(call.args)).get(place)
        if value is None or conversion:
            return []
        found += (
            [Value(value, True)]
            if spec and _INTEGER.fullmatch(spec)
            else [Value(value)]
            if spec
            else _value(value, depth)
        )
    return found


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts with neighbouring texts made one."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            yield text
        text = ""
        yield part
    if text:
        yield text


def _split(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """The parts of the folder and those of the name in it."""
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if isinstance(part, str) and "/" in part:
            head, _, tail = part.rpartition("/")
            return [*parts[:index], head], [*([tail] if tail else []), *parts[index + 1 :]]
    return [], parts


def _only_value(node: nodes.Name) -> nodes.NodeNG | None:
    """The value of a variable that is assigned once, by itself."""
    found = bindings(node)
    statement = found[0].parent if len(found) == 1 and isinstance(found[0], nodes.AssignName) else None
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None


def _counts(node: nodes.NodeNG, counting: set[str]) -> bool:
    names = {
        one.name if isinstance(one, nodes.Name) else one.attrname
        for one in nodes_of(node, (nodes.Name, nodes.Attribute))
    }
    return any(name in counting or COUNTER.search(name.lower()) for name in names)


def _is_counter(node: nodes.NodeNG, counting: set[str]) -> bool:
    return _counts(node, counting)


def _rises(node: nodes.NodeNG) -> bool:
    """Whether an expression does not decrease when the counter in it grows."""
    if isinstance(node, nodes.BinOp):
        constant = isinstance(node.right, nodes.Const)
        return _rises(node.left) and (node.op == "+" or (node.op in ("-", "//", "*") and constant))
    if isinstance(node, nodes.Call):
        return (
            isinstance(node.func, nodes.Name)
            and node.func.name == "int"
            and len(node.args) == 1
            and _rises(node.args[0])
        )
    return isinstance(node, (nodes.Name, nodes.Attribute, nodes.Const))


def _runs(node: nodes.NodeNG, counting: set[str]) -> bool:
    """Whether a number increases during the run, and is not a constant total."""
    names = [name for name in identifiers(node) if name in counting or COUNTER.search(name.lower())]
    root = node.root()
    targets = {last_name(one.target) or getattr(one.target, "name", "") for one in nodes_of(root, nodes.AugAssign)}
    for one in nodes_of(root, nodes.AssignName):
        statement = one.statement()
        if isinstance(statement, (nodes.For, nodes.While)):
            targets.add(one.name)
    for name in names:
        given = any(
            one.name == name for one in nodes_of(root, nodes.AssignName) if isinstance(one.parent, nodes.Arguments)
        )
        if name in counting or name in targets or (given and not _TOTAL.search(name)):
            return True
    return False


def _runs_together(before: tuple[Part, ...], after: tuple[Part, ...]) -> bool:
    """Whether the number cannot be separated from the text next to it in the name."""
    left, right = (before[-1] if before else ""), (after[0] if after else "")
    if not (isinstance(left, str) and isinstance(right, str)):
        return True
    return left[-1:].isdecimal() or right[:1].isdecimal()
