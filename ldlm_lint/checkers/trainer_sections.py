"""The arguments of a Trainer in Python, as sections: of a call, and of a class that is derived from
TrainingArguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.setting_edits import CodeEditor
from ldlm_lint.checkers.trainer_models import trains_adapter
from ldlm_lint.checkers.trainer_stores import stored_on, stored_on_parsed
from ldlm_lint.frameworks.checkpoints import ADAPTER
from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.model import Claim, Related
from ldlm_lint.python.calls import Argument, Arguments, State, mapping_of
from ldlm_lint.python.defaults import field_default
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import evaluate
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

# The first parameter of every one of the classes; the order of the others has changed.
_FIRST = ("output_dir",)
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)


class Told(Protocol):
    """The facts of the program about the arguments of a call beyond its file."""

    is_complete: bool
    """Whether nothing else can be passed."""

    def complete(self, settings: dict[str, Setting], call: nodes.Call) -> None:
        """Add unknown ones from the program."""


def of_call(source: Source, call: nodes.Call, told: Told | None = None) -> Section:
    """The arguments of a call; arguments that the file does not decide come from the program (``told``)."""
    arguments = Arguments(call, _FIRST)
    settings: dict[str, Setting] = {}
    for name, argument in arguments.given.items():
        if not argument.absent:
            settings.update(_settings(source, name, argument, call))
    if told is not None:
        told.complete(settings, call)
    settings.update(stored_on(source, call))
    if trains_adapter(call.root(), call):
        settings.setdefault(ADAPTER, Setting(ADAPTER, None, span_of(source, call)))
    whole = Setting("", None, span_of(source, call))
    is_complete = not arguments.open if told is None else told.is_complete
    return Section("transformers", settings, CodeEditor(source, call), is_complete, _OUTSIDE_TESTS, call=whole, in_code=True)


def _settings(source: Source, name: str, argument: Argument, call: nodes.Call) -> Iterator[tuple[str, Setting]]:
    """An argument, and the entries if it is a dictionary."""
    node = argument.node
    place = node.parent if node is not None and isinstance(node.parent, nodes.Keyword) else node
    span = span_of(source, place if place is not None else call)
    apart = node is not None and not call.parent_of(node)
    related = (Related(span_of(source, call.func), "the value is passed on here"),) if apart else ()
    yield name, Setting(name, _text(argument), span, place=node, related=related)
    if isinstance(node, (nodes.Dict, nodes.Call, nodes.Name)) and argument.state is State.UNKNOWN:
        for key, inner in mapping_of(node).entries.items():
            whole = span_of(source, inner.node) if inner.node is not None else span
            yield f"{name}.{key}", Setting(f"{name}.{key}", _text(inner), whole, place=inner.node)


def _text(argument: Argument) -> str | None:
    """The one value of an argument as a configuration file would write it; None if unknown or if there are several."""
    if argument.state is State.KNOWN:
        texts = {"" if value is None else str(value) for value in argument.values}
        return texts.pop() if len(texts) == 1 else None
    return _member(argument.node) if argument.node is not None else None


def _member(node: nodes.NodeNG) -> str | None:
    """A member of an enumeration of transformers has its lower-case name as value: ``OptimizerNames.ADAMW_TORCH``."""
    names = qualified(node) if isinstance(node, nodes.Attribute) else frozenset()
    parts = next(iter(names)).split(".") if len(names) == 1 else []
    if len(parts) < 3 or parts[0] != "transformers" or not parts[-2][:1].isupper() or not parts[-1].isupper():
        return None
    return parts[-1].lower()


def of_dictionary(source: Source, call: nodes.Call) -> Section | None:
    """``HfArgumentParser(…).parse_dict({"optim": …})``: a dictionary with names that only the Trainer's arguments have."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "parse_dict" or not call.args:
        return None
    held = mapping_of(call.args[0])
    if not vocabulary("transformers").recognises(held.entries, 1):
        return None
    settings = {key: one for name, argument in held.entries.items() if not argument.absent for key, one in _settings(source, name, argument, call)}
    whole = Setting("", None, span_of(source, call))
    return Section("transformers", settings, CodeEditor(source, None), not held.open, _OUTSIDE_TESTS, call=whole, in_code=True)


def of_stores(source: Source, module: nodes.Module) -> Iterator[tuple[nodes.Call, Section]]:
    """The fields that a file sets on parsed arguments, with the call of the parser: other fields are unknown."""
    for call, settings in stored_on_parsed(source, module):
        whole = Setting("", None, span_of(source, call))
        if trains_adapter(module, None):
            settings.setdefault(ADAPTER, whole)
        yield call, Section("transformers", settings, CodeEditor(source, None), False, _OUTSIDE_TESTS, call=whole, in_code=True)


def of_class(source: Source, node: nodes.ClassDef) -> Section:
    """The defaults of a class's fields; constructor calls or the command line may pass others."""
    settings = {}
    for one in node.body:
        if isinstance(one, nodes.AnnAssign) and isinstance(one.target, nodes.AssignName):
            value, name = field_default(one), one.target.name
            values = evaluate(value) if value is not None else None
            argument = Argument(State.UNKNOWN, value) if values is None else Argument(State.KNOWN, value, values)
            span = span_of(source, one)
            settings[name] = Setting(name, _text(argument), span, certain=False, place=value)
            for key, inner in mapping_of(value).entries.items() if isinstance(value, nodes.Dict) else ():
                settings[f"{name}.{key}"] = Setting(f"{name}.{key}", _text(inner), span, certain=False, place=inner.node)
    for write in nodes_of(node, nodes.AssignAttr):
        # ``__post_init__`` runs last.
        settings[write.attrname] = Setting(write.attrname, None, span_of(source, write), certain=False)
    if trains_adapter(node.root(), None):
        settings.setdefault(ADAPTER, Setting(ADAPTER, None, span_of(source, node)))
    return Section("transformers", settings, CodeEditor(source, None), False, _OUTSIDE_TESTS, in_code=True)


__all__ = ["Told", "of_call", "of_class", "of_dictionary", "of_stores"]
