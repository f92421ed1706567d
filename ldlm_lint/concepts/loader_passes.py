"""The passes through data loaders: which loops, iterators and frameworks go through which of them, whether a pass trains,
and whether it begins again for the same loader.

A *pass* is a loop over a loader, or an ``iter`` of one. It trains if it is a training step or feeds one; it is repeated
if a loop outside of which the loader is made runs it several times.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.lightning_rhythm import LightningRhythm
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.measuring import Measuring
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Loop
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.taken_ways import TakenWays
from ldlm_lint.program.walks import Through

_HOOKS_OF_LIGHTNING = {"train_dataloader": True, "val_dataloader": False}
_HOOKS_OF_TRANSFORMERS = {"get_train_dataloader": True, "get_eval_dataloader": False}
"""The methods that give a framework its loaders, and whether it trains on what they give."""
_FITS = ("fit", "fit_loop")
_ONCE = frozenset({"__init__", "setup", "prepare_data", "configure_model", "on_fit_start", "on_train_start"})
"""Methods that a framework, or Python, calls once and before the first pass."""
_ITERATED = frozenset({"__iter__", "__next__"})
_CACHES = frozenset({"cached_property", "lru_cache", "cache"})
_OF_ELEMENTS = frozenset({"part", "copy", "attr", "enter", "item", "phi", "op"})


class By(enum.Enum):
    """Who makes a pass: code of the project, or a framework for each epoch."""

    CODE = "code"
    TRAINING = "training"
    EVALUATION = "evaluation"


@dataclass(frozen=True)
class Pass:
    """A pass: what it goes through, where it begins, and its own loop, None for an ``iter`` and that of a framework.

    ``is_draw``: no pass of its own, a training step takes a ``batch`` from a generator by ``next``.
    """

    through: Expr
    spot: Spot
    loop: Loop | None = None
    is_draw: bool = False
    batch: Call | None = None
    by: By = By.CODE

    @property
    def function(self) -> Function:
        """The function that it is in."""
        return self.spot.function


class _Place(NamedTuple):
    """Where something happens, seen from one of the functions that lead there: the innermost loop in it."""

    function: Function
    loop: Loop | None

    @property
    def loops(self) -> list[Loop]:
        return self.loop.around if self.loop is not None else []


class LoaderPasses(Concept):
    """The passes through the loaders of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._ways = TakenWays(code)
        self._made: dict[Call, frozenset[Loop]] = {}

    def of(self, call: Call) -> list[Pass]:
        """The passes through the loader that a call makes, in a program that loads the call: those of its own module first,
        then those of modules that import each other.

        What two scripts hand to a helper that both share is one value there: a loop of the other script is none of theirs,
        and where an import by a computed name may load both, it is the last one to name.
        """
        module, together = call.module, self.program.together
        found = [one for one in self._by_object.get(call, []) if together.may_share_program(module, one.function.module)]
        near = together.programs_of(module)
        return sorted(found, key=lambda one: (one.function.module is not module, one.function.module.index not in near))

    def trains(self, call: Call) -> Pass | None:
        """A pass that trains on the batches of the loader that a call makes."""
        return next((one for one in self.of(call) if self._trains(one, call, set())), None)

    def trained_again(self, call: Call) -> list[Pass]:
        """The passes of the project's code that begin again for the loader that a call makes, and train on its batches."""
        again = [one for one in self.of(call) if one.by is By.CODE and self._is_repeated(one, call)]
        return [one for one in again if self._trains(one, call, set())]

    def batches(self, call: Call) -> dict[Loop, list[Expr]]:
        """The loops that train on the batches of the loader that a call makes, each with the batches that it takes by ``next``."""
        found: dict[Loop, list[Expr]] = {}
        for one in self.of(call):
            handed_on = self._consumers(one, call) if one.loop is not None and _yields_elements(one.loop) else []
            for two in (one, *handed_on):
                if two.loop is not None and two.by is By.CODE and self._is_step(two.loop) and self._trains(one, call, set()):
                    found.setdefault(two.loop, [])
        for one in self._draws:
            if one.spot.loop is not None and one.batch is not None and call in self.code.iterated.continued(one.through):
                found.setdefault(one.spot.loop, []).append(one.batch)
        return found

    def training_on(self, one: Pass) -> list[Function]:
        """The functions that train on what the generator around a pass gives; none if it is in none."""
        loops = self._by_generator.get(one.function, []) if one.function.is_generator else []
        return [two.function for two in loops if two.is_draw or (two.loop is not None and self._is_step(two.loop))]

    def trains_through(self, call: Call, giver: Call) -> Pass | None:
        """The same for what one call of the function around gives, or in that function itself."""
        ways = TakenWays(self.code, giver)
        for one in self.of(call):
            if self._trains(one, call, set()) and (one.function == call.function or ways.may_come(one.through, call)):
                return one
        return None

    def only_others_get(self, classes: Collection[str]) -> bool:
        """Whether all samplers of these classes belong to loaders that are not used for training."""
        made, given = set(self.code.calls(classes)), set[Call]()
        for loader in self.code[Loaders].shown:
            sources = [value for name in ("sampler", "batch_sampler") for value in self.code[Loaders].option(loader, name).values]
            samplers = made & {call for value in sources for call in self.code.iterated.objects(value)}
            if samplers and self.trains(loader.call) is not None:
                return False
            given |= samplers
        return bool(made) and made == given

    def repeated(self, loader: Loader) -> Pass | None:
        """A pass that begins again for the same loader: not if a pass goes through all epochs, is what a program measures that
        trains nothing, or that of a Trainer which validates once or asks for another loader after some epochs."""
        if self._has_one(loader) or (found := self._repeated(loader)) is None or self._is_measured(found):
            return None
        rhythm = self.code[LightningRhythm]
        is_once = found.by is By.EVALUATION and rhythm.validates_once(found.function.module)
        return None if is_once or (found.by is not By.CODE and rhythm.reloads(found.function)) else found

    def _has_one(self, loader: Loader) -> bool:
        """Whether each loader has one pass only: one for a test, one that is made at each access of a property, one whose
        sampler does not end."""
        decorators = {one.last_name for one in loader.call.function.decorators}
        is_property = "property" in decorators and decorators.isdisjoint(_CACHES)
        return is_property or self.code[Loaders].is_for_one_test(loader) or self.code[Loaders].ends_never(loader)

    def _is_measured(self, found: Pass) -> bool:
        near = self.program.together.programs_of(found.function.module)
        if any(function.module.index in near for function in self._steps.functions):
            return False
        return self.code[Measuring].measures(found.spot)

    def comes_again(self, spot: Spot, loader: Call) -> bool:
        """Whether code runs several times during the life of one loader, or a framework may call it for each epoch: nothing
        in the program calls it, and it does not make the loader."""
        if self._happens_again(_Place(spot.function, spot.loop), loader):
            return True
        functions = {one.function for one in self._above(_Place(spot.function, spot.loop))}
        if functions & {one.function for one in self._above(_Place(loader.function, loader.spot.loop))}:
            return False
        return any(not one.is_module and not one.callers and one.name not in _ONCE for one in functions)

    def _happens_again(self, place: _Place, loader: Call) -> bool:
        made = self._loops_making(loader)
        loops = (loop for one in self._above(place) for loop in one.loops)
        # A loop in front of the call that makes the loader, in the same function, is over before.
        return any(loop not in made and not (loop.function == loader.function and loop.spot.place < loader.spot.place) for loop in loops)

    def _trains(self, one: Pass, call: Call, seen: set[Function]) -> bool:
        if one.by is not By.CODE:
            return one.by is By.TRAINING
        if not self._ways.may_come(one.through, call):
            return False
        if one.loop is not None and self._is_step(one.loop):
            return True
        if one.loop is None and (one.is_draw or self.code.iterated.objects(one.through) & self._feeding):
            return True
        if one.function in seen:
            return False
        seen.add(one.function)
        return any(self._trains(two, call, seen) for two in self._consumers(one, call))

    def _is_step(self, loop: Loop) -> bool:
        """Whether a loop is a training step, or one is in it, or the definition of a function that takes one: unknown code
        runs it there."""
        return any(loop in one.around for one in self._step_loops.get(loop.function, ()))

    @cached_property
    def _step_loops(self) -> dict[Function, list[Loop]]:
        """The loops of training steps, and those in which a function is defined that takes one, by their functions."""
        found: dict[Function, list[Loop]] = defaultdict(list)
        for function in self._steps.functions:
            found[function] += self._steps.step_loops(function)
            if (outer := function.outer) is not None and not function.is_module and (loop := outer.loop_defining(function)) is not None:
                found[outer].append(loop)
        return found

    @cached_property
    def _feeding(self) -> set[Call]:
        """The calls that made the loaders from whose running passes a training step takes batches, by ``next`` or in a loop."""
        found = set[Call]()
        for one in self._draws:
            found |= self.code.iterated.continued(one.through) | self.code.iterated.objects(one.through)
        for function in self._steps.functions:
            for loop in function.loops:
                if loop.kind != "while" and self._is_step(loop):
                    found |= self.code.iterated.continued(loop.value)
        return found

    def _repeated(self, loader: Loader) -> Pass | None:
        if loader.owner is not None and _goes_on_by_itself(loader.owner):
            return None
        passes = self.of(loader.call)
        if any(self._is_within(one, two, loader.call) for one in passes for two in passes):
            return None
        again = next((one for one in passes if self._is_repeated(one, loader.call)), None)
        return self._shown(again, loader.call) if again is not None else _second(passes)

    def _shown(self, one: Pass, call: Call) -> Pass:
        """The loop over a generator is more informative than the one inside the generator."""
        loops = (two for two in self._consumers(one, call) if two.loop is not None and not two.is_draw) if one.by is By.CODE else ()
        return next((two for two in loops if self._is_repeated(two, call)), one)

    def _is_repeated(self, one: Pass, call: Call) -> bool:
        if one.by is not By.CODE:
            return True
        if not self._ways.may_come(one.through, call):
            return False
        made = self._loops_making(call)
        loops = (loop for place in self._above_pass(one, call) for loop in place.loops)
        again = [loop for loop in loops if loop not in made and not _runs_once(loop) and not _goes_on_to_another(loop, one)]
        if again and all(map(_is_endless_generator, again)):
            # Who takes from it decides how often it begins again: a training does, for others that is unknown.
            return self._is_taken_for_training(one, call)
        return bool(again)

    def _is_taken_for_training(self, one: Pass, call: Call) -> bool:
        """Whether a training takes the batches of a generator that goes through the loader, as its calls choose it."""
        callers = set(call.function.callers) if not call.function.is_module else set()
        choosing = {caller for caller in callers if self._ways.lead_to(call, caller)}
        if callers and not choosing:
            return False
        for two in self._consumers(one, call):
            made = self.code.iterated.made_by(two.through) & callers
            if (not made or made & choosing) and self._trains(two, call, set()):
                return True
        return False

    def _is_within(self, one: Pass, two: Pass, call: Call) -> bool:
        """Whether a second pass begins while the first one goes on, through the same loader: persistent workers serve one pass at a time."""
        if two.function not in _begun_within(one):
            return False
        # Each call of a function that makes a loader returns another one.
        givers = set(call.function.callers) if not call.function.is_module else set()
        return len(givers) < 2 or any(all(TakenWays(self.code, giver).may_come(each.through, call) for each in (one, two)) for giver in givers)

    def _loops_making(self, call: Call) -> frozenset[Loop]:
        """The loops around the creation of a loader, which create it again in each iteration."""
        if call not in self._made:
            self._made[call] = frozenset(loop for one in self._above(_Place(call.function, call.spot.loop)) for loop in one.loops)
        return self._made[call]

    def _above(self, place: _Place) -> set[_Place]:
        """A place, and those of the calls that lead there."""
        found, todo = {place}, [place]
        while todo:
            at = todo.pop()
            above = {_Place(call.function, call.spot.loop) for call in at.function.callers} if not at.function.is_module else set()
            todo += above - found
            found |= above
        return found

    def _above_pass(self, one: Pass, made: Call) -> Iterator[_Place]:
        """The same for a pass: only calls that pass the loader on, and the loops over objects whose ``__iter__`` it is. A loop
        over what a generator gave goes on with it: only its calls begin again."""
        first = _Place(one.function, one.spot.loop)
        seen = {first}
        yield first
        todo = list(self._callers(one.function, self.code.iterated.parameter(one.through), made, seen))
        if one.function.name in _ITERATED:
            consumers = [two for two in self._consumers(one, made) if not two.is_draw]
            todo += [(_Place(two.function, two.spot.loop), self.code.iterated.parameter(two.through)) for two in consumers]
        while todo:
            at, parameter = todo.pop()
            yield at
            todo += self._callers(at.function, parameter, made, seen)

    def _callers(self, function: Function, parameter: str, made: Call, seen: set[_Place]) -> Iterator[tuple[_Place, str]]:
        """The calls of a function that may pass the loader for a parameter, each with that of its own function."""
        for call in function.callers if not function.is_module else ():
            if call.called_name == "next" and call.receiver is None:
                # It goes on.
                continue
            given = call.given_for(function.parameters[parameter]) if parameter else None
            if _is_done_once(call) or (given is not None and (_is_chosen_anew(given, call) or not self.code.iterated.may_hold(given, made))):
                continue
            place = _Place(call.function, call.spot.loop)
            if place not in seen:
                seen.add(place)
                yield place, self.code.iterated.parameter(given) if given is not None else ""

    def _consumers(self, one: Pass, made: Call) -> list[Pass]:
        """For one loader: the loops over the generator that contains a pass, or over the objects whose ``__iter__`` it
        is."""
        function = one.function
        if not function.is_generator and function.name not in _ITERATED:
            return []
        over = self._by_generator.get(function, [])
        parameter = "" if made.function == function else self.code.iterated.parameter(one.through)
        if not parameter:
            return [two for two in over if self._may_lead_to(two, function, made)]
        given = {call: call.given_for(function.parameters[parameter]) for call in function.callers}
        calls = {call: value is None or self.code.iterated.may_hold(value, made) for call, value in given.items()}
        return [two for two in over if self._is_from(two, calls)]

    def _may_lead_to(self, two: Pass, function: Function, made: Call) -> bool:
        """Whether one of the calls of a generator function that a loop goes through may come to the loader that is made in it."""
        calls = self.code.iterated.made_by(two.through) & set(function.callers) if made.function == function else set()
        return not calls or any(self.code.may_lead((made, call)) for call in calls)

    def _is_from(self, two: Pass, calls: dict[Call, bool]) -> bool:
        """Whether a loop iterates over the result of one of the calls; True also if that is unknown."""
        written = self.code.iterated.made_by(two.through) & calls.keys()
        if two.is_draw and not written:
            # The iterator that a ``next`` continues must be known.
            return False
        return any(calls[call] for call in written) if written else any(calls.values()) or not calls

    @cached_property
    def _by_object(self) -> dict[Call, list[Pass]]:
        """The passes by the calls that made what they go through."""
        found: dict[Call, list[Pass]] = defaultdict(list)
        for one in self._own_passes:
            for call in self.code.iterated.objects(one.through):
                found[call].append(one)
        loaders = {one.call for one in self.code[Loaders].made}
        for one in (*self._hooked(), *self._fitted()):
            # ``return self.accelerator.prepare(loader)``
            for call in self.code.iterated.held(one.through) or self.code.iterated.made_by(one.through) & loaders:
                found[call].append(one)
        return found

    @cached_property
    def _by_generator(self) -> dict[Function, list[Pass]]:
        found: dict[Function, list[Pass]] = defaultdict(list)
        for one in (*self._own_passes, *self._draws):
            for function in self.code.iterated.generators(one.through):
                found[function].append(one)
        return found

    @cached_property
    def _own_passes(self) -> list[Pass]:
        """The passes that code of the project makes, through whatever it is."""
        loops = [loop for loop in self.code.loops if loop.kind != "while"]
        looped = {loop.value for loop in loops}
        begun = [*_given_to(self.code, "iter"), *((call, call.positional[0]) for call in self.code.calls({"itertools.cycle"}) if len(call.positional) == 1)]
        return [
            *(Pass(_begun(loop.value), loop.spot, loop) for loop in loops),
            *(one for function in self.code.functions if function.is_generator for one in _handed_on(function) if one.through not in looped),
            *(Pass(through, call.spot) for call, through in begun if call not in looped),
        ]

    @cached_property
    def _draws(self) -> list[Pass]:
        """The calls of ``next`` that run in training steps."""
        return [Pass(through, call.spot, is_draw=True, batch=call) for call, through in _given_to(self.code, "next") if self.code[Reach].is_inside(call)]

    def _hooked(self) -> Iterator[Pass]:
        """The passes that a framework makes through what its hooks give."""
        seen = set[Function]()
        for owner in self.code.classes:
            for name, trains in _hooks_of(owner):
                for function in owner.callables(name):
                    if function not in seen:
                        seen.add(function)
                        spot = function.spot._replace(loop=None)
                        yield from (Pass(value, spot, by=By.TRAINING if trains else By.EVALUATION) for value in function.returned)

    def _fitted(self) -> Iterator[Pass]:
        """``trainer.fit(model, loader)`` of another package."""
        for call in self.code.calls_named(*_FITS):
            if call.receiver is not None and not call.targets:
                yield from (Pass(value, call.spot, by=By.TRAINING) for value in call.arguments)


