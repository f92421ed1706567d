"""Family 72, environment of the training processes: settings of PyTorch and NCCL through variables.

This file has the rules about the watchdog and about unread names; the other topics have separate files
(`environment_*`). `environment_decisions` combines them, the tables of names are in `environment_names`.
"""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Option, Probe, Reference, Rule
from ldlm_lint.rules import environment_names

# In seconds; torch counts milliseconds in 32 bits.
LARGEST_SAFE_HEARTBEAT = (2**31 - 1) // 1000
# Below this a healthy process is ended by a pause such as a checkpoint; `1e6` reads as 1.
SHORTEST_SAFE_HEARTBEAT = 30

_PROCESS_GROUP = Reference(
    "ProcessGroupNCCL environment variables",
    "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
)
_INIT = Reference(
    "init_process_group", "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group"
)
_HEARTBEAT_DEFAULT = Reference("pytorch#133028: heartbeat 480 s", "https://github.com/pytorch/pytorch/pull/133028")
_MONITORING_DEFAULT = Reference("pytorch#115577: monitoring on", "https://github.com/pytorch/pytorch/pull/115577")
_NO_WATCHDOG = Reference("pytorch#138001: no watchdog", "https://github.com/pytorch/pytorch/pull/138001")
_NCCL_VARIABLES = Reference(
    "NCCL environment variables", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
)
_UNIT = (
    "The heartbeat timeout, monitoring and blocking wait of one file are changed together or not at all: each of them "
    "switches others on or off."
)

