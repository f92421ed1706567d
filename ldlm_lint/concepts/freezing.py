"""Where code switches the gradients of models on and off while they train: in a training step, of a part of what is wrapped.

A function that does nothing but switch its argument switches at its calls. Not counted are moments that come once, networks
that have just been made, flags that are copied, and networks that take turns, each wrapped and switched as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.whole_models import WholeModels
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Loop
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.freezing import ALWAYS_MODULES, FREEZES, LISTING, MODULES, OF_MODULES, SWITCHES, WEIGHTS

if TYPE_CHECKING:
    from ldlm_lint.model import Span

_FLAG, _METHOD = "requires_grad", "requires_grad_"
_LISTED = frozenset({*LISTING, *MODULES, "items", "values", "keys"})
_SAME = frozenset({"list", "tuple", "enumerate", "reversed", "iter", "sorted", "chain", "zip", "filter", "set"})
_PARAMETERS = lazily(r"param|weights$")
ASKS = MODULES | LISTING | {
    "requires_grad_", "train", "eval", "append", "extend", "items", "keys", "values", "startswith", "endswith",
    "format", "info", "debug", "numel", "isinstance", "print", "list", "tuple", "set", "len", "filter", "getattr",
    "setattr", "hasattr", "any", "all", "zip", "enumerate", "chain", "bool", "type", "ValueError", "TypeError",
}  # fmt: skip
_ADVERSARY = lazily(
    r"discrim|\bdisc?(\b|_)|_disc\b|critic|\bgan\b|generator|advers|(net|model)_?[dgDG]\w?\b|(^|[_.\[( ])[DG]\d?(\b|_)"
)
_CRITIC = lazily(r"(?i)discriminator|critic|adversar")
_COUNTER = lazily(r"(?i)step|epoch|iter")
_GIVEN = lazily(r"^(?!.*\.requires_grad_?\b)[\w.]+\(\s*(\w+)")
_ONCE = lazily(r"(?i)init|frozen|freez|done|setup|ready|built|first")


class Switch(NamedTuple):
    """A place that switches gradients: what it switches, as it is written (a list of parameters by the list), the values that
    it sets, the call that does it, if it is one, whether only some of the parameters are switched (``if "bias" in name:``), and
    what the function switches that does it, if the project has it."""

    model: Expr
    shown: Expr
    spot: Spot
    values: tuple[Expr, ...]
    call: Call | None
    is_of_some: bool = False
    inner: tuple[Switch, ...] = ()

    @property
    def text(self) -> str:
        """What it switches, as it is written: the row of a local name is that of its value."""
        if self.shown.text:
            return self.shown.text
        written = self.model.code.source(self.model.module).slice(self.span)
        given = _GIVEN.search(written)
        return given[1] if given is not None else written.partition(f".{_FLAG}")[0]

    @property
    def span(self) -> Span:
        """Where it is written."""
        return self.call.span if self.call is not None else self.model.code.span(self.model.module, self.spot.place, 0)

    @property
    def flag(self) -> bool | None:
        """Whether it switches gradients on; None for what is computed or not known. Without a value ``requires_grad_()`` does,
        and of other functions the name says it."""
        if not self.values and self.call is not None:
            return self.call.called_name == _METHOD or "unfreez" in self.call.called_name
        return next((one.constant for one in self.values if isinstance(one.constant, bool)), None)

    @property
    def is_decided(self) -> bool:
        """Whether its value is known, or a test that is written there."""
        return self.flag is not None or any(one.kind in ("cmp", "not", "bool") for one in self.values)

    @property
    def is_of_self(self) -> bool:
        """Whether it switches the object whose method makes it, or a part of that."""
        return _root(self.model).is_self

    def as_called(self, call: Call) -> Switch:
        """The same with the values that a call of its function passes."""
        given = ((call.given_for(one) or one.default or one) if one.kind == "param" else one for one in self.values)
        return self._replace(values=tuple(given))

    @property
    def is_told_by_caller(self) -> bool:
        """Whether it switches a parameter of its function as a whole: callers say which model that is."""
        return all(one.unnamed.kind == "param" for one in self.models) and all(one.is_told_by_caller for one in self.inner)

    @property
    def models(self) -> list[Expr]:
        """The models that it switches, whose parameters it goes through, or that a list has."""
        if self.shown.kind == "seq":
            return self.shown.operands
        listed = [one for one in reached([self.shown], lambda at: at.operands) if isinstance(one, Call) and one.called_name in LISTING]
        return [one.receiver for one in listed if one.receiver is not None] or [self.model]


class Freezing(Concept):
    """The switches of a program."""

    @cached_property
    def switches(self) -> list[list[Switch]]:
        """The switches in a training, those of one function and loop together, in order."""
        groups: dict[tuple[Function, tuple[int, ...]], list[Switch]] = defaultdict(list)
        for function, found in self._found.items():
            for one in sorted(found, key=lambda one: one.spot.place):
                if not self._is_left_alone(function, one):
                    loops = tuple(loop.line for loop in self._repeating(one))
                    groups[function, loops].append(one)
        ordered = [group for _, group in sorted(groups.items(), key=lambda one: (one[0][0].key, one[0][1]))]
        return [group for group in ordered if not all(self.code[WholeModels].are_whole(one.models) for one in group)]

    def in_function(self, function: Function) -> list[Switch]:
        """The switches of a function, where it is written which part of a model they switch: a helper that gets the part
        switches at its calls, one that takes a part of what it gets in itself."""
        own = self._every.get(function, [])
        is_helper = bool(own) and self._switched_parameter(function, own) is not None and all(one.is_told_by_caller for one in own)
        return [one for one in own if all(inner.is_told_by_caller for inner in one.inner)] if not is_helper else []

    def step_of(self, switch: Switch) -> Spot | None:
        """Where the step begins that makes a switch each time, or some of the times; None if none does.

        The forward pass of a module that nothing in the program is seen to call belongs to a step, too: a container calls it.
        """
        step = self.code[EveryStep].step_around(switch.spot)
        if step is not None:
            steps, function = self.code[Steps], switch.spot.function
            is_inside = not steps.are_in(function) or steps.is_whole(function) or any(loop in switch.spot.loops for loop in steps.step_loops(function))
            return step if is_inside else None
        above = [switch.spot.function]
        for one in above:
            if one.name == "forward" and one.owner is not None and one.owner.is_module and not one.callers:
                return one.spot
            above += [call.function for call in one.callers if call.function not in above]
        return None

    @cached_property
    def _found(self) -> dict[Function, list[Switch]]:
        """The switches by their functions, without those of helpers, which count at the calls of these."""
        return {function: own for function, own in self._every.items() if self._switched_parameter(function, own) is None}

    @cached_property
    def _every(self) -> dict[Function, list[Switch]]:
        """The switches by their functions, those of helpers also at their calls."""
        found: dict[Function, list[Switch]] = defaultdict(list)
        for function in self._mentioning:
            found[function] += self._in_function(function)
        todo = list(found)
        while todo:
            function = todo.pop()
            parameter = self._switched_parameter(function, found[function])
            if parameter is not None:
                for call in function.callers:
                    given = call.given_for(parameter)
                    if given is not None and given.kind != "star" and all(one.call != call for one in found[call.function]):
                        values = tuple(value for one in found[function] for value in one.as_called(call).values)
                        some = any(one.is_of_some for one in found[function])
                        found[call.function].append(Switch(given, given, call.spot, values, call, some, tuple(found[function])))
                        todo.append(call.function)
        return found

    @property
    def _mentioning(self) -> dict[Function, None]:
        """The functions that set the flag, or call what is called like a switch."""
        calls = (*self.code.calls_named(_METHOD, "setattr"), *self.code.calls_matching(SWITCHES, FREEZES))
        return dict.fromkeys([*(one.spot.function for one in self.code.all_sets_of(_FLAG)), *(one.function for one in calls)])

    def _in_function(self, function: Function) -> Iterator[Switch]:
        for write in function.writes:
            if write.name == _FLAG:
                yield from self._of(write.base, write.spot, (write.value,), None)
        for call in function.calls:
            if call.called_name == _METHOD and call.receiver is not None:
                yield from self._of(call.receiver, call.spot, tuple(call.positional), call)
            elif call.called_name == "setattr" and len(call.positional) == 3 and call.positional[1].constant == _FLAG:
                yield from self._of(call.positional[0], call.spot, (call.positional[2],), call)
            elif not call.targets and call.positional and call.positional[0].kind != "const" and _is_called_like_one(call):
                yield Switch(call.positional[0], call.positional[0], call.spot, tuple(call.arguments[1:]), call)

    def _of(self, target: Expr, spot: Spot, values: tuple[Expr, ...], call: Call | None) -> Iterator[Switch]:
        element = target.base if target.kind == "part" and target.base is not None else target
        shown = element.base if element.kind == "elem" and element.base is not None else target
        if self._is_of_model(target, shown, is_method=call is not None):
            yield Switch(target, shown, spot, values, call, _is_chosen(element, spot, values))

    def _is_of_model(self, target: Expr, shown: Expr, *, is_method: bool) -> bool:
        """Whether a target is a module, a parameter, or goes through parameters: tensors may want gradients of their own."""
        if any(name.startswith("torch.nn.") for name in target.made_by) or any(one.is_module for one in target.classes_of):
            return True
        parts = list(reached([shown], lambda at: [at.unnamed, *at.operands] if shown is not target else [at.unnamed, *([at.base] if at.base is not None else [])]))
        if any(map(_holds_parameters, parts)):
            return True
        if shown is not target:
            return any(one.last_name.removeprefix("()") in LISTING or _PARAMETERS.search(one.name) for one in parts)
        return target.last_name in WEIGHTS or (is_method and target.last_name in ALWAYS_MODULES | self._called_in(target.module))

    @cached_property
    def _called(self) -> dict[Module, set[str]]:
        return {}

    def _called_in(self, module: Module) -> set[str]:
        """The last names of what is called in a file, or has a method of modules called: it is never a tensor."""
        if module not in self._called:
            found = self._called[module] = set()
            for call in self.code.calls_in(module):
                found.add(call.called_name)
                if call.receiver is not None and call.called_name in OF_MODULES:
                    found.add(call.receiver.last_name)
        return self._called[module]

    def _switched_parameter(self, function: Function, own: list[Switch]) -> Expr | None:
        """The parameter that a function switches, if it does nothing else."""
        if not own:
            return None
        roots = [_root(one.model) for one in own]
        names = {call.called_name for call in function.calls if all(one.call != call for one in own)}
        is_all = all(one.kind == "param" and one.function == function for one in roots) and names <= ASKS
        first = next(iter(function.parameters.values()), None) if function.owner is not None else None
        return roots[0] if is_all and len(set(roots)) == 1 and roots[0] != first else None

    @staticmethod
    def _repeating(one: Switch) -> list[Loop]:
        """The loops around a switch that do not go through a model."""
        listed = one.shown if one.shown is not one.model else None
        return [loop for loop in one.spot.loops if loop.value != listed and not _goes_through_model(loop.value)]

    def _is_left_alone(self, function: Function, one: Switch) -> bool:
        if next(iter(function.parameters), "") == "ctx" or any(_reads_flag(value) for value in one.values):
            return True
        owner: Class | None = function.owner
        if (owner is not None and _CRITIC.search(owner.name)) or _ADVERSARY.search(one.text):
            return True
        return self._is_new(function, one) or self._is_put_away(one) or _comes_once(one.spot) or _takes_turns(function)

    def _is_new(self, function: Function, one: Switch) -> bool:
        """Whether the same function has just made what it switches."""
        root = _root(one.model)
        written = [value for value in one.model.set_to if isinstance(value, Call) and value.function == function and value.place < one.spot.place]
        made = root if isinstance(root, Call) else written[0] if written else None
        return made is not None and made.function == function and all(loop in made.loops for loop in self._repeating(one))

    def _is_put_away(self, one: Switch) -> bool:
        """``self.vae.eval()`` and ``self.vae.requires_grad_(False)``, which the file never undoes: it stays frozen."""
        if one.call is None or one.call.receiver is None or [value.constant for value in one.values] != [False]:
            return False
        text = one.model.text or one.model.name
        same = [call for call in self.code.calls_in(one.model.module) if call.receiver is not None and (call.receiver.text or call.receiver.name) == text]
        stays = all([value.constant for value in call.positional] == [False] for call in same if call.called_name == _METHOD)
        return stays and any(call.called_name == "eval" and call.function == one.spot.function and call.guards == one.call.guards for call in same)


def _is_chosen(element: Expr, spot: Spot, values: tuple[Expr, ...]) -> bool:
    """Whether a test decides about each parameter that a loop goes through, or is what the flag is set to."""
    loop = element.loop_of_element
    is_tested = loop is not None and any(one.is_test and one not in loop.guards for one in spot.guards)
    return is_tested or (element.kind == "elem" and any(one.kind == "cmp" for one in values))


def _holds_parameters(expr: Expr) -> bool:
    """Whether an attribute is set to a parameter, or to a list of them."""
    made = (one for one in expr.set_to if isinstance(one, Call))
    return any(name.startswith("torch.nn.") and "Parameter" in name for one in made for name in one.callee.outside_names)


def _is_called_like_one(call: Call) -> bool:
    """Whether nothing shows a function, and its name says that it switches gradients."""
    if SWITCHES.search(call.called_name):
        return any(isinstance(one.constant, bool) for one in call.arguments[1:])
    return call.receiver is None and bool(call.callee.outside_names) and FREEZES.search(call.called_name) is not None


def _root(expr: Expr) -> Expr:
    """What a model is a part of, or what is gone through to it."""
    seen: set[Expr] = set()
    while expr not in seen:
        seen.add(expr)
        expr = expr.unnamed
        if isinstance(expr, Call):
            inner = expr.receiver if expr.called_name in _LISTED else next(iter(expr.positional), None) if expr.called_name in _SAME else None
        else:
            inner = expr.base if expr.kind in ("attr", "item", "part", "elem", "star") else next(iter(expr.operands), None) if expr.kind == "seq" else None
        expr = inner or expr
    return expr


def _goes_through_model(iterable: Expr) -> bool:
    names = (one.last_name.removeprefix("()") for one in reached([iterable], lambda at: at.operands))
    return iterable.kind == "seq" or any(name in LISTING | MODULES for name in names)


def _reads_flag(value: Expr) -> bool:
    """``other.requires_grad``, or ``state["requires_grad"]``, where it was kept."""
    return any(one.name == _FLAG or (one.index is not None and one.index.constant == _FLAG) for one in reached([value], lambda at: at.operands))


def _comes_once(spot: Spot) -> bool:
    """Under a test for one certain step or epoch, for a flag that says whether it happened, or for a value read once."""
    for guard in spot.guards:
        if guard.is_test:
            parts = guard.test.operands if guard.test.operator == "And" else [guard.test]
            if any(one.name == _FLAG for one in reached([guard.test], lambda at: at.operands)) or (guard.holds and any(map(_is_moment, parts))):
                return True
    return False


def _is_moment(test: Expr) -> bool:
    if test.operator in ("Eq", "Gt", "GtE", "Lt", "LtE"):
        return _COUNTER.search(test.text) is not None
    if test.operator in ("Is", "Not"):
        return _ONCE.search(test.text) is not None
    return "first" in test.last_name


def _takes_turns(function: Function) -> bool:
    """Whether several optimizers step in one function: then whole networks are trained in turns."""
    steppers = {call.receiver.text or call.receiver.name for call in function.calls if call.called_name == "step" and call.receiver is not None and "opt" in call.receiver.last_name.lower()}
    losses = {call.receiver.text or call.receiver.name for call in function.calls if call.called_name == "backward" and call.receiver is not None}
    return len(steppers) > 1 or (len(steppers) != 1 and len(losses) > 1)


__all__ = ["Freezing", "Switch"]
