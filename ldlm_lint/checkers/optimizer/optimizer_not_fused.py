"""optimizer-not-fused: every call that may create one of torch's optimizers, for any origin of the class and its
options, and the settings of frameworks that create one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.builders import Runs
from ldlm_lint.concepts.devices import HostModels
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.named_optimizers import NamedOptimizers
from ldlm_lint.concepts.optimizers import Optimizers
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.frameworks.checkpoints import trains_adapters
from ldlm_lint.frameworks.sections import SHARDED, Section, Setting, in_force, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
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
from ldlm_lint.program.handles import with_cases
from ldlm_lint.rules.measured import H100
from ldlm_lint.vocabulary.fused_kernels import PASS_FUSED, advice, has_fused, needs, obstacle_to
from ldlm_lint.wording import any_of, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Alternative, Call, Expr

RULE = Rule(
    code="R7301",
    symbol="optimizer-not-fused",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(optimizer)s runs torch's default CUDA implementation, which launches more kernels per step than the fused "
    "one; torch never picks fused by itself: %(advice)s",
    summary="`torch.optim` Adam, AdamW or SGD that trains on CUDA without choosing `fused`.",
    rationale="With neither `fused` nor `foreach`, torch uses the foreach implementation on CUDA: one kernel launch "
    "per arithmetic operation over lists of tensors, and about one more copy of the parameters at the peak. "
    "`fused=True` does the whole update in one kernel per list of tensors. torch never makes it the default. A "
    "configuration that passes `fused=False` also turns off the foreach implementation, unless it asks for it: each "
    "tensor is then updated separately.",
    cost="A part of the optimizer's share of the step: deepmd-kit went from 22 to 8 ms in the optimizer, which was 3 "
    "% of its step (deepmd-kit#4463); torchtitan gained 1.5 to 2 % MFU (torchtitan#355). It can also be slower: 85 to "
    "68 TFLOPS on an A40 with 512 M bf16 parameters on torch 2.2 (pytorch#121857). Measure. "
    "On an H100 the default step of AdamW over 80 tensors of 32,768 numbers took 1.08 ms, the fused one 0.32 ms.",
    exceptions="Training on a CPU, also of one model among others; a step that `torch.compile` compiles; complex or sparse parameters; Lightning with mixed precision and gradient "
    "clipping, which raises for an optimizer that unscales gradients itself (modules of Lightning are reported if "
    "their Trainers are in the project and nothing in the project clips); code that clips scaled gradients under a "
    "GradScaler; an optimizer over a handful of tensors; a wrapper (DeepSpeed, bitsandbytes, apex) with its own "
    "kernels.",
    versions="`fused` exists for Adam since torch 1.13, AdamW since 2.0, SGD since 2.3 (SGD is not reported if the "
    "project allows only older versions). If nothing is set, transformers 4.54 and later use `adamw_torch_fused` with "
    "torch >= 2.8; only an explicit `adamw_torch` is reported.",
    verification="Profile one optimizer step: fused kernels have `FusedAdam` or `aten::_fused_adamw_` in their name. "
    "After resuming, check `optimizer.param_groups[0]['fused']`: a checkpoint written without it turns it off.",
    references=(
        Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"),
        Reference("deepmd-kit#4463", "https://github.com/deepmodeling/deepmd-kit/pull/4463"),
        Reference("torchtitan#355", "https://github.com/pytorch/torchtitan/pull/355"),
        Reference("torch.amp.GradScaler.step", "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/amp/grad_scaler.py"),
        Reference("pytorch#121857", "https://github.com/pytorch/pytorch/issues/121857"),
        H100,
    ),
    reads=("py", "sh", "cfg"),
    needs="Adam(fused=)",
    triggers=(),
    setting_triggers=(b"fused", b"adamw_torch", b"torch.optim"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: updates differ in the last bits (3e-8 after 50 steps of AdamW), Lightning's mixed-precision "
    "clipping raises, `load_state_dict` of an older checkpoint turns it off again, and a device without fused kernels "
    "raises at the first step. For the last reason the fix writes `fused=torch.cuda.is_available()`. Only shown if "
    "torch may be too old: a requirement file allows a torch without the fused implementation (Adam 1.13, AdamW 2.0, "
    "SGD 2.3; 2.4 for a model that is moved to the GPU after its optimizer was created), or the project states no "
    "version and the optimizer is SGD or its model is moved so late. Also only shown if gradients are read after "
    "`scaler.step(optimizer)` without `scaler.unscale_` before it: the fused step removes the scale inside its "
    "kernel, and the gradients themselves stay scaled. No fix is offered if the file creates complex or sparse "
    "parameters.",
    probe=Probe(
        "optimizer-kernels",
        "no fused kernel ran in the optimizer's step",
        device_bound=True,
        experiment="fused-optimizer",
    ),
)

_NAMES = ("Adam", "AdamW", "SGD")
_FUSABLE = {f"torch.optim.{module}{name}": name for name in _NAMES for module in ("", f"{name.lower()}.")}
_IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")
_LATER_KERNELS = "updates differ in the last bits, and parameters on a device without fused kernels raise in the first step"
_LOADED_ANEW = "updates differ in the last bits, and loading an older checkpoint turns fused off again"
_OWN_SWITCH = re.compile(r"(?:use_)?fused(?:_adamw?|_optim\w*)?", re.I)
_REASON = (
    "updates differ in the last bits, all parameters must be real floating-point numbers on one kind of device, Lightning cannot clip "
    "gradients for a fused optimizer in mixed precision, and loading an older checkpoint turns fused off again"
)
_OFF_CUDA = ("use_cpu", "no_cuda", "use_mps_device", "use_xpu")


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls that may create a torch optimizer without choosing an implementation."""
    named = code[NamedOptimizers].without(*_IMPLEMENTATIONS)
    told = {one.name for one in named if one.expr is not None}
    made = list(code.calls(_FUSABLE))
    choosing = {call.function for call in made if code[ReadSettings].may_give(call, *_IMPLEMENTATIONS)}
    for call in made:
        alternatives = code[Optimizers].of_torch(call, _FUSABLE)
        if told.issuperset(_FUSABLE[one.name] for one in alternatives) and call.callee.last_name == "()getattr":
            # The arguments are next to the name.
            continue
        fusable = [one for one in alternatives if has_fused(code.torch_of(call.module), _FUSABLE[one.name])]
        if fusable and call.function not in choosing and not _matters_little(code, call):
            yield from _at_call(code, call, fusable)
    for one in named:
        torch = code.torch_on(one.path)
        if has_fused(torch, one.name):
            finding = code.finding(RULE, one.span, {"optimizer": one.name, "advice": advice([one.name], torch)})
            yield from _on_cuda(code, one.expr, finding) if one.expr is not None else (finding,)


