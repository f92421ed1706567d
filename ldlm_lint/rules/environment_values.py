"""Family 72: values that torch or NCCL cannot parse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_aliases import RENAMED
from ldlm_lint.rules.environment_view import FALSE, TRUE, Draft, Plan, View, always_beside, members, rewrite, rewrites
from ldlm_lint.rules.environment_watchdog import (
    BLOCKING_WAIT,
    HEARTBEAT,
    MONITORING,
    has_wrong_heartbeat,
    heartbeat_limit,
    is_excessive,
)
from ldlm_lint.rules.settings import Setting, Value
from ldlm_lint.untrusted_numbers import whole

# How ProcessGroupNCCL.cpp reads them: getCvarInt (std::stoi) and getCvarBool.
_UNITS = {"HEARTBEAT_TIMEOUT_SEC": 1.0, "WAIT_TIMEOUT_DUMP_MILSEC": 1000.0, "COORD_CHECK_MILSEC": 1000.0}
_NUMBERS = frozenset(
    f"TORCH_NCCL_{suffix}" for suffix in (*_UNITS, "ASYNC_ERROR_HANDLING", "TRACE_BUFFER_SIZE", "RANKS_PER_ROOT")
) | {"NCCL_ASYNC_ERROR_HANDLING"}
_SWITCHES = frozenset(
    f"TORCH_NCCL_{suffix}"
    for suffix in (
        "BCAST_UNIQUEID",
        "BLOCKING_WAIT",
        "CUDA_EVENT_CACHE",
        "DESYNC_DEBUG",
        "DUMP_ON_TIMEOUT",
        "ENABLE_MONITORING",
        "ENABLE_TIMING",
        "HIGH_PRIORITY",
        "NAN_CHECK",
        "PROPAGATE_ERROR",
        "RETHROW_CUDA_ERRORS",
        "USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    )
) | (RENAMED.keys() - _NUMBERS)
_IB_TIMEOUT = "NCCL_IB_TIMEOUT"
_THREADS, _SOCKETS = "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"
NAMES = (*_NUMBERS, *_SWITCHES, _IB_TIMEOUT, _THREADS, _SOCKETS)

_MOST_THREADS, _MOST_SOCKETS = 16, 64
_LARGEST_INT = 2**31 - 1
_NUMBER = lazily(r"\s*[+-]?\d+")
_DURATION = lazily(r"(\d{1,15})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|ms)", re.I)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}
_SCIENTIFIC = lazily(r"\d+(?:\.\d+)?[eE]\+?\d{1,2}")
_ON, _OFF = frozenset({"on", "enable", "enabled"}), frozenset({"off", "disable", "disabled"})

_LOOKUP = Reference(
    "How torch reads them: Utils.hpp of c10d",
    "https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/Utils.hpp",
)
_PROCESS_GROUP = Reference(
    "ProcessGroupNCCL environment variables",
    "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
)
_IB = Reference(
    "NCCL_IB_TIMEOUT", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-timeout"
)
_SOCKET = Reference(
    "NCCL_SOCKET_NTHREADS", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-nthreads"
)
_SOCKET_SOURCE = Reference("NCCL's net_socket.cc", "https://github.com/NVIDIA/nccl/blob/master/src/transport/net_socket.cc")

MALFORMED_NCCL_VALUE = Rule(
    code="E7212",
    symbol="malformed-nccl-value",
    consequence=Consequence.CRASH,
    message="%(setting)s is not a valid value: %(effect)s",
    summary="A number with a unit or an exponent, or a switch that is neither on nor off.",
    rationale="torch reads the numbers of these variables with `std::stoi`, which takes the leading digits and drops "
    "the rest: 1800s is 1800, but 30min is 30 and 1e6 is 1. The switches accept y, yes, 1, t, true and n, no, 0, f, "
    "false. Any other text, including the empty one, raises `Invalid value for environment variable` when the process "
    "group is created, and so does a number without leading digits or beyond 32 bits.",
    cost="A run that ends at its start, or a timeout that is a thousand times shorter than it looks.",
    exceptions="Values that come from outside the file are unknown and not reported.",
    versions="torch 2.2 to 2.13; the names without TORCH_ are read the same way.",
    verification="Create a process group: it raises, or ProcessGroupNCCL logs the number that it has read "
    "(`TORCH_CPP_LOG_LEVEL=INFO`).",
    references=(_LOOKUP, _PROCESS_GROUP),
    reads=("sh", "py", "cfg"),
    triggers=tuple(name.encode() for name in sorted(_NUMBERS | _SWITCHES)),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the value that the text seems to mean takes effect for the first time.",
)

NCCL_IB_TIMEOUT_OUT_OF_RANGE = Rule(
    code="E7213",
    symbol="nccl-ib-timeout-out-of-range",
    consequence=Consequence.HANG,
    message="%(setting)s is outside the range 1 to 31: InfiniBand operations then never time out, and a dead link hangs "
    "the job; set an exponent such as 22 (about two minutes)",
    summary="`NCCL_IB_TIMEOUT` outside the range 1 to 31.",
    rationale="The variable is not a time: one try takes 4.096 microseconds times two to the power of its value, and "
    "NCCL makes `NCCL_IB_RETRY_CNT` (7) of them. Its field in the hardware has five bits; NCCL's documentation says "
    "that 0, and values of 32 and above, mean an infinite timeout.",
    cost="A dead link no longer raises an error: the job hangs until another timeout, if there is one, ends it.",
    exceptions="A value that is meant to be infinite. 22, which many scripts use, is about two minutes in total.",
    versions="The default is 20 since NCCL 2.23, 18 from 2.14, 14 before.",
    verification="With `NCCL_DEBUG=INFO` NCCL logs `NCCL_IB_TIMEOUT set by environment to` the value.",
    references=(_IB,),
    reads=("sh", "py", "cfg"),
    triggers=(_IB_TIMEOUT.encode(),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: InfiniBand operations can time out again, after about two minutes in total.",
    overrides="the hardware does not take it",
)

NCCL_SOCKET_THREADS_CLAMPED = Rule(
    code="I7214",
    symbol="nccl-socket-threads-clamped",
    consequence=Consequence.CONFIG,
    message="%(setting)s is above the maximum of NCCL, which warns and uses %(most)d: set %(most)d",
    summary="More socket threads, or sockets in total, than NCCL allows.",
    rationale="NCCL's socket transport uses at most 16 helper threads and at most 64 sockets (threads times sockets "
    "per thread). Above that it warns and takes the largest value that fits. The transport is only used if there is "
    "no InfiniBand.",
    cost="No run time; NCCL uses less than the script promises.",
    exceptions="Unknown values are not reported.",
    versions="NCCL 2.4 and later.",
    verification="The log says that the value is greater than the maximum allowed (`NCCL_DEBUG=WARN`).",
    references=(_SOCKET, _SOCKET_SOURCE),
    reads=("sh", "py", "cfg"),
    triggers=(_THREADS.encode(), _SOCKETS.encode()),
    applicability=Applicability.SAFE,
    fix_safety="Safe if no file of the project uses the value for anything else: it is the number that NCCL uses "
    "today. Unsafe for the sockets per thread if the number of threads depends on a condition, on the user, or on the "
    "launch.",
)

RULES = (MALFORMED_NCCL_VALUE, NCCL_IB_TIMEOUT_OUT_OF_RANGE, NCCL_SOCKET_THREADS_CLAMPED)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic; an excessive heartbeat is not also reported as malformed."""
    for setting in view.named((*_NUMBERS, *_SWITCHES)):
        effect_of = _misread if setting.name in _NUMBERS else _refused
        wrong = _affected(setting, effect_of)
        if wrong and not is_excessive(setting, view):
            args = (("value", wrong[0].text or "''"), ("effect", effect_of(wrong[0])))
            yield Draft(MALFORMED_NCCL_VALUE, setting, args, _meant(setting, wrong, view))
    for setting in view.named([_IB_TIMEOUT]):
        if wrong := members(setting, _out_of_range):
            plan = rewrite(setting, _out_of_range, "22", "operations on a link that is down then end with an error")
            yield Draft(NCCL_IB_TIMEOUT_OUT_OF_RANGE, setting, (("value", wrong[0].text),), (plan,))
    yield from _clamped(view)


