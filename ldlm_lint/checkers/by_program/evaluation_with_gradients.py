"""evaluation-with-gradients in scripts that predict, which load weights and do not train, and in loops between
trainings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.checkers.by_program.calls import dotted_scope
from ldlm_lint.checkers.by_program.validation_loops import validation_runs
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import line_of, loops_above
from ldlm_lint.concepts.warm_ups import WarmUps
from ldlm_lint.model import Claim, Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import closure
from ldlm_lint.python.frozen_texts import is_frozen
from ldlm_lint.rules.evaluation import EVALUATION_WITH_GRADIENTS
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS

RULE = EVALUATION_WITH_GRADIENTS
WORDS = (b"load_state_dict", b"from_pretrained", b"val", b"test", b"dev")
_LOADS = ("load_state_dict", "from_pretrained")
_DIFFERENTIATES = ("backward", "manual_backward", "grad", "set_grad_enabled", "_set_grad_enabled", "requires_grad_")
"""What is called where gradients are wanted, or switched for the whole process."""
_NAMES = lazily(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?![\w'\"])")
"""The names that a call begins with: ``self.nets`` of ``self.nets[0].forward(x)``."""
_MODELS = lazily(r"Model|For[A-Z]")
"""The classes of transformers and diffusers that are modules: tokenizers and pipelines come by the same method."""


def find(view: View) -> Iterator[Finding]:
    """The first repeated run of a model whose weights were loaded, in each function of a program without training."""
    scripts = _Scripts(view)
    for module in view.program.live:
        loaded = scripts.loaded(module)
        found = list(_runs(view, module, loaded)) if loaded else []
        if found and scripts.train_nothing(module):
            yield from (_finding(view, module, call, root) for call, root in found)
    for module, call in validation_runs(view):
        root = _root_of(view, module, call)
        if root and _is_recorded(view, module, call):
            yield _finding(view, module, call, root)


class _Scripts:
    """The modules that predict, and the objects they have loaded."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.program = view.program

    @cached_property
    def _loading(self) -> dict[int, frozenset[int]]:
        """The objects whose weights are loaded, by the modules that do so."""
        found: dict[int, set[int]] = defaultdict(set)
        for name in _LOADS:
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                function = module.nodes[module.nodes[call & MASK][1]]
                if name == _LOADS[1] and not (function[0] == "attr" and _MODELS.search(module.last_name(function[1]))):
                    continue
                receiver = function[1] if function[0] == "attr" and name == _LOADS[0] else call & MASK
                found[module.index].update(one for one in self.program.ask(module.base | receiver) if one >= FIRST)
        return {index: frozenset(objects) for index, objects in found.items()}

    def loaded(self, module: Module) -> frozenset[int]:
        """The objects whose weights a module loads, itself or, in a script that is not imported, through its
        imports.
        """
        own = self._loading.get(module.index, frozenset())
        modules = self.program.modules
        linked = modules.linked(module) if self._loading and module.index not in self._imported else set()
        return own.union(*(self._loading.get(index, ()) for index in linked))

    @cached_property
    def _imported(self) -> frozenset[int]:
        modules = self.program.modules
        return frozenset(index for one in self.program.live for index in modules.linked(one))

    def train_nothing(self, module: Module) -> bool:
        """Whether a module neither trains nor belongs to a training."""
        context, path = self.view.context, self.view.path(module)
        if self._makes_optimizer(module) or not self._differentiating.isdisjoint(self._called_from(module)):
            return False
        return not any(map(context.runs_training, {path, *context.project.trainers_of(path)}))

    @staticmethod
    def _makes_optimizer(module: Module) -> bool:
        """Whether a module uses `torch.optim`: code that updates parameters also differentiates."""
        return any("optim" in part for row in module.nodes if row[0] in ("attr", "imp", "impf") for part in row[1:] if isinstance(part, str))

    @cached_property
    def _differentiating(self) -> frozenset[int]:
        """The functions that compute gradients, or switch gradients for the whole process."""
        return frozenset(self.program.function_of(call) for name in _DIFFERENTIATES for call in self.program.calls.get(name, ()))

    def _called_from(self, module: Module) -> set[int]:
        """The functions of a module, its top level, the top level of its imports, and the functions that these call."""
        modules = self.program.modules
        imported = closure({module.index}, lambda index: modules.linked(modules.all[index]))
        own = {module.base | number for number in range(len(module.scopes))}
        return closure(own | {one.base for one in self.program.live if one.index in imported}, self._targets)

    def _targets(self, function: int) -> set[int]:
        module = self.program.module_of(function)
        found: set[int] = set()
        for call in module.scopes[function & MASK].calls:
            found |= self.program.targets_of.get(module.base | call, set())
        return found