def _hooks_of(owner: Class) -> Iterator[tuple[str, bool]]:
    if any(name.endswith(("LightningModule", "LightningDataModule")) for name in owner.outside_bases):
        yield from _HOOKS_OF_LIGHTNING.items()
    if any(name.endswith("Trainer") and name.partition(".")[0] in ("transformers", "trl") for name in owner.outside_bases):
        yield from _HOOKS_OF_TRANSFORMERS.items()


def _begun(value: Expr) -> Expr:
    """What a loop goes through: a loop over ``iter(loader)`` itself begins a pass."""
    is_iter = isinstance(value, Call) and value.called_name == "iter" and value.receiver is None and len(value.positional) == 1
    return value.positional[0] if isinstance(value, Call) and is_iter else value


def _handed_on(function: Function) -> Iterator[Pass]:
    """``yield from loader``."""
    for event in function.events_of("yield"):
        if event.expr.kind == "elem" and event.expr.base is not None:
            yield Pass(event.expr.base, event.spot)


def _given_to(code: Codebase, name: str) -> Iterator[tuple[Call, Expr]]:
    """The calls of ``iter`` or ``next``, also as ``x.__iter__()``, with what they take from."""
    for call in code.calls_named(name):
        # With a second argument ``iter`` calls its first argument.
        if call.receiver is None and call.positional and (len(call.positional) == 1 or name == "next"):
            yield call, call.positional[0]
    for call in code.calls_named(f"__{name}__"):
        if call.receiver is not None and not call.positional and call.receiver.last_name != "()super":
            yield call, call.receiver


