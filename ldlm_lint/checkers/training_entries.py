"""The entry of a script: the place for settings of the whole process."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from astroid import nodes
from astroid.exceptions import AstroidError

from ldlm_lint.autofix.lines import block_of, insert_before, insert_behind
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.scopes import visible
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_SETS_UP = lazily(
    r"backends\.cudnn|cudnn\.\w+ = |manual_seed|random\.seed\(|seed_everything|(set|fix|init)\w*_seeds?\(|set_float32_matmul"
)
_STARTS = lazily(r"^(train|fit|run|main|spawn|launch|eval|test)(_|$)", re.I)
_PREPARES = lazily(r"arg|pars|config|setup|seed|callback|^test", re.I)


class Entry(NamedTuple):
    """The beginning of a script: the place to show, and the statement that a setting would precede."""

    place: nodes.NodeNG
    first: nodes.NodeNG


def entry_of(module: nodes.Module) -> Entry | None:
    """The function that the main guard calls, the guard itself, or the training loop at the top level."""
    guard = next((one for one in module.body if isinstance(one, nodes.If) and "__name__" in one.test.as_string()), None)
    if guard is not None:
        main = _called(guard)
        if main is not None:
            # A function with only a docstring is a group of commands: the script's work begins elsewhere.
            return Entry(main, main.body[0]) if main.body else None
        return Entry(guard.test, guard.body[0])
    for call in nodes_of(module, nodes.Call):
        if isinstance(function_of(call), nodes.Module) and is_backward(call):
            statement = call.statement()
            while not isinstance(statement.parent, nodes.Module):
                statement = statement.parent
            shown = getattr(statement, "iter", None) or getattr(statement, "test", None) or statement
            return Entry(shown, statement)
    return None


def _called(guard: nodes.If) -> nodes.FunctionDef | None:
    """The function of the file called at the end of a main guard: ``main(parse_args())``, ``mp.spawn(worker, ...)``.

    A guard with a loop in it is itself the script.
    """
    if any(True for part in guard.body for _ in nodes_of(part, (nodes.For, nodes.While))):
        return None
    found = None
    for statement in (one for one in guard.body if isinstance(one, (nodes.Expr, nodes.Raise))):
        for name in nodes_of(statement, nodes.Name):
            function = next((one for one in bindings(name) if isinstance(one, nodes.FunctionDef)), None)
            if function is not None and function.parent is guard.root() and not _PREPARES.search(function.name):
                found = function
    return found


def insert_at_entry(source: Source, entry: Entry, statement: str) -> Edit | None:
    """The edit that puts a statement at the beginning of a script; None if it cannot have its own line.

    It goes after the lines that seed the run or set its backends, if there are any before the first loop, else after
    the leading assertions.
    """
    if torch_at(entry.first) is None or getattr(entry.first, "decorators", None):
        return None
    block = block_of(entry.first)
    beginning = list(itertools.takewhile(_is_preparation, block[block.index(entry.first) :]))
    similar = list(itertools.takewhile(_sets_up, itertools.dropwhile(lambda one: not _sets_up(one), beginning)))
    if similar and (edit := insert_behind(source, similar[-1], statement)) is not None:
        return edit
    claimed = len(list(itertools.takewhile(lambda one: isinstance(one, nodes.Assert), beginning)))
    if claimed:
        return insert_behind(source, beginning[claimed - 1], statement)
    return insert_before(source, entry.first, statement)


def _sets_up(statement: nodes.NodeNG) -> bool:
    return isinstance(statement, (nodes.Expr, nodes.Assign)) and _SETS_UP.search(statement.as_string()) is not None


def _is_preparation(statement: nodes.NodeNG) -> bool:
    """A statement without a loop of its own that does not call the possible training."""
    plain = (nodes.Expr, nodes.Assign, nodes.AnnAssign, nodes.Assert, nodes.If, nodes.Import, nodes.ImportFrom)
    return isinstance(statement, plain) and not any(_STARTS.search(last_name(one.func)) for one in nodes_of(statement, nodes.Call))


def torch_at(node: nodes.NodeNG) -> str | None:
    """The name under which a place has torch itself, ``torch`` or ``th``; None if it has not."""
    for name in ("torch", "th"):
        try:
            found = visible(node.scope(), name)
        except AstroidError:
            continue
        if found and all(isinstance(one, nodes.Import) and _brings_torch(one, name) for one in found):
            return name
    return None


def _brings_torch(statement: nodes.Import, name: str) -> bool:
    for module, alias in statement.names:
        if (alias or module) == name and module == "torch":
            return True
        if alias is None and name == "torch" and module.startswith("torch."):
            return True
    return False
