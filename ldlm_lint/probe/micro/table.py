"""The experiments, in execution order: quick ones that decide most come first. Free of torch."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.probe.micro.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "process-groups",
        "groups",
        "timeouts of process groups and sub-groups",
        ("excessive-collective-timeout", "subgroup-timeout-not-inherited"),
        frozenset({"excessive-collective-timeout"}),
        7,
    ),
    Experiment(
        "precision",
        "precision",
        "TF32 and bfloat16: what is effective",
        ("tf32-disabled", "mixed-tf32-apis", "grad-scaler-with-bfloat16"),
        frozenset({"tf32-disabled", "grad-scaler-with-bfloat16"}),
        6,
    ),
    Experiment(
        "fused-optimizer",
        "fused",
        "the default optimizer step against the fused one",
        ("optimizer-not-fused",),
        frozenset({"optimizer-not-fused"}),
        8,
    ),
    Experiment(
        "attention",
        "attention",
        "which SDPA backend is selected, against softmax written out",
        ("unfused-attention",),
        frozenset({"unfused-attention"}),
        6,
    ),
    Experiment(
        "activation-checkpointing",
        "checkpointing",
        "peak memory and recomputation, per block and for the whole model",
        ("missing-activation-checkpointing", "whole-model-checkpoint"),
        frozenset({"missing-activation-checkpointing", "whole-model-checkpoint"}),
        8,
    ),
    Experiment(
        "ddp",
        "ddp",
        "DDP on two processes: find_unused_parameters, gradient_as_bucket_view",
        ("ddp-find-unused-parameters", "ddp-gradient-copy"),
        frozenset(),
        10,
        6.0,
    ),
    Experiment(
        "dataloader",
        "loaders",
        "workers, persistent workers, prefetching, pinned copies",
        (
            "dataloader-in-main-process",
            "dataloader-without-persistent-workers",
            "dataloader-without-prefetch",
            "dataloader-without-pin-memory",
            "blocking-host-to-device-copy",
        ),
        frozenset({"dataloader-without-pin-memory", "blocking-host-to-device-copy"}),
        10,
        5.0,
    ),
    Experiment(
        "compile",
        "compiling",
        "whether torch.compile works on this machine and helps",
        ("compile-guarded-by-try",),
        frozenset(),
        20,
        8.0,
    ),
)


def selected(only: Iterable[str]) -> tuple[list[Experiment], frozenset[str]]:
    """The experiments named by name, rule or code (all if empty), and the rules to report of them.

    A unique part of a name is enough. Raises LookupError with the name that was not found.
    """
    names = list(only)
    if not names:
        return list(EXPERIMENTS), frozenset()
    experiments: set[str] = set()
    rules: set[str] = set()
    for name in names:
        symbol = _symbol(name)
        by_rule = [one for one in EXPERIMENTS if symbol in one.rules]
        found = by_rule or _named(name)
        if not found:
            raise LookupError(name)
        experiments.update(one.name for one in found)
        rules.update([symbol] if by_rule else [rule for one in found for rule in one.rules])
    return [one for one in EXPERIMENTS if one.name in experiments], frozenset(rules)


def _named(name: str) -> list[Experiment]:
    exact = [one for one in EXPERIMENTS if one.name == name]
    parts = [one for one in EXPERIMENTS if len(name) > 2 and name in one.name]
    return exact or (parts if len(parts) == 1 else [])


def _symbol(name: str) -> str:
    """The symbol of a rule's code; the name itself if it is not a code."""
    from ldlm_lint.rules import ALL

    return next((rule.symbol for rule in ALL if rule.code == name.upper()), name)
