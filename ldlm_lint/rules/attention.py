"""Family 78: attention without a fused kernel."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

UNFUSED_ATTENTION = Rule(
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
    triggers=(b"oftmax(", b"attn_implementation=", b"attn_flash=", b"flash_attn="),
    requires=((b"@", b"matmul", b"bmm", b"einsum", b"attn_implementation=", b"flash"),),
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

RULES = (UNFUSED_ATTENTION,)
