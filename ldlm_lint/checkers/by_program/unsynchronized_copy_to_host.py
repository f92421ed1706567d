"""`unsynchronized-copy-to-host` where a helper makes the copy and a caller reads it."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.copies import described
from ldlm_lint.checkers.host_copies import WAITS, first_read, is_async_copy_to_host
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.handed import callers_of
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import MASK, MAY_BE_ON_DEVICE
from ldlm_lint.program.modules import Module
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.copies import UNSYNCHRONIZED_COPY

RULE = UNSYNCHRONIZED_COPY
WORDS: tuple[bytes, ...] = (b"non_blocking",)


def find(view: View) -> Iterator[Finding]:
    """The copies that a function returns while they run, and that a known caller reads before it waits."""
    for call in view.program.calls.get("to", ()):
        module = view.program.module_of(call)
        site, row = module.table.sites[call & MASK], module.nodes[call & MASK]
        returned = {value for value, _ in module.scopes[site.scope].returns}
        asynchronous = any(name == "non_blocking" for name, _ in row[3])
        if asynchronous and site.scope and call & MASK in returned and not _waits(module, site.scope) and not _is_on_host(view, call):
            copy = _node(view, call)
            if copy is not None and is_async_copy_to_host(copy) and first_read(copy) is None:
                yield from _finding(view, call, module.base | site.scope)


def _waits(module: Module, scope: int) -> bool:
    """Whether a helper waits for its copy itself."""
    return any(module.last_name(module.nodes[one][1]) in WAITS for one in module.scopes[scope].calls)


def _is_on_host(view: View, call: int) -> bool:
    """Whether all that is known of what is copied lies on the host."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[module.nodes[call & MASK][1]][1])
    return bool(value) and value.isdisjoint(MAY_BE_ON_DEVICE)


def _finding(view: View, call: int, function: int) -> Iterator[Finding]:
    for caller in callers_of(view.program, function):
        node = _node(view, caller)
        read = first_read(node) if node is not None else None
        if read is not None:
            path = view.path(view.program.module_of(caller))
            related = Related(view.context.line_span(path, read.lineno or 0), "the copy is read here")
            claims = (Claim("stands-outside-tests"),)
            yield view.finding(RULE, view.call_span(call), {"read": described(read)}, (related,), claims=claims)
            return


def _node(view: View, call: int) -> nodes.Call | None:
    """The tree's node of a call."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    tree = view.context.trees.of(view.path(module))
    begin, end = (line_of(site.place), column_of(site.place)), (line_of(site.end), column_of(site.end))
    for one in nodes_of(tree, nodes.Call) if tree is not None else ():
        if (one.lineno, one.col_offset) == begin and (one.end_lineno, one.end_col_offset) == end:
            return one
    return None