def _goes_on_by_itself(owner: Class) -> bool:
    """Whether a class of the project has an ``__iter__`` that begins no pass of torch's loader: it continues one that it keeps."""
    return any({"__iter__", "iter"}.isdisjoint(call.called_name for call in function.calls) for function in owner.methods("__iter__"))


def _yields_elements(loop: Loop) -> bool:
    """Whether a generator gives what its loop takes, as it is."""
    yielded = (event.expr.unnamed for event in loop.function.events if event.kind == "yield")
    return any(one.kind == "elem" and one.base == loop.value for one in yielded)


def _is_done_once(call: Call) -> bool:
    """``if self.batches is None: self.batches = endless(loader)``."""
    for guard in call.guards:
        test = guard.test
        is_none = guard.is_test and guard.holds is True and test.operator == "Is" and test.operands[1].constant is None
        if is_none and test.operands[0].kind == "attr" and any(one.name == test.operands[0].name for one in call.function.writes):
            return True
    return False


def _is_chosen_anew(given: Expr, call: Call) -> bool:
    """Whether a loop that is over has chosen what a call passes from several: the next time it may choose another one."""
    over = {loop.value for loop in call.function.loops if loop not in call.loops}
    items = [one for one in given.origins(Through.NAMES | Through.CHOICES) if one.kind == "item" and one.index is not None] if over else []
    keys = [key for one in items if one.index is not None for key in one.index.origins(Through.NAMES | Through.PARTS)]
    keys += [key for one in keys if isinstance(one, Call) for given in one.positional for key in given.origins(Through.NAMES | Through.PARTS)]
    return any(key.kind == "elem" and key.base in over for key in keys)


