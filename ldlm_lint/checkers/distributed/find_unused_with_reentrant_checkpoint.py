"""find-unused-with-reentrant-checkpoint: DDP that searches for unused parameters of a model with reentrant checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.recomputing import Recomputing
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.written_parts import entry_of, keyword_of, written_argument
from ldlm_lint.files.edited import edit_key
from ldlm_lint.frameworks.sections import SHARDED, Section, Setting, in_force, unsafe
from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Edit, Finding, Fix, Reference, Related, Rule
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS
from ldlm_lint.vocabulary.segments import FLAG, NON_REENTRANT
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS, SEARCHING_STRATEGY, TAKE_STRATEGY
from ldlm_lint.wording import located, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7231",
    symbol="find-unused-with-reentrant-checkpoint",
    consequence=Consequence.CRASH,
    message="`find_unused_parameters=True` makes DDP count the parameters of %(where)s as unused, but their gradients "
    "arrive later: DDP raises in the backward pass; pass `use_reentrant=False` to the checkpoint",
    summary="`find_unused_parameters=True` around a model that uses reentrant activation checkpointing.",
    rationale="With the flag DDP searches the autograd graph of the forward pass and marks every parameter that it "
    "does not find as ready. A reentrant segment builds its part of the graph only in the backward pass. So its "
    "parameters are not found, are marked, and are marked again when their gradients arrive. Checkpointing with "
    "`use_reentrant=False` records the graph in the forward pass.",
    cost="`RuntimeError: Expected to mark a variable ready only once` in the first backward pass in which checkpointing is on.",
    exceptions="`static_graph=True`, which works with reentrant segments. Checkpointing that is never switched on "
    "together with DDP, and parts that do not train: frozen, or run without recording gradients.",
    versions="torch 2.0 to 2.13: in all these versions `checkpoint()` without `use_reentrant` is reentrant. "
    "`gradient_checkpointing_enable()` of transformers is reentrant by default before transformers 5.",
    verification="Run one training step on one process with gloo.",
    references=(
        Reference("DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"),
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
    ),
    reads=("py", "sh", "cfg"),
    needs="checkpoint(use_reentrant=)",
    triggers=(),
    setting_triggers=(b"find_unused_parameters", b"find-unused-parameters"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation of every reentrant checkpoint of the model, in any file. "
    "Gradients that were silently missing appear, and a segment that saves other tensors when it is recomputed "
    "raises. Only shown if no literal in the call chooses the implementation.",
    overrides="the backward pass raises with it",
)


_FLAG, _SEARCH, _STATIC = "use_reentrant", "find_unused_parameters", "static_graph"
_SWITCH, _OPTIONS = "gradient_checkpointing_enable", "gradient_checkpointing_kwargs"
_CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")
_ALL_OPTIONS = (_OPTIONS, "activation_checkpointing_kwargs")
_REENTRANT = tuple(f"{name}.{_FLAG}" for name in _ALL_OPTIONS)
# LLaMA-Factory enables checkpointing itself.
_OWN_CHECKPOINTING = ("finetuning_type", "use_reentrant_gc")
_OWN_KEY = re.compile(rf"(?:.*_)?{_SEARCH}")
_TITLE = "pass use_reentrant=False to the checkpoint"
_SHOWN = Fix(f"{_TITLE}, or in {_OPTIONS}", (), Applicability.DISPLAY, "the implementation is not chosen by a literal in this call")


def find(code: ProjectCode) -> Iterator[Finding]:
    """All wraps that search for unused parameters of a model that recomputes by a reentrant checkpoint, or on which one is
    switched on."""
    for call, name in _searching(code):
        reentrant = code[Recomputing].reentrant_under(call)
        if reentrant:
            first = reentrant[0]
            where = f"the reentrant checkpoint at {located(code.path(first.module), first.line, code.path(call.module))}"
            keyword = keyword_of(call, name)
            span = call.span if keyword is None else keyword.span if name == "strategy" else keyword.whole
            related = [Related(first.spot.line_span, "this checkpoint is reentrant")]
            confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
            yield code.finding(RULE, span, {"where": where}, related, fix=_fix(code, reentrant), confidence=confidence)


def _searching(code: ProjectCode) -> Iterator[tuple[Call, str]]:
    """The wraps that surely search, with the option that says so; a Trainer that switches checkpointing itself is checked
    with its other settings."""
    for calls, prefix in ((DDP | DDP_OPTIONS, ""), (TRAINING_ARGUMENTS, "ddp_")):
        for call in code.calls(calls):
            if _searches(call, prefix) and not (prefix and not call.argument("gradient_checkpointing").is_absent):
                yield call, f"{prefix}{_SEARCH}"
    for call in code.calls(TAKE_STRATEGY):
        strategy = call.argument("strategy")
        if strategy.values and strategy.may_be().only == SEARCHING_STRATEGY:
            yield call, "strategy"


def _searches(call: Call, prefix: str) -> bool:
    """Whether DDP surely searches, and has no static graph, with which it does not."""
    search, static = call.argument(f"{prefix}{_SEARCH}"), call.argument(f"{prefix}{_STATIC}")
    told = search.is_given and all(one.is_just(True) for one in search.values)
    return told and all(one.is_just(False) for one in static.values)


def _fix(code: ProjectCode, calls: list[Call]) -> Fix:
    """The other implementation in all the calls, if each names its implementation explicitly."""
    edits = [_edit(code, one) for one in calls]
    written = tuple(sorted({edit for edit in edits if edit is not None}, key=edit_key))
    needs = () if calls[0].called_name == _SWITCH else (tables.interface(FLAG),)
    return _SHOWN if None in edits else Fix(_TITLE, written, Applicability.UNSAFE, NON_REENTRANT, needs=needs)


def _edit(code: ProjectCode, call: Call) -> Edit | None:
    """The edit that makes a call use the other implementation; None if the choice is not a literal in it."""
    name, value = (_OPTIONS, '{"use_reentrant": False}') if call.called_name == _SWITCH else (_FLAG, "False")
    written = written_argument(call, name, 0 if name == _OPTIONS else None)
    if written is not None and name == _OPTIONS:
        given = call.argument(name, 0).values
        written = entry_of(given[0], _FLAG) if len(given) == 1 and given[0].kind == "map" else None
        return Edit(written.span, "False") if written is not None and written.is_constant else None
    if written is not None:
        return Edit(written.span, "False") if written.is_constant else None
    if name == _FLAG and not {key for key, _ in call.keywords} <= OWN_KEYWORDS:
        # Other keywords make the call raise unchanged; whether its function accepts them is checked by another rule.
        return None
    return add_keyword(code.source(call.module), call.span, name, value)


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """The search next to a checkpoint that is reentrant, by its options or by the default of old releases; the program that
    reads a file or a command may switch checkpointing on itself."""
    search = f"ddp_{_SEARCH}"
    if section.framework == "own":
        for path, setting in section.settings.items():
            if _OWN_KEY.fullmatch(setting.name) and (section.text(path) or "").lower() == "true":
                yield section.report(RULE, setting, {"where": ""}, claims=(Claim("configured-value-reaches-call", "reentrant-checkpoint"),), confidence=Confidence.MEDIUM)
    elif not section.made and not section.has(*SHARDED) and section.flag(search) is True and not section.on(f"ddp_{_STATIC}"):
        setting = section.settings[search]
        switch = next((name for name in _CHECKPOINTING if section.flag(name) is True), None)
        option = next((name for name in _REENTRANT if section.flag(name) is True), None)
        by_default = section.framework == "transformers" and section.complete and not section.has(*_REENTRANT, *_ALL_OPTIONS, *_OWN_CHECKPOINTING)
        if switch is None and not section.in_code and not section.has(*_CHECKPOINTING, *_REENTRANT):
            claims = (in_force(setting), Claim("program-checkpoints-reentrantly"))
            yield section.report(RULE, setting, {"where": ""}, claims=claims)
        elif switch is not None and (option is not None or by_default):
            claims = (in_force(setting), *(() if option else (Claim("transformers-is-old"),)))
            where = f"the reentrant checkpoint ({quoted(section.shown(option or switch, True))})"
            yield section.report(RULE, setting, {"where": where}, claims=claims, fix=_not_reentrant(section, setting, option))


def _not_reentrant(section: Section, setting: Setting, option: str | None) -> Fix | None:
    """In Python the other implementation can be selected in the same call."""
    if not section.in_code:
        return None
    edits = section.editor.add(setting, _OPTIONS, {_FLAG: False}) if option is None else section.editor.replace(section.settings[option], False)
    return unsafe(f"pass use_reentrant=False in {_OPTIONS}", edits, NON_REENTRANT)