def _affected(setting: Setting, effect_of: Callable[[Value], str | None]) -> tuple[Value, ...]:
    return members(setting, lambda value: effect_of(value) is not None)


def _misread(value: Value) -> str | None:
    match = _NUMBER.match(value.text)
    if match is None or not -_LARGEST_INT <= whole(match[0]) <= _LARGEST_INT:
        return "creating the process group raises an error; write a plain integer"
    return None if match.end() == len(value.text.rstrip()) else f"torch reads it as {whole(match[0])}; write a plain integer"


def _refused(value: Value) -> str | None:
    known = value.text.lower() in TRUE | FALSE
    return None if known else "creating the process group raises an error; write 0 or 1"


def _meant(setting: Setting, wrong: tuple[Value, ...], view: View) -> tuple[Plan, ...]:
    """The plan to write the obvious meaning of a single wrong value."""
    if len(wrong) != 1:
        return ()
    text = _spelled_out(setting.name, wrong[0].text.strip())
    if text is None or (setting.name == HEARTBEAT and whole(text) > heartbeat_limit(view)):
        return ()
    # A setting activated here must not activate a wrong heartbeat.
    if setting.name in (MONITORING, *BLOCKING_WAIT) and has_wrong_heartbeat(view):
        return ()
    reason = "the value that seems to be meant takes effect"
    return (Plan(f"set {setting.name} to {text}", rewrites(setting, wrong, text), reason),)


