"""Calls that block every training step without a visible purpose."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.host_sync_in_training_loop import step_of
from ldlm_lint.checkers.by_program.removed_calls import call_node, removal
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.model import Confidence, Finding, Related, Rule
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.project.accelerators import trains_on_device
from ldlm_lint.python.evaluation_names import names_evaluation
from ldlm_lint.rules.host_time import RUNS_IN_EVERY_STEP
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.vocabulary.details import NEEDED, WANTED
from ldlm_lint.wording import quoted

_MOST = 40
"""Parts of a test, one inside of another, that are looked at."""
_BRINGS_WEIGHTS = "load_state_dict"


def leading_calls(view: View, call: int) -> list[int] | None:
    """The calls by which a step reaches the function around a call, each of them in every step; None if one does
    not.
    """
    chain = view[EveryStep].chain(Call(view, call).spot)
    if chain is None:
        return None
    return [one.key for one in chain.calls] if all(view[Reach].runs(one) for one in (Call(view, call), *chain.calls)) else None


def is_wanted(view: View, call: int) -> bool:
    """Whether names around a call, a comment or the code next to it show its purpose."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    scope, names = site.scope, []
    while scope > 0:
        names.append(module.scopes[scope].name)
        scope = module.scopes[scope].parent
    if any(map(WANTED.search, names)) or names_evaluation(".".join(reversed(names))):
        return True
    span = view.call_span(call)
    if NEEDED.search(remark_at(view.source(module), span.start, span.end)):
        return True
    if _is_asked_for(view, module, site.guard) or _exchanges_weights(module, call & MASK):
        return True
    return view[Rhythm].is_rare(Call(view, call).spot)


def _is_asked_for(view: View, module: Module, guard: int) -> bool:
    """Whether a call is under a switch that requests it by name."""
    while guard >= 0:
        one = module.table.guards[guard]
        if one.kind == "if" and one.test and one.holds is True and WANTED.search(_written(module, one.test)):
            return True
        guard = one.parent
    return False


def _written(module: Module, number: int, steps: int = 0) -> str:
    """The names and texts that a test is written with."""
    row = module.nodes[number]
    if steps > _MOST:
        return ""
    if row[0] in ("attr", "free", "param", "impf"):
        return str(row[2])
    if row[0] == "const":
        return str(row[1])
    inner = row[2] if row[0] == "bool" else (row[2], *row[3]) if row[0] == "cmp" else (row[1],) if row[0] in ("not", "copy", "call") else ()
    return " ".join(_written(module, one, steps + 1) for one in inner)


def _exchanges_weights(module: Module, call: int) -> bool:
    """Inside a loop or function that loads other weights, memory passes from one phase of the training to another."""
    site = module.table.sites[call]
    others = (module.table.sites[one] for one in module.table.named.get(_BRINGS_WEIGHTS, ()))
    return any(one.scope == site.scope and (site.loop < 0 or one.loop == site.loop) for one in others)


def finding(view: View, rule: Rule, call: int, leading: list[int]) -> Iterator[Finding]:
    """The finding about a call, with its removal as a fix."""
    own = view.program.module_of(call)
    module, place = step_of(view, Call(view, call).spot)
    path = view.path(module)
    if not trains_on_device(view.context, path):
        return
    where = view.context.each_step(path, line_of(place), view.path(own))
    related = Related(view.context.line_span(path, line_of(place)), RUNS_IN_EVERY_STEP)
    node = call_node(view, call)
    written = node.func.as_string() if node is not None else view.call_text(call).partition("(")[0]
    is_elsewhere = bool(leading) and module is not own
    yield view.finding(
        rule,
        view.call_span(call),
        {"call": quoted(f"{written}()"), "where": where},
        (related,),
        fix=removal(view.source(own), node, rule) if node is not None and not is_elsewhere else None,
        confidence=Confidence.MEDIUM if is_elsewhere else rule.confidence,
    )
