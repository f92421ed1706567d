"""ddp-find-unused-parameters: wrappers, strategies and settings that get True, through any flow of the flag and the class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.edits.written_parts import bound_by, keyword_of, written_argument
from ldlm_lint.frameworks.sections import SHARDED, Section, in_force
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS, SEARCHING_STRATEGY, TAKE_STRATEGY

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.frameworks.sections import Setting
    from ldlm_lint.program.handles import Argument, Call, Expr, Function

RULE = Rule(
    code="W7226",
    symbol="ddp-find-unused-parameters",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`find_unused_parameters=True` makes DDP search the autograd graph in every step and keeps it from rebuilding "
    "its gradient buckets, which costs time: set it to False only after checking that every parameter gets a gradient",
    summary="DDP with a literal `find_unused_parameters=True`, in Python or in the settings of a framework.",
    rationale="With the flag, DDP searches the autograd graph of every forward pass for parameters that get no "
    "gradient, and runs one more all-reduce per backward pass. It never rebuilds its buckets in the order in which "
    "gradients become ready, which reduces overlap. Models that use all their parameters in every step pay for this "
    "and gain nothing. Models that do not (mode switches, frozen parts, unrouted experts, layer-drop) need the flag: "
    "without it the second forward pass raises RuntimeError.",
    cost="One graph traversal and one extra all-reduce per step, and no bucket rebuild. No source gives a percentage, and one project "
    "that removed the flag measured no speed-up (KAIR#103).",
    exceptions="A model in which a parameter gets no gradient in some step on some rank (branches on the mode, "
    "freezing after wrapping, mixtures of experts, multi-task heads) needs the flag. With `static_graph=True` DDP "
    "does none of this, and the flag is only redundant.",
    versions="torch 2.0 to 2.13.",
    verification="Run one eager step and list the parameters whose `.grad` is `None`; with "
    "TORCH_DISTRIBUTED_DEBUG=INFO DDP's own error names them. PyTorch warns once if it found no unused parameter.",
    references=(
        Reference(
            "DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "Performance tuning guide: DDP",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
        Reference("KAIR#103", "https://github.com/cszn/KAIR/issues/103"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"find_unused_parameters", b"find-unused-parameters"),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: with an unused parameter `find_unused_parameters=False` crashes in the second iteration, "
    "as it did in the project that this advice was written for. The probe tells whether every parameter gets a "
    "gradient.",
    probe=Probe(
        "parameters-without-gradient",
        "no parameter was without a gradient on any rank in any step",
        experiment="ddp",
        whole_run=True,
    ),
)

_FLAG, _STATIC = "find_unused_parameters", "static_graph"
_OF_MM = (Claim("is-setting-of-mm"), Claim("some-child-keeps-setting", _FLAG))
_REASON = "if a parameter gets no gradient, the second step raises; check that first"
_RAISES = "if a parameter gets no gradient, the second step raises"
_OWN_KEY = re.compile(r"(?:.*_)?find_unused_parameters")
_OF_LIGHTNING = re.compile(r"(?:pytorch_lightning|lightning(?:\.pytorch)?)\.(?:[a-z_.]+\.)?(?:DDPStrategy|FSDPStrategy)")
_SEARCHES, _SEARCHES_NOT = "find_unused_parameters_true", "find_unused_parameters_false"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The wrappers that get True unconditionally, and the equivalent strategies and settings."""
    for call in code.calls(DDP | DDP_OPTIONS):
        flag = call.argument(_FLAG)
        if flag.values and not _may_be_static(call) and not _is_chosen(flag):
            places = [by for value, by in zip(flag.values, flag.givers, strict=True) if _is_told(value, by if by != call else None)]
            if places:
                yield _at_wrapper(code, call, places)
    for call in code.calls(TAKE_STRATEGY):
        strategy = call.argument("strategy")
        if strategy.values and strategy.may_be().only == SEARCHING_STRATEGY:
            # Lightning takes the flag inside the name of its strategy.
            written = written_argument(call, "strategy")
            span = written.span if written is not None else strategy.values[0].line_span
            yield _found(code, call, span, _fix(span if written is not None and written.is_constant else None, '"ddp"'))
    for own, module in code.files_with(_FLAG.encode()):
        if code.configurations.is_config(own.path(module)):
            for span, literal in sorted(_in_configuration(own.functions_in(module)[0])):
                yield code.finding(RULE, span, {}, claims=_OF_MM, fix=_fix(literal, "False"), confidence=RULE.confidence)