def _spelled_out(name: str, text: str) -> str | None:
    if name in _SWITCHES:
        return "1" if text.lower() in _ON else "0" if text.lower() in _OFF else None
    if _SCIENTIFIC.fullmatch(text) and float(text) <= _LARGEST_INT:
        return str(int(float(text)))
    unit, match = _UNITS.get(name.removeprefix("TORCH_NCCL_")), _DURATION.fullmatch(text)
    if unit is None or match is None:
        return None
    written = match[2].lower()
    return str(int(whole(match[1]) * _SECONDS[written if written == "ms" else written[0]] * unit))


def _whole(value: Value) -> int | None:
    text = value.text.strip()
    return int(text) if re.fullmatch(r"[+-]?\d{1,9}", text) else None


def _out_of_range(value: Value) -> bool:
    exponent = _whole(value)
    return exponent is not None and not 1 <= exponent <= 31


def _clamped(view: View) -> Iterator[Draft]:
    alone = len([*view.named([_THREADS])]) <= 1
    for setting in view.named([_THREADS]):
        yield from _lowered(setting, _MOST_THREADS, "")
    for setting in view.named([_SOCKETS]):
        # A command's own assignment overrides the script's export.
        nearest = sorted(view.beside(setting, [_THREADS]), key=lambda one: (len(one.place.scope), one.span))[-1:]
        for threads in filter(None, map(_count, nearest)):
            sure = alone and nearest[0].confidence is Confidence.HIGH and always_beside(nearest[0], setting)
            reason = "" if sure else "the number of threads can be another one"
            yield from _lowered(setting, _MOST_SOCKETS // min(abs(threads), _MOST_THREADS), reason)


def _lowered(setting: Setting, most: int, reason: str) -> Iterator[Draft]:
    count = _count(setting)
    if count is None or count <= most:
        return
    if setting.expanded:
        reason = "the file uses the value in other places too"
    args = (("value", str(count)), ("most", most))
    plan = rewrite(setting, lambda _: True, str(most), reason)
    yield Draft(NCCL_SOCKET_THREADS_CLAMPED, setting, args, (plan,))


def _count(setting: Setting) -> int | None:
    return _whole(setting.values[0]) if setting.values is not None and len(setting.values) == 1 else None
