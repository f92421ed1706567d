"""deprecated-amp-api: every use of an old name in a file, also outside of trainings, and through a name of another
file, a branch or a parameter with the old class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.concepts.named_uses import NamedUse, NamedUses
from ldlm_lint.concepts.version_tests import VersionTests
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.renaming import name_at, put_first, renaming
from ldlm_lint.edits.written_parts import mention_in
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Reference, Related, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.vocabulary.mixed_precision import DTYPES, MODULES, NEW, NEW_TEXTS, OLD, RENAMED

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Expr
    from ldlm_lint.program.modules import Module

RULE = Rule(
    code="W7801",
    symbol="deprecated-amp-api",
    consequence=Consequence.DEPRECATED,
    message="`%(old)s` is deprecated and warns since torch 2.4; write %(new)s, which does the same",
    summary="`autocast`, `GradScaler`, `custom_fwd` or `custom_bwd` from `torch.cuda.amp` or `torch.cpu.amp`.",
    rationale="`torch.amp` has the same classes for all device types, with the device type as an argument. The old "
    "names are thin wrappers that emit a FutureWarning in every process of a training. The positions of the arguments "
    "changed: `torch.amp.autocast` and `torch.amp.GradScaler` take the device type first, and `autocast` takes "
    "`dtype` before `enabled`, so renaming alone turns `autocast(True)` into a wrong call.",
    cost="A warning in every process, and code that fails once the wrappers are removed. No run time.",
    exceptions="A project that chooses a torch before 2.4, in which the old names do not warn. A project that "
    "allows such a torch and newer ones is reported, but its fix is only shown if the older one lacks the new name. Old names in a branch for old "
    "versions (a version check, `hasattr`, an except clause) are not reported either. Such a branch does not count if "
    "the file uses no new name and checks for no torch 2 version: then it is about even older versions.",
    versions="torch 2.4 to 2.13 warn. `torch.amp.autocast` exists since torch 1.10, `torch.amp.GradScaler` "
    "since 2.3, `torch.amp.custom_fwd` and `custom_bwd` since 2.4.",
    verification="Run with `python -W error::FutureWarning`: the old names raise on torch 2.4 and newer.",
    references=(
        Reference("torch.amp", "https://docs.pytorch.org/docs/stable/amp.html"),
        Reference(
            "torch 2.3: torch.amp.GradScaler",
            "https://github.com/pytorch/pytorch/blob/v2.3.0/torch/amp/grad_scaler.py",
        ),
        Reference(
            "torch.cuda.amp.autocast_mode",
            "https://github.com/pytorch/pytorch/blob/v2.4.0/torch/cuda/amp/autocast_mode.py",
        ),
    ),
    reads=("py",),
    needs="a warning of torch.cuda.amp",
    triggers=(),
    applicability=Applicability.SAFE,
    fix_safety="Safe if `target-torch` or the project's requirements say 2.4 or newer: the call gets the device type, "
    "positional arguments get their names, and an `autocast` without a dtype gets the dtype that the old name "
    "implied, because the new name inherits it from an enclosing autocast. Only shown if a torch version that the "
    "project allows lacks the new name. That is the case if a requirement file that applies to the code allows an "
    "older torch, or if no requirement limits torch and the program has a branch for an older one. Requirement files "
    "apply from the file's own folder, its parent folders, the folder of a program that imports it, and folders "
    "without code. Unsafe if no limit is known. Also unsafe if a file that is not a script imports the names "
    "directly, because another file may import them from there; if other code gets the scaler, because it may check "
    "for the old class; and together with TorchScript, which knows the classes by name.",
)

_WRITTEN = (b"cuda.amp", b"cpu.amp", b"torch.cuda import", b"torch.cpu import")
_POSITIONS = ("enabled", "dtype", "cache_enabled")
_SAFE_SINCE = (2, 4)
_TORCH = ("torch", "torch", "th")
"""Torch, and the names by which code has it."""
_MAIN = lazily(rb"^if[ \t]+\(?[ \t]*__name__[ \t]*==", re.M)
_WITHOUT_TARGET = "needs torch >= 2.4; set `target-torch` to make this safe"
_BOUND_ELSEWHERE = "another file can import the names from here"
_NESTED_DTYPE = "inside another autocast the new one takes the dtype of the outer one"
_SEEN_ELSEWHERE = "other code gets the scaler and can check for the old class"
_SCRIPTED = "TorchScript recognizes autocast by its class names"
_TYPE_CHECK = "a type check for the old class in this file no longer matches"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All uses of the old names, once each where they are written; of a name that is called elsewhere, the place that names the class."""
    seen: set[Span] = set()
    handed: set[tuple[str, str]] = set()
    for own, module in code.files_with(*_WRITTEN):
        uses = [use for use in own[NamedUses].of(module, OLD) if not _is_for_old_torch(own, module, use)]
        for use in uses:
            moved, span = OLD[use.name], _span(use)
            if span is None or span in seen:
                continue
            args = {"old": moved.old, "new": moved.advice(is_value=use.call is None)}
            related = [Related(one.span, "the old name gets an alias here") for one in use.aliased]
            seen.update((span, *(one.span for one in related)))
            handed |= {(span.path, moved.old)} if use.call is None else set()
            # Code next to a guarded name uses the arguments of the old one.
            fix = None if own[VersionTests].decide_use(use) else _fix(own, module, use, uses)
            yield code.finding(RULE, span, args, related, fix=fix, confidence=RULE.confidence)
    for one in code[NamedUses].brought(OLD):
        moved, span = OLD[one.name], one.span
        is_written = one.named.kind == "attr"
        # What a file hands on under the name of its import is reported there.
        is_told = (code.path(one.named.module), moved.old) in handed and not (one.is_import and one.named.module is not one.call.module)
        is_seen = any(span.path == other.path and span.start < other.end and other.start < span.end for other in seen)
        if (is_written or not is_told) and not is_seen and not any(f"{name}.".startswith(NEW) for name in one.call.callee.outside_names):
            seen.add(span)
            is_value = one.named != one.call.callee if is_written else not one.is_import
            yield code.finding(RULE, span, {"old": moved.old, "new": moved.advice(is_value=is_value)})


