"""The settings that Python gives to a Trainer, as sections: calls of TrainingArguments and its relatives, and classes derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.prediction_scripts import only_predicts
from ldlm_lint.checkers.setting_edits import CodeEditor
from ldlm_lint.checkers.trainer_models import trained_models, trains_adapter
from ldlm_lint.frameworks import trainer
from ldlm_lint.frameworks.checkpoints import ADAPTER
from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.frameworks.trainer import SEARCH, STATIC_GRAPH
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.python.calls import Argument, Arguments, State, mapping_of
from ldlm_lint.python.defaults import field_default
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.slots import subject_of
from ldlm_lint.python.values import evaluate
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import EXCESSIVE_COLLECTIVE_TIMEOUT
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.ddp_graph import CHECKPOINT_FIX, FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
from ldlm_lint.source import Source
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS

# The first parameter of every one of the classes; the order of the others has changed.
_FIRST = ("output_dir",)
# A class is derived from another one of its file at most so often.
_BASES = 6
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)
# What these say of a group or of DDP holds wherever the arguments are used; the others cost a training something.
_OF_ANY_RUN = frozenset({one.symbol for one in (EXCESSIVE_COLLECTIVE_TIMEOUT, FIND_UNUSED_PARAMETERS, FIND_UNUSED_WITH_REENTRANT_CHECKPOINT)})
# No launch gives another value to an argument that the code passes.
_IN_FORCE = "trainer-setting-is-in-force"


def findings(module: nodes.Module, source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    """What the settings of the Trainers cost that a Python file gives."""
    if only_predicts(source.data):
        return
    for node in nodes_of(module, (nodes.Call, nodes.ClassDef)):
        if isinstance(node, nodes.ClassDef):
            section = _of_class(source, node) if is_derived(node) else None
        else:
            section = _of_call(source, node) if qualified(node.func) <= TRAINING_ARGUMENTS else None
        if section is None or not _trains(section):
            continue
        found = list(trainer.decide(section, options))
        for finding in (*found, *_meeting_switch(module, node, section, found)):
            yield _claiming(finding, section)


def is_derived(node: nodes.ClassDef, depth: int = 0) -> bool:
    """Whether a class is derived from TrainingArguments, itself or through other classes of its file."""
    if depth > _BASES:
        return False
    for base in node.bases:
        if qualified(base) <= TRAINING_ARGUMENTS:
            return True
        local = bindings(base) if isinstance(base, nodes.Name) else []
        if len(local) == 1 and isinstance(local[0], nodes.ClassDef) and local[0] is not node and is_derived(local[0], depth + 1):
            return True
    return False


def _meeting_switch(module: nodes.Module, node: nodes.NodeNG, section: Section, found: list[Finding]) -> Iterator[Finding]:
    """The search for unused parameters beside a checkpoint that the model itself, not the Trainer, switches on."""
    rule = FIND_UNUSED_WITH_REENTRANT_CHECKPOINT
    if section.flag(SEARCH) is not True or section.on(STATIC_GRAPH) or any(one.rule == rule.symbol for one in found):
        return
    if slots := trained_models(module, node if isinstance(node, nodes.Call) else None):
        yield section.report(rule, section.settings[SEARCH], {"where": ""}, claims=(Claim("model-checkpoints-reentrantly", subject_of(slots)),), fix=CHECKPOINT_FIX)


def _claiming(finding: Finding, section: Section) -> Finding:
    """A finding with what must hold of its file; what the code itself passes no launch replaces."""
    claims = tuple(one for one in finding.claims if section.call is None or one.kind != _IN_FORCE)
    return finding._replace(claims=claims if finding.rule in _OF_ANY_RUN else (Claim("belongs-to-training"), *claims))


def _trains(section: Section) -> bool:
    """Whether the arguments are those of a training, as far as they say."""
    return section.flag("do_train") is not False and not (section.on("do_predict") and not section.on("do_train"))


def _of_call(source: Source, call: nodes.Call) -> Section:
    arguments = Arguments(call, _FIRST)
    settings: dict[str, Setting] = {}
    for name, argument in arguments.given.items():
        if not argument.absent:
            settings.update(_settings(source, name, argument, call))
    for name in _stored_later(call):
        settings[name] = Setting(name, None, span_of(source, call), certain=False)
    if trains_adapter(call.root(), call):
        settings.setdefault(ADAPTER, Setting(ADAPTER, None, span_of(source, call)))
    whole = Setting("", None, span_of(source, call))
    return Section("transformers", settings, CodeEditor(source, call), not arguments.open, _OUTSIDE_TESTS, call=whole, in_code=True)


def _settings(source: Source, name: str, argument: Argument, call: nodes.Call) -> Iterator[tuple[str, Setting]]:
    """An argument, and the entries of the dictionary that it is."""
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
    """The one value of an argument as a configuration file would write it; None where it is not known or there are several."""
    if argument.state is State.KNOWN:
        texts = {"" if value is None else str(value) for value in argument.values}
        return texts.pop() if len(texts) == 1 else None
    return _member(argument.node) if argument.node is not None else None


def _member(node: nodes.NodeNG) -> str | None:
    """A member of an enumeration of transformers is worth its name in small letters: ``OptimizerNames.ADAMW_TORCH``."""
    names = qualified(node) if isinstance(node, nodes.Attribute) else frozenset()
    parts = next(iter(names)).split(".") if len(names) == 1 else []
    if len(parts) < 3 or parts[0] != "transformers" or not parts[-2][:1].isupper() or not parts[-1].isupper():
        return None
    return parts[-1].lower()


def _stored_later(call: nodes.Call) -> set[str]:
    """The fields that the file gives another value: of what the call made, or of an object that may be it."""
    stores = remembered(call.root(), ("stored fields",), lambda: _stores(call.root()))
    return {one.attrname for one in stores if _may_be(one.expr, call)}


def _stores(module: nodes.Module) -> list[nodes.AssignAttr]:
    fields = vocabulary("transformers").fields
    return [one for one in nodes_of(module, nodes.AssignAttr) if one.attrname in fields]


def _may_be(owner: nodes.NodeNG, call: nodes.Call) -> bool:
    """Whether an expression may be what a call made; a name that only other calls are bound to is not."""
    found = bindings(owner) if isinstance(owner, nodes.Name) else []
    values = [one.parent.value for one in found if isinstance(one.parent, (nodes.Assign, nodes.AnnAssign))]
    return len(values) != len(found) or not values or any(value is call or not isinstance(value, nodes.Call) for value in values)


def _of_class(source: Source, node: nodes.ClassDef) -> Section:
    """The defaults of a class's fields; whoever makes an object of it, or its command line, may give others."""
    settings = {}
    for one in node.body:
        if isinstance(one, nodes.AnnAssign) and isinstance(one.target, nodes.AssignName):
            value, name = field_default(one), one.target.name
            values = evaluate(value) if value is not None else None
            argument = Argument(State.UNKNOWN, value) if values is None else Argument(State.KNOWN, value, values)
            settings[name] = Setting(name, _text(argument), span_of(source, one), certain=False, place=value)
    if trains_adapter(node.root(), None):
        settings.setdefault(ADAPTER, Setting(ADAPTER, None, span_of(source, node)))
    return Section("transformers", settings, CodeEditor(source, None), False, _OUTSIDE_TESTS, in_code=True)


__all__ = ["findings", "is_derived"]
