"""Family 72: the number of hardware queues that CUDA streams are mapped to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Frequency, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_view import Draft, View, drop, members
from ldlm_lint.rules.settings import Value

_NAME = "CUDA_DEVICE_MAX_CONNECTIONS"
NAMES = (_NAME,)

# Tensor and sequence parallelism rely on one queue; so does Megatron, except its own FSDP.
_NEEDS_ONE = lazily(r"megatron|tensor[-_]model[-_]parallel|sequence[-_]parallel|tensor[-_]parallel|context[-_]parallel", re.I)
_SHARDS = lazily(r"--use[-_](?:torch[-_]fsdp2|megatron[-_]fsdp|fsdp2?)\b|--fsdp\b(?![ =](?:[\"']{2}|False|false|0))")

_MEGATRON = Reference(
    "Megatron-LM's checks of CUDA_DEVICE_MAX_CONNECTIONS",
    "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py",
)
_TORCHTITAN = Reference("torchtitan#1147", "https://github.com/pytorch/torchtitan/issues/1147")

MAX_CONNECTIONS_WITH_FSDP = Rule(
    code="W7222",
    symbol="max-connections-with-fsdp",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s puts all CUDA streams into one hardware queue: FSDP's communication waits behind computation "
    "instead of overlapping with it; remove it",
    summary="`CUDA_DEVICE_MAX_CONNECTIONS=1` in a run that shards its model with FSDP.",
    rationale="FSDP gathers the parameters of the next layer on a separate stream while the current layer computes. "
    "With a single hardware queue the kernels of all streams start in the order in which they were launched, so the "
    "overlap is lost. The setting comes from Megatron's tensor parallelism, which needs that order. Megatron itself "
    "refuses the setting together with FSDP, and torchtitan#1147 describes the same for FSDP2.",
    cost="Communication no longer overlaps with computation; how much time that takes was not measured here.",
    exceptions="Tensor, sequence or context parallelism, for which Megatron requires the value 1 on GPUs before "
    "Blackwell: a file that mentions them is not reported, nor is a project whose training uses them.",
    versions="torch 2.0 to 2.13 on GPUs before Blackwell.",
    verification="A trace of `torch.profiler` shows all-gather kernels at the same time as the kernels of the forward "
    "pass, not between them.",
    references=(_MEGATRON, _TORCHTITAN),
    reads=("sh", "py", "cfg"),
    triggers=(_NAME.encode(),),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: code that relies on the order of kernels across streams, such as overlapped tensor parallelism, needs the "
    "value 1.",
    overrides="the numbers stay the same, and the rule is about this value",
)

RULES = (MAX_CONNECTIONS_WITH_FSDP,)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic."""
    if _NEEDS_ONE.search(view.scene.text) and not _refused(view):
        return
    for setting in view.lasting(NAMES):
        one = members(setting, _is_one)
        if one and not setting.place.conditional:
            plans = (drop(setting, "code that relies on the order of kernels across streams needs this value"),)
            claim = Claim("shards-with-fsdp", "|".join(view.scene.entries))
            # The launch decides here; code that only has such an option may run without it.
            claims = () if view.scene.launchers and _SHARDS.search(view.scene.text) else (claim,)
            args = (("value", one[0].text),)
            yield Draft(MAX_CONNECTIONS_WITH_FSDP, setting, args, plans, claims=claims, confidence=Confidence.MEDIUM)


def _is_one(value: Value) -> bool:
    return value.text == "1"


def _refused(view: View) -> bool:
    """Whether Megatron is configured to use an FSDP, which it refuses with this value."""
    return re.search(r"--use[-_](?:torch[-_]fsdp2|megatron[-_]fsdp)\b", view.scene.text) is not None