def _is_for_old_torch(code: ProjectCode, module: Module, use: NamedUse) -> bool:
    """Whether a test of the version leaves a use to versions without the new name: it knows that, or torch 2."""
    tests = code[VersionTests]
    return tests.decide_use(use) and (_knows_new_names(code, module) or tests.tell_apart_torch_2(use))


def _knows_new_names(code: ProjectCode, module: Module) -> bool:
    """Whether a file mentions ``torch.amp`` or ``torch.autocast``: its test may choose between both."""
    named = {name for kind in ("attr", "imp", "impf") for one in code.expressions_in(module, kind) for name in one.outside_names}
    texts = {one.constant for one in code.expressions_in(module, "const") if isinstance(one.constant, str)}
    return any(f"{name}.".startswith(NEW) for name in named) or not texts.isdisjoint(NEW_TEXTS)


def _span(use: NamedUse) -> Span | None:
    """The call, the decorator, or the name that is handed on; None if nothing shows where it is written."""
    if use.call is not None:
        return use.call.span
    if use.named.kind == "attr":
        return use.named.span
    return mention_in(use.taker, use.named) if use.taker is not None else None


def _fix(code: ProjectCode, module: Module, use: NamedUse, uses: Sequence[NamedUse]) -> Fix | None:
    """The fix of one use: for that call alone, or for all uses that depend on the same import."""
    found = renaming(use, uses, "torch", RENAMED, MODULES, _with_device)
    if found is None:
        return None
    doubts = dict.fromkeys((*_doubts(code, module, found.uses), *([_BOUND_ELSEWHERE] if _hands_on(code, module, found.statement) else [])))
    oldest = code.torch_of(module).oldest
    untold = _WITHOUT_TARGET if oldest is None or oldest < _SAFE_SINCE else ""
    level = Applicability.UNSAFE if doubts or untold else Applicability.SAFE
    needs = tuple(dict.fromkeys(OLD[one.name].new for one in found.uses))
    title = "use torch.amp" if len(found.uses) > 1 else f"use torch.amp.{OLD[use.name].name}"
    group = f"amp {code.path(module)}:{found.statement[0].line}" if found.statement else ""
    return Fix(title, tuple(sorted(found.edits)), level, "; ".join(doubts), group=group, whole=bool(group), needs=needs, untold=untold)


def _with_device(use: NamedUse) -> tuple[Edit, ...]:
    """The edits that give a call the device type, and an autocast its dtype; empty if that is not plain."""
    moved, call = OLD[use.name], use.call
    if call is None:
        return ()
    source = call.code.source(call.module)
    if moved.is_decorator:
        if call.is_decoration:
            return (Edit(source.span(call.span.end, call.span.end), f'(device_type="{moved.device}")'),)
        edit = add_keyword(source, call.span, "device_type", f'"{moved.device}"')
        return (edit,) if edit is not None else ()
    is_autocast, new = moved.name == "autocast", [f'"{moved.device}"']
    starred = is_autocast and any(one.kind == "star" for one in call.positional)
    if call.is_decoration or starred or not {"device", "device_type"}.isdisjoint(name for name, _ in call.keywords):
        return ()
    if is_autocast and _lacks_dtype(call) and (torch := name_at(call, *_TORCH)):
        new.append(f"dtype={torch}.{DTYPES[moved.device]}")
    return put_first(call, new, _POSITIONS if is_autocast else ())


def _lacks_dtype(call: Call) -> bool:
    return call.argument("dtype", 1).is_absent and call.argument("enabled", 0).only is not False


def _doubts(code: ProjectCode, module: Module, uses: Sequence[NamedUse]) -> list[str]:
    """Why a rewrite may change the behaviour of the file."""
    data = code.source(module).data
    found = [_SCRIPTED] if b"jit.script" in data or b"ScriptModule" in data else []
    checked = code[NamedUses].tested_types(module)
    for use in uses:
        call, name = use.call, OLD[use.name].name
        if call is not None and name == "autocast" and (call.argument("dtype", 1).is_open or (_lacks_dtype(call) and not name_at(call, *_TORCH))):
            found.append(_NESTED_DTYPE)
        if name == "GradScaler":
            found += [_TYPE_CHECK] * (use.name in checked) + [_SEEN_ELSEWHERE] * (call is None or not code[NamedUses].only_reads(call))
    return found


def _hands_on(code: ProjectCode, module: Module, statement: Sequence[Expr]) -> bool:
    """Whether another file may import the names of an import from a file."""
    script = _MAIN.search(code.source(module).data) is not None and not module.path.endswith("__init__.py")
    function = statement[0].function if statement else None
    return function is not None and function.is_module and (not script or bool(function.visible("__all__")))
