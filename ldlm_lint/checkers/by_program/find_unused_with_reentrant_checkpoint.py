"""find-unused-with-reentrant-checkpoint: models with reentrant checkpoints, or on which a helper switches them on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.resolve import edit_key
from ldlm_lint.checkers.by_program.calls import confidence_of, line_span
from ldlm_lint.checkers.by_program.trainer_settings import node_at
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import keyword_of
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.frozen_parts import FrozenParts
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.recomputing import Recomputing
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Related
from ldlm_lint.program.atoms import FALSE, FIRST, MASK, TRUE
from ldlm_lint.program.handles import Call, Class
from ldlm_lint.program.queries import State
from ldlm_lint.project.reentrant import as_non_reentrant, has_old_transformers, is_left_off
from ldlm_lint.rules.ddp_graph import CHECKPOINT_FIX, FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
from ldlm_lint.rules.segments import FLAG, NON_REENTRANT
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS, SEARCHING_STRATEGY, TAKE_STRATEGY
from ldlm_lint.wording import located

RULE = FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
WORDS = (b"find_unused_parameters",)
_SWITCH, _OPTIONS = "gradient_checkpointing_enable", "gradient_checkpointing_kwargs"
_GIVEN = (State.GIVEN, State.MAYBE)


def find(view: View) -> Iterator[Finding]:
    """All wraps that search for unused parameters of a model that recomputes by a reentrant checkpoint, or on which one is switched on."""
    wraps = list(_searching(view))
    models = _Models(view, [call for call, _ in wraps])
    for call, name in wraps:
        yield from _found(view, call, name, models.reentrant_in(call))


def _searching(view: View) -> Iterator[tuple[int, str]]:
    """The wraps that surely search, with the option that says so."""
    for calls, prefix in ((DDP | DDP_OPTIONS, ""), (TRAINING_ARGUMENTS, "ddp_")):
        for call in dict.fromkeys(call for call, _ in view.ask.calls_of(calls)):
            if _searches(view, call, prefix) and not (prefix and _switches_itself(view, call)):
                yield call, f"{prefix}find_unused_parameters"
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(TAKE_STRATEGY)):
        strategy = view.ask.argument(call, "strategy")
        if strategy.sources and view.ask.meaning(*strategy.sources).only == SEARCHING_STRATEGY:
            yield call, "strategy"


def _searches(view: View, call: int, prefix: str) -> bool:
    """Whether DDP surely searches, and has no static graph, with which it does not."""
    search, static = (view.ask.argument(call, f"{prefix}{name}") for name in ("find_unused_parameters", "static_graph"))
    told = search.state is State.GIVEN and all(view.program.ask(one) == frozenset([TRUE]) for one in search.sources)
    return told and not (static.state in _GIVEN and any(view.program.ask(one) != frozenset([FALSE]) for one in static.sources))


def _switches_itself(view: View, call: int) -> bool:
    """Whether the arguments of a Trainer switch checkpointing: that is checked with the other settings."""
    return view.ask.argument(call, "gradient_checkpointing").state is not State.ABSENT


class _Models:
    """The models of a program that recompute by reentrant checkpoints: by their calls."""

    def __init__(self, view: View, wraps: Iterable[int]) -> None:
        self.view = view
        self.program = view.program
        self.wraps = wraps
        self.switches = {call: self._receiver(call) for call in self.program.calls.get(_SWITCH, ()) if self._is_reentrant(call)}

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

    def reentrant_in(self, call: int) -> list[int]:
        """The call that enables checkpoints for a model that a call passes to DDP, or else the checkpoints in its
        forward pass."""
        models = frozenset().union(*map(self._behind, self._given_with(call)))
        switch = next((switch for switch, receiver in sorted(self.switches.items()) if receiver & models), None)
        if switch is not None:
            return [switch]
        atoms = self.program.atoms.of
        owners = [Class(self.view, atoms[one][1]) for one in models if atoms[one][0] == "i"]
        found = [one.key for one in self.view[Recomputing].reentrant_in(owners)]
        return [one for one in found if not self._is_left_off(call, one) and not self.view[FrozenParts].trains_nothing(one)]

    def _behind(self, key: int, steps: int = 4) -> frozenset[int]:
        """The possible objects of an expression; for the result of another package's function, its arguments:
        ``get_peft_model(model, …)``."""
        known = self._objects(key)
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if known or row[0] != "call" or not steps:
            return known
        return frozenset().union(*(self._behind(module.base | one, steps - 1) for one in row[2]))

    def _is_left_off(self, wrap: int, call: int) -> bool:
        """Whether a checkpoint is under a switch that no code of the training turns on."""
        if self.view[LeftOff].is_left_off(Call(self.view, call)):
            return True
        module, project = self.program.module_of(call), self.view.context.project
        own, path = self.view.path(self.program.module_of(wrap)), self.view.path(module)
        node = node_at(self.view, module, module.table.sites[call & MASK].place, nodes.Call)
        near = {own, *project.trainings_of(own)} - {path}
        return isinstance(node, nodes.Call) and is_left_off(project, node, near)

    def _given_with(self, call: int) -> set[int]:
        """The arguments of a call, and those of the calls that receive its result: ``Trainer(model, args)``,
        ``prepare(model)``, ``trainer.fit(model)``."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        found = {module.base | one for one in (*row[2], *(value for _, value in row[3]))}
        near = self.program.together.programs_of(module)
        for values in (values for one in self._made(call) for values in self._taking.get(one, ())):
            if self.program.module_of(values[0]).index in near:
                found.update(values)
        if any(name in DDP_OPTIONS or name in TAKE_STRATEGY for name in self._names(call)):
            found |= self._handed_to_engines(near)
        return found

    def _names(self, call: int) -> set[str]:
        module = self.program.module_of(call)
        return self.view.ask.names_of(self.program.ask(module.base | module.nodes[call & MASK][1]))

    def _made(self, call: int) -> set[int]:
        """The objects that a call makes."""
        return {one for one in self.program.ask(call) if one >= FIRST and call in self.program.atoms.of[one][1:]}

    @cached_property
    def _taking(self) -> dict[int, list[list[int]]]:
        """For each object that a wrap makes: the arguments of every call that receives it."""
        made = {one for wrap in self.wraps for one in self._made(wrap)}
        found: dict[int, list[list[int]]] = {}
        for module in self.program.live if made else ():
            for site in module.table.sites:
                row = module.nodes[site]
                values = [module.base | one for one in (*row[2], *(value for _, value in row[3]))]
                for one in frozenset().union(*(made & self.program.ask(value) for value in values)):
                    found.setdefault(one, []).append(values)
        return found

    def _handed_to_engines(self, near: frozenset[int]) -> set[int]:
        """The objects that the programs of a module pass to an Accelerator or a Lightning Trainer."""
        found: set[int] = set()
        for call in (*self.program.calls.get("prepare", ()), *self.program.calls.get("fit", ())):
            module = self.program.module_of(call)
            if module.index in near:
                found.update(module.base | one for one in module.nodes[call & MASK][2])
        return found


