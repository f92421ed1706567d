"""The fix for pretrained models of transformers, which have their own switch."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from astroid import nodes

from ldlm_lint.autofix.branches import new_line_after
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.models import Models
from ldlm_lint.project.reentrant import PINS
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.places import function_of, position_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Kind, Source, UnreadableError

_PRETRAINED = lazily(r"(^|\.)transformers\.(AutoModel\w*|\w+For\w+|\w+Model)\.from_pretrained$")
# gradient_checkpointing_kwargs came with 4.35; the switch goes with 6.
_WITHOUT_OPTIONS = lazily(
    rb"transformers[ \t\"']*(?:==|~=|<=|<)[ \t\"']*(?:[0-3]\.|4\.(?:[0-9]|[12][0-9]|3[0-4])(?!\d))"
)
_SHARDED = Trait(
    re.compile(rb"fully_shard\b|FullyShardedDataParallel|\bFSDP\b"), (b"fully_shard", b"FullyShardedDataParallel", b"FSDP")
)
_REASON = "each step runs the forward pass of the layers once more, inside the backward pass"
_ENABLE = 'gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})'


def enabling_fix(project: Project, models: Models, path: str, places: Sequence[str]) -> Fix | None:
    """Switch checkpointing on after the statement that loads a pretrained model.

    ``places`` are names of classes that load one, or the ``line:column`` of the call.
    """
    module = models.trees.of(path)
    if module is None or _is_unsuited(project, path):
        return None
    try:
        source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
    except UnreadableError:
        return None
    calls = [call for call in _loads(module, places) if not _runs_own_code(call)]
    edits = [edit for call in calls if (edit := _enable(source, call)) is not None]
    if len(calls) != 1 or len(edits) != 1:
        return None
    name = calls[0].statement().targets[0].as_string()
    return Fix(
        f"switch on gradient checkpointing of {name}", tuple(edits), Applicability.UNSAFE, _REASON, isolation=path
    )


def _is_unsuited(project: Project, path: str) -> bool:
    """A version of transformers without the option, and FSDP, which has its own."""
    old = any(_WITHOUT_OPTIONS.search(project.data(posixpath.join(project.root, name))) for name in PINS)
    return old or project.any_shows(project.trainings_of(path) | {path}, _SHARDED)


def _loads(module: nodes.Module, places: Sequence[str]) -> Iterator[nodes.Call]:
    for call in nodes_of(module, nodes.Call):
        statement = call.parent
        if not isinstance(statement, nodes.Assign) or len(statement.targets) != 1:
            continue
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        here = position_of(call) in places or (owner is not None and owner.name in places)
        if here and len(qualified(call.func)) == 1 and any(map(_PRETRAINED.search, qualified(call.func))):
            yield call


def _runs_own_code(call: nodes.Call) -> bool:
    """Code that comes with the weights may lack the switch."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    return None in options or ("trust_remote_code" in options and constant(options["trust_remote_code"]) is not False)


def _enable(source: Source, call: nodes.Call) -> Edit | None:
    target = call.parent.targets[0]
    if not isinstance(target, (nodes.AssignName, nodes.AssignAttr)):
        return None
    statement = _settled(call.parent, target.as_string())
    end = source.offset(statement.end_lineno, statement.end_col_offset)
    if re.match(rb"[ \t]*(#[^\r\n]*)?(\r|\n|\Z)", source.data[end:]) is None or _tells_later(call, target.as_string()):
        return None
    line = source.lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return new_line_after(source, statement.end_lineno, f"{indent}{target.as_string()}.{_ENABLE}")


def _settled(statement: nodes.NodeNG, name: str) -> nodes.NodeNG:
    """The statement after which a name holds the model: the ``if`` around it where each branch loads one."""
    around = statement.parent
    while (
        isinstance(around, nodes.If)
        and around.orelse
        and all(_assigns(branch, name) for branch in (around.body, around.orelse))
    ):
        statement, around = around, around.parent
    return statement


def _assigns(branch: Iterable[nodes.NodeNG], name: str) -> bool:
    found = (target.as_string() for one in branch if isinstance(one, nodes.Assign) for target in one.targets)
    nested = any(
        isinstance(one, nodes.If) and one.orelse and _assigns(one.body, name) and _assigns(one.orelse, name)
        for one in branch
    )
    return name in found or nested


def _tells_later(call: nodes.Call, name: str) -> bool:
    """Whether the function requests caches in training, which the switch disables, or derives another model from this
    one."""
    for one in nodes_of(function_of(call), nodes.Call):
        if (
            any(keyword.arg == "past_key_values" for keyword in one.keywords)
            and last_name(one.func) == name.rpartition(".")[2]
        ):
            return True
    return False