def _begun_within(one: Pass) -> set[Function]:
    """The other functions that are called during a pass."""
    loop = one.loop or one.spot.loop
    calls = loop.calls if loop is not None else ()
    return {function for call in calls if call.spot.place > one.spot.place for function in call.targets} - {one.function}


def _second(passes: Collection[Pass]) -> Pass | None:
    """A loop that goes through the same loader after another one of its function, and not instead of it."""
    loops = [(one, one.loop) for one in passes if one.loop is not None]
    return next((two for _, first in loops for two, second in loops if first != second and _follows(second, first)), None)


def _follows(loop: Loop, first: Loop) -> bool:
    if loop.function != first.function or loop.spot.place <= first.spot.place or loop.spot.loop != first.spot.loop:
        return False
    guard = loop.spot.guard
    return (guard is None or first.spot.is_under(guard)) and _gone_through(loop.value) == _gone_through(first.value)


def _gone_through(expr: Expr) -> object:
    """The iterable of a loop as written: a name or attribute, inside of ``enumerate`` and the like, too."""
    at = expr.unnamed
    while isinstance(at, Call) and at.positional:
        at = at.positional[0].unnamed
    # A call or a loop gives a different object each time.
    return (at.kind, at.base, at.name) if at.kind in ("free", "param", "attr") else at


