"""Training steps: the loops and functions that are one, and everything that runs in one.

A step is the code around a backward pass: the loop around it, or around the calls of the functions that it is in, or a
function that a framework calls for each step. If every backward pass of a loop is under an interval, that branch is the
step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from ldlm_lint.concepts.bound_in_steps import BoundInSteps
from ldlm_lint.concepts.forward_only import is_forward_only
from ldlm_lint.concepts.framework_hooks import OF_LIGHTNING, OF_MM, FrameworkHooks
from ldlm_lint.concepts.frequency import Frequency
from ldlm_lint.concepts.outside_steps import OutsideSteps
from ldlm_lint.concepts.properties import Properties
from ldlm_lint.concepts.unseen_losses import UnseenLosses
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.program.atoms import (
    HOMES,
    IF_TENSOR,
    MASK,
    ON_DEVICE,
    Value,
)
from ldlm_lint.program.calls import UNKNOWN, Caller
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

BACKWARD = ("backward", "manual_backward")
_KEEPS = frozenset({"mean", "sum", "float", "div"})
_WRITTEN = frozenset({"const", "none", "free", "def", "class"})
Loops = set[int | None]
"""Loops of a function that are steps; None stands for all of it."""
Above = tuple[dict[int, Loops], dict[tuple[int, int], list[int]], set[tuple[int, int]]]


class Training(Concept):
    """The training steps of a program. The constructor queries the program for everything it needs."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.frequency = Frequency(code.program)
        self.steps: dict[int, Loops] = defaultdict(set)
        """The steps, by the functions that they are in."""
        self.updating: dict[int, Loops] = defaultdict(set)
        """Those of them that update parameters. Others only gather gradients, such as for an initialization."""
        self.reached: dict[int, frozenset[int | None]] = {}
        """What runs in a step: of each function the loops, or None for all of it."""
        self.reached_by: dict[int, int] = {}
        """The call by which a function is first reached."""
        self.leads: set[int] = set()
        """Functions that lead to a backward pass of a training."""
        self.differentiates: set[int] = set()
        """Functions that lead to a backward pass whose gradients nothing is updated by."""
        self.evaluates: set[int] = set()
        """Functions that set models to evaluation and not back."""
        self.unseen: set[int] = set()
        """Losses that no visible code calls: who trains with them is not visible."""
        self._properties = Properties(code.program)
        self._bound = BoundInSteps(code.program, self.frequency.passes, self.frequency.in_training.outcome)
        self._gates: dict[tuple[int, int], list[int]] = defaultdict(list)
        """The intervals that the backward passes of a loop are under, -1 for none."""
        backwards = list(self._backwards())
        self._find_steps(backwards)
        self._take_down_counts()
        self._seed_losses(backwards)
        self._find_hooks()
        self._find_evaluations()
        self._reach_all()
        self._find_unseen_losses()
        self._ask_unseen_callers()
        self.frequency.left_out.reached, self.frequency.left_out.steps = self.reached, self.steps

    def _backwards(self) -> Iterator[int]:
        """The calls of backward passes; a method of that name that only forwards is not one."""
        program = self.program
        for name in BACKWARD:
            for call in program.calls.get(name, ()):
                module = program.module_of(call)
                function = module.nodes[module.nodes[call & MASK][1]]
                if function[0] == "attr" and module.last_name(function[1]) != "()super" and not self._passes_on(call):
                    yield call
        yield from self._stepped_outside

    @cached_property
    def _stepped_outside(self) -> tuple[int, ...]:
        """The backward passes that an object of another package runs, and steps by."""
        return tuple(OutsideSteps(self.program).calls())

    def _passes_on(self, call: int) -> bool:
        """Whether a backward pass is in a method of that name: callers of the method run backward."""
        function = self.program.function_of(call)
        is_named = self.program.module_of(function).scopes[function & MASK].name in BACKWARD
        return is_named and function in self.program.owner

    def _find_steps(self, backwards: Iterable[int]) -> None:
        """Go up from backward passes to the loops that repeat them; gradients without an update do not train."""
        updates = Updates(self.program)
        stepping = self._stepping_loops(updates)
        # All calls that lead to backward passes have to be known before it is decided whose updates are whose.
        for call, (steps, gates, places) in [(call, self._above(call, stepping)) for call in backwards]:
            functions = {function for function, _ in places}
            steps_itself = call in self._stepped_outside or updates.reads_gradients(functions)
            if not (steps_itself or functions & updates.functions):
                self.differentiates |= functions
                continue
            self.leads |= functions
            is_followed = steps_itself or any(updates.follow(function, loop, self.frequency.leading) for function, loop in places)
            for function, loops in steps.items():
                self.steps[function] |= loops
                self.updating[function] |= loops if is_followed else set()
            for place, found in gates.items():
                self._gates[place] += found

    def _above(self, backward: int, stepping: set[tuple[int, int]]) -> Above:
        """The loops above a backward pass with the intervals around it, and the functions with the loops that lead
        there."""
        steps: dict[int, Loops] = defaultdict(set)
        gates: dict[tuple[int, int], list[int]] = defaultdict(list)
        seen: set[int] = set()
        places: set[tuple[int, int]] = set()
        named: dict[int, tuple[str, str]] = {}
        todo: list[int] = []

        def above(call: int, is_backward: bool) -> None:
            module = self.program.module_of(call)
            site = module.table.sites[call & MASK]
            function = module.base | site.scope
            places.add((function, site.loop))
            self.frequency.leading.add(call)
            loop = site.loop
            if not is_backward and loop >= 0 and self._calls_element(module, call & MASK, loop):
                # ``for hook in self.hooks: hook.after_step()`` repeats no step.
                loop = module.table.loops[loop].parent
            if loop < 0:
                if function not in seen:
                    seen.add(function)
                    todo.append(function)
                return
            gates[function, loop].append(self._gate(module, site.guard))
            steps[function].add(loop)
            if (module.index, loop) in stepping or (is_backward and backward in self._stepped_outside):
                return
            # Micro-batches: the loop around them steps.
            parent = module.table.loops[loop].parent
            if parent >= 0 and (module.index, parent) in stepping:
                steps[function].add(parent)
            elif is_backward and function not in seen:
                seen.add(function)
                todo.append(function)

        above(backward, True)
        while todo:
            function = todo.pop()
            if function & MASK == 0:
                continue
            calls = self.callers(function)
            if not calls:
                steps[function].add(None)
            for call in calls:
                if self._may_name(call, named.get(function), function):
                    named.update(self._named_at(call, function))
                    above(call, False)
        return steps, gates, places

    def _calls_element(self, module: Module, call: int, loop: int) -> bool:
        """Whether a call is a method call on a loop's element, by a literal or a computed name."""
        row = module.nodes[module.nodes[call][1]]
        if row[0] == "call" and module.last_name(row[1]) == "getattr" and row[2]:
            return self._comes_from(module, row[2][0], module.table.loops[loop].value)
        return row[0] == "attr" and self._comes_from(module, row[1], module.table.loops[loop].value)

    def _named_at(self, call: int, method: int) -> dict[int, tuple[str, str]]:
        """For a call ``getattr(hook, name)()`` the function that it is in, the parameter that has the name, and the
        name that leads to a method."""
        module = self.program.module_of(call)
        row = module.nodes[module.nodes[call & MASK][1]]
        key = module.plain(row[2][1]) if row[0] == "call" and module.last_name(row[1]) == "getattr" and len(row[2]) > 1 else ("",)
        if key[0] != "param":
            return {}
        return {module.base | key[1]: (key[2], self.program.module_of(method).scopes[method & MASK].name)}

    def _may_name(self, call: int, named: tuple[str, str] | None, function: int) -> bool:
        """Whether a call of a function may pass a name for a parameter."""
        program = self.program
        edges = [edge for edge in program.callers(function) if edge.call == call] if named is not None else []
        if named is None or not edges or edges[0].how == UNKNOWN:
            return True
        node = program.argument_node(call, function, edges[0].how, named[0])
        texts = program.atoms.texts(program.ask(node)) if node is not None else set()
        return not texts or named[1] in texts

    def _take_down_counts(self) -> None:
        for function, loops in self.steps.items():
            module = self.program.module_of(function)
            self.frequency.repeated.update(module.base | module.table.loops[loop].value for loop in loops if loop is not None)

    def _stepping_loops(self, updates: Updates) -> set[tuple[int, int]]:
        """The loops that call a ``step`` which does not belong to a schedule."""
        found = set()
        for call in self.program.calls.get("step", ()):
            module = self.program.module_of(call)
            loop = module.table.sites[call & MASK].loop
            if loop < 0 or updates.steps_schedule(call):
                continue
            receiver = module.nodes[module.nodes[call & MASK][1]]
            while loop >= 0:
                # A loop over optimizers is a part of one step.
                if receiver[0] != "attr" or not self._comes_from(module, receiver[1], module.table.loops[loop].value):
                    found.add((module.index, loop))
                loop = module.table.loops[loop].parent
        return found

    @staticmethod
    def _comes_from(module: Module, number: int, iterable: int) -> bool:
        """Whether an expression is the element of a loop over an iterable, or a part of it."""
        row = module.plain(number)
        for _ in range(3):
            if row[0] == "elem":
                return bool(row[1] == iterable)
            if row[0] != "part":
                return False
            row = module.plain(row[1])
        return False

    def callers(self, function: int) -> list[int]:
        """The calls that may go to a function above a step, also as a function that is passed on."""
        return [edge.call for edge in self.program.callers(function)] or self._given_to(function)

    def _given_to(self, function: int) -> list[int]:
        """The calls of functions of the program that receive a function and call it: ``timed(step)``."""
        program, module = self.program, self.program.module_of(function)
        return [
            module.base | call
            for call in module.table.sites
            if module.base | call not in program.decorating
            and any(module.plain(one) == ("def", function & MASK) for one in module.nodes[call][2])
            and any(function in program.targets_of[inner] for inner in self._call_parameters(module.base | call))
        ]

    def _call_parameters(self, call: int) -> list[int]:
        """The calls of a parameter in the functions that a call goes to."""
        program = self.program
        found = []
        for target in sorted(program.targets_of.get(call, ())):
            home = program.module_of(target)
            inner = (one for one in home.scopes[target & MASK].calls if home.plain(home.nodes[one][1])[0] == "param")
            found += [home.base | one for one in inner]
        return found

    def _gate(self, module: Module, guard: int) -> int:
        """The outermost interval around the code, -1 if there is none."""
        gate = -1
        while guard >= 0:
            one = module.table.guards[guard]
            if one.test and one.kind in ("if", "rest") and one.holds is True and self.frequency.is_periodic(module, one.test):
                gate = guard
            guard = one.parent
        return gate

    def _seed_losses(self, backwards: Iterable[int]) -> None:
        """A loss that is run backward is on the device, back through the operations that made it."""
        program = self.program
        todo = [loss for call in backwards if (loss := self._loss(call)) is not None]
        seen = set(todo)
        while todo:
            key = todo.pop()
            self._seed_record(key)
            for source in self._sources(key):
                if source not in seen and program.module_of(source).nodes[source & MASK][0] not in ("const", "none"):
                    seen.add(source)
                    todo.append(source)
        for key in seen:
            if program.module_of(key).nodes[key & MASK][0] not in _WRITTEN:
                for one in self._same_entries(key):
                    program.put(~one, ON_DEVICE)
                    program.put(one, ON_DEVICE)

    def _same_entries(self, key: int) -> list[int]:
        """An expression, and every other reading of the same entry or attribute: ``losses["shape"]``, ``output.loss`` here and there."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        is_entry = row[0] == "item" and module.nodes[row[2]][0] == "const"
        if not is_entry and row[0] != "attr":
            return [key]
        return [module.base | number for number, other in enumerate(module.nodes) if other == row]

    def _seed_record(self, key: int) -> None:
        """The container of a loss has other values computed with it: ``results["loss"].backward()``."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "item" and module.plain(row[1])[0] in ("call", "dcomp", "param"):
            for one in (module.base | row[1], ~(module.base | row[1])):
                self.program.put(one, frozenset([IF_TENSOR]))

    def _loss(self, call: int) -> int | None:
        """The expression that is run backward: the receiver, or the argument of an engine."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        if call in self._stepped_outside:
            return module.base | row[2][0]
        receiver = module.nodes[row[1]][1]
        if not row[2]:
            return module.base | receiver if not self._is_own_object(module, receiver) else None
        is_engine = module.nodes[row[1]][2] == "manual_backward" or not self.program.ask(module.base | receiver) & HOMES
        return module.base | row[2][0] if is_engine and module.nodes[row[2][0]][0] != "const" else None

    def _is_own_object(self, module: Module, number: int) -> bool:
        """Whether something is an object of a class of the project: its ``backward()`` is a method, and it is not a
        loss."""
        program, key = self.program, module.base | number
        objects = program.atoms.kinds(program.ask(key), "i") + program.atoms.kinds(program.ask(key), "self")
        return program.class_of_self(module, number) is not None or bool(objects)

    def _sources(self, key: int) -> list[int]:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind == "param":
            return self.given(module.base | row[1], row[2])
        found: list[int] = []
        if kind == "op":
            found = [row[2], row[3]] if row[1] in ("Add", "Sub") else [row[3] if _is_factor(module, row[2]) else row[2]]
        elif kind == "phi":
            found = list(row[1])
        elif kind == "copy":
            found = [row[1]]
        elif kind == "un":
            found = [row[2]]
        elif kind == "call":
            found = self._sources_of_call(module, row)
        return [module.base | number for number in found]

    def _sources_of_call(self, module: Module, row: tuple[Any, ...]) -> list[int]:
        """Of a call whose result is on the device the arguments that have to be there, too."""
        function = module.plain(row[1])
        if function[0] == "free" and function[2] == "sum" and row[2]:
            summed = module.plain(row[2][0])
            return [summed[1]] if summed[0] == "comp" else list(summed[2]) if summed[0] == "seq" else []
        if function[0] == "attr" and function[2] == "scale" and row[2]:
            return [row[2][0]]
        if function[0] == "attr" and function[2] in _KEEPS and not row[2]:
            return [function[1]]
        value = self.program.ask(module.base | row[1])
        names = [fields[1] for kind in ("x", "o") for fields in self.program.atoms.kinds(value, kind)]
        # torch computes on one device: the operands of a loss are on the same device.
        is_loss = any(name.startswith("torch.nn.") for name in names)
        return [one for one in row[2][:2] if module.nodes[one][0] not in ("const", "star")] if is_loss else []

    def given(self, function: int, name: str) -> list[int]:
        """The expressions (keys) that known callers pass for a parameter."""
        program = self.program
        nodes = [self._given_by(edge, function, name) for edge in program.callers(function)]
        return [node for node in nodes if node is not None]

    def _given_by(self, edge: Caller, function: int, name: str) -> int | None:
        call, how = edge.call, edge.how
        if how != UNKNOWN:
            return self.program.argument_node(call, function, how, name)
        # For the call of a ``partial`` the positions are unknown, the names are known.
        module = self.program.module_of(call)
        return next((module.base | one for keyword, one in module.nodes[call & MASK][3] if keyword == name), None)

    def _find_hooks(self) -> None:
        """The functions that a framework calls in each step, with tensors on the device."""
        program = self.program
        frameworks = FrameworkHooks(program)
        for owner in [one for classes in program.classes.values() for one in classes]:
            module = program.module_of(owner)
            for name, home in frameworks.of(owner):
                for number in module.scopes[owner & MASK].bindings.get(name, ()):
                    row = module.nodes[number]
                    if row[0] == "def":
                        self.steps[module.base | row[1]].add(None)
                        self.updating[module.base | row[1]].add(None)
                        first = module.scopes[row[1]].params[1:2]
                        # After the batch Lightning passes indices: of the batch, of the optimizer.
                        only = {one: home for one in first} if name in OF_LIGHTNING else {"*": home}
                        if name == "forward":
                            # Training code moves its batches: a declared tensor is on the device.
                            types = module.scopes[row[1]].annotations
                            only |= {one: ON_DEVICE for one, type_ in types.items() if type_.endswith("Tensor")}
                        self._hook(module.base | row[1], only)

    def _hook(self, function: int, given: dict[str, Value]) -> None:
        """Set the parameters of a function to the arguments of an unknown caller; ``*`` stands for all others."""
        program = self.program
        program.hooks[function] = given
        for name in program.module_of(function).scopes[function & MASK].params:
            if ("hook", function, name) in program.values:
                program.requeue(("hook", function, name))

    def _find_evaluations(self) -> None:
        program = self.program
        for call in program.calls.get("eval", ()):
            module = program.module_of(call)
            row = module.nodes[call & MASK]
            function = module.nodes[row[1]]
            if function[0] == "attr" and not row[2] and not self._freezes_part(module, call & MASK, function[1]):
                self.evaluates.add(program.function_of(call))
        for call in program.calls.get("train", ()):
            self.evaluates.discard(program.function_of(call))

    def _freezes_part(self, module: Module, call: int, receiver: int) -> bool:
        """Whether a module sets a part of its own to evaluation, such as a teacher: it still trains."""
        owner = self.program.owner.get(module.base | module.table.sites[call].scope)
        row = module.plain(receiver)
        is_own = row[0] == "attr" and self.program.class_of_self(module, row[1]) is not None
        return is_own and owner is not None and self.program.is_module(owner)

    def _reach_all(self) -> None:
        self.program.solve()
        self._reach()

    def _reach(self) -> None:
        """Go forward from the steps over calls."""
        program = self.program
        self.reached, self.reached_by = {}, {}
        todo: list[tuple[int, frozenset[int | None]]] = [(one, frozenset(loops)) for one, loops in self.steps.items()]
        while todo:
            function, loops = todo.pop()
            old = self.reached.get(function)
            if old is not None and (None in old or loops <= old):
                continue
            loops = self.reached[function] = (old or frozenset()) | loops
            module = program.module_of(function)
            for call in self._running(module, function, loops):
                key = module.base | call
                for target in (*self._followed(key), *sorted(self._properties.read_at(module, call))):
                    if self._is_step(target):
                        self.reached_by.setdefault(target, key)
                        todo.append((target, frozenset([None])))

    def running(self, function: int, loops: frozenset[int | None]) -> Iterator[tuple[int, list[int]]]:
        """The calls (keys) of a function that run in each of the steps, and what each leads to that is part of a step."""
        module = self.program.module_of(function)
        for call in self._running(module, function, loops):
            key = module.base | call
            targets = (*self._followed(key), *sorted(self._properties.read_at(module, call)))
            yield key, [one for one in targets if self._is_step(one)]

    def _running(self, module: Module, function: int, loops: frozenset[int | None]) -> Iterator[int]:
        """The calls of a function that run in each of the steps; most are under few guards."""
        passes: dict[int, bool] = {-1: True}
        for call in module.scopes[function & MASK].calls:
            site = module.table.sites[call]
            if self.is_inside(module, site.loop, site.guard, function, loops):
                if site.guard not in passes:
                    passes[site.guard] = self.frequency.passes(module, site.guard, function)
                if passes[site.guard]:
                    yield call

    def _followed(self, call: int) -> list[int]:
        """The targets of a call of a step; for the call that leads to the backward pass only those with one.

        An override of such a method that runs nothing backward belongs to a program that only shows or evaluates.
        """
        targets = self._bound.targets(call)
        if call in self.frequency.leading and targets & self.leads:
            targets = targets & self.leads
        return sorted(targets)

    def is_certain(self, function: int) -> bool:
        """Whether a step surely leads to a function: each call on the way has a single target."""
        seen: set[int] = set()
        while function not in self.steps and function in self.reached_by and function not in seen:
            seen.add(function)
            call = self.reached_by[function]
            if len(self.program.targets_of.get(call, ())) != 1:
                return False
            function = self.program.function_of(call)
        return function in self.steps

    def _is_step(self, target: int) -> bool:
        """Whether a function that a step calls is part of it: no evaluation, no making of a module."""
        program = self.program
        if target in self.evaluates and target not in self.steps:
            return False
        owner = program.owner.get(target)
        if owner is not None and is_forward_only(program, owner):
            return False
        if owner is not None and program.is_module(owner):
            return program.module_of(target).scopes[target & MASK].name != "__init__"
        return True

    def runs(self, module: Module, call: int, function: int, loops: frozenset[int | None]) -> bool:
        """Whether a call in a function runs in each of the steps of ``loops``."""
        site = module.table.sites[call]
        return self.is_inside(module, site.loop, site.guard, function, loops) and self.frequency.passes(
            module, site.guard, function
        )

    def is_inside(self, module: Module, loop: int, guard: int, function: int, loops: frozenset[int | None]) -> bool:
        """Whether a place is inside of one of the loops, and under the interval of its backward passes if all have one."""
        if None in loops:
            return True
        while loop >= 0:
            if loop in loops:
                gates = self._gates.get((function, loop), [-1])
                if -1 in gates:
                    return True
                while guard >= 0:
                    if guard in gates:
                        return True
                    guard = module.table.guards[guard].parent
                return False
            loop = module.table.loops[loop].parent
        return False

    def _find_unseen_losses(self) -> None:
        """A loss without a visible caller is computed in a step that is not visible."""
        for function in list(UnseenLosses(self.program, self.reached).functions()):
            self.unseen.add(function)
            self.steps[function].add(None)
            self.updating[function].add(None)
            self._give_tensors(function)
        self._reach_all()

    def _give_tensors(self, function: int) -> None:
        """Assume that tensor arguments of a function are on the device."""
        program = self.program
        program.hooks[function] = {"*": frozenset([IF_TENSOR])}
        for name in program.module_of(function).scopes[function & MASK].params:
            if ("hook", function, name) in program.values:
                program.requeue(("hook", function, name))

    def _ask_unseen_callers(self) -> None:
        """Assume that functions without known callers get tensors on the device."""
        program = self.program
        for function in list(self.reached):
            # A function with the loop of the steps, or a step without a known caller, gets batches as loaders yield
            # them.
            is_unseen = self._is_called_by_mm(function) or not program.callers(function)
            if is_unseen and function not in program.hooks and function not in self.steps:
                self._give_tensors(function)
        self._reach_all()

    def _is_called_by_mm(self, function: int) -> bool:
        """Whether a function is only called by OpenMMLab, which receives it: ``multi_apply(self.loss_single, …)``."""
        program = self.program
        edges = program.callers(function)
        return bool(edges) and all(edge.how == UNKNOWN and self._is_of_mm(edge.call) for edge in edges)

    def _is_of_mm(self, call: int) -> bool:
        module = self.program.module_of(call)
        value = self.program.ask(module.base | module.nodes[call & MASK][1])
        return any(fields[1].partition(".")[0] in OF_MM for fields in self.program.atoms.kinds(value, "x"))


def _is_factor(module: Module, number: int) -> bool:
    """Whether an operand is written as a number that a loss is weighed with: ``(1 - self.ratio) * loss``."""
    row = module.nodes[number]
    if row[0] == "op":
        return _is_factor(module, row[2]) and _is_factor(module, row[3])
    return row[0] in ("const", "attr")
