"""`host-sync-in-training-loop` wherever a training step may lead, by where values live."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.wait_exceptions import WaitExceptions
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.waits import Wait, Waits
from ldlm_lint.model import Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.project.questions.host_time import only_differentiates, trains_on_device
from ldlm_lint.rules.host_time import FOR_ALL, HOST_SYNC_IN_TRAINING_LOOP, RUNS_IN_EVERY_STEP
from ldlm_lint.wording import quoted

RULE = HOST_SYNC_IN_TRAINING_LOOP
WORDS: tuple[bytes, ...] = (b"torch", b"loss", b"backward", b"tensor", b".item", b".cpu")
_ADVICE = {
    "test": "use `torch.where`, or test only every N steps",
    "truth": "use `torch.where`, or test only every N steps",
    "mask": "use `torch.where`, which needs no number of elements",
    "size": "compute the size on the CPU before the batch is moved",
    "slice": "compute the bound on the CPU before the batch is moved, or use a mask",
    "format": "show it only every N steps",
    "print": "show it only every N steps",
    "type": "keep it on the GPU and copy it to the CPU only when you log",
    "add_scalar": "write it only every N steps",
    "scale": "read the scale only every N steps",
}
_SIZED = "its result has a size that the GPU has to tell; compute it on the CPU before the batch is moved, or use a mask"
_LATER = "keep it on the GPU if you only log it, otherwise compute it before the batch is moved, or use `torch.where`"


def find(view: View) -> Iterator[Finding]:
    """All waits of all steps, those on one line together."""
    groups: dict[tuple[int, int], list[Wait]] = {}
    for wait in Waits(view.training).all():
        groups.setdefault((wait.module.index, line_of(wait.place)), []).append(wait)
    exceptions = WaitExceptions(view)
    for waits in groups.values():
        module, _ = step_of(view, waits[0].function)
        path = view.path(module)
        if trains_on_device(view.context, path) and not only_differentiates(view.context.project, path):
            left = (wait for wait in waits if not exceptions.hold(wait, view.span(wait.module, wait.place, wait.end)))
            yield from (_finding(view, wait) for wait in itertools.islice(left, 1))


def _finding(view: View, wait: Wait) -> Finding:
    span = view.span(wait.module, wait.place, wait.end)
    source = view.source(wait.module)
    module, place = step_of(view, wait.function)
    where = view.context.each_step(view.path(module), line_of(place), view.path(wait.module))
    related = Related(view.context.line_span(view.path(module), line_of(place)), RUNS_IN_EVERY_STEP)
    args = {"what": _what(wait, source.slice(span)), "where": where, "wait": FOR_ALL, "advice": _advice(wait)}
    return view.finding(RULE, span, args, (related,))


def step_of(view: View, function: int) -> tuple[Module, int]:
    """The loop or function that is the step in which a function runs."""
    training = view.training
    seen = set()
    while function not in training.steps and function in training.reached_by and function not in seen:
        seen.add(function)
        function = view.program.function_of(training.reached_by[function])
    module = view.program.module_of(function)
    loops = [loop for loop in training.steps.get(function, ()) if loop is not None]
    return module, module.table.loops[min(loops)].place if loops else module.scopes[function & MASK].place


def _what(wait: Wait, text: str) -> str:
    if wait.what in ("test", "truth"):
        return f"the condition {quoted(text)}"
    if wait.what == "format":
        return f"formatting {quoted(text)}"
    return quoted(text)


def _advice(wait: Wait) -> str:
    name = wait.what.removeprefix("torch.")
    if name == "repeat_interleave":
        return "give `output_size` if the length of the result is known"
    if name in ("nonzero", "unique", "masked_select", "argwhere", "where", "unique_consecutive"):
        return _SIZED
    return _ADVICE.get(name, _LATER)
