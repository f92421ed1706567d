"""Family 72: NCCL's debugging variables, which fix or disable its automatic choices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_view import OUTSIDE_TESTS, Draft, View, drop, members, rewrite
from ldlm_lint.rules.settings import Setting, Value

_TRANSPORTS = {
    "NCCL_P2P_DISABLE": "GPUs of one machine no longer exchange data directly over NVLink or PCIe",
    "NCCL_SHM_DISABLE": "processes of one machine exchange data over the network instead of shared memory",
    "NCCL_IB_DISABLE": "machines exchange data over TCP sockets instead of InfiniBand or RoCE",
    "NCCL_P2P_LEVEL": "GPUs of one machine no longer exchange data directly over NVLink or PCIe",
}
_TUNABLES = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NTHREADS",
    "NCCL_BUFFSIZE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_LAUNCH_MODE",
    "NCCL_CHECKS_DISABLE",
)
NAMES = (*_TRANSPORTS, *_TUNABLES, "NCCL_SOCKET_IFNAME")
# Words by which a comment says why a transport is disabled, so that the line is deliberate.
_EXPLAINED = lazily(
    r"because|since|due to|avoid|fix|work-?around|hang|hung|stuck|dead-?lock|driver|iommu|\bacs\b|\bbugs?\b|issue|support"
    r"|doesn't|does not|cannot|can't|no (?:ib|infiniband|nvlink|p2p|rdma)\b|without|not available|unavailable|need|require|\bif\b"
    r"|\bonly\b|geforce|rtx|[345]0[5-9]0|a6000|l40|consumer|ethernet|\bvms?\b|virtual|container|docker|cloud|aws|azure|gcp"
    r"|slow|crash|error|fail|remove it|https?://",
    re.I,
)
# RCCL reads the same names, and AMD recommends values for some of its machines.
_ROCM = lazily(r"rocm|\brccl|\bHIP_VISIBLE|\bHSA_", re.I)
_DETERMINISTIC = lazily(r"determinis", re.I)

_DEBUGGING = Reference(
    "NCCL: environment variables for debugging",
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#debugging",
)
_ACCELERATE = Reference(
    "accelerate sets both for RTX 40 cards",
    "https://github.com/huggingface/accelerate/blob/main/src/accelerate/commands/launch.py",
)

NCCL_TRANSPORT_DISABLED = Rule(
    code="W7217",
    symbol="nccl-transport-disabled",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s switches a fast transport of NCCL off: %(effect)s, which slows every collective down; remove it, "
    "or say in a comment why this machine needs it",
    summary="A fast transport of NCCL is switched off, and no comment says why.",
    rationale="NCCL's documentation lists these variables under debugging and says that they should not be used in "
    "production nor retained in scripts. They are set to get past a hang and then slow down every collective of every "
    "later run, also on machines whose fabric is fine.",
    cost="Collectives run over host memory or sockets; how much that costs depends on the machine and was not measured here.",
    exceptions="Hardware without the transport (GeForce RTX 40 cards, for which accelerate sets the variables itself; "
    "virtual machines). Not reported: a setting under a condition, one whose comment says why, NCCL_IB_DISABLE "
    "together with NCCL_SOCKET_IFNAME, files that debug or test, and containers that serve a model.",
    versions="Every NCCL.",
    verification="Compare the bus bandwidth of `all_reduce_perf` (nccl-tests) with and without the variable; "
    "`NCCL_DEBUG=INFO` logs the transport of every connection.",
    references=(_DEBUGGING, _ACCELERATE),
    reads=("sh", "py", "cfg"),
    triggers=tuple(name.encode() for name in _TRANSPORTS),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: on a machine whose fabric is broken the job can hang again.",
    probe=Probe(
        "group-environment",
        "the variable was on when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
    overrides="the numbers stay the same, and the rule is about this value",
)

NCCL_DEBUGGING_TUNABLE = Rule(
    code="I7218",
    symbol="nccl-debugging-tunable",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(name)s` overrides what NCCL chooses itself: the value also applies to other machines and later "
    "versions of NCCL, where it can be slower; remove it",
    summary="A tuning variable of NCCL that its documentation lists under debugging.",
    rationale="NCCL picks algorithm, protocol, threads and channels for the machine it runs on and the size of each "
    "collective. Its documentation lists these variables under debugging and says that they may result in sub-optimal "
    "behavior, crashes or hangs. NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are deprecated since NCCL 2.17 in favor of "
    "NCCL_MIN_CTAS and NCCL_MAX_CTAS.",
    cost="Not measured here; a value that was right for one machine and one NCCL version can be wrong for the next.",
    exceptions="Not reported: runs that must be deterministic, files for AMD machines (ROCm), and settings under a "
    "condition. Images of hardware vendors may set good values. The rule is off by default, because a tuned value can "
    "be right on the machine where it was measured.",
    versions="Every NCCL; the deprecations are those of 2.9 (NCCL_LAUNCH_MODE) and 2.17.",
    verification="Compare `all_reduce_perf` (nccl-tests) with and without the variable for the sizes that the model sends.",
    references=(_DEBUGGING,),
    reads=("sh", "py", "cfg"),
    triggers=tuple(name.encode() for name in _TUNABLES),
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: NCCL chooses by itself again, which can be slower on the machine that the value was measured on.",
)

RULES = (NCCL_TRANSPORT_DISABLED, NCCL_DEBUGGING_TUNABLE)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic; a file that debugs, tests or measures is skipped."""
    if view.scene.diagnostic:
        return
    for setting in view.lasting(_TRANSPORTS):
        off = members(setting, _level_off if setting.name == "NCCL_P2P_LEVEL" else _is_one)
        if off and not _is_deliberate(setting, view):
            args = (("value", off[0].text), ("effect", _TRANSPORTS[setting.name]))
            reason = "on a machine whose interconnect is broken the job can hang"
            plans = [drop(setting, reason)]
            if setting.name != "NCCL_P2P_LEVEL":
                plans.append(rewrite(setting, _is_one, "0", reason))
            yield Draft(
                NCCL_TRANSPORT_DISABLED,
                setting,
                args,
                tuple(plans),
                claims=(OUTSIDE_TESTS,),
                confidence=Confidence.MEDIUM,
            )
    if _DETERMINISTIC.search(view.scene.text) or _ROCM.search(view.scene.text):
        return
    for setting in view.lasting(_TUNABLES):
        if not setting.place.conditional:
            dropped = drop(setting, "the value may have been measured on this machine")
            yield Draft(NCCL_DEBUGGING_TUNABLE, setting, (), (dropped,), claims=(OUTSIDE_TESTS,), confidence=Confidence.HIGH)


def _is_one(value: Value) -> bool:
    return value.text == "1"


def _level_off(value: Value) -> bool:
    return value.text.upper() in {"LOC", "0"}


def _is_deliberate(setting: Setting, view: View) -> bool:
    """Whether the file gives a reason, or for which machines."""
    if setting.place.conditional or setting.place.debugging or _EXPLAINED.search(setting.place.remark):
        return True
    return setting.name == "NCCL_IB_DISABLE" and any(view.beside(setting, ["NCCL_SOCKET_IFNAME"]))
