"""The removal of a call that is a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.autofix.lines import block_of, first_of_comments, stands_alone
from ldlm_lint.checkers.base import span_of
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.model import Applicability, Edit, Fix, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.host_time import CACHE_EMPTIED_IN_TRAINING_LOOP, DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP
from ldlm_lint.source import Source
from ldlm_lint.vocabulary.accelerators import AVAILABLE, EMPTIES, SYNCHRONIZES

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_REMARK = lazily(r"empty|cache|memory|free|sync|wait", re.I)
# A comment may also belong to the next statement, unless it names the removed call.
_OF_CACHE = lazily(r"\bcache\b", re.I)
_REASONS = {
    CACHE_EMPTIED_IN_TRAINING_LOOP: "a run that only just fits in memory can run out of it when blocks of other sizes "
    "stay cached",
    DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP: "times measured around the call mean something else, and code that "
    "relies on the wait (another stream, a reused buffer, another library) races",
}
_MAY_DO_MORE = "; a function of the project can do more than that"


def call_node(view: View, call: int) -> nodes.Call | None:
    """The tree's node of a call, by its key."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    tree = view.context.trees.of(view.path(module))
    begin, end = (line_of(site.place), column_of(site.place)), (line_of(site.end), column_of(site.end))
    for one in nodes_of(tree, nodes.Call) if tree is not None else ():
        if (one.lineno, one.col_offset) == begin and (one.end_lineno, one.end_col_offset) == end:
            return one
    return None


def removal(source: Source, call: nodes.Call, rule: Rule) -> Fix | None:
    """Take the statement away; a block that would be empty gets ``pass``."""
    statement = call.parent
    if not isinstance(statement, nodes.Expr):
        return None
    name = last_name(call.func)
    gone = _condition_of(statement)
    if not stands_alone(source, gone) or (gone is statement and statement.lineno != statement.end_lineno):
        return None
    span = span_of(source, gone)
    if len(block_of(gone)) == 1:
        edit = Edit(span, "pass")
    else:
        edit = delete_line(source, source.span(_start_of_remark(source, gone), span.end))
    more = "" if qualified(call.func) <= EMPTIES | SYNCHRONIZES else _MAY_DO_MORE
    return Fix(f"remove the call of {name}()", (edit,), Applicability.UNSAFE, _REASONS[rule] + more)


def _start_of_remark(source: Source, statement: nodes.NodeNG) -> int:
    """Where a statement begins, or the comment right above it that explains this statement alone."""
    start = source.line_starts[statement.lineno - 1]
    following = statement.next_sibling()
    close = following is not None and following.lineno == (statement.end_lineno or statement.lineno) + 1
    number = first_of_comments(source, statement)
    remark = "\n".join(source.lines[number - 1 : statement.lineno - 1])
    goes_along = _OF_CACHE.search(remark) if close else _REMARK.search(remark)
    return source.line_starts[number - 1] if goes_along else start


def _condition_of(statement: nodes.Expr) -> nodes.NodeNG:
    """The ``if`` that holds a statement alone, if its test has no side effect; else the statement itself."""
    parent = statement.parent
    if not isinstance(parent, nodes.If) or parent.body != [statement] or parent.orelse or parent in getattr(parent.parent, "orelse", ()):
        return statement
    calls = [parent.test, *nodes_of(parent.test, (nodes.Call, nodes.NamedExpr, nodes.Await))]
    asks = all(not isinstance(one, (nodes.NamedExpr, nodes.Await)) and _only_asks(one) for one in calls)
    return parent if asks else statement


def _only_asks(node: nodes.NodeNG) -> bool:
    return not isinstance(node, nodes.Call) or qualified(node.func) <= AVAILABLE