def _runs(view: View, module: Module, loaded: frozenset[int]) -> Iterator[tuple[int, str]]:
    """The first run in each function of a module, with the model's name."""
    seen: set[int] = set()
    for call, site in module.table.sites.items():
        row = module.nodes[call]
        if site.scope in seen or not (row[2] or row[3]) or not _is_run(view, module, row[1], loaded):
            continue
        if _is_repeated(view, module, call) and not view[WarmUps].is_one(module.base | call) and not _is_of_model(view, module, site.scope) and _is_recorded(view, module, call):
            root = _root_of(view, module, call)
            if root:
                seen.add(site.scope)
                yield call, root


def _root_of(view: View, module: Module, call: int) -> str:
    """The name of a model in its call; empty if it is frozen."""
    found = _NAMES.match(view.call_text(module.base | call))
    return found.group() if found is not None and not is_frozen(found.group(), view.source(module).text) else ""


def _is_repeated(view: View, module: Module, call: int) -> bool:
    """Whether a call is in a loop, or a loop calls its function."""
    site = module.table.sites[call]
    if site.loop >= 0 or not site.scope:
        return site.loop >= 0
    function = module.base | site.scope
    above = (edge.call for edge in view.program.callers(function))
    return any(view.program.module_of(one).table.sites[one & MASK].loop >= 0 for one in above)


def _is_run(view: View, module: Module, function: int, loaded: frozenset[int]) -> bool:
    """Whether a call runs a loaded model itself, not a method of it."""
    row = module.nodes[function]
    if row[0] == "attr" and loaded & view.program.ask(module.base | row[1]):
        return False
    run = loaded & view.program.ask(module.base | function)
    # The modules of other packages record no gradients of torch.
    return any(view.program.atoms.of[one][0] != "i" or view.program.is_module(view.program.atoms.of[one][1]) for one in run)


def _is_of_model(view: View, module: Module, scope: int) -> bool:
    """Whether a function is a method of a model: its caller decides whether gradients are recorded."""
    owner = view.program.owner.get(module.base | scope)
    return owner is not None and view.program.is_module(owner)


def _is_recorded(view: View, module: Module, call: int) -> bool:
    """Whether no code around a call can turn gradients off."""
    site = module.table.sites[call]
    guard = site.guard
    while guard >= 0:
        one = module.table.guards[guard]
        if one.kind == "with" and not _goes_on_recording(view, module, one.test):
            return False
        guard = one.parent
    if _is_of_a_module(view, module.base | site.scope):
        # The caller of the module decides.
        return False
    at = site.scope
    while at > 0:
        if any(SPEAKS_OF_GRADIENTS.search(_name_of(module, one)) for one in module.scopes[at].decorators):
            return False
        at = module.scopes[at].parent
    return True


def _is_of_a_module(view: View, function: int) -> bool:
    """Whether a function is a method of a `torch.nn.Module`."""
    owner = view.program.owner.get(function)
    return owner is not None and view.program.is_module(owner)


def _name_of(module: Module, number: int) -> str:
    row = module.nodes[number]
    return module.last_name(row[1] if row[0] == "call" else number)


def _goes_on_recording(view: View, module: Module, context: int) -> bool:
    """Whether a context manager is known, and no switch of gradients."""
    row = module.nodes[context]
    names = view.ask.names_of(view.program.ask(module.base | row[1])) if row[0] == "call" else set()
    return (bool(names) or _name_of(module, context) == "open") and not any(name.rpartition(".")[2] in STOPPERS for name in names)


def _finding(view: View, module: Module, call: int, root: str) -> Finding:
    around = loops_above(module.table.loops, module.table.sites[call].loop)
    loops = [str(line_of(module.table.loops[loop].place)) for loop in around]
    key = module.base | call
    subject = "|".join((dotted_scope(view, key), ",".join(loops), "", "", root, ""))
    return view.finding(RULE, view.call_span(key), {"model": root}, claims=(Claim("evaluation-records-gradients", subject),))
