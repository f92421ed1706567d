"""Finds reentrant activation checkpoints: torch's function, and the switch of transformers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.calls import Argument, Arguments, State, mapping_of
from ldlm_lint.python.names import is_named, last_name
from ldlm_lint.python.segment_keywords import handed_keywords
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

CHECKPOINTS = {"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"}
# A call of torch's function, or code that renames it, if it may be imported.
CALLS_TORCHS = Trait(
    re.compile(
        rb"checkpoint(?<!\wcheckpoint)(?<!import torch\.utils\.checkpoint)(?:_sequential)?"
        rb"(?:\s*\(|[ \t]+as\b|[ \t]*(?:[\r\n;]|$)|[\"']|\s*,(?!\s*use_reentrant\s*=\s*False\b))"
    ),
    (b"torch.utils",),
    code=True,
    # The module by its full name outside of a plain import, or taken out of the package around it.
    beside=re.compile(
        rb"utils\.checkpoint\b(?<!import torch\.utils\.checkpoint)|torch\.utils\.checkpoint[ \t]+as\b|torch\.utils[ \t]*(?:as\b|[\r\n])"
        rb"|torch\.utils[ \t]+import[ \t]+(?:\([^)]*?|[^\n]*?)(?:\bcheckpoint\b|\*|\\)"
    ),
)
_SWITCH = "gradient_checkpointing_enable"
_OPTIONS = "gradient_checkpointing_kwargs"
PINS = (
    "requirements.txt",
    "requirements/base.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "environment.yml",
    "environment.yaml",
)
# The default is reentrant before transformers 5 (PR 43203).
_OLD_TRANSFORMERS = lazily(rb"transformers[ \t\"']*(?:==|~=|<=|<|=)[ \t\"']*4\.")


def reentrant_calls(part: nodes.NodeNG) -> list[nodes.Call]:
    """The calls of torch's ``checkpoint`` in a class or function that are reentrant for certain."""
    found = []
    for call in nodes_of(part, nodes.Call):
        if is_named(call.func, CHECKPOINTS):
            argument = Arguments(call)["use_reentrant"]
            if argument.absent or argument.is_only(True):
                found.append(call)
    return found


def is_left_off(project: Project, call: nodes.Call, near: Iterable[str] = ()) -> bool:
    """Whether a call is under a switch that `_is_never_named` tells of, or under ``self.checkpointing``, which its class only
    sets to False, and which no file of the training (``near``) mentions."""
    if _is_never_named(project, call):
        return True
    own = {name for test in _tests(call) for name in _parts_of_self(test)}
    texts = [project.data(path) for path in near] if own else []
    return any(_only_false(call, name) and not any(name.encode() in text for text in texts) for name in own)


def _is_never_named(project: Project, call: nodes.Call) -> bool:
    """Whether a call is under ``getattr(config, "checkpointing", False)``, and the project does not mention that switch
    otherwise."""
    names = {name for test in _tests(call) if (name := _default_off(test))}
    return any(not _is_named_elsewhere(project, name) for name in names)


def _tests(call: nodes.Call) -> list[nodes.NodeNG]:
    """The conditions that hold where a call is made."""
    above = (one for one in call.node_ancestors() if isinstance(one, nodes.If))
    return [one.test for one in above if any(part is call or part.parent_of(call) for part in one.body)]


def _parts_of_self(test: nodes.NodeNG) -> Iterator[str]:
    """The attributes of ``self`` that have to be true for a test to hold."""
    for one in test.values if isinstance(test, nodes.BoolOp) and test.op == "and" else [test]:
        if isinstance(one, nodes.Attribute) and isinstance(one.expr, nodes.Name) and one.expr.name == "self":
            yield one.attrname


def _only_false(call: nodes.Call, name: str) -> bool:
    """Whether the class around a call sets an attribute of its objects only to False."""
    owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    stores = [one for one in nodes_of(owner, nodes.AssignAttr) if one.attrname == name] if owner is not None else []
    values = [getattr(one.parent, "value", None) for one in stores]
    return bool(values) and all(isinstance(one, nodes.Const) and one.value is False for one in values)


def _default_off(test: nodes.NodeNG) -> str:
    """The attribute that a condition, or a part of it that must hold, looks up with False as its default."""
    parts = test.values if isinstance(test, nodes.BoolOp) and test.op == "and" else [test]
    for one in parts:
        if isinstance(one, nodes.Call) and last_name(one.func) == "getattr" and len(one.args) == 3:
            _, name, default = one.args
            if isinstance(default, nodes.Const) and default.value is False and isinstance(name, nodes.Const) and isinstance(name.value, str):
                return name.value
    return ""


