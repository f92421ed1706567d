"""Which code gives the Trainer of transformers its arguments, and changes them before it trains."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.frameworks.sections import vocabulary
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.vocabulary.parsers import PARSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldlm_lint.program.handles import Class, Expr
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.spots import Write

_COPIES = frozenset({"dataclasses.replace", "copy.replace"})
_PREDICTS = frozenset({"predict", "evaluate", "prediction_loop", "evaluation_loop"})
_TRAINS = frozenset({"train", "hyperparameter_search", "train_model", "run_train"})
_MAY_SKIP = frozenset({"if", "case", "except"})


class Stored(NamedTuple):
    """A field that code sets on existing arguments: the one store that always happens, None if that is not known."""

    first: Write
    only: Write | None


class TrainerArguments(Concept):
    """Answers for the ``TrainingArguments`` of a program, and those of packages that build on transformers."""

    @property
    def calls(self) -> Iterator[Call]:
        """The calls that make them, also objects of the project's own classes; not what is only read: ``….to_dict()``."""
        return (call for call in self.code.calls(TRAINING_ARGUMENTS) if not _is_only_read(call))

    @property
    def copies(self) -> Iterator[Call]:
        """The calls that copy them with changes."""
        return (call for call in self.code.calls(_COPIES) if call.positional and _may_be_arguments(call.positional[0]))

    @property
    def dictionaries(self) -> Iterator[tuple[Call, Expr]]:
        """The calls that parse them from a dictionary: ``HfArgumentParser(…).parse_dict({"optim": …})``."""
        return ((call, call.positional[0]) for call in self.code.calls_named("parse_dict") if call.receiver is not None and call.positional)

    @property
    def classes(self) -> Iterator[Class]:
        """The classes of the project that are derived from theirs."""
        return (one for one in self.code.classes if _are_arguments(one))

    def stored_on(self, call: Call) -> dict[str, Stored]:
        """The fields that code sets on the arguments that a call makes, or on something that may be these."""
        fields: dict[str, list[Write]] = {}
        for write in self._writes:
            if _may_be_of(write.base, call):
                fields.setdefault(write.name, []).append(write)
        return {name: _stored(writes, call) for name, writes in fields.items()}

    @property
    def stored_on_parsed(self) -> Iterator[tuple[Call, dict[str, Stored]]]:
        """The fields that code sets on arguments which a parser gave, with its call."""
        groups: dict[tuple[Call, Expr], dict[str, list[Write]]] = {}
        for write in self._writes:
            held = _held(write.base)
            parser = _source(held[0]) if len(held) == 1 else None
            if isinstance(parser, Call) and parser.receiver is not None and parser.called_name in PARSES:
                groups.setdefault((parser, held[0]), {}).setdefault(write.name, []).append(write)
        for (parser, _), fields in groups.items():
            yield parser, {name: _stored(writes, parser) for name, writes in fields.items()}

    def only_predicts(self, module: Module) -> bool:
        """Whether a file creates a Trainer that only predicts or evaluates: settings of a training do not matter there."""
        names = {call.called_name for call in self.code.calls_in(module)}
        makes = any(one.endswith("Trainer") for one in names)
        return makes and not names.isdisjoint(_PREDICTS) and names.isdisjoint(_TRAINS)

    def trains_adapter(self, module: Module, call: Call | None = None) -> bool:
        """Whether the Trainers of a file, or one with the arguments that a call makes, train only an adapter, regardless of
        the options: trl gets one, or peft creates one."""
        return module in (self._with_peft_config if call is not None and "trl" in _packages(call) else self._adapting)

    @cached_property
    def _with_peft_config(self) -> frozenset[Module]:
        return frozenset(holder.module for holder, _ in self.code.given_by_name("peft_config"))

    @cached_property
    def _adapting(self) -> frozenset[Module]:
        named = (call for call in self.code.calls_named("get_peft_model") if "peft" in _packages(call))
        return frozenset(call.module for call in (*self.code.calls({"peft.get_peft_model"}), *named) if not _is_chosen(call))

    @cached_property
    def _writes(self) -> list[Write]:
        """The stores to fields of objects that may be arguments."""
        fields = sorted(vocabulary("transformers").fields)
        return [write for name in fields for write in self.code.all_sets_of(name) if _may_hold(write.base)]


def _is_only_read(call: Call) -> bool:
    """Whether only an attribute or a method of an object is used, right where it is made, so that no Trainer gets it."""
    uses = call.uses()
    return not call.names and bool(uses) and all(use.by is not None and use.by.kind == "attr" for use in uses)


def _may_hold(base: Expr) -> bool:
    """Whether an object whose fields are set may be arguments: it is of no other class."""
    return base.owner_if_self is None and (not base.is_of_known_class or _may_be_arguments(base))


def _may_be_of(base: Expr, call: Call) -> bool:
    """Whether such an object may be the one that a call makes; of unknown ones, those of its file."""
    sources = _sources(base)
    made = [one for name in base.made_by & TRAINING_ARGUMENTS for one in base.made_at(name)]
    if call in sources or made:
        return call in (*sources, *made)
    if base.is_of_known_class:
        return not set(call.callee.as_classes).isdisjoint(base.classes_of)
    return base.module is call.module and not all(isinstance(one, Call) for one in sources)


def _are_arguments(owner: Class) -> bool:
    return not owner.outside_bases.isdisjoint(TRAINING_ARGUMENTS)


def _may_be_arguments(expr: Expr) -> bool:
    return not expr.made_by.isdisjoint(TRAINING_ARGUMENTS) or any(map(_are_arguments, expr.classes_of))


def _held(base: Expr) -> list[Expr]:
    """What a name holds, on each of its ways."""
    return [one for one in base.origins(Through.NAMES | Through.OUTSIDE) if one.kind not in ("copy", "phi", "free")]


def _source(held: Expr) -> Expr:
    """The call that gives an object, also as a part of its result."""
    return held.base.unnamed if held.kind in ("part", "item") and held.base is not None else held


def _sources(base: Expr) -> list[Expr]:
    return [_source(one) for one in _held(base)]


def _stored(writes: list[Write], call: Call) -> Stored:
    """The stores to one field of what a call gives: a single one behind the call, in no further branch, always happens."""
    first, spot = writes[0], writes[0].spot
    follows = spot.function == call.function and spot.line >= call.line and call in _sources(first.base)
    around = {*call.guards, *call.loops, *call.spot.tries}
    branches = [*spot.loops, *spot.tries, *(guard for guard in spot.guards if guard.kind in _MAY_SKIP)]
    return Stored(first, first if len(writes) == 1 and follows and around.issuperset(branches) else None)


def _packages(call: Call) -> frozenset[str]:
    """The packages that what is called is from, or is imported from, also in the repository of such a package."""
    root = call.callee
    while root.kind == "attr" and root.base is not None:
        root = root.base
    names = [*call.callee.interfaces, *(one.imported[0] for one in _held(root))]
    return frozenset(name.partition(".")[0] for name in names)


def _is_chosen(call: Call) -> bool:
    """Whether it is under a condition, but for whether the file is the program that runs."""
    return any(guard.kind == "if" and "__name__" not in guard.test.words for guard in call.guards)
