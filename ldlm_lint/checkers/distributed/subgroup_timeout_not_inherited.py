"""subgroup-timeout-not-inherited: groups and meshes without a timeout, although the default group has one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from ldlm_lint.concepts.group_timeouts import Group, GroupTimeouts
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Probe, Reference, Related, Rule
from ldlm_lint.program.handles import Call
from ldlm_lint.rules.collectives import length_of
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7233",
    symbol="subgroup-timeout-not-inherited",
    consequence=Consequence.CONFIG,
    message="%(groups)s not inherit the timeout of `init_process_group()` (%(timeout)s): their collectives end after the "
    "default of their backend instead; give them a `timeout` too",
    summary="A sub-group or a device mesh without a timeout, although the default group has one.",
    rationale="`new_group()` takes the default of its backend, 10 minutes for NCCL and 30 minutes for the others "
    "(torch 2.2 and newer), whatever timeout the default group has. Collectives that a sharded or tensor-parallel "
    "training runs in sub-groups therefore still fail after 10 minutes if the job was given an hour, or hang for 30 "
    "if it should give up after two. The sub-groups of a mesh with several dimensions are created the same way.",
    cost="A job that dies, or hangs, at another time than the one that was set.",
    exceptions="Not reported: separate `gloo` groups next to another default group, which carry short messages; a "
    "timeout that is set later with `_set_pg_timeout`; a default timeout that equals the backend's.",
    versions="torch 2.0 to 2.13; before 2.2 the default was 30 minutes for NCCL too.",
    verification="Print `group._get_backend(torch.device('cuda')).options._timeout` for each group.",
    references=(
        Reference(
            "torch.distributed.new_group", "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group"
        ),
        Reference("pytorch#135352: sub-groups of hybrid sharding", "https://github.com/pytorch/pytorch/issues/135352"),
        Reference("pytorch#110947: NCCL default of 10 minutes", "https://github.com/pytorch/pytorch/pull/110947"),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: collectives of the group now fail, or hang, after a different time.",
    probe=Probe(
        "group-timeout",
        "the sub-group has its backend's default, and the default group has another timeout",
        experiment="process-groups",
    ),
)

_MESHES = frozenset({"torch.distributed.init_device_mesh", "torch.distributed.device_mesh.init_device_mesh"})
_SETS_LATER = ("_set_pg_timeout", "_set_default_timeout")


def find(code: ProjectCode) -> Iterator[Finding]:
    """The groups of each function, and the meshes, that surely get the default timeout of a backend for GPUs."""
    groups = [one.call for one in code[GroupTimeouts].takers if _lacks_timeout(one)]
    for _, together in groupby(groups, key=lambda call: call.function):
        yield from _at(code, list(together), "the groups that are created here do")
    for mesh in code.calls(_MESHES):
        if _has_own_groups(mesh):
            yield from _at(code, [mesh], "the groups of this mesh do")


def _lacks_timeout(group: Group) -> bool:
    """Whether a call creates a sub-group without a timeout, for the device."""
    is_subgroup = any(one.rpartition(".")[2].startswith(("new_", "split_")) for one in group.call.callee.interfaces)
    backends = [one for value in group.call.argument("backend").values for one in value.may_be().constants]
    helps = any(isinstance(one, str) and "nccl" not in one.lower() for one in backends)
    # The options of a backend hold a timeout of their own.
    return is_subgroup and group.timeout.is_absent and not helps and group.call.argument("pg_options").is_absent


def _has_own_groups(mesh: Call) -> bool:
    """Whether a call creates a GPU mesh with at least two dimensions, each with its own group."""
    devices = [one.may_be().only for one in mesh.argument("device_type", 0).values]
    shapes = [one for one in mesh.argument("mesh_shape", 1).values if one.kind == "seq"]
    wide = [one for one in (shapes[0].operands if len(shapes) == 1 else ()) if one.constant != 1]
    return devices != ["cpu"] and len(wide) > 1 and mesh.argument("backend_override").is_absent


def _at(code: ProjectCode, calls: list[Call], groups: str) -> Iterator[Finding]:
    first, *others = calls
    if any(call.may_run_with(first) for call in code.calls_named(*_SETS_LATER)):
        return
    default = _default_group(code, first)
    timeout = default.given if default is not None else None
    if default is None or timeout is None:
        return
    written = written_argument(default.call, "timeout", default.place)
    text = written.text if written is not None else timeout.text
    lengths = [length_of(one.seconds) for one in default.lengths if one.default is None]
    args = {"groups": groups, "timeout": lengths[0] if len(lengths) == 1 else quoted(text)}
    related = [Related(other.spot.line_span, "this group too") for other in others]
    related.append(Related(default.call.spot.line_span, "the default group gets its timeout here"))
    fix = _fix(code, calls, default, text) if written is not None and groups.startswith("the groups that") else None
    yield code.finding(RULE, first.span, args, related, fix=fix, confidence=RULE.confidence)


def _default_group(code: ProjectCode, call: Call) -> Group | None:
    """The default group of a program with its timeout: that of the same file, or else all that the program may create have
    one."""
    groups = [one for one in code[GroupTimeouts].default_groups if one.call.may_run_with(call)]
    own = [one for one in groups if one.call.module is call.module and one.given is not None]
    return own[0] if own else groups[0] if groups and all(one.given is not None for one in groups) else None


def _fix(code: ProjectCode, calls: list[Call], default: Group, text: str) -> Fix | None:
    """Pass the expression that the default group gets, where it means the same at the sub-groups."""
    source, call = code.source(default.call.module), default.call
    if "\n" in text or any(one.module is not call.module or not (one.function == call.function or _is_of_module(call)) for one in calls):
        return None
    edits = [add_keyword(source, one.span, "timeout", text) for one in calls]
    if None in edits:
        return None
    return Fix(f"pass timeout={text}", tuple(filter(None, edits)), Applicability.UNSAFE, "collectives of the group then end after another time")


def _is_of_module(call: Call) -> bool:
    """Whether every name in the timeout that a call writes is one of the module."""
    raw = dict(call.keywords).get("timeout") or call.positional[-1]
    inside = [one for one in raw.within if not (one.place and call.place <= one.place < call.end)]
    return all(one.kind in ("free", "const", "none", "imp", "impf") for one in inside)
