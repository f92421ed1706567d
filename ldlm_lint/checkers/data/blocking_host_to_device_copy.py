"""blocking-host-to-device-copy: copies of pinned batches in the loops that train on them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call, Expr, Loop
from ldlm_lint.rules.measured import H100
from ldlm_lint.wording import located, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_PINNED = Reference(
    "CUDA semantics: pinned memory buffers", "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers"
)
_GUIDE = Reference(
    "A guide on good usage of non_blocking and pin_memory()",
    "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
)
RULE = Rule(
    code="R7109",
    symbol="blocking-host-to-device-copy",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(copies)s copies a batch to the GPU without `non_blocking=True`, although the loader at %(loader)s pins its "
    "memory: Python waits for the copy in every step; set `non_blocking=True`",
    summary="A batch of a loader with `pin_memory=True` that is copied to the GPU without `non_blocking=True`.",
    rationale="Pinned memory makes an asynchronous copy possible, `non_blocking=True` makes it happen. Without it "
    "`batch.to(device)` waits on the host until the copy is done, and in that time the host cannot queue the kernels "
    "of the step.",
    cost="The time of the copies on the host, in every step; it matters if the host is the bottleneck and batches are "
    "large. "
    "On an H100, next to a running kernel, the host was held for 22.3 ms by a blocking copy and for 0.07 ms by one with `non_blocking=True`.",
    exceptions="A batch that the host changes in place after the copy began, training on a CPU, and steps in which "
    "the host has spare time.",
    versions="All versions.",
    verification="Compare the gap between the copy and the first kernel of the step in a profile, with and without "
    "the option. This needs a GPU.",
    references=(_PINNED, _GUIDE, H100),
    reads=("py",),
    triggers=(b".to(", b".cuda("),
    requires=((b"backward", b"zero_grad", b"step("),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the values are the same on the GPU, but host code that writes into the pinned batch right after the copy "
    "began would change what is copied.",
    probe=Probe(
        "host-to-device-copies",
        "pinned batches were copied to the device while the host waited",
        device_bound=True,
        experiment="dataloader",
    ),
)

_DEVICE = re.compile(r"device|cuda|gpu|rank|^dev$", re.I)
_HOST = re.compile(r"cpu|host", re.I)
_VIEWS = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "expand", "detach", "get", "pop", "items", "values"}
)
"""Methods that give a part or another form of what is in pinned memory: the results of others are pageable again."""
# Accelerate moves the batches itself.
_MOVES_ITSELF = ("Accelerator", "setup_dataloaders")
_REASON = "code that writes into the pinned batch before the copy is done changes what arrives on the GPU"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The copies to the GPU that wait, in the loops that train on the batches of a loader which pins them."""
    moving = {call.module for call in code.calls_named(*_MOVES_ITSELF)}
    told = set[Loop]()
    for loader in code[Loaders].made:
        for loop, batches in code[LoaderPasses].batches(loader.call).items() if _pins(code, loader) else ():
            copies = _blocking_copies(loop, batches) if loop not in told and loop.module not in moving else []
            if copies and code[Roles].train_on_cuda(loop.module):
                told.add(loop)
                yield _finding(code, loader, copies)


def _pins(code: ProjectCode, loader: Loader) -> bool:
    pinned = code[Loaders].option(loader, "pin_memory")
    return bool(pinned.values) and not all(one.is_falsy for one in pinned.values)


def _blocking_copies(loop: Loop, batches: Collection[Expr]) -> list[Call]:
    """The blocking copies of a batch or its parts, each value once; empty if some copies do not block."""
    copies = [call for call in loop.calls if call.receiver is not None and _goes_to_gpu(call) and _is_of(call.receiver, loop, batches)]
    if any(name == "non_blocking" for call in copies for name, _ in call.keywords):
        return []
    blocking = [call for call in copies if all(name for name, _ in call.keywords)]
    return list({call.receiver.text: call for call in reversed(blocking) if call.receiver is not None}.values())[::-1]


def _goes_to_gpu(call: Call) -> bool:
    if call.called_name != "to":
        return call.called_name == "cuda"
    given = next((value for name, value in call.keywords if name == "device"), call.positional[0] if call.positional else None)
    if given is None:
        return False
    device = given.plain
    if isinstance(device.constant, str):
        return device.constant.startswith("cuda")
    if device.constant is not ...:
        return type(device.constant) is int
    words = {one.rpartition(".")[2] for one in device.names or {device.text or device.name}}
    return any(map(_DEVICE.search, words)) and not any(map(_HOST.search, words))


def _is_of(expr: Expr, loop: Loop, batches: Collection[Expr]) -> bool:
    """Whether an expression is a batch that a loop takes, or a part of one that was not computed anew."""
    todo, seen = [expr], set[Expr]()
    while todo:
        at = todo.pop()
        if at in batches or (at.kind == "elem" and at.base == loop.value):
            return True
        seen.add(at)
        inside: list[Expr] = at.ways
        if isinstance(at, Call):
            inside = [at.receiver] if at.receiver is not None and at.called_name in _VIEWS else at.positional[:1] if at.receiver is None else []
        elif at.base is not None and at.kind != "upd":
            inside = [at.base]
        todo += [one for one in inside if one not in seen]
    return False


def _finding(code: ProjectCode, loader: Loader, copies: list[Call]) -> Finding:
    first, path = copies[0], code.path(copies[0].module)
    related = [*(Related(one.span, "this copy waits too") for one in copies[1:]), Related(loader.call.spot.line_span, "this loader pins its batches")]
    args = {"copies": quoted(f"{first.callee.text}()"), "loader": located(code.path(loader.call.module), loader.call.line, path)}
    edits = [add_keyword(code.source(one.module), one.span, "non_blocking", "True") for one in copies]
    known = tuple(edit for edit in edits if edit is not None)
    fix = Fix("set non_blocking=True", known, Applicability.UNSAFE, _REASON) if len(known) == len(edits) else None
    return code.finding(RULE, first.span, args, related, fix=fix, confidence=Confidence.MEDIUM)
