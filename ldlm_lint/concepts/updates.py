"""Updates of parameters: calls that step an optimizer, and code that reads the gradients of trained values.

A gradient that only changes the input (guidance of a sampler, an attack, a saliency map) updates nothing:

    probe = latents.detach().requires_grad_()
    energy(model(probe)).backward()
    latents = scheduler.step(latents - probe.grad, t, latents)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from ldlm_lint.code.table import Node, loops_above
from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import users_in
from ldlm_lint.vocabulary.tensors import TO_HOST

_WRAPS = ("Parameter", "Variable")
_TO_HOST = TO_HOST | frozenset({"cpu", "is_cuda", "shape", "dtype"})
_DECIDES = frozenset({"cmp", "bool", "not"})
_HANDS_ON = frozenset({"copy", "phi"})


class Updates:
    """The updates of a program's parameters."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._marked: dict[int, frozenset[int]] = {}
        self._schedules: dict[int, bool] = {}
        self._users: dict[int, dict[int, list[int]]] = {}
        self._calls = self._updating()
        self.functions = set(self._calls)
        """The functions that call something by whose name parameters change."""

    def _updating(self) -> dict[int, list[int]]:
        """The calls by whose name parameters change, by the functions that they are in."""
        program = self.program
        found: dict[int, list[int]] = defaultdict(list)
        for name, calls in program.calls.items():
            for call in calls if _changes(name) else ():
                if self._updates(name, call):
                    found[program.function_of(call)].append(call)
        return found

    def follow(self, function: int, loop: int, leading: Collection[int]) -> bool:
        """Whether a function updates parameters by the gradients of a call in it (in one of its loops, -1 for none).

        What is updated in a loop with backward passes of its own (``leading`` has all calls that lead to one) belongs
        to these, if the call is outside of it.
        """
        module = self.program.module_of(function)
        loops = module.table.loops
        for call in self._calls.get(function, ()):
            updated = module.table.sites[call & MASK].loop
            if updated < 0 or updated in loops_above(loops, loop) or loop in loops_above(loops, updated):
                return True
            own = (module.table.sites[one & MASK].loop for one in leading if self.program.function_of(one) == function)
            if not any(updated in loops_above(loops, one) for one in own):
                return True
        return False

    def _updates(self, name: str, call: int) -> bool:
        """Whether a call of such a name may update: a step of an optimizer takes a closure at most."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        function = module.nodes[row[1]]
        if function[0] != "attr" or name != "step":
            return True
        made = module.plain(function[1])
        if len(row[2]) > 1 or self._is_made_for(module, call & MASK, made) or self._steps_inputs(module, made):
            return False
        return not self.steps_schedule(call)

    def steps_schedule(self, call: int) -> bool:
        """Whether a call of ``step`` only steps a schedule, such as that of the learning rate: parameters do not
        change."""
        program = self.program
        module = program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        if function[0] != "attr":
            return False
        receiver = program.ask(module.base | function[1])
        owners = [fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(receiver, kind)]
        made = [fields[1] for fields in program.atoms.kinds(receiver, "o")]
        if owners and not made:
            return all(map(self._only_schedules, owners))
        return bool(made) and not owners and all(map(_is_schedule, made))

    def _only_schedules(self, owner: int) -> bool:
        """Whether the class of the project is a schedule: its ``step`` neither reads gradients nor steps anything else."""
        program = self.program
        if owner not in self._schedules:
            # One whose step leads to itself holds others of its kind.
            self._schedules[owner] = True
            outside = program.outside_of(owner)
            steps = program.methods(owner, "step")
            is_plain = not program.is_module(owner) and all(map(_is_schedule, outside - {"builtins.object"}))
            self._schedules[owner] = is_plain and bool(steps) and not any(map(self._touches_parameters, steps))
        return self._schedules[owner]

    def _touches_parameters(self, function: int) -> bool:
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        named = ((module.last_name(module.nodes[call][1]), module.base | call) for call in scope.calls)
        if any(_changes(name) and self._updates(name, call) for name, call in named):
            return True
        places = module.table.places
        return any(
            row[0] == "attr" and row[2] == "grad" and number < len(places) and scope.place <= places[number] < scope.end
            for number, row in enumerate(module.nodes)
        )

    @staticmethod
    def _is_made_for(module: Module, call: int, optimizer: Node) -> bool:
        """Whether an optimizer is created again in the iteration that steps it: it changes an input of that
        iteration.
        """
        site = module.table.sites[call]
        if optimizer[0] != "call" or site.loop < 0:
            return False
        calls = module.scopes[site.scope].calls
        return any(module.nodes[one] is optimizer and module.table.sites[one].loop == site.loop for one in calls)

    def _steps_inputs(self, module: Module, optimizer: Node) -> bool:
        """Whether an optimizer only gets arguments of its function: ``Adam([image.detach().requires_grad_()])``."""
        if optimizer[0] != "call" or not optimizer[2]:
            return False
        steps = module.plain(optimizer[2][0])
        names = [fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | optimizer[1]), "x")]
        if steps[0] != "seq" or not steps[2] or not names or not all(name.startswith("torch.optim.") for name in names):
            return False
        return all(_is_given(module, one) for one in steps[2])

    def reads_gradients(self, functions: Iterable[int]) -> bool:
        """Whether the files of functions compute with gradients, as those that change parameters by hand do; to test them
        and to collect them on the host changes nothing."""
        modules = {module.index: module for module in map(self.program.module_of, functions)}
        return any(
            row[0] == "attr" and row[2] == "grad" and not self._is_made_in_step(module, row[1]) and self._computes_with(module, number)
            for module in modules.values()
            for number, row in enumerate(module.nodes)
        )

    def _computes_with(self, module: Module, gradient: int) -> bool:
        """Whether a gradient is used for more than tests and copies to the host."""
        users = self._users_of(module)
        todo, seen = [gradient], {gradient}
        while todo:
            number = todo.pop()
            for user in users.get(number, ()):
                row = module.nodes[user]
                reads = row[0] == "attr" and row[2] in _TO_HOST
                if row[0] in _DECIDES or reads or user in seen:
                    continue
                if row[0] not in _HANDS_ON:
                    return True
                seen.add(user)
                todo.append(user)
            if number != gradient and not users.get(number):
                return True
        return False

    def _users_of(self, module: Module) -> dict[int, list[int]]:
        known = self._users.get(module.index)
        if known is None:
            known = self._users[module.index] = users_in(module)
        return known

    def _is_made_in_step(self, module: Module, number: int) -> bool:
        """Whether a value is marked as requiring gradients in each iteration again: an input, not a trained value."""
        todo, seen = [number], set()
        while todo:
            number = todo.pop()
            row = module.nodes[number]
            if number in seen:
                continue
            seen.add(number)
            if row[0] == "call":
                function = module.nodes[row[1]]
                marks = function[0] == "attr" and function[2] == "requires_grad_"
                if (marks or any(name == "requires_grad" for name, _ in row[3])) and module.table.sites[number].loop >= 0:
                    return True
            elif row[0] in ("phi", "copy"):
                todo += row[1] if row[0] == "phi" else [row[1]]
        return not seen.isdisjoint(self._marked_in(module))

    def _marked_in(self, module: Module) -> frozenset[int]:
        """The targets of ``x.requires_grad = True`` that a loop carries or creates."""
        if module.index not in self._marked:
            written = {base for scope in module.scopes for base, name, _, _ in scope.writes if name == "requires_grad"}
            sites = module.table.sites
            rows = (one for one in written if module.nodes[one][0] == "phi" or (one in sites and sites[one].loop >= 0))
            self._marked[module.index] = frozenset(rows)
        return self._marked[module.index]


def _is_given(module: Module, number: int) -> bool:
    """Whether an expression is a parameter of its function, or derived from one by methods and by marking it as
    trained."""
    seen: set[int] = set()
    while number not in seen:
        seen.add(number)
        row = module.plain(number)
        if row[0] != "call":
            return bool(row[0] == "param")
        function = module.nodes[row[1]]
        if module.last_name(row[1]) in _WRAPS and row[2]:
            number = row[2][0]
        elif function[0] == "attr":
            number = function[1]
    return False


def _changes(name: str) -> bool:
    """Whether a function changes parameters, by its name: the ``step`` of optimizers and of their wrappers."""
    words = name.strip("_").split("_")
    # ``create_optimizer`` returns an object that may change them later.
    return "step" in (words[0], words[-1]) or ("optimi" in name and not name.lower().endswith(("optimizer", "optimizers", "optimiser", "optim")))


def _is_schedule(name: str) -> bool:
    """Whether a class or function of another package returns a learning rate schedule (torch, timm, transformers,
    diffusers)."""
    return "schedule" in name.rpartition(".")[2].lower() or ".lr_scheduler." in name or name.endswith("ABC")


__all__ = ["Updates"]
