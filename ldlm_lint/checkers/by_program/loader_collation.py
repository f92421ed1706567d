"""Collate functions: whether they do work per item, so that workers are useful."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.project.datasets import CHEAP
from ldlm_lint.vocabulary.tensors import HOST_METHODS, PLAIN_METHODS

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_OF_PYTHON = {name for kind in (list, dict, set) for name in dir(kind)} | {name for name in dir(str) if name not in ("encode", "decode")}
_CHEAP = CHEAP | PLAIN_METHODS | HOST_METHODS | _OF_PYTHON | {"sum", "max", "min", "sorted", "pad", "pad_sequence", "default_collate"}
_ARRAYS = ("torch.", "numpy.", "builtins.", "itertools.", "collections.", "dataclasses.", "operator.", "copy.", "math.", "random.")
"""Packages whose functions copy or arrange what is in memory; reading and decoding is done by others."""
_READ_FILES = frozenset({"load", "loadtxt", "genfromtxt", "fromfile"})
"""Functions of these packages that read and decode a file."""
# Functions that process a list of texts or pictures in one call.
_TAKES_LISTS = lazily(r"tokeni[sz]er$|processor$|^batch_encode", re.I)


def works_on_items(view: View, source: int) -> bool:
    """Whether a possible function of an expression does work for each item of its batch: a call in a loop that is not
    just a copy."""
    return _do_work(view, _functions(view, view.program.ask(source)), for_each=False)


def gives_ready_items(view: View, owner: int) -> bool:
    """Whether the items of a dataset class are in memory already: the methods that give them only look them up."""
    methods = {one for name in ("__getitem__", "__getitems__", "__iter__") for one in view.program.methods(owner, name)}
    return bool(methods) and not _do_work(view, methods, for_each=True)


def _do_work(view: View, functions: Iterable[int], *, for_each: bool) -> bool:
    """Whether functions, or those that they call, do work for each item; ``for_each``: they run once for an item."""
    seen = set(functions)
    todo = [(function, for_each) for function in sorted(seen)]
    while todo:
        function, is_repeated = todo.pop()
        for call, in_loop in _calls(view, function):
            if _is_work(view, call, in_loop or is_repeated):
                return True
            for target in sorted(view.program.targets_of.get(call, ())):
                if target not in seen:
                    seen.add(target)
                    todo.append((target, in_loop or is_repeated))
    return False


def _functions(view: View, value: Value) -> Iterator[int]:
    program = view.program
    for one in sorted(value):
        fields = program.atoms.of[one] if one >= FIRST else ("",)
        if fields[0] in ("f", "b"):
            yield fields[1]
        elif fields[0] in ("i", "self"):
            yield from program.methods(fields[1], "__call__", exact=fields[0] == "i")
        elif fields[0] == "partial":
            yield from _functions(view, program.ask(("unwrapped", fields[1])))


def _calls(view: View, function: int) -> Iterator[tuple[int, bool]]:
    module = view.program.module_of(function)
    for call in module.scopes[function & MASK].calls:
        view.program.ask(("to", module.base | call))
        yield module.base | call, module.table.sites[call].loop >= 0


def _is_work(view: View, call: int, for_each: bool) -> bool:
    module = view.program.module_of(call)
    function = module.nodes[call & MASK][1]
    name = module.last_name(function)
    if _TAKES_LISTS.search(name):
        return True
    if not for_each or name in _CHEAP or not name or view.program.targets_of.get(call):
        return False
    names = view.ask.names_of(view.program.ask(module.base | function))
    return name in _READ_FILES or not names or not all(one.startswith(_ARRAYS) for one in names)