def _runs_once(loop: Loop) -> bool:
    """``for _ in range(1)``."""
    value = loop.value.plain
    if loop.kind == "while":
        return False
    if value.kind == "seq":
        return len(value.operands) == 1 and value.operands[0].kind != "star"
    if not isinstance(value, Call) or value.called_name != "range":
        return False
    numbers = [one.plain.constant for one in value.positional]
    whole = [one for one in numbers if type(one) is int]
    return 0 < len(whole) == len(numbers) <= 2 and whole[-1] - (whole[0] if len(whole) > 1 else 0) <= 1


def _is_endless_generator(loop: Loop) -> bool:
    """``while True: yield from loader``."""
    return loop.kind == "while" and loop.value.kind == "const" and loop.function.is_generator


def _goes_on_to_another(loop: Loop, one: Pass) -> bool:
    """Whether a loop comes to the next one of several loaders each time: a pass through its element, or what is looked up by it."""
    seen, todo = set[Expr](), [one.through] if loop.module is one.function.module else []
    while todo:
        at = todo.pop()
        if at.kind == "elem" and at.base == loop.value:
            return True
        if at not in seen:
            seen.add(at)
            todo += at.positional if isinstance(at, Call) else at.operands if at.kind in _OF_ELEMENTS else []
    return False


__all__ = ["By", "LoaderPasses", "Pass"]
