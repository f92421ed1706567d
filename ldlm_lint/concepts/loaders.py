"""The role of passes over data loaders: whether they train, and whether they restart for the same loader.

A *pass* is a loop over a loader, or an ``iter`` of one. It trains if it is a training step or feeds one; it is repeated
if a loop outside of which the loader is created runs it several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.code.table import loops_above
from ldlm_lint.concepts.loader_arms import LoaderArms
from ldlm_lint.concepts.loader_options import Loader
from ldlm_lint.concepts.loader_passes import LoaderPasses, Pass
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.arms import Arms, Entry
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

_CLIMB = 400
"""Places above a pass or a loader that are looked at."""
_ONCE = frozenset({"__init__", "setup", "prepare_data", "configure_model", "on_fit_start", "on_train_start"})
"""Methods that a framework, or Python, calls once and before the first pass."""


class Frame(NamedTuple):
    """The place of an event, seen from one of the functions that lead there: the function (key) and the innermost loop,
    -1 for none."""

    function: int
    loop: int


class Loaders(Concept):
    """The uses of the loaders of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._passes = code[LoaderPasses]

    @property
    def made(self) -> list[Loader]:
        """All loaders, by the calls that make them."""
        return self._passes.made

    def passes(self, call: int) -> list[Pass]:
        """The passes through the loader that a call makes."""
        return self._passes.of(call)

    def trains(self, call: int) -> Pass | None:
        """A pass through a loader that trains on its batches."""
        return next((one for one in self._passes.of(call) if self._trains(one, call, set())), None)

    def trains_through(self, call: int, giver: int) -> Pass | None:
        """A pass that trains on batches of a loader: from one call of the enclosing function, or in that function
        itself."""
        arms = self._arms_through(giver)
        own = self.program.function_of(call)
        for one in self._passes.of(call):
            if self._trains(one, call, set()) and (one.function == own or arms.may_come(one.module.base | one.value, call)):
                return one
        return None

    def _arms_through(self, giver: int) -> LoaderArms:
        return LoaderArms(Arms(self.ask), self._may_be, self._goes_on_with, giver)

    @cached_property
    def _arms(self) -> LoaderArms:
        return LoaderArms(Arms(self.ask), self._may_be, self._goes_on_with)

    def _may_be(self, key: int, loader: int) -> bool:
        value = self.program.ask(key)
        return not value or self._passes.may_be_inside(value, loader, 1)

    def _goes_on_with(self, key: int, loader: int) -> bool:
        return loader in self._passes.objects(key, set()) or bool(self._passes.generators(key, set()))

    def _trains(self, one: Pass, loader: int, seen: set[int]) -> bool:
        if one.framework:
            return one.framework == "train"
        function = one.function
        if not self._arms.may_come(one.module.base | one.value, loader):
            return False
        if one.loop >= 0 and self._is_step(one.module, function, one.loop):
            return True
        if one.loop < 0 and (one.is_draw or self._feeds_step(one)):
            return True
        if function in seen:
            return False
        seen.add(function)
        return any(self._trains(two, loader, seen) for two in self._passes.consumers(one, loader))

    def _is_step(self, module: Module, function: int, outer: int) -> bool:
        """Whether a loop is a training step, or one is in it."""
        steps = [-1 if step is None else step for step in self._steps.loops.get(function, ())]
        inside = (*steps, *self._defined_steps(module, function))
        return any(outer in loops_above(module.table.loops, loop) for loop in inside)

    def _defined_steps(self, module: Module, function: int) -> Iterator[int]:
        """The loops in which functions are defined that take a training step: unknown code runs them there."""
        number = function & MASK
        inner = [one for one in self._steps.loops if self.program.module_of(one) is module and module.scopes[one & MASK].parent == number and one & MASK]
        if inner:
            made = {("def", one & MASK) for one in inner}
            yield from (event[2] for event in module.scopes[number].events if event[0] == "bind" and module.nodes[event[1]] in made)

    def _feeds_step(self, one: Pass) -> bool:
        """Whether a training step takes batches from such an iterator, by ``next`` or in a loop."""
        made = self._iterated(one.module.base | one.value)
        if any(made & self._drawn(module.base | value) for module, _, value in self._passes.drawn_in_steps):
            return True
        for function in self._steps.loops:
            module = self.program.module_of(function)
            for number, row in enumerate(module.table.loops):
                is_step = module.base | row.scope == function and self._is_step(module, function, number)
                if is_step and row.kind != "while" and made & self._iterators(module.base | row.value):
                    return True
        return False

    def _drawn(self, key: int) -> set[int]:
        """The loaders that a ``next`` takes from: its argument is an iterator, ``itertools.cycle(loader)`` too."""
        return self._iterators(key) | self._passes.objects(key, set())

    def _iterated(self, key: int) -> set[int]:
        return self._passes.objects(key, set())

    def _iterators(self, key: int) -> set[int]:
        """The calls that made the loaders whose running passes an expression continues."""
        return self._passes.objects(key, set(), of_iterators=True)

    def repeated(self, call: int) -> Pass | None:
        """A pass that runs repeatedly for the loader created by a call."""
        if self._goes_on_by_itself(self._passes.class_of(call)):
            return None
        made = self._loops_above_making(call)
        passes = self._passes.of(call)
        if any(self._is_within(one, two, call) for one in passes for two in passes):
            return None
        again = next((one for one in passes if self._is_repeated(one, call, made)), None)
        return self._shown(again, call) if again is not None else self._second(passes)

    def _shown(self, one: Pass, call: int) -> Pass:
        """The loop over a generator is more informative than the one inside the generator."""
        loops = (two for two in self._passes.consumers(one, call) if two.loop >= 0 and not two.is_draw) if not one.framework else ()
        return next((two for two in loops if self._is_repeated(two, call, self._loops_above_making(call))), one)

    def _second(self, passes: list[Pass]) -> Pass | None:
        """A loop that goes through the same loader after another one of its function, and not instead of it."""
        loops = [one for one in passes if one.loop >= 0]
        return next((two for one in loops for two in loops if one is not two and self._follows(one, two)), None)

    def _follows(self, one: Pass, two: Pass) -> bool:
        if one.function != two.function or one.place >= two.place:
            return False
        module, rows = one.module, one.module.table.loops
        same = _gone_through(module, one.value) == _gone_through(module, two.value)
        if not same or rows[one.loop].parent != rows[two.loop].parent:
            return False
        guard, after = rows[one.loop].guard, rows[two.loop].guard
        while guard >= 0 and guard != after:
            guard = module.table.guards[guard].parent
        return guard == after

    def _goes_on_by_itself(self, owner: int) -> bool:
        """Whether a class of the project has an ``__iter__`` that begins no pass of torch's loader: it continues one
        that it keeps."""
        for function in self.program.methods(owner, "__iter__") if owner else ():
            module = self.program.module_of(function)
            names = {module.last_name(module.nodes[call][1]) for call in module.scopes[function & MASK].calls}
            if names.isdisjoint({"__iter__", "iter"}):
                return True
        return False

    def _is_within(self, one: Pass, two: Pass, call: int) -> bool:
        """Whether a second pass begins while the first one goes on, through the same loader: persistent workers serve one pass at a time."""
        if two.function not in self._begun_within(one):
            return False
        # Each call of a function that makes a loader returns another one.
        givers = self.program.calls_of_function(self.program.function_of(call)) if self.program.function_of(call) & MASK else []
        return len(givers) < 2 or any(self._come_from(giver, call, one, two) for giver in givers)

    def _come_from(self, giver: int, call: int, *passes: Pass) -> bool:
        """Whether several passes may go through the result of the same call of the function that creates a loader."""
        arms = self._arms_through(giver)
        return all(arms.may_come(one.module.base | one.value, call) for one in passes)

    def _begun_within(self, one: Pass) -> set[int]:
        """The other functions that are called during a pass."""
        loop = one.loop if one.loop >= 0 else one.around
        found: set[int] = set()
        for call in one.module.scopes[one.scope].calls if loop >= 0 else ():
            site = one.module.table.sites[call]
            if site.place > one.place and any(
                frame.loop == loop for frame in self._loops_of(Frame(one.function, site.loop))
            ):
                found |= self.program.targets_of.get(one.module.base | call, set())
        return found - {one.function}

    def comes_again(self, call: int, loader: int) -> bool:
        """Whether a call runs repeatedly during the life of one loader, given the call that creates it."""
        site = self.program.module_of(call).table.sites[call & MASK]
        return self.happens_again(self.program.function_of(call), site.loop, loader)

    def happens_again(self, function: int, loop: int, loader: int) -> bool:
        """Whether code in a loop (-1: in none) of a function runs repeatedly during the life of one loader."""
        made = self._loops_above_making(loader)
        frames = self._climb(Frame(function, loop), None, 0)
        loops = (loop for frame in frames for loop in self._loops_of(frame))
        return any(loop not in made and not self._ends_before(loop, loader) for loop in loops)

    def _ends_before(self, frame: Frame, call: int) -> bool:
        """Whether a loop that does not make a loader is in front of the call that does, in the same function."""
        module = self.program.module_of(call)
        begins = self.program.module_of(frame.function).table.loops[frame.loop].place
        return frame.function == self.program.function_of(call) and begins < module.table.sites[call & MASK].place

    def may_happen_again(self, function: int, loop: int, loader: int) -> bool:
        """The same, or nothing in the program calls the code, and it does not make the loader: a framework may call it
        for each epoch."""
        if self.happens_again(function, loop, loader):
            return True
        functions = {frame.function for frame in self._climb(Frame(function, loop), None, 0)}
        if functions & {frame.function for frame in self._frames_of_making(loader)}:
            return False
        tops = [one for one in functions if one & MASK and not self.program.callers(one)]
        return any(self.program.module_of(one).scopes[one & MASK].name not in _ONCE for one in tops)

    def _loops_above_making(self, call: int) -> set[Frame]:
        """The loops around the creation of a loader, which create it again in each iteration."""
        return {loop for frame in self._frames_of_making(call) for loop in self._loops_of(frame)}

    def _frames_of_making(self, call: int) -> Iterator[Frame]:
        """The creation of a loader, seen from the functions that lead there."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        return self._climb(Frame(module.base | site.scope, site.loop), None, 0)

    def _loops_of(self, frame: Frame) -> Iterator[Frame]:
        module = self.program.module_of(frame.function)
        yield from (Frame(frame.function, loop) for loop in loops_above(module.table.loops, frame.loop))

    def _is_repeated(self, one: Pass, call: int, made: set[Frame]) -> bool:
        if one.framework:
            return True
        if not self._arms.may_come(one.module.base | one.value, call):
            return False
        frames = self._climb(Frame(one.function, one.around), one, call)
        loops = [loop for frame in frames for loop in self._loops_of(frame) if not self._runs_once(loop)]
        again = [loop for loop in loops if loop not in made and self._is_of_same(loop, one)]
        if again and all(map(self._is_endless_generator, again)):
            # Who takes from it decides how often it begins again: a training does, for others that is unknown.
            return self._is_taken_for_training(one, call)
        return bool(again)

    def _is_endless_generator(self, frame: Frame) -> bool:
        """``while True: yield from loader``."""
        module = self.program.module_of(frame.function)
        loop = module.table.loops[frame.loop]
        return loop.kind == "while" and module.nodes[loop.value][:1] == ("const",) and bool(module.scopes[frame.function & MASK].yields)

    def _is_taken_for_training(self, one: Pass, call: int) -> bool:
        """Whether a training takes the batches of a generator that goes through the loader, as its calls choose it."""
        function = self.program.function_of(call)
        edges = self.program.callers(function) if function & MASK else []
        arms, guard = Arms(self.ask), self.program.module_of(call).table.sites[call & MASK].guard
        home = self.program.module_of(call)
        choosing = {edge.call for edge in edges if arms.may_take(home, guard, (Entry(function, edge.call, edge.how),))}
        if edges and not choosing:
            return False
        for two in self._passes.consumers(one, call):
            made = self._passes.calls_behind(two.module.base | two.value) & {edge.call for edge in edges}
            if (not made or made & choosing) and self._trains(two, call, set()):
                return True
        return False

    def _runs_once(self, frame: Frame) -> bool:
        """``for _ in range(1)``."""
        module = self.program.module_of(frame.function)
        loop = module.table.loops[frame.loop]
        row = module.plain(loop.value)
        if loop.kind == "while" or row[0] not in ("seq", "call"):
            return False
        if row[0] == "seq":
            return len(row[2]) == 1 and module.nodes[row[2][0]][0] != "star"
        given = [module.plain(one) for one in row[2]]
        numbers = [one[1] for one in given if one[0] == "const" and one[1].__class__ is int]
        is_known = module.last_name(row[1]) == "range" and 0 < len(numbers) == len(given) <= 2
        return is_known and numbers[-1] - (numbers[0] if len(numbers) > 1 else 0) <= 1

    def _is_of_same(self, frame: Frame, one: Pass) -> bool:
        """Whether a loop iterates over the same loader each time, and not over the next one of several."""
        module = self.program.module_of(frame.function)
        if module is not one.module:
            return True
        return not self._rests_on(module, one.value, module.table.loops[frame.loop].value, 0)

    def _rests_on(self, module: Module, number: int, iterable: int, depth: int) -> bool:
        """Whether an expression is an element of a loop's iterable, or is looked up by one."""
        row = module.nodes[number]
        kind = row[0]
        if depth > 12 or kind in ("const", "none", "param", "free"):
            return False
        if kind == "elem":
            return row[1] == iterable
        if kind in ("part", "copy", "attr", "enter"):
            return self._rests_on(module, row[1], iterable, depth + 1)
        if kind == "item":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[1:3])
        if kind == "phi":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[1])
        if kind == "call":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[2])
        return kind == "op" and any(self._rests_on(module, two, iterable, depth + 1) for two in row[2:4])

    def _climb(self, frame: Frame, one: Pass | None, call: int) -> Iterator[Frame]:
        """A place, and those of the calls that lead there; for a pass only calls that pass the loader on."""
        seen = {frame}
        todo = [(frame, self._passes.parameter(one.module, one.value, 0) if one is not None else "")]
        for two in self._passes.consumers(one, call) if one is not None else ():
            if two.is_draw:
                # Each ``next`` continues the pass.
                continue
            todo += [(above, self._passes.parameter(two.module, two.value, 0)) for above in (Frame(two.function, two.around),)]
        while todo and len(seen) < _CLIMB:
            at, parameter = todo.pop()
            yield at
            if one is not None and at == frame and len(todo) and self.program.module_of(at.function).scopes[at.function & MASK].yields:
                # The call of a generator is not a place of its pass; the loop over it is.
                continue
            for above, name in self._callers(at.function, parameter, call):
                if above not in seen:
                    seen.add(above)
                    todo.append((above, name))

    def _callers(self, function: int, parameter: str, loader: int) -> Iterator[tuple[Frame, str]]:
        if function & MASK == 0:
            return
        for edge in self.program.callers(function):
            call, how = edge.call, edge.how
            module = self.program.module_of(call)
            site = module.table.sites[call & MASK]
            name = ""
            if parameter and how != UNKNOWN:
                node = self.program.argument_node(call, function, how, parameter)
                if node is not None:
                    if not self._passes.may_hold(node, loader):
                        continue
                    name = self._passes.parameter(self.program.module_of(node), node & MASK, 0)
            yield Frame(module.base | site.scope, site.loop), name


def _gone_through(module: Module, number: int) -> object:
    """The iterable of a loop as written: a name or attribute, inside of ``enumerate`` and the like, too."""
    for _ in range(12):
        row = module.nodes[number]
        if row[0] == "copy" or (row[0] == "call" and row[2]):
            number = row[1] if row[0] == "copy" else row[2][0]
            continue
        # A call or a loop gives a different object each time.
        return row if row[0] in ("free", "param", "attr") else number
    return number
