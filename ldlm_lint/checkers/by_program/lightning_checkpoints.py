"""`unbounded-checkpoints` of Lightning's `ModelCheckpoint` where a subclass, a flag's default or another file says how many stay."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.rules.checkpoint_files import UNBOUNDED_CHECKPOINTS

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save_top_k", b"ModelCheckpoint")
_CALLBACKS = frozenset(
    f"{package}.callbacks.{module}ModelCheckpoint"
    for package in ("pytorch_lightning", "lightning", "lightning.pytorch")
    for module in ("", "model_checkpoint.")
)
_KEEP = "save_top_k"


def find(view: View) -> Iterator[Finding]:
    """The callbacks that keep every checkpoint, and save more than once."""
    for call in dict.fromkeys((*_made(view), *_handed_up(view))):
        given = view.ask.argument(call, _KEEP)
        if given.state is State.GIVEN and given.sources and not view.lightning_rhythm.saves_once(call):
            finding = _finding(view, call, given)
            if finding is not None:
                yield finding


def _made(view: View) -> Iterator[int]:
    for call, _ in view.ask.calls_of(_CALLBACKS):
        yield call


def _handed_up(view: View) -> Iterator[int]:
    """``super().__init__(save_top_k=-1)`` in a class that is derived from the callback."""
    program = view.program
    for call in program.calls.get("__init__", ()):
        module = program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        owner = program.owner.get(program.function_of(call))
        if function[0] == "attr" and module.last_name(function[1]) == "()super" and owner is not None and program.outside_of(owner) & _CALLBACKS:
            yield call


def _finding(view: View, call: int, given: Argument) -> Finding | None:
    meaning = view.ask.meaning(*given.sources)
    claims = (Claim("belongs-to-training"),)
    if meaning.only == -1:
        return view.finding(RULE, view.call_span(call), {"what": f"`{_KEEP}=-1` keeps every checkpoint"}, claims=claims)
    if len(meaning.flags) != 1 or len(meaning.value) != 1:
        return None
    flag = view.ask.flag(meaning.flags[0])
    if view.ask.default_of(flag).only != -1:
        return None
    args = {"what": f"`{_KEEP}` is -1 unless you pass `{flag.name}`, which keeps every checkpoint"}
    related = [Related(view.call_span(flag.call), f"this is the default of `{flag.name}`")]
    name = flag.name.lstrip("-").replace("-", "_")
    return view.finding(RULE, view.call_span(call), args, related, claims=(*claims, Claim("trainer-setting-is-in-force", name)))
