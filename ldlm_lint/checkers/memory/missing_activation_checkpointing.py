"""missing-activation-checkpointing: models that repeat blocks with attention and train, where nothing recomputes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.builders import Runs
from ldlm_lint.concepts.models import Models, Stack
from ldlm_lint.concepts.recomputing import Recomputing
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.files.edited import edit_key
from ldlm_lint.model import (
    Applicability,
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
)
from ldlm_lint.rules.measured import H100
from ldlm_lint.vocabulary.blocks import PART
from ldlm_lint.vocabulary.segments import FLAG

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Class

RULE = Rule(
    code="R7502",
    symbol="missing-activation-checkpointing",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="`%(model)s` keeps the activations of %(blocks)s until the backward pass%(size)s, and nothing in the project can "
    "switch recomputation on for it: if memory limits the batch or sequence length, checkpoint each layer (about one extra "
    "forward pass)",
    summary="A transformer-like model that trains, in a project that has no activation checkpointing for it at all.",
    rationale="The activations of every block are kept until its backward pass. Checkpointing each block keeps only "
    "its input and computes the rest again in the backward pass, so activation memory grows with one block instead of "
    "all blocks. If the model has no such switch, only shorter sequences or smaller batches help when memory runs out.",
    cost="Memory: 64 instead of 192 MiB of saved activations for 8 blocks (measured on CPU, exact). Time: recomputing "
    "costs about one more forward pass; Hugging Face says about 20 % slower training, we measured 18 to 36 % on CPU. "
    "It pays off only if the memory is used for a larger batch or a longer sequence. "
    "The sizes in the message are an estimate: 34 bytes by width and token for a block in 16 bit, 2 for its input. "
    "On an H100 checkpointing each of 8 blocks lowered the peak from 2,512 to 432 MiB, and a step took 1.18 times as long.",
    exceptions="The model fits easily at the batch size you want: then do not switch it on; the switch itself costs "
    "nothing. A model is not reported if the project never builds it, or if the code shows that it is small: four layers, "
    "or less than 64 KiB to save for each token, which is 1 GiB for 16,384 tokens. The message states the sizes that the "
    "code shows. A model whose runs autograd does not record is not reported: it only runs under `torch.no_grad()`, or "
    "all its parameters are frozen and its input is the batch. A frozen model through which gradients flow to another "
    "one keeps its activations and is reported.",
    versions="torch 2.0 to 2.13; pass `use_reentrant=False` explicitly (omitting it warns since 2.1).",
    verification="Compare `torch.cuda.max_memory_allocated()` over one step, with and without it. Checkpointing the "
    "whole backbone in one call saves nothing: the backward pass recomputes all of it at once.",
    references=(
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
        Reference(
            "Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/"
        ),
        Reference("transformers: gradient checkpointing", "https://huggingface.co/docs/transformers/perf_train_gpu_one"),
        H100,
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    trade="speed for memory",
    fix_safety="Unsafe: every step becomes slower by about one more forward pass of the blocks, and side effects of a "
    "block happen twice. Because it trades speed for memory, `--unsafe-fixes` applies it only if this rule is "
    "selected by its own name or code; `--interactive` always offers it. Each call of a block is checkpointed with "
    "`use_reentrant=False`, only while training. Parameters and their names stay, so older checkpoints load. Offered only "
    "where a statement of its own calls a block of a class of the project in a loop, and the block changes no "
    "input in place, sets no attributes, keeps no statistics (BatchNorm), draws no numbers that torch does not set back and gets no cache; "
    "not under FSDP, tensor or pipeline parallelism, TorchScript, CUDA graphs or transforms of `torch.func`. A model of "
    "transformers has a switch of its own, which is only shown.",
    probe=Probe(
        "recomputed-blocks",
        "no block ran its forward again inside the backward",
        experiment="activation-checkpointing",
        bound_experiment=True,
        whole_run=True,
    ),
)

_SWITCH = "{}.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{'use_reentrant': False}})"
_REASON = "each step runs the forward pass of the blocks once more, inside the backward pass; random numbers of torch repeat, other side effects of a block happen twice"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The models of the project that build stacks of blocks, and the calls outside of classes that build a whole one."""
    for family in _families(code):
        if _trains(code, family) and not any(map(code[Recomputing].may_apply_to, family)):
            yield _at_class(code, family)
    for module in code.modules:
        if code[Roles].trains(module):
            for call in code.calls_in(module):
                stack = code[Models].built_outside(call) if not call.function.is_in_class else None
                if stack is not None and not code[RecordedRuns].is_wrapper_never_recorded(call, lambda _: True) and not code[Recomputing].may_apply_in(module):
                    yield _at_call(code, stack)