def _in_configuration(body: Function) -> Iterator[tuple[Span, Span]]:
    """A variable that OpenMMLab's runner reads, and ``dict(type="MMDistributedDataParallel", …)``, each with the flag."""
    for event in body.events:
        written = bound_by(event) if event.kind == "bind" and event.name == _FLAG else None
        if written is not None and written.text == "True":
            yield written.whole, written.span
    for call in body.calls:
        given = dict(call.keywords)
        if call.called_name == "dict" and not call.positional and not call.unpacked and _STATIC not in given and "type" in given:
            kind, written = given["type"], keyword_of(call, _FLAG)
            if str(kind.name or kind.constant).endswith("DistributedDataParallel") and written is not None and written.text == "True":
                yield call.span, written.span


def _may_be_static(call: Call) -> bool:
    """With a static graph DDP neither walks the graph nor keeps the first buckets: the flag has no effect."""
    return any(one.may_be().only is not False for one in call.argument(_STATIC).values)


def _is_chosen(flag: Argument) -> bool:
    """Whether the function that wraps decides between True and False; decisions of callers are judged at the callers."""
    is_handed_on = all(one.plain.kind == "param" for one in flag.values)
    return not is_handed_on and any(one is False for one in flag.may_be().constants)


def _is_told(flag: Expr, by: Expr | None) -> bool:
    """Whether a flag is True without a condition: a chosen or user-supplied one is deliberate.

    ``by`` is the code that fills its dictionary; a condition on wrapping the model at all does not choose the flag.
    """
    known = flag.may_be()
    if known.flags or not any(one is True for one in known.constants) or (by is not None and by.case):
        return False
    return any(not one.case and one.expr.constant is True for one in flag.origins_of(True))


def _at_wrapper(code: ProjectCode, call: Call, places: list[Expr]) -> Finding:
    keyword = keyword_of(call, _FLAG)
    related = [Related(one.line_span, "the flag is set here") for one in places if one != call]
    fix = _fix(keyword.span if keyword is not None and keyword.is_constant else None, "False")
    return _found(code, call, keyword.whole if keyword is not None else call.span, fix, related)


def _found(code: ProjectCode, call: Call, span: Span, fix: Fix, related: list[Related] | None = None) -> Finding:
    return code.finding(RULE, span, {}, related or (), fix=fix, confidence=RULE.confidence if call.is_as_written else Confidence.MEDIUM)


def _fix(literal: Span | None, value: str) -> Fix:
    """The other value, to use once every parameter is known to get a gradient."""
    edits = (Edit(literal, value),) if literal is not None else ()
    return Fix("set find_unused_parameters=False once every parameter is known to get a gradient", edits, Applicability.DISPLAY, _REASON)


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """The flag of a Trainer, of a strategy that a configuration creates or names, and one of the project's own."""
    if section.framework == "own":
        for path, setting in section.settings.items():
            if _OWN_KEY.fullmatch(setting.name) and (section.text(path) or "").lower() == "true":
                yield _at_setting(section, setting, None, Claim("configured-value-reaches-call", "unused-parameters"))
        return
    strategy = section.text("strategy") or ""
    if strategy.startswith("ddp") and strategy.endswith(_SEARCHES) and section.framework == "lightning":
        yield _at_setting(section, section.settings["strategy"], strategy.replace(_SEARCHES, _SEARCHES_NOT))
    if _OF_LIGHTNING.fullmatch(section.made) and section.flag(_FLAG) is True and not section.on(_STATIC):
        yield _at_setting(section, section.settings[_FLAG], False)
    if not section.made and not section.has(*SHARDED) and section.flag(f"ddp_{_FLAG}") is True and not section.on(f"ddp_{_STATIC}"):
        setting = section.settings[f"ddp_{_FLAG}"]
        yield _at_setting(section, setting, False, in_force(setting))


def _at_setting(section: Section, setting: Setting, value: bool | str | None, *claims: Claim) -> Finding:
    edits = section.editor.replace(setting, value) if value is not None else None
    fix = Fix(f"set {setting.name} to {section.spelled(value)}", edits, Applicability.DISPLAY, _RAISES) if edits else None
    return section.report(RULE, setting, {}, fix=fix, claims=claims, confidence=Confidence.MEDIUM)
