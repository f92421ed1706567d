"""Finds variables that are set after they are read: NCCL's after the process group, the allocator's after the first
tensor on the GPU."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.environment import block_of, lines_of
from ldlm_lint.checkers.environment_callers import calls_of
from ldlm_lint.checkers.environment_writes import Write, writes_of
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.python.names import qualified
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.values import constant, evaluate, only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules import environment_allocator, environment_watchdog
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.rules.environment_order import is_read_by_group
from ldlm_lint.rules.settings import Setting, Value
from ldlm_lint.source import Source

_MAKES_GROUP = {"torch.distributed.init_process_group", "torch.distributed.new_group"}
# Variables that together configure the heartbeat are not activated one by one.
_NEVER_MOVED = {environment_watchdog.MONITORING, *environment_watchdog.BLOCKING_WAIT}
_ALLOCATOR = frozenset(environment_allocator.NAMES)
_MOST_WRITES = 20
# Statements that may end a function, or skip following code.
_LEAVING = (nodes.Return, nodes.Raise, nodes.Break, nodes.Continue)
_STARTS_PROCESSES = ("subprocess.", "torch.multiprocessing.", "multiprocessing.", "os.exec", "os.spawn", "os.system")


class Late(NamedTuple):
    """A write after the read of the variable; ``reader`` is that read."""

    write: Write
    reader: nodes.NodeNG


def settings_after(call: nodes.Call) -> Iterator[Write]:
    """The writes into the environment after a call that creates a process group, which reads such variables.

    Only code that runs after the call counts, and only up to the next possible read of the variable: another group, or
    a new process.
    """
    helper = f".{getattr(call.scope(), 'name', '')}"
    for site in _sites(call):
        for later in _following(site.statement(), lambda one: _reads_again(one) or _calls(one, lambda name: name == helper)):
            for write in _written_in(later):
                if is_read_by_group(write.name):
                    yield write


def _sites(call: nodes.Call) -> Iterator[nodes.Call]:
    """A call, and the calls of the module's function that it is in, whatever else the function does."""
    yield call
    function = call.scope()
    if isinstance(function, nodes.FunctionDef) and isinstance(function.parent, nodes.Module):
        yield from (site for site, _ in calls_of(function))


def allocator_settings_after_use(module: nodes.Module) -> Iterator[Late]:
    """Options of the CUDA allocator that are set after GPU memory was allocated in the same function."""
    written = (one for one in writes_of(module) if one.own and one.name in _ALLOCATOR)
    for write in itertools.islice(written, _MOST_WRITES):
        reader = _allocated_before(write.statement)
        if reader is not None:
            yield Late(write, reader)


def _allocated_before(statement: nodes.NodeNG) -> nodes.Call | None:
    """A call that allocated GPU memory before a statement; None if a later started process gets the setting."""
    found = None
    while statement is not None and not isinstance(statement, (nodes.FunctionDef, nodes.ClassDef, nodes.Module)):
        block = block_of(statement)
        place = block.index(statement) if block else 0
        if any(map(_starts_process, block[place + 1 :])):
            return None
        for earlier_one in filter(_leads_on, block[:place] if found is None else ()):
            calls = (one for one in nodes_of(earlier_one, nodes.Call) if one.scope() is earlier_one.scope())
            found = found or next(filter(_allocates, calls), None)
        statement = statement.parent
    return found


def _written_in(statement: nodes.NodeNG) -> Iterator[Write]:
    """The writes of a statement into the environment of its own process, without functions that it only defines."""
    if isinstance(statement, (nodes.FunctionDef, nodes.ClassDef)):
        return
    scope = statement.scope()
    yield from (one for one in writes_of(statement) if one.own and one.statement.scope() is scope)


def _leads_on(statement: nodes.NodeNG) -> bool:
    """Whether the code after a statement runs whenever a part of it has run, in the same call of its function."""
    if isinstance(statement, (nodes.FunctionDef, nodes.ClassDef, nodes.Lambda, nodes.Module)) or not statement.is_statement:
        return False
    return not any(nodes_of(statement, _LEAVING))


