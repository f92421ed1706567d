"""The options of a model class, and the edits that add one: ``gradient_checkpointing``, on by default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.autofix.branches import new_line_after
from ldlm_lint.autofix.parameters import add_parameter
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.project.block_calls import stack_attributes
from ldlm_lint.project.config_fields import (
    NAME,
    Subject,
    derives_from,
    ends_its_line,
    field_of,
    indentation,
    init_of,
    root_name,
)
from ldlm_lint.python.block_stacks import Stack
from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of

_CONFIG = lazily(r"(^|_)(config|cfg|conf|args|opts?|options|hparams|hps|params)$", re.I)
# Whole modules saved in a file: their instances lack attributes that the constructor newly sets.
_PICKLES = lazily(
    rb"(?:torch\.save|pickle\.dump|joblib\.dump)\(\s*(?:self\.)?\w*(?:model|net|module|ema)\w*(?:\.module)?\s*,"
)


class Choice(NamedTuple):
    """The condition under which a model checkpoints, the edits that define it, and where a user sets it, as text."""

    condition: str
    edits: tuple[Edit, ...]
    told: str


_ALWAYS = Choice("self.training", (), "always while training")


def choice_of(subject: Subject) -> Choice:
    """An option in the existing style of the class; only ``self.training`` if that is unknown.

    A configuration that is a dataclass gets a field; one read by ``get``, or of unknown class, is queried with a
    default; a constructor with separate parameters gets one more.
    """
    init = init_of(subject.model)
    if (
        init is None
        or init.decorators is not None
        or init.argnames()[:1] != ["self"]
        or "__slots__" in subject.model.locals
    ):
        return _ALWAYS
    config = _config_of(init)
    return (_parameter(subject, init) if config is None else _of_config(subject, init, config)) or _ALWAYS


def _of_config(subject: Subject, init: nodes.FunctionDef, config: str) -> Choice | None:
    field = field_of(subject, config)
    if field is not None:
        edit, name = field
        told = f"on by default, {name}.{NAME} switches it"
        kept = _attribute_of(init, config)
        if kept is not None:
            return Choice(f"self.{kept}.{NAME} and self.training", (edit,), told)
        return _attribute(subject, init, f"{config}.{NAME}", (edit,), told)
    section = _section(subject.stacks, config)
    value = _get_style(subject.model, section)
    if value is None:
        return _parameter(subject, init)
    return _attribute(subject, init, value, (), f"on by default, {section}.{NAME} switches it")


def _config_of(init: nodes.FunctionDef) -> str | None:
    """The parameter that the constructor reads its options from."""
    read = {root_name(one) for one in nodes_of(init, (nodes.Attribute, nodes.Subscript))}
    stars = (init.args.vararg, init.args.kwarg)
    return next((one for one in init.argnames()[1:] if _CONFIG.search(one) and one in read and one not in stars), None)


def _parameter(subject: Subject, init: nodes.FunctionDef) -> Choice | None:
    """One more parameter of the constructor, the last one, and an attribute that stores it."""
    start = subject.source.offset(init.fromlineno, init.col_offset or 0)
    annotations = [*init.args.annotations, *init.args.kwonlyargs_annotations]
    annotated = any(one is not None for one in annotations) or len(init.argnames()) == 1
    edit = add_parameter(subject.source, start, f"{NAME}: bool = True" if annotated else f"{NAME}=True")
    if edit is None:
        return None
    told = f"on by default, {subject.model.name}({NAME}=False) switches it off"
    return _attribute(subject, init, NAME, (edit,), told)


def _attribute(
    subject: Subject, init: nodes.FunctionDef, value: str, edits: tuple[Edit, ...], told: str
) -> Choice | None:
    """Keep a value in the object, among the statements of the constructor."""
    anchor = _anchor(subject, init, value)
    if anchor is None or not ends_its_line(subject.source, anchor):
        return None
    text = f"{indentation(subject.source, anchor)}self.{NAME} = {value}"
    line = new_line_after(subject.source, anchor.end_lineno, text)
    return Choice(f"self.{NAME} and self.training", (*edits, line, *_class_default(subject)), told)


def _anchor(subject: Subject, init: nodes.FunctionDef, value: str) -> nodes.NodeNG | None:
    """The statement of the constructor that the new one follows.

    A parameter is stored next to the others; a value from a configuration is stored after the stack built from it.
    """
    kept = [one for one in init.body if _keeps_parameter(one, init)]
    if value == NAME and kept:
        return _last_of_run(kept)
    holders = stack_attributes(subject.model, subject.stacks)
    built = {stack.node for stack in subject.stacks}
    building = [
        one
        for one in init.body
        if any(target.attrname in holders for target in nodes_of(one, nodes.AssignAttr))
        or any(call in built for call in nodes_of(one, nodes.Call))
    ]
    if building:
        return _last_of_run(building)
    calls = (one for one in init.body if isinstance(one, nodes.Expr) and isinstance(one.value, nodes.Call))
    return next((one for one in calls if last_name(one.value.func) == "__init__"), None)


def _keeps_parameter(statement: nodes.NodeNG, init: nodes.FunctionDef) -> bool:
    """``self.width = width``."""
    if not isinstance(statement, nodes.Assign) or not isinstance(statement.value, nodes.Name):
        return False
    return isinstance(statement.targets[0], nodes.AssignAttr) and statement.value.name in init.argnames()


def _last_of_run(statements: Sequence[nodes.NodeNG]) -> nodes.NodeNG:
    last = statements[0]
    while last.next_sibling() in statements:
        last = last.next_sibling()
    return last


def _class_default(subject: Subject) -> tuple[Edit, ...]:
    """A class attribute for objects whose constructor does not set the new one: old pickles, subclasses of their own mind."""
    project, model, source = subject.project, subject.model, subject.source
    files = {source.path, *project.trainings_of(source.path)}
    skipped = any(_skips_constructor(one, model) for one in _subclasses(model)) or _derived_elsewhere(subject)
    if not skipped and not any(_PICKLES.search(project.data(one)) for one in files):
        return ()
    first = model.body[0]
    if first.lineno == model.lineno:
        return ()
    text = f"{indentation(source, first)}{NAME} = True  # also for objects that were created without __init__"
    if model.doc_node is not None:
        return (new_line_after(source, model.doc_node.end_lineno, f"{source.newline}{text}"),)
    apart = source.newline if isinstance(first, nodes.FunctionDef) else ""
    return (new_line_after(source, model.blockstart_tolineno, f"{text}{apart}"),)


def _subclasses(model: nodes.ClassDef) -> Iterator[nodes.ClassDef]:
    for one in nodes_of(model.root(), nodes.ClassDef):
        if any(isinstance(base, nodes.Name) and base.name == model.name for base in one.bases):
            yield one


def _skips_constructor(derived: nodes.ClassDef, model: nodes.ClassDef) -> bool:
    init = next((one for one in derived.mymethods() if one.name == "__init__"), None)
    if init is None:
        return False
    for call in nodes_of(init, nodes.Call):
        func = call.func
        if isinstance(func, nodes.Attribute) and func.attrname == "__init__":
            owner = func.expr
            if (isinstance(owner, nodes.Call) and last_name(owner.func) == "super") or (
                isinstance(owner, nodes.Name) and owner.name == model.name
            ):
                return False
    return True


def _derived_elsewhere(subject: Subject) -> bool:
    """Whether a class of another file may derive from the model."""
    project, path = subject.project, subject.source.path
    derives = derives_from(subject.model.name)
    return any(
        path in project.imported_by(one) and derives.search(project.data(one)) for one in project.files if one != path
    )


def _attribute_of(init: nodes.FunctionDef, config: str) -> str | None:
    """The attribute that stores the configuration unchanged."""
    for assign in init.body:
        if isinstance(assign, nodes.Assign) and isinstance(assign.value, nodes.Name) and assign.value.name == config:
            for target in assign.targets:
                if isinstance(target, nodes.AssignAttr) and root_name(target.expr) == "self":
                    return target.attrname
    return None


def _section(stacks: Sequence[Stack], config: str) -> str:
    """The part of the configuration with the number of blocks, else the configuration itself."""
    for stack in stacks:
        around = next((one for one in stack.node.node_ancestors() if isinstance(one, nodes.For)), stack.node)
        for one in nodes_of(around, nodes.Attribute):
            if (
                root_name(one) == config
                and not isinstance(one.parent, nodes.Call)
                and isinstance(one.expr, (nodes.Attribute, nodes.Name))
            ):
                outer = one
                while isinstance(outer.parent, nodes.Attribute):
                    outer = outer.parent
                return outer.expr.as_string()
    return config


def _get_style(model: nodes.ClassDef, section: str) -> str | None:
    """The expression that reads a possibly missing key from a configuration of unknown class."""
    config = section.partition(".")[0]
    for call in nodes_of(model, nodes.Call):
        if (
            isinstance(call.func, nodes.Attribute)
            and call.func.attrname == "get"
            and root_name(call.func.expr) == config
            # ``config.get("width") if isinstance(config, dict) else …``: `getattr` works for the alternatives.
            and not any(isinstance(one, (nodes.If, nodes.IfExp)) for one in call.node_ancestors())
        ):
            return f'{section}.get("{NAME}", True)'
    init_reads = [
        one
        for one in nodes_of(model, nodes.Subscript)
        if root_name(one) == config and isinstance(one.slice, nodes.Const)
    ]
    return None if init_reads else f'getattr({section}, "{NAME}", True)'


__all__ = ["Choice", "choice_of"]