def _found(view: View, call: int, name: str, reentrant: list[int]) -> Iterator[Finding]:
    if not reentrant:
        return
    own, module = view.program.module_of(call), view.program.module_of(reentrant[0])
    line = line_of(module.table.sites[reentrant[0] & MASK].place)
    where = f"the reentrant checkpoint at {located(view.path(module), line, view.path(own))}"
    related = (Related(line_span(view, reentrant[0]), "this checkpoint is reentrant"),)
    keyword = keyword_of(view, call, name)
    written = None if keyword is None else keyword.span if name == "strategy" else keyword.whole
    span = written or view.call_span(call)
    yield view.finding(RULE, span, {"where": where}, related, fix=_fix(view, reentrant), confidence=confidence_of(view, RULE, call))


def _fix(view: View, calls: list[int]) -> Fix:
    """The other implementation in all the calls, if each names its implementation explicitly."""
    edits = [_edit(view, one) for one in calls]
    written = tuple(sorted({edit for edit in edits if edit is not None}, key=edit_key))
    if None in edits:
        return CHECKPOINT_FIX
    module = view.program.module_of(calls[0])
    is_switch = module.last_name(module.nodes[calls[0] & MASK][1]) == _SWITCH
    needs = () if is_switch else (tables.interface(FLAG),)
    return Fix("pass use_reentrant=False to the checkpoint", written, Applicability.UNSAFE, NON_REENTRANT, needs=needs)


def _edit(view: View, call: int) -> Edit | None:
    module = view.program.module_of(call)
    node = node_at(view, module, module.table.sites[call & MASK].place, nodes.Call)
    return as_non_reentrant(view.source(module), node) if isinstance(node, nodes.Call) else None