def _matters_little(code: ProjectCode, call: Call) -> bool:
    """A handful of tensors, a compiled step, a model on the CPU, code that never runs, the outer optimizer of local SGD,
    or one created only to be loaded."""
    return (
        code[Optimizers].has_few_tensors(call)
        or code[Optimizers].are_compiled(call)
        or code[HostModels].are_all(call.argument("params", 0).values)
        or not code[Runs].may_run(call.function)
        or code[LeftOff].is_left_off(call)
        or any("outer" in name for name in call.names)
        or any(one.name.startswith("test_") for one in call.function.around)
        or code[Optimizers].is_only_loaded(call)
    )


def _on_cuda(code: ProjectCode, expr: Expr, finding: Finding) -> Iterator[Finding]:
    """The finding if the optimizer trains on CUDA; its fix is only shown if gradients are read that a fused one leaves
    scaled."""
    if code[Roles].steps_on_cuda(expr):
        read = code[Roles].read_scaled_gradients(expr)
        if read is None:
            yield finding
        else:
            yield finding._replace(related=(*finding.related, read.related), fix=finding.fix and finding.fix.only_shown(read.why))


def _at_call(code: ProjectCode, call: Call, fusable: list[Alternative]) -> Iterator[Finding]:
    names = sorted({_FUSABLE[one.name] for one in fusable})
    is_only = len(fusable) == call.callee.count_of_values and call.callee.is_known_whole
    options = call.argument("fused").options
    may_be_given = not options and code[ReadSettings].may_be_added(call)
    unless = f" (unless you give it in {any_of(options)})" if options else " (unless your configuration gives it)" if may_be_given else ""
    args = {"optimizer": with_cases(fusable, several=len(fusable) > 1 or not is_only), "advice": advice(names, code.torch_of(call.module)) + unless}
    chosen = [(_FUSABLE[one.name], origin) for one in fusable for origin in one.origins if origin.is_away_from(call)]
    fixable = is_only and not may_be_given and not code[ReadSettings].names(call.callee)
    related = [Related(origin.line, f"{name} is chosen here") for name, origin in chosen]
    fix = _fix(code, call, names) if fixable else None
    confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
    if not code[Roles].may_be_clipped_by_lightning(call):
        yield from _on_cuda(code, call, code.finding(RULE, call.span, args, related, fix=fix, confidence=confidence))


