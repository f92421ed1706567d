"""Finds variables of PyTorch's NCCL process group that are set after the group was made that reads them, and moves them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.environment import lines_of
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.python.names import qualified
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules import environment_watchdog
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.rules.settings import Setting, Value
from ldlm_lint.source import Source

_PREFIX = "TORCH_NCCL_"
# The names these had before torch 2.2; NCCL's own variables are read later, with the first communicator.
_OLD_NAMES = {"NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"}
_MAKES_GROUP = {"torch.distributed.init_process_group", "torch.distributed.new_group"}
# What decides together whether a heartbeat counts is not brought into force one by one.
_NEVER_MOVED = {environment_watchdog.MONITORING, *environment_watchdog.BLOCKING_WAIT}
_STARTS_PROCESSES = ("subprocess.", "torch.multiprocessing.", "multiprocessing.", "os.exec", "os.spawn", "os.system")


def settings_after(call: nodes.Call) -> Iterator[tuple[nodes.NodeNG, str]]:
    """The assignments of such variables that follow a call in its own block, with their names.

    Only straight-line code counts, and only up to whatever may still read the variable: another group, or a new process.
    """
    for later in _following(call.statement()):
        if isinstance(later, nodes.Assign):
            for target in later.targets:
                if isinstance(target, nodes.Subscript) and qualified(target.value) == {"os.environ"}:
                    name = constant(target.slice)
                    if isinstance(name, str) and (name.startswith(_PREFIX) or name in _OLD_NAMES):
                        yield later, name


def _following(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    block = next((part for part in _blocks(statement.parent) if statement in part), [])
    rest = block[block.index(statement) + 1 :] if block else []
    # A group or process that is made further down reads what is set before it.
    last = next((at for at in range(len(rest), 0, -1) if _reads_again(rest[at - 1])), 0)
    return rest[last:]


def _blocks(parent: nodes.NodeNG) -> list[list[nodes.NodeNG]]:
    return [part for name in ("body", "orelse", "finalbody") if isinstance(part := getattr(parent, name, None), list)]


def _reads_again(statement: nodes.NodeNG) -> bool:
    for call in nodes_of(statement, nodes.Call):
        for name in qualified(call.func):
            if name in _MAKES_GROUP or name.startswith(_STARTS_PROCESSES):
                return True
    return False


def earlier(source: Source, call: nodes.Call, place: nodes.Assign, name: str, options: Mapping[str, object]) -> Fix | None:
    """Move an assignment, with the comments above it, in front of the call that should have seen it.

    None where the value may depend on what stands in between, where the file speaks of the variable elsewhere, or where
    another rule is against the value, which has been without effect so far. ``options`` are those of the rules.
    """
    group = call.statement()
    text = constant(place.value)
    words = re.findall(rb"(?<!\w)" + name.encode() + rb"(?!\w)", without_comments(source.data))
    if not isinstance(text, str) or len(words) != 1 or name in _NEVER_MOVED or _is_disputed(place, name, text, source, options):
        return None
    if not isinstance(group, (nodes.Expr, nodes.Assign)) or not _is_movable(group, place):
        return None
    target, lines = lines_of(source, span_of(source, group)), lines_of(source, span_of(source, place))
    if target is None or lines is None:
        return None
    moved = source.slice(_with_comments(source, lines))
    ended = moved if moved.endswith(("\n", "\r")) else moved + source.newline
    edits = (Edit(Span(target.path, target.start, target.start, target.cell), ended), Edit(_with_comments(source, lines), ""))
    reason = "a setting that has had no effect so far takes effect"
    # The assignments behind one call move together, so that they keep their order.
    together = f"earlier:{target.path}:{target.cell}:{target.start}"
    return Fix(f"set {name} before the process group is created", edits, Applicability.UNSAFE, reason, together)


def _is_disputed(place: nodes.Assign, name: str, text: str, source: Source, options: Mapping[str, object]) -> bool:
    """Whether a rule about values has something against this one."""
    setting = Setting(name, (Value(text, None),), span_of(source, place))
    return any(one.rule != DEPRECATED_NCCL_VARIABLE.symbol for one in decide((setting,), options))


def _is_movable(group: nodes.NodeNG, place: nodes.Assign) -> bool:
    """Whether all that an assignment of one target reads is a literal, or bound before the group is made."""
    if len(place.targets) != 1 or not isinstance(place.value, (nodes.Const, nodes.Name)):
        return False
    names = {one.name for one in nodes_of(place, nodes.Name)}
    block = next(part for part in _blocks(group.parent) if group in part)
    between = block[block.index(group) : block.index(place)]
    return not any(names & _bound_in(one) for one in between)


def _bound_in(statement: nodes.NodeNG) -> set[str]:
    """The names that a statement may bind."""
    found = {one.name for one in nodes_of(statement, nodes.AssignName)}
    for one in nodes_of(statement, (nodes.Import, nodes.ImportFrom)):
        found |= {(alias or name).partition(".")[0] for name, alias in one.names}
    for one in nodes_of(statement, (nodes.FunctionDef, nodes.ClassDef)):
        found.add(one.name)
    return found


def _with_comments(source: Source, lines: Span) -> Span:
    """The lines of a statement and those of the comments right above it, indented as it is."""
    start = lines.start
    indent = re.match(rb"[ \t]*", source.data[start : lines.end])
    while indent is not None and start:
        above = source.data.rfind(b"\n", 0, start - 1) + 1
        if not source.data.startswith(indent[0] + b"#", above):
            break
        start = above
    return Span(lines.path, start, lines.end, lines.cell)