def _families(code: ProjectCode) -> Iterator[list[Class]]:
    """The models of a file, those together that one class of it builds; the class comes first if it is a model itself."""
    remaining = [one for one in code[Models].with_stacks if not PART.search(one.name)]
    for whole in code.classes:
        if sum(one.module is whole.module for one in remaining) > 1:
            built = {one for function in whole.functions for call in function.calls for one in call.callee.as_classes}
            family = [one for one in remaining if one.module is whole.module and (one == whole or one in built)]
            if len(family) > 1:
                family.sort(key=lambda one: one != whole)
                remaining = [one for one in remaining if one not in family]
                yield family
    yield from ([one] for one in remaining)


def _trains(code: ProjectCode, family: list[Class]) -> bool:
    """Whether a training makes such a model, and a backward pass may need its activations: enough of them to matter."""
    first = family[0]
    sizes = [code[Models].size(one) for one in family]
    if not code.trainings.train_model(code.path(first.module), first.name) or all(one.is_tiny for one in sizes):
        return False
    return not all(
        not code[Runs].may_be_built(one) or code[RecordedRuns].is_never_recorded(one) or code[Models].has_no_blocks(one) for one in family
    )


def _at_class(code: ProjectCode, family: list[Class]) -> Finding:
    first, *others = family
    stack = code[Models].stacks(first)[0]
    sizes = [code[Models].size(one) for one in family]
    args = {"model": first.name, "blocks": stack.what, "size": max(sizes).described}
    related = [Related(code[Models].container_of(stack).spot.line_span, "the blocks are created here")]
    related += [Related(one.line_span, "this model has blocks too") for one in others]
    return code.finding(RULE, first.span, args, related, fix=_fix(code, family) or _shown(stack), confidence=Confidence.MEDIUM)


def _at_call(code: ProjectCode, stack: Stack) -> Finding:
    names = sorted(stack.call.names) or [stack.call.called_name]
    args = {"model": names[0] if stack.is_pretrained else stack.call.called_name, "blocks": stack.what, "size": ""}
    return code.finding(RULE, stack.call.span, args, fix=_shown(stack), confidence=Confidence.MEDIUM)


def _shown(stack: Stack) -> Fix | None:
    """The switch that a model of transformers has; where it is best called depends on how the model is wrapped later."""
    name = next((f"self.{one}" for _, one in stack.call.attributes), min(stack.call.names, default="the model"))
    return Fix(f"call {_SWITCH.format(name)}", (), Applicability.DISPLAY, _REASON) if stack.is_pretrained else None


def _fix(code: ProjectCode, family: list[Class]) -> Fix | None:
    """Checkpoint each block in the statements that call one, while training."""
    calls = [call for one in family for call in code[Models].calls_of_blocks(one)]
    blocks = {block for one in family for stack in code[Models].stacks(one) for block in stack.blocks}
    source = code.source(family[0].module)
    if not calls or not all(map(code[Recomputing].may_run_twice, blocks)) or code[Recomputing].has_other_ways(family[0].module):
        return None
    needed, function = ensure_import(source, "torch.utils.checkpoint", "checkpoint")
    edits = [_checkpointed(call, function, source.lines[call.line - 1]) for call in calls]
    written = [one for one in edits if one is not None]
    if len(written) != len(calls):
        return None
    names = dict.fromkeys(call.text.partition("(")[0] for call in calls)
    title = f"checkpoint each {', '.join(names)} of {', '.join(one.name for one in family)} while training"
    every = tuple(sorted([*written, *([needed] if needed else [])], key=edit_key))
    return Fix(title, every, Applicability.UNSAFE, _REASON, group=f"activation-checkpointing:{code.path(family[0].module)}", needs=(tables.interface(FLAG),))


def _checkpointed(call: Call, function: str, line: str) -> Edit | None:
    """``x = checkpoint(block, x, use_reentrant=False) if self.training else block(x)``."""
    written = re.fullmatch(r"([\w.]+)\((.+)\)", call.text)
    is_alone = re.fullmatch(rf"\s*[\w, ]+ = {re.escape(call.text)}\s*(#.*)?", line.rstrip("\r\n"))
    if is_alone is None or written is None or not call.function.parameters:
        return None
    own = next(iter(call.function.parameters))
    return Edit(call.span, f"{function}({written[1]}, {written[2]}, use_reentrant=False) if {own}.training else {call.text}")
