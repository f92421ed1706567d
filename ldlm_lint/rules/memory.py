"""Family 75, memory and host time: what a step keeps on the device and what it waits for."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Probe, Reference, Rule, Scope

MISSING_ACTIVATION_CHECKPOINTING = Rule(
    code="R7502",
    symbol="missing-activation-checkpointing",
    message="%(model)s trains %(blocks)s and keeps all their activations: there is no activation checkpointing to switch on anywhere",
    summary="A transformer-like model that trains, in a project that has no activation checkpointing for it at all.",
    rationale="The activations of every block are kept until its backward. Checkpointing each block keeps only its input and computes "
    "the rest again in the backward pass, so that activation memory grows with one block instead of all of them. A model "
    "family that offers no such switch leaves only shorter sequences or smaller batches when memory runs out.",
    cost="Memory: 64 instead of 192 MiB of saved activations for 8 blocks (measured on CPU, exact). Time: recomputing costs about one more "
    "forward; Hugging Face says about 20 % slower training, we measured 18 to 36 % on CPU. It pays where the memory buys a "
    "larger batch or a longer sequence, and only there.",
    exceptions="The model fits with room to spare at the batch size you want. Then do not switch it on; a switch costs nothing.",
    versions="torch 2.0 to 2.13; pass `use_reentrant=False` explicitly (omitting it warns since 2.1).",
    verification="`torch.cuda.max_memory_allocated()` over one step, with and without. Checkpointing the whole backbone in one call saves "
    "nothing: the backward recomputes all of it at once.",
    references=(
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
        Reference(
            "Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/"
        ),
        Reference("transformers: gradient checkpointing", "https://huggingface.co/docs/transformers/perf_train_gpu_one"),
    ),
    reads=("py",),
    triggers=(b"ModuleList", b"Sequential", b"TransformerEncoder", b"TransformerDecoder", b"from_pretrained", b"depth=", b"num_layers="),
    silencers=(
        b"torch.utils.checkpoint",
        b"torch.utils import checkpoint",
        b"gradient_checkpoint",
        b"grad_checkpoint",
        b"activation_checkpoint",
        b"checkpoint_wrapper",
        b"use_checkpoint",
        b"checkpoint_sequential",
        b"checkpoint_seq",
        b"checkpoint_activations",
        b"checkpoint_level",
        b"enable_checkpoint",
        b"use_reentrant",
        b"recompute_granularity",
        b"recompute_method",
        b"recompute_modules",
        b"remat(",
    ),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: every step becomes slower by about one more forward of the blocks, and a block that draws random numbers from a "
    "generator other than torch's, or changes state in its forward, computes something else the second time.",
    probe=Probe("recomputed-blocks", "no block ran its forward again inside the backward"),
    scope=Scope.PROJECT,
)

RULES = (MISSING_ACTIVATION_CHECKPOINTING,)
