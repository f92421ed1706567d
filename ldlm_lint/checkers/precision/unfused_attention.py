"""unfused-attention: attention that is computed operation by operation in models that train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.written_attention import WrittenAttention
from ldlm_lint.edits.written_parts import written_argument
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
    Rule,
)
from ldlm_lint.rules.measured import H100
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="I7807",
    symbol="unfused-attention",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(what)s computes attention without a fused kernel: the score matrix of every head is written to memory and "
    "kept for the backward pass; %(advice)s",
    summary="Hand-written softmax attention in a model that is trained, or a constructor that switches fused "
    "attention off.",
    rationale="`softmax(q @ k.T) @ v` as separate operations writes the scores, the masked scores, the weights and "
    "their dropout as sequence x sequence matrices for each head, and keeps them for the backward pass. "
    "`torch.nn.functional.scaled_dot_product_attention` computes the same in one kernel if the inputs allow it, and "
    "stores only what is needed to compute the weights again.",
    cost="Memory that grows with the square of the sequence length instead of linearly, and the time to move it. For "
    "short sequences (a few hundred tokens) there may be no difference: measure with the probe. "
    "On an H100, forward and backward of 4 x 16 heads over 1,024 tokens in bfloat16 took 1.66 ms and 585 MiB written out, 0.65 ms and 57 MiB fused.",
    exceptions="Attention whose weights are returned or stored, because a fused kernel does not return them, and "
    "score functions that `attn_mask` cannot express. Check the layout: scaled_dot_product_attention takes (batch, "
    "heads, length, width), the flash_attn package (batch, length, heads, width), and the wrong layout gives wrong "
    "results without an error.",
    versions="torch 2.0 to 2.13.",
    verification="Replace it and compare the outputs: they agree to 1e-5 in float32 (checked on a CPU). Then profile "
    "a step: a fused kernel appears as `_scaled_dot_product_flash_attention` or `_efficient_attention`. The saved "
    "memory and time can only be measured on a GPU.",
    references=(
        Reference(
            "torch.nn.functional.scaled_dot_product_attention",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
        ),
        Reference("transformers: attention interface", "https://huggingface.co/docs/transformers/attention_interface"),
        H100,
    ),
    reads=("py",),
    needs="torch.nn.functional.scaled_dot_product_attention",
    triggers=(),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: masks, scale, dropout and the layout of the operands must be carried over by hand.",
    probe=Probe(
        "attention-kernels",
        "scores were computed as a whole, or the fused call fell back to its plain implementation",
        device_bound=True,
        experiment="attention",
    ),
)


class _Switch(NamedTuple):
    """A keyword that chooses fused attention: the value that turns it off, and the code that turns it on."""

    keyword: str
    off: object
    on: str


# As of transformers 4.57, x-transformers 2.11, denoising-diffusion-pytorch 2.2.
_OF_TRANSFORMERS = _Switch("attn_implementation", "eager", '"sdpa"')
_LOADERS = ("from_pretrained", "from_config")
_LAYERS = ("Encoder", "Decoder", "PrefixDecoder", "CrossAttender", "AttentionLayers")
_SWITCHES = {
    **{f"x_transformers.{inner}{name}": _Switch("attn_flash", False, "True") for name in _LAYERS for inner in ("", "x_transformers.")},
    **{f"denoising_diffusion_pytorch.{inner}Unet": _Switch("flash_attn", False, "True") for inner in ("", "denoising_diffusion_pytorch.")},
}
_SHOWS = "output_attentions"
_REASON = "another kernel changes the last bits, and a model or device without such a kernel raises"


def find(code: ProjectCode) -> Iterator[Finding]:
    """Attention that is written out in models that train, and constructors of other packages that switch the kernel off."""
    for softmax in code[WrittenAttention].softmaxes():
        owner = softmax.function.owner or softmax.function
        if code.trainings.train_model(code.path(softmax.module), owner.name):
            args = {"what": quoted(owner.name), "advice": "call `F.scaled_dot_product_attention`"}
            yield code.finding(RULE, softmax.span, args, confidence=RULE.confidence)
    for call, switch in _switched(code):
        argument = call.argument(switch.keyword)
        if argument.only == switch.off and type(argument.only) is type(switch.off) and _trains_unseen(code, call):
            called = quoted(code.source(call.module).slice(call.callee_span))
            what = f"{called} with `{switch.keyword}={switch.off!r}`"
            args = {"what": what, "advice": f"pass `{switch.keyword}={switch.on}`"}
            yield code.finding(RULE, call.span, args, fix=_fix(call, switch), confidence=RULE.confidence)


def _switched(code: ProjectCode) -> Iterator[tuple[Call, _Switch]]:
    """The calls that have such a keyword."""
    for call in code.calls_named(*_LOADERS):
        if any(name.startswith("transformers.") for name in call.callee.outside_names):
            yield call, _OF_TRANSFORMERS
    for name, switch in _SWITCHES.items():
        yield from ((call, switch) for call in code.calls({name}))


def _trains_unseen(code: ProjectCode, call: Call) -> bool:
    """Whether a file that makes a model trains, and no program with it asks for the weights of attention."""
    return code[Roles].trains(call.module) and not any(holder.may_run_with(call) for holder, _ in code.given_by_name(_SHOWS))


def _fix(call: Call, switch: _Switch) -> Fix | None:
    """Set the switch to its other value, if it is in the call."""
    written = written_argument(call, switch.keyword)
    if written is None or not written.is_constant:
        return None
    return Fix(f"pass {switch.keyword}={switch.on}", (Edit(written.span, switch.on),), Applicability.DISPLAY, _REASON)
