"""Dataclasses with a model's options, and the edit that adds a field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from astroid import nodes

from ldlm_lint.autofix.branches import new_line_after
from ldlm_lint.model import Edit
from ldlm_lint.project.index import Project
from ldlm_lint.project.models import Models, Part
from ldlm_lint.python.block_stacks import Stack
from ldlm_lint.python.names import qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Kind, Source, UnreadableError

if TYPE_CHECKING:
    from typing import TypeGuard

NAME = "gradient_checkpointing"
_DATACLASS = {"dataclasses.dataclass"}


class Subject(NamedTuple):
    """A model class in its file and project, with the stacks of blocks that it builds."""

    project: Project
    models: Models
    source: Source
    model: nodes.ClassDef
    stacks: tuple[Stack, ...]


def init_of(model: nodes.ClassDef) -> nodes.FunctionDef | None:
    """The constructor that a class defines itself."""
    return next((one for one in model.mymethods() if one.name == "__init__"), None)


def root_name(node: nodes.NodeNG) -> str:
    """The ``config`` of ``config.model.width`` and ``config["width"]``; empty for anything else."""
    while isinstance(node, (nodes.Attribute, nodes.AssignAttr, nodes.Subscript)):
        node = node.value if isinstance(node, nodes.Subscript) else node.expr
    return node.name if isinstance(node, nodes.Name) else ""


def ends_its_line(source: Source, node: nodes.NodeNG) -> bool:
    """Whether a statement is followed on its last line by at most a comment."""
    end = source.offset(node.end_lineno, node.end_col_offset)
    return re.match(rb"[ \t]*(#[^\r\n]*)?(\r|\n|\Z)", source.data[end:]) is not None


def indentation(source: Source, node: nodes.NodeNG) -> str:
    """The text before the first statement on a node's line."""
    line = source.lines[node.lineno - 1]
    return line[: len(line) - len(line.lstrip(" \t"))]


def derives_from(name: str) -> re.Pattern[bytes]:
    """A pattern of class statements whose bases name this class."""
    return re.compile(rb"^[ \t]*class[ \t]+\w+\([^)]*\b" + re.escape(name).encode() + rb"\b", re.M)


def field_of(subject: Subject, config: str) -> tuple[Edit, str] | None:
    """The edit that adds the field to the dataclass which a parameter is an object of, and the name of the class."""
    found = [part for part in _candidates(subject, config) if _may_grow(subject, part)]
    if len(found) != 1:
        return None
    part = found[0]
    made = subject.models.definition(part)
    if made is None:
        return None
    source = subject.source
    try:
        home = source if part.path == source.path else _read(subject.project, part.path)
    except UnreadableError:
        return None
    last = field = [one for one in made.body if isinstance(one, nodes.AnnAssign)][-1]
    behind = field.next_sibling()
    if isinstance(behind, nodes.Expr) and isinstance(behind.value, nodes.Const):
        last = behind
    if not ends_its_line(home, last):
        return None
    return new_line_after(home, last.end_lineno, f"{indentation(home, field)}{NAME}: bool = True"), part.name


def _read(project: Project, path: str) -> Source:
    return Source.from_bytes(path, project.data(path), Kind.PYTHON)


def _candidates(subject: Subject, config: str) -> Iterable[Part]:
    """The dataclass of the parameter's annotation; without one the known dataclasses with all fields that are read."""
    models, path, model = subject.models, subject.source.path, subject.model
    init = init_of(model)
    if init is None:
        return []
    arguments = zip(init.args.args or [], init.args.annotations, strict=False)
    annotation = next((note for one, note in arguments if one.name == config), None)
    if annotation is not None:
        return [part for part in models.mentioned(path, annotation) if _is_dataclass(models.definition(part))]
    read = {
        one.attrname
        for one in nodes_of(init, nodes.Attribute)
        if isinstance(one.expr, nodes.Name) and one.expr.name == config
    }
    near = [Part(path, one.name) for one in model.root().body if isinstance(one, nodes.ClassDef)]
    near += [part for part in models.mentioned(path, model.root()) if part.path != path]
    known = ((part, models.definition(part)) for part in dict.fromkeys(near))
    return [part for part, made in known if _is_dataclass(made) and len(read) > 1 and read <= set(made.locals)]


def _is_dataclass(node: nodes.NodeNG | None) -> TypeGuard[nodes.ClassDef]:
    decorators = node.decorators.nodes if isinstance(node, nodes.ClassDef) and node.decorators is not None else []
    return any(qualified(getattr(one, "func", one)) <= _DATACLASS for one in decorators)


def _may_grow(subject: Subject, part: Part) -> bool:
    """Whether a dataclass can have one more field at its end: no slots, no subclass with further fields."""
    made = subject.models.definition(part)
    if made is None or NAME in made.locals or not any(isinstance(one, nodes.AnnAssign) for one in made.body):
        return False
    options = [keyword for one in made.decorators.nodes if isinstance(one, nodes.Call) for keyword in one.keywords]
    if any(keyword.arg == "slots" for keyword in options):
        return False
    derives = derives_from(part.name)
    return not any(derives.search(subject.project.data(one)) for one in subject.project.files)


__all__ = ["NAME", "Subject", "derives_from", "ends_its_line", "field_of", "indentation", "init_of", "root_name"]