def _allocates(call: nodes.Call) -> bool:
    """Whether a call puts something on a GPU: ``.cuda()``, ``.to("cuda")``, ``torch.randn(…, device="cuda")``."""
    method = call.func.attrname if isinstance(call.func, nodes.Attribute) else ""
    if method == "cuda":
        return all(isinstance(one.value if isinstance(one, nodes.Keyword) else one, (nodes.Const, nodes.Name)) for one in (*call.args, *call.keywords))
    device = call.args[0] if method == "to" and call.args else next((one.value for one in call.keywords if one.arg == "device"), None)
    if device is None or (method != "to" and not any(name.startswith("torch.") for name in qualified(call.func))):
        return False
    return _is_gpu(device)


def _is_gpu(device: nodes.NodeNG) -> bool:
    """Whether a device is a GPU on machines with one."""
    if isinstance(device, nodes.Name):
        bound = only_binding(device)
        device = bound if bound is not None else device
    if isinstance(device, nodes.Call) and device.args and qualified(device.func) == {"torch.device"}:
        device = device.args[0]
    return any(isinstance(one, str) and one.startswith("cuda") for one in evaluate(device) or ())


def _following(statement: nodes.NodeNG, reads_again: Callable[[nodes.NodeNG], bool]) -> list[nodes.NodeNG]:
    block = next((part for part in _blocks(statement.parent) if statement in part), [])
    rest = block[block.index(statement) + 1 :] if block else []
    # Objects created later, such as another group, read settings made before them.
    last = next((at for at in range(len(rest), 0, -1) if reads_again(rest[at - 1])), 0)
    return rest[last:]


def _blocks(parent: nodes.NodeNG) -> list[list[nodes.NodeNG]]:
    return [part for name in ("body", "orelse", "finalbody") if isinstance(part := getattr(parent, name, None), list)]


def _reads_again(statement: nodes.NodeNG) -> bool:
    return _calls(statement, lambda name: name in _MAKES_GROUP or name.startswith(_STARTS_PROCESSES))


def _starts_process(statement: nodes.NodeNG) -> bool:
    return _calls(statement, lambda name: name.startswith(_STARTS_PROCESSES))


def _calls(statement: nodes.NodeNG, wanted: Callable[[str], bool]) -> bool:
    return any(wanted(name) for call in nodes_of(statement, nodes.Call) for name in qualified(call.func))


def earlier(source: Source, call: nodes.Call, place: nodes.NodeNG, name: str, options: Mapping[str, object]) -> Fix | None:
    """Move an assignment, with the comments above it, in front of the call that should read it.

    None if the value may depend on the code in between, where the file mentions the variable elsewhere, or where
    another rule is against the value, which has had no effect so far. ``options`` are those of the rules.
    """
    group = call.statement()
    if not isinstance(place, nodes.Assign) or place.parent is not group.parent:
        return None
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
    # The assignments after one call move together, so that they keep their order.
    together = f"earlier:{target.path}:{target.cell}:{target.start}"
    return Fix(f"set {name} before the process group is created", edits, Applicability.UNSAFE, reason, together)


def _is_disputed(place: nodes.Assign, name: str, text: str, source: Source, options: Mapping[str, object]) -> bool:
    """Whether a rule about values reports this one."""
    setting = Setting(name, (Value(text, None),), span_of(source, place))
    return any(one.rule != DEPRECATED_NCCL_VARIABLE.symbol for one in decide((setting,), options))


def _is_movable(group: nodes.NodeNG, place: nodes.Assign) -> bool:
    """Whether an assignment of one target reads only literals and names bound before the group is created."""
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
    """The lines of a statement and of the comments right above it with the same indentation."""
    start = lines.start
    indent = re.match(rb"[ \t]*", source.data[start : lines.end])
    while indent is not None and start:
        above = source.data.rfind(b"\n", 0, start - 1) + 1
        if not source.data.startswith(indent[0] + b"#", above):
            break
        start = above
    return Span(lines.path, start, lines.end, lines.cell)
