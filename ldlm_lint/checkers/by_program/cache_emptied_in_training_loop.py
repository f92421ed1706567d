"""`cache-emptied-in-training-loop` in training code, also through a helper of the project of that name."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.stalls import finding, is_wanted, leading_calls
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.model import Finding
from ldlm_lint.program.atoms import MASK
from ldlm_lint.rules.host_time import CACHE_EMPTIED_IN_TRAINING_LOOP
from ldlm_lint.vocabulary.accelerators import EMPTIES, EMPTY

RULE = CACHE_EMPTIED_IN_TRAINING_LOOP
WORDS: tuple[bytes, ...] = (EMPTY.encode(),)


def find(view: View) -> Iterator[Finding]:
    """The calls that a step runs each time; in a file without training they serve offloading or another phase."""
    direct = [call for call, _ in view.ask.calls_of(EMPTIES)]
    for call in sorted({*direct, *_by_helpers(view, direct)}):
        leading = leading_calls(view, call)
        if leading is not None and view[Roles].trains(view.program.module_of(call)) and not any(is_wanted(view, one) for one in (call, *leading)):
            yield from finding(view, RULE, call, leading)


def _by_helpers(view: View, direct: list[int]) -> Iterator[int]:
    """The calls of functions of that name that empty the cache, such as one that chooses among kinds of devices."""
    helpers = {view.program.function_of(call) for call in direct}
    for call in view.program.calls.get(EMPTY, ()):
        module = view.program.module_of(call)
        row = module.nodes[call & MASK]
        if not (row[2] or row[3]) and not helpers.isdisjoint(view.program.targets_of.get(call, ())):
            yield call