EXCESSIVE_HEARTBEAT_TIMEOUT = Rule(
    code="W7201",
    symbol="excessive-heartbeat-timeout",
    consequence=Consequence.HANG,
    message="%(setting)s lets a stuck NCCL watchdog keep every GPU of the job allocated and idle for "
    "%(duration)s%(overflow)s: set at most %(limit)d seconds",
    summary="The heartbeat timeout of the NCCL watchdog is above `heartbeat-limit` (2 hours).",
    rationale="The variable is not the timeout of collectives. It sets how long the watchdog *thread* can give no "
    "sign of life before the monitor aborts the process. While the watchdog runs, hung collectives end after the "
    "`timeout` of `init_process_group`, whatever this value is. A value of days only removes the last way out of a "
    "hang inside CUDA or NCCL. From 2147484 s on the value overflows: released versions of torch multiply it by 1000 "
    "in 32 bits, so 12000000 becomes a negative wait and the monitor thread spins, or (torch 2.4 to 2.6) aborts the "
    "run at its start.",
    cost="One stuck process keeps every GPU of the job allocated and idle for up to twice the value.",
    exceptions="A run whose main thread holds the GIL for hours on purpose (a huge compilation, or a checkpoint "
    "written in one call): raise `heartbeat-limit` for the project. A value that comes from outside the file is "
    "unknown and not reported.",
    versions="The variable exists since torch 2.2; its default is 600 s, and 480 s since torch 2.5. The 32-bit overflow is "
    "in the binaries of torch 2.4 to 2.9.",
    verification="Delete the line and look for the heartbeat timeout that ProcessGroupNCCL logs at its start with "
    "`TORCH_CPP_LOG_LEVEL=INFO`. To change when a hung collective ends, set `timeout` of `init_process_group`.",
    references=(_PROCESS_GROUP, _INIT, _HEARTBEAT_DEFAULT),
    reads=("sh", "py", "cfg"),
    needs="TORCH_NCCL_* variables",
    triggers=(b"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a heartbeat timeout that was never reached can now end a process. " + _UNIT,
    options=(
        Option(
            "heartbeat-limit",
            7200,
            "longest TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC that is not reported, in seconds",
            minimum=SHORTEST_SAFE_HEARTBEAT,
            maximum=LARGEST_SAFE_HEARTBEAT,
        ),
        Option(
            "heartbeat-timeout",
            1800,
            "heartbeat timeout that the fix writes, in seconds",
            minimum=SHORTEST_SAFE_HEARTBEAT,
            maximum=LARGEST_SAFE_HEARTBEAT,
            at_most="heartbeat-limit",
        ),
    ),
    probe=Probe(
        "group-environment",
        "the variable had this value when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
)

INEFFECTIVE_ENVIRONMENT_VARIABLE = Rule(
    code="W7204",
    symbol="ineffective-environment-variable",
    consequence=Consequence.CONFIG,
    message="`%(name)s` has no effect: %(why)s",
    summary="A variable is set that neither PyTorch nor NCCL reads: invented, removed or misspelled.",
    rationale="Names such as NCCL_TIMEOUT sound right and are copied from script to script, but no release of NCCL "
    "and no build of PyTorch contains them. Others were removed years ago. A misspelled TORCH_NCCL_ name, or one "
    "without its TORCH_ (NCCL_HEARTBEAT_TIMEOUT_SEC), is silently ignored.",
    cost="No run time, but a false sense of safety: the timeout or tuning that the file promises has no effect.",
    exceptions="Not reported: a project that reads the variable itself (`os.environ`, `os.getenv`); a file that uses "
    "its value; an unknown name that is not close to a real one; a container variable that any script of the project "
    "expands.",
    versions=f"The tables are as of {environment_names.AS_OF}.",
    verification="`strings libtorch_cuda.so libnccl.so.2 | grep -x NAME` prints nothing.",
    references=(_NCCL_VARIABLES, _PROCESS_GROUP, _INIT),
    reads=("sh", "py", "cfg"),
    triggers=(*(name.encode() for name in (*environment_names.UNREAD, *environment_names.REMOVED)), b"NCCL_"),
    applicability=Applicability.SAFE,
    fix_safety="Safe if nothing in the file mentions the name again or prints all variables, and its block or list "
    "does not become empty. Otherwise unsafe; if a command would fail without the variable (`set -u`), no fix is "
    "offered. A plain number of seconds, between `collective-minimum` and `collective-limit`, can move to the "
    "program: if its launches reach exactly one `init_process_group` without a timeout, one unsafe fix over both "
    "files passes it there as `timeout=timedelta(seconds=...)`, and it applies to every launch of that program. A "
    "misspelled name is not removed: only you know which variable was meant.",
    overrides="nothing reads it",
)

INEFFECTIVE_HEARTBEAT_TIMEOUT = Rule(
    code="I7205",
    symbol="ineffective-heartbeat-timeout",
    consequence=Consequence.CONFIG,
    message="%(setting)s has no effect: %(cause)s; change that setting first, or remove this one",
    summary="A heartbeat timeout together with a setting that disables it.",
    rationale="The heartbeat timeout sets when the monitor thread ends a process whose NCCL watchdog is stuck. With "
    "monitoring off the monitor ends nothing, and since torch 2.6 blocking wait creates neither watchdog nor monitor, "
    "so the number has no effect. Check the number before you fix either setting: from then on it takes effect.",
    cost="No run time, but a false sense of safety: the timeout that the file promises has no effect.",
    exceptions="A heartbeat above `heartbeat-limit` is reported as excessive-heartbeat-timeout instead. Only settings "
    "that the same processes see are compared, including those of scripts that source each other. With a "
    "`target-torch` below 2.6 blocking wait does not count.",
    versions="Monitoring: torch 2.2 to 2.13. Blocking wait: torch 2.6 and later.",
    verification="torch 2.5 and later log that the monitor thread is disabled when it would have ended the process; torch 2.6 "
    "and later log `TORCH_NCCL_BLOCKING_WAIT is enabled, NO watchdog thread is created.`",
    references=(_PROCESS_GROUP, _HEARTBEAT_DEFAULT, _NO_WATCHDOG),
    reads=("sh", "py", "cfg"),
    needs="TORCH_NCCL_* variables",
    triggers=(b"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it is the fix of the setting that disables this one. " + _UNIT,
    overrides="it contradicts the timeout that is set as well",
)

NCCL_MONITORING_DISABLED = Rule(
    code="W7206",
    symbol="nccl-monitoring-disabled",
    consequence=Consequence.HANG,
    message="%(setting)s switches off the monitor of the NCCL watchdog: nothing ends a process whose watchdog hangs, and "
    "its GPUs stay allocated; set it to 1",
    summary="The thread that monitors the NCCL watchdog is switched off.",
    rationale="Monitoring is on by default. With monitoring off, a watchdog that hangs inside a CUDA or NCCL call is "
    "never noticed: up to torch 2.4 the monitor thread is not started, later it only logs that it would have ended "
    "the process. A TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC in the same environment has no effect.",
    cost="Every GPU of a stuck job stays allocated until a person notices.",
    exceptions="Debugging the watchdog itself. The timeout of collectives does not depend on monitoring.",
    versions="The variable exists since torch 2.2 and defaults to on.",
    verification="The log says `ProcessGroupNCCL monitor thread is disabled, but would have terminated the process` when a "
    "watchdog was stuck (torch 2.5 and later).",
    references=(_PROCESS_GROUP, _MONITORING_DEFAULT, _HEARTBEAT_DEFAULT),
    reads=("sh", "py", "cfg"),
    needs="TORCH_NCCL_* variables",
    triggers=(b"TORCH_NCCL_ENABLE_MONITORING",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: processes that were left alone before can now be ended. The variable is set to 1, not "
    "removed, so that a 0 from a sourced file, an image or a cluster profile does not take effect instead. No fix is "
    "offered if the heartbeat timeout of the file, or of another file for the same processes, is unknown, below 30 s "
    "or would still overflow. " + _UNIT,
    probe=Probe(
        "group-environment",
        "the variable was off when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
    overrides="the numbers stay the same, and the rule is about this value",
)

NCCL_BLOCKING_WAIT = Rule(
    code="W7207",
    symbol="nccl-blocking-wait",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s makes the host wait for every collective, so it cannot queue work ahead of the GPU, and "
    "switches NCCL's asynchronous error handling off: remove it",
    summary="Blocking wait is on, under its new or its old name.",
    rationale="With blocking wait every `work.wait()` blocks the host thread until the collective has finished, so "
    "the host no longer runs ahead of the GPU. Up to torch 2.5 it also turns asynchronous error handling off. Since "
    "torch 2.6 no watchdog thread is created at all: no asynchronous timeout, no heartbeat monitor, no "
    "flight-recorder dump. torch reads both names and TORCH_NCCL_BLOCKING_WAIT wins, so changing only the old one "
    "changes nothing.",
    cost="Host time in every step. How much depends on how far the host could have run ahead; it was not measured "
    "here.",
    exceptions="Fault-tolerant trainers and tests that catch the exception of `wait()`. A value of 0 is the default.",
    versions="Both names work in torch 2.2 to 2.13, the one without TORCH_ with a deprecation warning; up to torch "
    "2.1 only NCCL_BLOCKING_WAIT is read.",
    verification="torch 2.6 and later log `TORCH_NCCL_BLOCKING_WAIT is enabled, NO watchdog thread is created.`",
    references=(_PROCESS_GROUP, _NO_WATCHDOG),
    reads=("sh", "py", "cfg"),
    triggers=(b"NCCL_BLOCKING_WAIT",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the watchdog, its timeout and the heartbeat take effect again. Both names are removed "
    "together. No fix is offered if the heartbeat timeout of the file, or of another file for the same processes, is "
    "unknown, below 30 s or would still overflow. " + _UNIT,
    probe=Probe(
        "group-environment",
        "the variable was on when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
    overrides="the numbers stay the same, and the rule is about this value",
)

RULES = (
    EXCESSIVE_HEARTBEAT_TIMEOUT,
    INEFFECTIVE_ENVIRONMENT_VARIABLE,
    INEFFECTIVE_HEARTBEAT_TIMEOUT,
    NCCL_MONITORING_DISABLED,
    NCCL_BLOCKING_WAIT,
)
