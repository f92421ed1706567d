"""checkpoint-load-unspecified where `torch.load` goes by another name, or gets its options from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import is_as_written
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import VERSIONS, Ways
from ldlm_lint.checkers.checkpoint_loading import LOADS
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.model import Claim, Finding
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.queries import State
from ldlm_lint.rules.checkpoint_loading import CHECKPOINT_LOAD_UNSPECIFIED, FROM_ANYWHERE, STRICT_BY_DEFAULT

RULE = CHECKPOINT_LOAD_UNSPECIFIED
WORDS = (b"load", b"(")


def find(view: View) -> Iterator[Finding]:
    """All calls that may be of `torch.load` and leave the decision to the version of torch."""
    ways = Ways(view)
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(LOADS)):
        module = view.program.module_of(call)
        oldest = view.torch_of(module).oldest
        if is_as_written(view, call) or (oldest is not None and oldest >= STRICT_BY_DEFAULT):
            continue
        if _decides_nothing(view, call) and _is_chosen(view, ways, call):
            place = module.table.sites[call & MASK].place
            origin = Claim("load-has-an-origin", f"{line_of(place)}:{column_of(place)}")
            claims = (Claim("load-default-stands"), origin)
            yield view.finding(RULE, view.call_span(call), FROM_ANYWHERE, claims=claims)


def _decides_nothing(view: View, call: int) -> bool:
    options = (view.ask.argument(call, "weights_only"), view.ask.argument(call, "pickle_module", 2))
    return all(one.state is State.ABSENT for one in options)


def _is_chosen(view: View, ways: Ways, call: int) -> bool:
    """Whether something chooses `torch.load`, and no question for the version of torch does."""
    module = view.program.module_of(call)
    function = module.base | module.nodes[call & MASK][1]
    loads = [one for one in view.program.ask(function) if one >= FIRST and not view.ask.names_of(frozenset([one])).isdisjoint(LOADS)]
    found = [way for atom in loads for way in ways.to(function, atom)]
    return bool(found) and not any(ways.is_guarded_by(way.key, VERSIONS) for way in found)
