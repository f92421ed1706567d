"""`unbounded-checkpoints` of writers that number the files themselves: Lightning's `ModelCheckpoint`, fvcore's
`PeriodicCheckpointer`.

A subclass, a flag's default or another file may limit the number of files.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import keyword_of
from ldlm_lint.concepts.lightning_rhythm import LightningRhythm
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.frameworks.sections import integer
from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.rules.checkpoint_files import CHECKPOINTS_TO_KEEP, KEEP_REASON, UNBOUNDED_CHECKPOINTS
from ldlm_lint.rules.kept_checkpoints import HANDFUL

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save_top_k", b"ModelCheckpoint", b"PeriodicCheckpointer")
_CALLBACKS = frozenset(
    f"{package}.callbacks.{module}ModelCheckpoint"
    for package in ("pytorch_lightning", "lightning", "lightning.pytorch")
    for module in ("", "model_checkpoint.")
)
_KEEP = "save_top_k"
_PERIODIC = frozenset(
    f"{module}.PeriodicCheckpointer"
    for module in ("fvcore.common.checkpoint", "detectron2.checkpoint", "detectron2.checkpoint.detection_checkpoint", "detectron2.engine.hooks")
)
_OF_PERIODIC = {"period": 1, "max_iter": 2, "max_to_keep": 3}


def find(view: View) -> Iterator[Finding]:
    """The callbacks that keep every checkpoint, and save more than once."""

    def trains(call: int) -> bool:
        return view[Roles].belong_to_training(view.program.module_of(call))

    for call in filter(trains, dict.fromkeys((*_made(view), *_handed_up(view)))):
        given = view.ask.argument(call, _KEEP)
        if given.state is State.GIVEN and given.sources and not view[LightningRhythm].saves_once(call):
            finding = _finding(view, call, given)
            if finding is not None:
                yield finding
    for call in filter(trains, dict.fromkeys(call for call, _ in view.ask.calls_of(_PERIODIC))):
        limit, period, length = (view.ask.argument(call, name, _OF_PERIODIC[name]) for name in ("max_to_keep", "period", "max_iter"))
        is_none = limit.state is State.GIVEN and view.ask.meaning(*limit.sources).only is None
        if (is_none or limit.state is State.ABSENT) and not _few(view, period, length):
            yield _of_periodic(view, call)


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
    if meaning.only == -1:
        what = {"what": f"`{_KEEP}=-1` keeps every checkpoint"}
        return view.finding(RULE, view.call_span(call), what, fix=_fix(view, call))
    if len(meaning.flags) != 1 or len(meaning.value) != 1:
        return None
    flag = view.ask.flag(meaning.flags[0])
    if view.ask.default_of(flag).only != -1:
        return None
    args = {"what": f"`{_KEEP}` is -1 unless you pass `{flag.name}`, which keeps every checkpoint"}
    related = [Related(view.call_span(flag.call), f"this is the default of `{flag.name}`")]
    name = flag.name.lstrip("-").replace("-", "_")
    return view.finding(RULE, view.call_span(call), args, related, claims=(Claim("trainer-setting-is-in-force", name),))


def _fix(view: View, call: int) -> Fix | None:
    """Replace a number that is in the call: without a metric there is no order among several."""
    module, written = view.program.module_of(call), keyword_of(view, call, _KEEP)
    if written is None or not written.is_constant:
        return None
    monitored = view.ask.argument(call, "monitor").state is not State.ABSENT
    keep = integer(view.options_of(view.path(module)), CHECKPOINTS_TO_KEEP) if monitored else 1
    return Fix(f"set {_KEEP}={keep}", (Edit(written.span, str(keep)),), Applicability.UNSAFE, KEEP_REASON)


def _few(view: View, period: Argument, length: Argument) -> bool:
    """Whether a run of known length has only a few saves."""
    numbers = [view.ask.meaning(*one.sources).only if one.sources else None for one in (period, length)]
    known = [one for one in numbers if isinstance(one, int) and one > 0]
    return len(known) == 2 and known[1] <= HANDFUL * known[0]


def _of_periodic(view: View, call: int) -> Finding:
    module = view.program.module_of(call)
    keep = integer(view.options_of(view.path(module)), CHECKPOINTS_TO_KEEP)
    edit = add_keyword(view.source(module), view.call_span(call), "max_to_keep", str(keep))
    fix = Fix(f"set max_to_keep={keep}", (edit,), Applicability.UNSAFE, KEEP_REASON) if edit else None
    what = {"what": "`max_to_keep` is not set, so the PeriodicCheckpointer keeps every checkpoint"}
    return view.finding(RULE, view.call_span(call), what, fix=fix)
