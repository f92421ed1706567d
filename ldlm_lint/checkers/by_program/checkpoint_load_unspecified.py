"""checkpoint-load-unspecified: `torch.load`, under any name, that leaves the allowed contents of the file to the
version of torch."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import guards_above, line_of
from ldlm_lint.concepts.load_origins import LoadOrigins, Origin
from ldlm_lint.concepts.replaced_load import ReplacedLoad
from ldlm_lint.concepts.safe_globals import SafeGlobals
from ldlm_lint.model import Applicability, Confidence, Finding, Fix, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.conditions import words_below
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.program.origins import VERSIONS
from ldlm_lint.program.queries import State
from ldlm_lint.rules.checkpoint_loading import (
    BESIDE_CODE,
    CHECKPOINT_LOAD_UNSPECIFIED,
    FROM_ANYWHERE,
    ITS_OWN,
    ITS_OWN_TENSORS,
    RESUMES,
    STRICT_BY_DEFAULT,
    beside_the_code,
    from_outside,
    of_files_like,
    of_tensors,
    of_the_project,
)
from ldlm_lint.wording import located, quoted

RULE = CHECKPOINT_LOAD_UNSPECIFIED
WORDS = (b"load",)
_LOADS = frozenset({"torch.load", "torch.serialization.load"})
_DECIDE = (("weights_only", None), ("pickle_module", 2))


def find(view: View) -> Iterator[Finding]:
    """All calls that may call `torch.load` and leave the decision to the version of torch."""
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(_LOADS)):
        module = view.program.module_of(call)
        oldest = view.torch_of(module).oldest
        if (oldest is None or oldest < STRICT_BY_DEFAULT) and _is_left_open(view, module, call):
            yield _finding(view, module, call)


def _is_left_open(view: View, module: Module, call: int) -> bool:
    """Whether neither a call, nor an active replacement, nor a test of the torch version decides."""
    if any(view.ask.argument(call, *one).state is not State.ABSENT for one in _DECIDE):
        return False
    if _asks_for_version(module, call) or not (_is_load(view, module, call) or _is_chosen(view, call)):
        return False
    return not view[SafeGlobals].cover(call) and not view[ReplacedLoad].decides_for(module, call)


def _is_load(view: View, module: Module, call: int) -> bool:
    """Whether a call can only be one of `torch.load`."""
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    return len(value) == 1 and view.ask.names_of(value) <= _LOADS and not view.program.atoms.kinds(value, "partial")


def _is_chosen(view: View, call: int) -> bool:
    """Whether a condition other than a test of the torch version chooses `torch.load`."""
    found = [origin for one in Call(view, call).callee.alternatives(_LOADS) for origin in one.origins]
    return bool(found) and not any(origin.is_guarded_by(VERSIONS) for origin in found)


def _asks_for_version(module: Module, call: int) -> bool:
    """Whether the function passes ``weights_only`` in another branch, and chooses the branch by torch's support for
    it.
    """
    number = module.table.sites[call & MASK].scope
    scope = module.scopes[number]
    passing = [one for one in scope.calls if any(name == "weights_only" for name, _ in module.nodes[one][3])]
    guards = {guard for one in (*passing, call & MASK) for guard in _guards_around(module, one)} if passing else set()
    rows = [module.table.guards[one] for one in guards]
    words = {word for row in rows if row.kind in ("if", "rest", "except") and row.test for word in words_below(module, row.test)}
    return any(VERSIONS.search(word) or word == "TypeError" for word in words)


def _guards_around(module: Module, call: int) -> Iterator[int]:
    return guards_above(module.table.guards, module.table.sites[call].guard)


def _finding(view: View, module: Module, call: int) -> Finding:
    """The finding of a call: information for a file of the project itself; the source is named for a file from
    outside.
    """
    span, fix = view.call_span(call), _fix(view, module, call)
    confidence = RULE.confidence if _is_load(view, module, call) else Confidence.MEDIUM
    origin: Origin = view[LoadOrigins].of(call)
    if origin.fetched:
        fetched = origin.fetched if isinstance(origin.fetched, str) else view.call_text(origin.fetched).partition("(")[0].strip()
        return view.finding(RULE, span, from_outside(fetched), fix=fix, confidence=confidence)
    fix = None if origin.objects else fix
    written = "the project writes such entries here" if origin.alike else "the project writes the file here"
    related, where = _place_of(view, module, origin.written or origin.alike, written)
    if origin.shipped and not origin.written:
        return view.finding(RULE, span, beside_the_code(), fix=fix, confidence=confidence).lowered(BESIDE_CODE)
    if not origin.written and not origin.resumes:
        args = of_files_like(where, origin.objects) if origin.alike else FROM_ANYWHERE
        return view.finding(RULE, span, args, related, fix=fix, confidence=confidence)
    args = of_tensors(where) if origin.only_tensors else of_the_project(where, origin.objects, is_inferred=bool(origin.alike))
    reason = RESUMES if not where else ITS_OWN_TENSORS if origin.only_tensors else ITS_OWN
    return view.finding(RULE, span, args, related, fix=fix, confidence=confidence).lowered(reason)


def _place_of(view: View, module: Module, written: int, label: str) -> tuple[list[Related], str]:
    """The place of a call that writes, as a related place with a label and in words; nothing for 0."""
    if not written:
        return [], ""
    home = view.program.module_of(written)
    line = line_of(home.table.sites[written & MASK].place)
    related = Related(view.context.line_span(view.path(home), line), label)
    name = quoted(view.call_text(written).partition("(")[0].strip())
    return [related], f"{name} in {located(view.path(home), line, view.path(module))}"


def _fix(view: View, module: Module, call: int) -> Fix | None:
    """Shown only: in another branch the function may be one that rejects the keyword."""
    if not _is_load(view, module, call):
        return None
    edit = add_keyword(view.source(module), view.call_span(call), "weights_only", "True")
    reason = "`weights_only=True` fails on checkpoints with other objects"
    return Fix("set weights_only=True", (edit,), Applicability.DISPLAY, reason) if edit else None