def _fix(code: ProjectCode, call: Call, names: Sequence[str]) -> Fix | None:
    """``fused=torch.cuda.is_available()`` at a call of one of these classes, which all accept it; None if the file has
    parameters that no fused kernel supports."""
    source = code.source(call.module)
    needed, cuda = ensure_import(source, "torch", "cuda")
    edit = add_keyword(source, call.span, "fused", f"{cuda}.is_available()")
    if edit is None or code[Optimizers].may_have_unsupported_parameters(call):
        return None
    moved_later = code[Optimizers].gets_model_moved_later(call)
    obstacle = obstacle_to(names, moved_later=moved_later) if code.torch_of(call.module).oldest is None else ""
    level = Applicability.DISPLAY if obstacle else Applicability.UNSAFE
    return Fix(f"set fused={cuda}.is_available()", tuple(sorted(filter(None, (needed, edit)))), level, obstacle or _REASON, needs=needs(names, moved_later=moved_later))


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """The settings of a Trainer, of an object that a configuration creates, and a switch of the project's own."""
    made = _FUSABLE.get(section.made)
    if made in ("Adam", "AdamW") and section.complete and not section.has(*_IMPLEMENTATIONS) and section.call is not None:
        args = {"optimizer": made, "advice": PASS_FUSED}
        fix = unsafe("set fused to true", section.editor.add(section.call, "fused", True), _LATER_KERNELS)
        yield _at_setting(section, section.call, args, fix, Claim("made-optimizer-trains-on-cuda", made))
    for path, setting in section.settings.items() if section.framework == "own" else ():
        if _OWN_SWITCH.fullmatch(setting.name) and section.flag(path) is False:
            args = {"optimizer": "the optimizer that reads this value", "advice": "set this to true"}
            fix = unsafe(f"set {setting.name} to true", section.editor.replace(setting, True), _LATER_KERNELS)
            found = _at_setting(section, setting, args, fix, Claim("configured-value-reaches-call", "not-fused"))
            yield found.lowered("switched off on purpose")
    if section.text("optim") == "adamw_torch" and not (section.has(*SHARDED) or section.on(*_OFF_CUDA) or trains_adapters(section)):
        setting = section.settings["optim"]
        args = {"optimizer": "`adamw_torch`", "advice": f"set {quoted(setting.name)} to `adamw_torch_fused`"}
        edits = section.editor.replace(setting, "adamw_torch_fused")
        fix = unsafe(f"set {setting.name} to adamw_torch_fused", edits, _LOADED_ANEW, (tables.fused("AdamW"),))
        yield _at_setting(section, setting, args, fix, in_force(setting), Claim("launches-do-not-shard", setting.name))


def _at_setting(section: Section, setting: Setting, args: Mapping[str, object], fix: Fix | None, *claims: Claim) -> Finding:
    return section.report(RULE, setting, args, fix=fix, claims=claims, confidence=Confidence.MEDIUM)
