"""find-unused-with-reentrant-checkpoint where a helper switches checkpointing on, or the flag is filled in elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.ddp_calls import ENGINES, WRAPPERS
from ldlm_lint.checkers.by_program.trainer_settings import node_at
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import keyword_of, span_of
from ldlm_lint.code.table import line_of
from ldlm_lint.model import Applicability, Claim, Finding, Fix, Related
from ldlm_lint.program.atoms import FALSE, FIRST, MASK, TRUE
from ldlm_lint.program.queries import State
from ldlm_lint.project.reentrant import as_non_reentrant, has_old_transformers
from ldlm_lint.rules.ddp_graph import CHECKPOINT_FIX, FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
from ldlm_lint.rules.segments import NON_REENTRANT
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.wording import located

RULE = FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
WORDS = (b"find_unused_parameters",)
_SWITCH, _OPTIONS = "gradient_checkpointing_enable", "gradient_checkpointing_kwargs"
_GIVEN = (State.GIVEN, State.MAYBE)


def find(view: View) -> Iterator[Finding]:
    """All wraps that search for unused parameters of a model on which a reentrant checkpoint is switched on."""
    switches = _Switches(view)
    if not switches.all:
        return
    for calls, prefix in ((WRAPPERS | ENGINES, ""), (TRAINING_ARGUMENTS, "ddp_")):
        for call in dict.fromkeys(call for call, _ in view.ask.calls_of(calls)):
            switch = switches.of(call) if _searches(view, call, prefix) else 0
            if switch and not (prefix and _switches_itself(view, call)):
                yield _finding(view, call, switch, f"{prefix}find_unused_parameters")


def _searches(view: View, call: int, prefix: str) -> bool:
    """Whether DDP surely searches, and has no static graph, with which it does not."""
    search, static = (view.ask.argument(call, f"{prefix}{name}") for name in ("find_unused_parameters", "static_graph"))
    told = search.state is State.GIVEN and all(view.program.ask(one) == frozenset([TRUE]) for one in search.sources)
    return told and not (static.state in _GIVEN and any(view.program.ask(one) != frozenset([FALSE]) for one in static.sources))


def _switches_itself(view: View, call: int) -> bool:
    """Whether the arguments of a Trainer switch checkpointing: what they say of it is looked at with the other settings."""
    return view.ask.argument(call, "gradient_checkpointing").state is not State.ABSENT


class _Switches:
    """The calls that switch reentrant checkpointing on, and the models that they do it for."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.program = view.program
        self.all = {call: self._receiver(call) for call in self.program.calls.get(_SWITCH, ()) if self._is_reentrant(call)}

    def _is_reentrant(self, call: int) -> bool:
        options = self.view.ask.argument(call, _OPTIONS, 0)
        if options.state is State.ABSENT:
            return has_old_transformers(self.view.context.project)
        if options.state is not State.GIVEN:
            return False
        chosen = [one for source in options.sources for one in self.view.ask.mappings.keys_at(source, call).entries.get("use_reentrant", ())]
        return bool(chosen) and all(self.program.ask(one) == frozenset([TRUE]) for one in chosen)

    def _receiver(self, call: int) -> frozenset[int]:
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return self._objects(module.base | function[1]) if function[0] == "attr" else frozenset()

    def _objects(self, key: int) -> frozenset[int]:
        return frozenset(one for one in self.program.ask(key) if one >= FIRST and self.program.atoms.of[one][0] in ("o", "i"))

    def of(self, call: int) -> int:
        """A switch for a model that goes to DDP with what a call makes; 0 for none."""
        models = frozenset().union(*(self._objects(key) for key in self._given_with(call)))
        return next((switch for switch, receiver in sorted(self.all.items()) if receiver & models), 0)

    def _given_with(self, call: int) -> set[int]:
        """The arguments of a call, and those of the calls that get what it makes: ``Trainer(model, args)``, ``prepare(model)``."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        found = {module.base | one for one in (*row[2], *(value for _, value in row[3]))}
        made = {one for one in self.program.ask(call) if one >= FIRST and call in self.program.atoms.of[one][1:]}
        near = self.program.together.programs_of(module)
        for other in (one for one in self.program.live if one.index in near):
            for site in other.table.sites:
                given = other.nodes[site]
                values = [other.base | one for one in (*given[2], *(value for _, value in given[3]))]
                if any(self._holds(value, made) for value in values):
                    found.update(values)
        return found | (self._prepared(near) if any(name in ENGINES for name in self._names(call)) else set())

    def _names(self, call: int) -> set[str]:
        module = self.program.module_of(call)
        return self.view.ask.names_of(self.program.ask(module.base | module.nodes[call & MASK][1]))

    def _holds(self, key: int, made: set[int]) -> bool:
        return not made.isdisjoint(self.program.ask(key))

    def _prepared(self, near: frozenset[int]) -> set[int]:
        """What the programs of a module hand to an accelerator."""
        found: set[int] = set()
        for call in self.program.calls.get("prepare", ()):
            module = self.program.module_of(call)
            if module.index in near:
                found.update(module.base | one for one in module.nodes[call & MASK][2])
        return found


def _finding(view: View, call: int, switch: int, name: str) -> Finding:
    own, module = view.program.module_of(call), view.program.module_of(switch)
    line = line_of(module.table.sites[switch & MASK].place)
    where = f"the reentrant checkpoint at {located(view.path(module), line, view.path(own))}"
    related = (Related(line_span(view, switch), "this checkpoint is reentrant"),)
    keyword = keyword_of(view, call, name)
    span = span_of(view, own, keyword) if keyword is not None else view.call_span(call)
    return view.finding(RULE, span, {"where": where}, related, claims=(Claim("stands-outside-tests"),), fix=_fix(view, switch))


def _fix(view: View, switch: int) -> Fix:
    """The other implementation, where the switch spells out which one it takes."""
    module = view.program.module_of(switch)
    node = node_at(view, module, module.table.sites[switch & MASK].place, nodes.Call)
    edit = as_non_reentrant(view.source(module), node) if isinstance(node, nodes.Call) else None
    if edit is None:
        return CHECKPOINT_FIX
    return Fix("pass use_reentrant=False to the checkpoint", (edit,), Applicability.UNSAFE, NON_REENTRANT)
