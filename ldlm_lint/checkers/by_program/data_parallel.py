"""data-parallel as a function, and where the class comes under another name, from a choice or from another file."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import is_as_written
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.replicas import IN_ONE_CALL, ONE_PROCESS
from ldlm_lint.model import Claim, Finding
from ldlm_lint.program.atoms import MASK
from ldlm_lint.rules.data_parallel import DATA_PARALLEL, FUNCTION, WRAPPER

RULE = DATA_PARALLEL
WORDS = (b"DataParallel", b"data_parallel")


def find(view: View) -> Iterator[Finding]:
    """All calls of the function in a training step, and all wrappers by other names whose models run in one."""
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(IN_ONE_CALL)):
        if view.replicas.runs_in_step(call):
            yield _finding(view, call, FUNCTION)
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(ONE_PROCESS)):
        if not is_as_written(view, call) and _wraps(view, call) and view.replicas.is_stepped(call):
            yield _finding(view, call, WRAPPER)


def _wraps(view: View, call: int) -> bool:
    row = view.program.module_of(call).nodes[call & MASK]
    return bool(row[2] or row[3])


def _finding(view: View, call: int, name: str) -> Finding:
    return view.finding(RULE, view.call_span(call), {"name": name}, claims=(Claim("only-data-parallel"),))
