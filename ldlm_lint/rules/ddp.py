"""Family 72, distributed: what a DistributedDataParallel wrapper is told to do every step."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Probe, Reference, Rule

_DDP = Reference(
    "DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)

FIND_UNUSED_PARAMETERS = Rule(
    code="W7226",
    symbol="ddp-find-unused-parameters",
    message="find_unused_parameters=True walks the autograd graph in every step and keeps gradient buckets from being rebuilt; "
    "do not just drop it: find out first whether a parameter is ever unused",
    summary="DDP with a literal `find_unused_parameters=True`.",
    rationale="With the flag, DDP traverses the autograd graph of every forward to find parameters that get no gradient, sends one "
    "more all-reduce per backward, and never rebuilds its buckets in the order in which gradients become ready, which costs "
    "overlap. Models that use all their parameters in every step pay that for nothing. Models that do not (mode switches, "
    "frozen parts, unrouted experts, layer-drop) need it: without it the second forward raises RuntimeError.",
    cost="One graph traversal and one extra all-reduce per step, and no bucket rebuild. No source gives a percentage, and one project "
    "that removed the flag measured no speed-up (KAIR#103).",
    exceptions="Some parameter gets no gradient in some step on some rank: branches on the mode, freezing after wrapping, mixtures of "
    "experts, multi-task heads. Then the flag is right.",
    versions="torch 2.0 to 2.13.",
    verification="Run one eager step and list the parameters whose `.grad` is None; TORCH_DISTRIBUTED_DEBUG=INFO names them in DDP's own "
    "error. PyTorch warns once when the flag found nothing unused.",
    references=(
        _DDP,
        Reference(
            "Performance tuning guide: DDP",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
        Reference("KAIR#103", "https://github.com/cszn/KAIR/issues/103"),
    ),
    reads=("py",),
    triggers=(b"find_unused_parameters",),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: with an unused parameter `find_unused_parameters=False` crashes on the second iteration, on the project that "
    "this advice was written for as well. The probe decides.",
    probe=Probe("parameters-without-gradient", "no parameter was without a gradient in any step"),
)

RULES = (FIND_UNUSED_PARAMETERS,)
