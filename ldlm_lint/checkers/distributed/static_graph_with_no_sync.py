"""static-graph-with-no-sync: DDP with a static graph whose first backward pass keeps gradients local, by a scope or by the
engine of the training, in Python and in settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.concepts.accumulation import Accumulations
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.written_parts import keyword_of
from ldlm_lint.frameworks.sections import SHARDED, Section, in_force, unsafe
from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Finding, Fix, Reference, Related, Rule
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS
from ldlm_lint.wording import located, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.frameworks.sections import Setting
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7229",
    symbol="static-graph-with-no-sync",
    consequence=Consequence.CRASH,
    message="`static_graph=True` and %(accumulation)s in the first iteration end in an internal assertion of DDP: leave "
    "`static_graph` out, or synchronize the first backward pass",
    summary="DDP with `static_graph=True`, and `no_sync()` from the first backward pass on.",
    rationale="With a static graph DDP records in the first iteration which gradients arrive, and starts its "
    "reduction at the end of that backward pass. Gradient accumulation runs all micro-batches except the last under "
    "`no_sync()`, which skips what this recording needs: the first synchronized backward pass after it fails. After "
    "one synchronized iteration the two work together.",
    cost="`RuntimeError: expect_autograd_hooks_ INTERNAL ASSERT FAILED` in the first step. Without the assertion gradients would "
    "silently not be reduced (pytorch#143580).",
    exceptions="A first iteration that is synchronized, such as `no_sync()` from the second step on; `no_sync()` "
    "around an evaluation without gradients; always one micro-batch per step.",
    versions="Shown with torch 2.13; reported to PyTorch since torch 2.2 and still open.",
    verification="Run two micro-batches on one process with gloo: the second one fails.",
    references=(
        Reference(
            "DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference("pytorch#143580", "https://github.com/pytorch/pytorch/issues/143580"),
        Reference("accelerate#3679", "https://github.com/huggingface/accelerate/issues/3679"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"static_graph", b"static-graph"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: without the flag, a parameter that gets no gradient and a layer that is checkpointed twice "
    "are errors.",
    overrides="DDP raises or computes wrong gradients with it",
)

_FLAG = "static_graph"
_REASON = "a parameter without a gradient, and a layer that is checkpointed twice, then raise errors"
_OF_ENGINES = "a layer that is checkpointed twice then raises an error"
_OWN_KEY = re.compile(r"(?:.*_)?static_graph")
_STEPS, _BATCHES = "gradient_accumulation_steps", "accumulate_grad_batches"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The wrappers, and what passes options on to one, that promise a static graph which is broken in the first step."""
    for call in code.calls(DDP | DDP_OPTIONS):
        static = call.argument(_FLAG)
        if static.only is True and any(one.expr.constant is True for value in static.values for one in value.origins_of(True)):
            found = _local_by_scope(code, call) if call.callee.interfaces & DDP else _local_by_engine(code, call)
            if found is not None:
                written, (accumulation, related) = keyword_of(call, _FLAG), found
                edits = remove_arguments(code.source(call.module), [written.whole]) if written is not None else None
                fix = Fix("leave static_graph out", edits, Applicability.UNSAFE, _REASON) if edits else None
                span = written.whole if written is not None else call.span
                yield code.finding(RULE, span, {"accumulation": accumulation}, [related], fix=fix, confidence=RULE.confidence)


def _local_by_scope(code: ProjectCode, wrapper: Call) -> tuple[str, Related] | None:
    scope = code[Reduction].scope_of_first_step(wrapper)
    if scope is None:
        return None
    said = f"`no_sync()` at {located(code.path(scope.module), scope.line, code.path(wrapper.module))}"
    return said, Related(scope.line_span, "gradients stay local here")


def _local_by_engine(code: ProjectCode, options: Call) -> tuple[str, Related] | None:
    engine = "accelerate" if any(name.startswith("accelerate.") for name in options.callee.interfaces) else "lightning"
    shown = code[Accumulations].by_engine(options, engine)
    if shown is not None:
        return f"gradient accumulation ({quoted(shown.text)})", Related(shown.call.line_span, "gradients are accumulated here")
    told = code.trainings.told_to_accumulate(code.path(options.module), engine)
    return told and (f"gradient accumulation ({quoted(told[1])})", Related(told[0], "gradients are accumulated here"))


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """The flag of a Trainer beside its accumulation, of a strategy that a configuration creates, and one of the project's
    own."""
    if section.framework == "own":
        for path, setting in section.settings.items():
            if _OWN_KEY.fullmatch(setting.name) and (section.text(path) or "").lower() == "true":
                found = _at_setting(section, setting, "", _REASON, Claim("configured-value-reaches-call", "static-graph"))
                yield found._replace(confidence=Confidence.MEDIUM)
    elif section.framework == "lightning":
        name = next((one for one in ("strategy.init_args.static_graph", "strategy.static_graph") if section.flag(one)), None)
        steps = section.number(_BATCHES)
        if name is not None and steps is not None and steps > 1:
            yield _at_setting(section, section.settings[name], f"gradient accumulation (`{_BATCHES}: {steps:g}`)", _OF_ENGINES)
    elif not section.has(*SHARDED) and section.flag(f"ddp_{_FLAG}") is True and (steps := section.number(_STEPS)) is not None and steps > 1:
        setting = section.settings[f"ddp_{_FLAG}"]
        said = f"gradient accumulation ({quoted(section.shown(_STEPS, f'{steps:g}'))})"
        yield _at_setting(section, setting, said, _OF_ENGINES, in_force(setting))


def _at_setting(section: Section, setting: Setting, accumulation: str, reason: str, *claims: Claim) -> Finding:
    fix = unsafe(f"set {setting.name.rpartition('.')[2]} to {section.spelled(False)}", section.editor.replace(setting, False), reason)
    return section.report(RULE, setting, {"accumulation": accumulation}, fix=fix, claims=claims)
