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
_PLAIN = ("builtins.", "itertools.", "collections.", "dataclasses.", "operator.", "copy.", "math.", "random.")
"""Modules whose functions copy or arrange what is in memory."""
_ARRAYS = ("torch.", "numpy.", *_PLAIN)
# Functions that process a list of texts or pictures in one call.
_TAKES_LISTS = lazily(r"tokeni[sz]er$|processor$|^batch_encode", re.I)


def works_on_items(view: View, source: int) -> bool:
    """Whether a possible function of an expression does work for each item of its batch: a call in a loop that is not
    just a copy."""
    return _do_work(view, _functions(view, view.program.ask(source)), _ARRAYS, for_each=False)


def gives_ready_items(view: View, owner: int) -> bool:
    """Whether the items of a dataset class are in memory already: the methods that give them only look them up."""
    methods = {one for name in ("__getitem__", "__getitems__", "__iter__") for one in view.program.methods(owner, name)}
    return bool(methods) and all(_looks_up(view, method) for method in methods) and not _do_work(view, methods, _PLAIN, for_each=True)


def _looks_up(view: View, method: int) -> bool:
    """Whether what a method takes items from is surely a container, an array or a tensor, and no dataset that makes
    them."""
    program = view.program
    module = program.module_of(method)
    items = (module.nodes[event[1]] for event in module.scopes[method & MASK].events if event[0] == "item")
    kept = [module.base | row[1] for row in items if row[0] == "item" and module.plain(row[1])[0] == "attr"]
    return all(_is_container(view, program.ask(one)) for one in kept)


def _is_container(view: View, value: Value) -> bool:
    fields = [view.program.atoms.of[one] for one in value if one >= FIRST]
    outside = [str(one[1]) for one in fields if one[0] == "o"]
    return bool(value) and all(one[0] in ("d", "k", "view", "o") for one in fields) and all(one.startswith(_ARRAYS) for one in outside)


def _do_work(view: View, functions: Iterable[int], cheap: tuple[str, ...], *, for_each: bool) -> bool:
    """Whether functions, or those that they call, do work for each item; functions of the ``cheap`` packages do not,
    ``for_each``: they run once for an item."""
    seen = set(functions)
    todo = [(function, for_each) for function in sorted(seen)]
    while todo:
        function, is_repeated = todo.pop()
        for call, in_loop in _calls(view, function):
            if _is_work(view, call, cheap, for_each=in_loop or is_repeated):
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
        yield module.base | call, module.table.sites[call].loop >= 0


def _is_work(view: View, call: int, cheap: tuple[str, ...], *, for_each: bool) -> bool:
    module = view.program.module_of(call)
    function = module.nodes[call & MASK][1]
    name = module.last_name(function)
    if _TAKES_LISTS.search(name):
        return True
    if not for_each or name in _CHEAP or not name or view.program.targets_of.get(call):
        return False
    names = view.ask.names_of(view.program.ask(module.base | function))
    return not names or not all(one.startswith(cheap) for one in names)
