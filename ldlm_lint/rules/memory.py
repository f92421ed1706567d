"""Family 75, memory and host time: memory that a step keeps on the device, and its waits."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

MISSING_ACTIVATION_CHECKPOINTING = Rule(
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
    triggers=(
        *(b"ModuleList", b"ModuleDict", b"Sequential", b"TransformerEncoder", b"TransformerDecoder", b"nn.Transformer"),
        *(b"from_pretrained", b"depth=", b"num_layers="),
    ),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    trade="speed for memory",
    fix_safety="Unsafe: every step becomes slower by about one more forward pass of the blocks, and side effects of a "
    "block happen twice. Because it trades speed for memory, `--unsafe-fixes` applies it only if this rule is "
    "selected by its own name or code; `--interactive` always offers it. Each call of a block is checkpointed with "
    "`use_reentrant=False`, only while training. An option of the kind that the class already has (a constructor "
    "parameter, a field of its config dataclass, a key of another config) controls it, on by default. Parameters and "
    "their names stay, so older checkpoints load. A Sequential runs through `checkpoint_sequential`, a model of "
    "transformers gets `gradient_checkpointing_enable()`. No fix is offered for blocks that are given caches, update "
    "statistics or counters (BatchNorm), draw from `random`, NumPy or their own generator, or change their inputs in "
    "place; nor under FSDP, tensor or pipeline parallelism, TorchScript, CUDA graphs or transforms of `torch.func`; "
    "nor for scripts that build another package's model.",
    probe=Probe(
        "recomputed-blocks",
        "no block ran its forward again inside the backward",
        experiment="activation-checkpointing",
        bound_experiment=True,
        whole_run=True,
    ),
)

CHECKPOINT_WITHOUT_USE_REENTRANT = Rule(
    code="W7503",
    symbol="checkpoint-without-use-reentrant",
    consequence=Consequence.DEPRECATED,
    message="`%(function)s()` without `use_reentrant` falls back to the reentrant implementation, which silently drops "
    "gradients when no tensor input requires one and rejects keyword arguments: pass `use_reentrant=False`",
    summary="`torch.utils.checkpoint` without the `use_reentrant` argument.",
    rationale="The default is the old, reentrant implementation. It gives the parameters of the segment no gradients "
    "if none of its tensor arguments requires one (after a frozen embedding). It does not see tensors inside tuples, "
    "lists and dictionaries, and takes no keyword arguments for the function. Under DDP it fails with "
    "`find_unused_parameters=True` or, for a layer used twice, silently computes wrong gradients. The non-reentrant "
    "implementation has none of these limits.",
    cost="A warning in each process, and missing gradients in the cases above. Speed is not the point: the difference "
    "in time and memory was not measured.",
    exceptions="Code that needs the reentrant implementation, such as a segment that saves other tensors when it is "
    "recomputed. Then pass `use_reentrant=True`, which keeps today's behavior explicitly.",
    versions="torch 2.1 to 2.13 warn; torch 2.0 silently uses the reentrant implementation. The warning has announced "
    "an error for several versions, but 2.13 still only warns.",
    verification="Run with `python -W error::UserWarning`, or compare the gradients of all parameters with checkpointing on and off.",
    references=(
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
        Reference(
            "Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/"
        ),
    ),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"utils.checkpoint", b"from torch.utils import"),
    requires=((b"checkpoint",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation. A segment that saves other tensors when it is recomputed "
    "raises, and gradients that were silently missing appear. `use_reentrant=True` would be safe, but would keep the "
    "defect: write it yourself if you need it.",
)

REQUIRES_GRAD_TOGGLED_PER_STEP = Rule(
    code="W7501",
    symbol="requires-grad-toggled-per-step",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`requires_grad` of %(target)s is set %(where)s, but DDP fixed which gradients it averages when it wrapped the "
    "model: only `find_unused_parameters=True`, which searches the graph in every step, allows that; freeze before wrapping",
    summary="Parameters that are frozen or unfrozen inside `forward` or a training step.",
    rationale="DDP registers the parameters that require gradients when it wraps the model. A parameter that is "
    "frozen later gets no gradient, and the next forward pass raises unless `find_unused_parameters=True` searches "
    "the graph in every iteration. A parameter that was frozen when the model was wrapped and is unfrozen later is "
    "never reduced, so the ranks silently drift apart. Ranks that draw different modes need different gradients, and "
    "`static_graph=True` allows no change at all.",
    cost="A forced `find_unused_parameters=True`, and the loop over the parameters: 1.3 ms per 1000 parameters and "
    "step (measured on CPU). Under `torch.compile` a changed `requires_grad` is a reason to compile again.",
    exceptions="Adversarial training that takes turns is not reported: each network is wrapped separately and frozen "
    "as a whole while the other one trains, which DDP supports; so are phases of one loop, if they switch whole wrapped "
    "models. Freezing once, before DDP wraps the model, is correct. Input tensors that need a gradient are fine.",
    versions="All versions of torch.",
    verification="Run with `TORCH_DISTRIBUTED_DEBUG=INFO`, which names parameters without gradients, and compare a "
    "checksum of the parameters over the ranks after a few steps.",
    references=(
        Reference(
            "DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        ),
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
    ),
    reads=("py",),
    triggers=(b"requires_grad", b"toggle_grad", b"set_trainable", b"freez"),
    confidence=Confidence.MEDIUM,
    probe=Probe(
        "trainable-parameters",
        "the set of parameters that require gradients changes between steps",
        whole_run=True,
    ),
)

RULES = (MISSING_ACTIVATION_CHECKPOINTING, CHECKPOINT_WITHOUT_USE_REENTRANT, REQUIRES_GRAD_TOGGLED_PER_STEP)