def _is_named_elsewhere(project: Project, name: str) -> bool:
    """Whether code, a script or a configuration mentions a switch except to read it; text in backticks is prose."""
    read = re.compile(rb"getattr\([^()\n]*[\"']%s[\"'][^()\n]*\)|`[^`\n]*`" % re.escape(name.encode()))
    # ``gradient_checkpointing_enable()`` of another model is another name.
    spelled = re.compile(rb"(?<!\w)%s(?!\w)" % rb"[-_]".join(re.escape(part.encode()) for part in name.split("_")))
    texts = (project.data(path) for path in (*project.files, *project.others))
    return any(spelled.search(read.sub(b"", text)) for text in texts if spelled.search(text))


def as_non_reentrant(source: Source, call: nodes.Call) -> Edit | None:
    """The edit that makes such a call, or one of the switch of transformers, use the other implementation.

    None if the choice of the implementation is not a literal in the call.
    """
    if isinstance(call.func, nodes.Attribute) and call.func.attrname == _SWITCH:
        return with_options(source, call, Arguments(call, (_OPTIONS,))[_OPTIONS].node)
    if handed_keywords(call):
        # The call raises unchanged; whether its function accepts them is checked by another rule.
        return None
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "use_reentrant"), None)
    if given is not None:
        return _false_for(source, given)
    open_ended = any(keyword.arg is None for keyword in call.keywords)
    return None if open_ended else add_keyword(source, _span(source, call), "use_reentrant", "False")


def with_options(source: Source, call: nodes.Call, options: nodes.NodeNG | None) -> Edit | None:
    """The edit that makes ``gradient_checkpointing_kwargs`` of a call of transformers choose the other implementation."""
    if options is None:
        return add_keyword(source, _span(source, call), _OPTIONS, '{"use_reentrant": False}')
    items = options.items if isinstance(options, nodes.Dict) else []
    chosen = [value for key, value in items if isinstance(key, nodes.Const) and key.value == "use_reentrant"]
    return _false_for(source, chosen[0]) if len(chosen) == 1 else None


def _false_for(source: Source, value: nodes.NodeNG) -> Edit | None:
    return Edit(_span(source, value), "False") if isinstance(value, nodes.Const) else None


def _span(source: Source, node: nodes.NodeNG) -> Span:
    return source.span_of(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def enables_reentrant(project: Project, module: nodes.Module | None, slots: Iterable[Slot]) -> nodes.Call | None:
    """The call in a file that enables reentrant checkpointing for a transformers model in one of these places."""
    wanted = set(slots)
    for call in nodes_of(module, nodes.Call) if module is not None else ():
        if (
            isinstance(call.func, nodes.Attribute)
            and call.func.attrname == _SWITCH
            and wanted & set(slots_of(call.func.expr))
        ):
            options = Arguments(call, (_OPTIONS,))[_OPTIONS]
            if is_reentrant(options) or (options.absent and has_old_transformers(project)):
                return call
    return None


def switched_on(project: Project, module: nodes.Module | None) -> list[tuple[nodes.Call, bool]]:
    """The calls of a file that enable checkpointing for any transformers model, and whether it is reentrant."""
    found = []
    for call in nodes_of(module, nodes.Call) if module is not None else ():
        if isinstance(call.func, nodes.Attribute) and call.func.attrname == _SWITCH:
            options = Arguments(call, (_OPTIONS,))[_OPTIONS]
            found.append((call, is_reentrant(options) or (options.absent and has_old_transformers(project))))
    return found


def may_enable_reentrant(project: Project, path: str) -> bool:
    """Whether the text of a file may contain a match of `enables_reentrant`."""
    data = project.data(path)
    return _SWITCH.encode() in data and (b"use_reentrant" in data or has_old_transformers(project))


def is_reentrant(options: Argument) -> bool:
    """Whether keyword arguments for checkpointing make it reentrant."""
    if options.node is None:
        return False
    chosen = mapping_of(options.node).entries.get("use_reentrant")
    return chosen is not None and chosen.state is State.KNOWN and chosen.is_only(True)


def has_old_transformers(project: Project) -> bool:
    """Whether the project pins a version of transformers below 5."""
    return any(_OLD_TRANSFORMERS.search(project.data(posixpath.join(project.root, name))) for name in PINS)


__all__ = [
    "CALLS_TORCHS",
    "CHECKPOINTS",
    "PINS",
    "as_non_reentrant",
    "enables_reentrant",
    "has_old_transformers",
    "is_left_off",
    "is_reentrant",
    "may_enable_reentrant",
    "reentrant_calls",
    "switched_on",
    "with_options",
]
