"""Messages of a program, its launcher or its machine about failures: events, with one regular expression each.

A line is checked only if it contains one of the short `triggers`, so that ordinary lines cost a few substring searches.
The expressions match the wording of the library's message, not a keyword: "no NaN found", ``nan_iterations: 0`` and
``timeout=600`` are not error messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ldlm_lint.monitor import nonfinite, wordings
from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.patterns import Pattern, asserted, pattern
from ldlm_lint.monitor.records import Line
from ldlm_lint.monitor.triggers import Triggers, words_of

LONGEST = 240


class Event(NamedTuple):
    """A line with a meaning: its kind (a key of `alarms.KINDS`), the process, the line quoted, the values read from
    it.
    """

    kind: str
    line: int
    rank: int | None
    actor: str
    text: str
    details: Mapping[str, str]
    level: Level | None = None


_RANK = r"\[(?:PG (?:ID )?(?P<pg>\d+)[^\]]*? )?Rank (?P<rank>\d+)\]"
_NAMED = re.compile(r"\[(?:PG [^\]]*)?Rank (\d+)\]")
_FIXED = (
    # Collectives. `culprit.py` combines the lines of all ranks.
    pattern(
        "nccl-timeout",
        "Watchdog caught collective",
        rf"(?:{_RANK}\s*)?Watchdog caught collective operation timeout: "
        r"Work(?:NCCL|HCCL|UCC|XCCL)?\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<op>\w+)"
        r"(?:.*?Timeout\(ms\)=(?P<limit>\d+))?(?:.*?ran for (?P<ran>\d+) milliseconds)?",
    ),
    pattern(
        "nccl-timeout",
        "ast enqueued",
        rf"{_RANK}.*?(?:at work|at NCCL work|work sequence id): (?P<seq>-?\d+)[,. ].*?"
        r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+)(?:, last started work: (?P<started>-?\d+)[^,]*)?"
        r", last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    ),
    pattern(
        "nccl-timeout",
        "eceived a dump signal due to a collective timeout",
        rf"(?:{_RANK}\s*)?Received a dump signal due to a collective timeout from\s+(?:.*?)"
        r"[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)",
    ),
    pattern(
        "nccl-timeout",
        "monitoredBarrier",
        r"[Rr]anks? (?P<missing>\d+(?:, ?\d+)*) failed to pass monitoredBarrier in (?P<limit>\d+) ?ms",
    ),
    pattern(
        "collective-mismatch",
        "Detected mismatch between collectives",
        r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: "
        r"CollectiveFingerPrint\((?:SequenceNumber=(?P<seq>\d+),? ?)?OpType=(?P<op>\w+?)(?:,|\)).*?"
        r"(?:but|while) Rank (?P<other>\d+) is running",
    ),
    pattern(
        "nccl-timeout",
        "didn't join collective",
        r"\[(?P<missing>\d+(?:, ?\d+)*)\] finished collective #(?P<completed>\d+), but didn't join collective #(?P<seq>\d+)",
    ),
    pattern(
        "nccl-heartbeat",
        "Heartbeat monitor timed out|eartbeat monitor|Terminating the process after",
        rf"(?:{_RANK}.*?)?(?:Heartbeat monitor timed out!|Terminating the process after attempting to dump debug info, due to)",
    ),
    pattern(
        "connection-lost",
        "Connection reset by peer|Connection closed by|ncclRemoteError|Broken pipe",
        r"(?:(?:recv|send|write|read|socketProgress|Net|gloo|TCPStore|TCPSTORE|NCCL|RuntimeError|DistNetworkError|"
        r"ConnectionResetError|DistStoreError)\b.*(?:Connection (?:reset|closed) by (?:remote )?peer|Broken pipe))"
        r"|^ncclRemoteError: ",
    ),
    pattern(
        "nccl-error",
        "NCCL error|DistBackendError|ncclUnhandledCudaError|ncclSystemError|ncclInternalError",
        r"(?:DistBackendError|RuntimeError|Exception): NCCL error|^nccl(?:UnhandledCuda|System|Internal)Error: ",
    ),
    pattern(
        "connection-lost",
        "store->get|store based barrier|Socket Timeout|Timed out waiting|client socket has timed out",
        r"(?:Timed out initializing process group in store based barrier|store->get\('[^']*'\) got error|(?:RuntimeError|DistStoreError|DistNetworkError|"
        r"TimeoutError): .*(?:Socket Timeout|client socket has timed out|Timed out waiting \d+ms for (?:recv|send)))",
    ),
    # Memory, of the device and of the host.
    pattern(
        "oom",
        "out of memory|OutOfMemoryError|OUT_OF_MEMORY",
        r"(?:OutOfMemoryError|RuntimeError|AcceleratorError|cudaErrorMemoryAllocation)\S*: "
        r"(?:\[\w+\] )?(?:(?:CUDA|HIP|XPU|NPU|MPS|HCCL)\b.{0,60}?(?:out of memory|OUT_OF_MEMORY)|.*?[Tt]ried to allocate)"
        r"|(?:^|[^\w\"'])(?:CUDA|HIP|XPU|NPU|MPS backend)(?: error:)? out of memory\.? ?(?:Tried|Currently|\(|$)"
        r"|ran out of memory with exception|Cuda failure (?:\d+ )?'out of memory'",
    ),
    pattern("oom", "ALLOC_FAILED", r"(?:RuntimeError|CUDA error): .*CU(?:BLAS|DNN|SOLVER)_STATUS_ALLOC_FAILED"),
    pattern(
        "oom",
        "ran out of memory",
        r"ran out of memory(?: in (?P<where>validation|worker))?, (?:retrying|skipping) batch|OOM during optimization",
        Level.WARNING,
    ),
    pattern(
        "host-oom",
        "oom-kill|oom_kill|Out of memory: Kill|OOMKilled|Out Of Memory|OOM Killed|OOM when|Cannot allocate memory",
        r"[Dd]etected \d+ oom[-_]kill event|Out of memory: Kill(?:ed)? process|(?:reason|Reason|status)\W+OOMKilled"
        r"|^srun: error: .*: Out Of Memory|tasks have been OOM Killed|MemoryError|(?:OSError|RuntimeError): .*Cannot allocate memory"
        r"|DefaultCPUAllocator: (?:can't allocate|not enough) memory",
    ),
    pattern(
        "host-oom",
        "DefaultCPUAllocator",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
    ),
    pattern(
        "shared-memory",
        "shared memory|/dev/shm|bus error|Bus error",
        r"insufficient shared memory|workers? are out of shared memory|unable to (?:open|write|mmap|resize).{0,60}shared memory"
        r"|No space left on device.*?/dev/shm|/dev/shm.*?No space left on device|(?:NCCL WARN|Error).*?while creating shared memory segment"
        r"|Unexpected bus error encountered in worker|received by PID \d+.*SIGBUS",
    ),
    pattern(
        "worker-died",
        "DataLoader worker",
        r"RuntimeError: DataLoader worker \(pid\(?s?\)? (?P<pid>[\d, ]+)\) (?:exited unexpectedly|is killed by signal: (?P<signal>[\w ]+))",
    ),
    pattern(
        "disk-full",
        "No space left on device|PytorchStreamWriter failed|Disk quota exceeded|file write failed",
        r"(?:OSError|IOError|RuntimeError|SafetensorError|Error|error)\b.*?(?:No space left on device|Disk quota exceeded"
        r"|(?:os error|code:?) (?:28|122))|PytorchStreamWriter failed writing file|(?:write|write error|tee|cp|mv): .*No space left on device",
    ),
    # Precision.
    pattern(
        "scale-at-minimum",
        "scale already at minimum|Minimum loss scale reached",
        r"(?:Exception: )?[Cc]urrent loss scale already at minimum|Minimum loss scale reached \((?P<scale>[\d.e+-]+)\)",
    ),
    pattern(
        "overflow",
        "OVERFLOW!|verflow detected|Gradient overflow|Grad overflow",
        r"(?:OVERFLOW!|Overflow detected\.) (?:Rank (?P<rank>\d+) )?Skipping step\. Attempted loss scale: (?P<scale>[\d.e+]+)"
        r"|(?:gradient|grad) overflow detected, ignoring gradient, setting loss scale to: (?P<to>[\d.e+-]+)"
        r"|Gradient overflow\. +Skipping step(?:, loss scaler \d+ reducing loss scale to (?P<apex>[\d.e+-]+))?"
        r"|Grad overflow on iteration:? (?P<step>\d+)",
        Level.INFO,
    ),
    pattern(
        "nan-message",
        "NaN|nan values|Loss is nan|Loss is inf|non-finite|stopping training",
        r"Rank (?P<rank>\d+): found NaN in |found NaN in local (?:forward loss|grad norm)|[Ll]oss is (?:nan|inf), stopping training"
        r"|FloatingPointError: |returned nan values in its \d+\w* output|(?:WARNING|ERROR)\W+(?:NaN|Inf|non-finite) (?:loss|gradients?) (?:detected|encountered|found|at) "
        r"|The total norm .{0,80}is non-finite|NaN or Inf found in input tensor",
    ),
    # DistributedDataParallel.
    pattern(
        "ddp-unused",
        "Expected to have finished reduction",
        r"RuntimeError: Expected to have finished reduction in the prior iteration",
    ),
    pattern(
        "ddp-static-graph",
        "graph has changed|Expected to mark a variable ready only once",
        r"Your training graph has changed in this iteration|RuntimeError: Expected to mark a variable ready only once",
    ),
    # The device and the machine.
    pattern(
        "hardware",
        "ECC|Xid|NVLink|fallen off the bus",
        r"CUDA error: .*(?:ECC|NVLink) error|NVRM: Xid \(PCI:[\w:.]+\): (?P<xid>\d+)|GPU has fallen off the bus"
        r"|CUDA_ERROR_ECC_UNCORRECTABLE",
    ),
    pattern(
        "cuda-error",
        "CUDA error:|HIP error:|CUBLAS_STATUS|CUDNN_STATUS",
        r"(?:RuntimeError|AcceleratorError|what\(\)|terminated with exception): .*?(?:CUDA|HIP) error: (?P<what>[\w :-]+)"
        r"|RuntimeError: .*(?:CUBLAS|CUDNN)_STATUS_(?!SUCCESS|ALLOC)(?P<status>\w+)",
    ),
    # Launchers and schedulers.
    pattern(
        "child-failed",
        "failed (exitcode",
        r"failed \(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<local>\d+)",
    ),
    pattern(
        "killed",
        "Killed|Segmentation fault|Aborted",
        r"^\S*srun: error: .*: (?:task|tasks) \S+: (?P<signal>Killed|Segmentation fault|Aborted)"
        r"|^(?:.*line \d+: +\d+ )?(?P<word>Killed|Segmentation fault|Aborted)(?: \(core dumped\))?(?: {2,}.*)?$"
        r"|^Fatal Python error: (?P<fatal>Segmentation fault|Aborted)",
    ),
    pattern("killed", "exits with return code", r" exits with return code = (?P<exitcode>-\d+)"),
    pattern(
        "preempted",
        "PREEMPTION|TIME LIMIT|JOB REQUEUE|CANCELLED AT|is preempted|NODE FAILURE|received signal: 15|got signal: 15",
        r"\*\*\* (?:JOB|STEP) [\d.]+ ON \S+ CANCELLED AT \S+(?: DUE TO (?P<why>[A-Z ]+?))? \*\*\*|: this job is preempted"
        r"|Received Signals\.SIGTERM|SignalException: Process \d+ got signal: 15",
    ),
)
PATTERNS: tuple[Pattern, ...] = (*_FIXED, *wordings.LIBRARIES, *nonfinite.PATTERNS, *wordings.PROGRAMS)
TRIGGERS = tuple(dict.fromkeys(one for known in PATTERNS for one in known.triggers))
# Also in ordinary metric lines.
ORDINARY = frozenset(
    ("loss", "grad", "train", "norm", "value", "scale", "for", "in", "at", "is", "are", "when", "found", "step")
)
_LOOKED_FOR = Triggers((*TRIGGERS, "Traceback"), ORDINARY)
# The patterns of each trigger, by their place in the order in which they are tried.
_OF_TRIGGER: dict[str, list[int]] = {}
for _place, _pattern in enumerate(PATTERNS):
    for _trigger in _pattern.triggers:
        _OF_TRIGGER.setdefault(_trigger, []).append(_place)


def eventful(text: str) -> bool:
    """Whether a block of lines may contain an event."""
    return bool(_LOOKED_FOR.among(text, words_of(text)))


def match(line: Line) -> Event | None:
    """The event in a line, if there is one."""
    text = line.text
    triggers = _LOOKED_FOR.among(text, words_of(text))
    for place in sorted({place for one in triggers for place in _OF_TRIGGER.get(one, ())}):
        kind, _, expression, level, spoken = PATTERNS[place]
        found = expression.search(text)
        if found is not None and (not spoken or asserted(text, found.start(), found.end())):
            details = {name: value for name, value in found.groupdict().items() if value}
            said = details.get("rank") or ((named := _NAMED.search(text)) and named[1])
            rank = int(said) if said else line.rank
            return Event(kind, line.line, rank, line.actor, shortened(text), details, level)
    return None


def shortened(text: str) -> str:
    """A line as a quotation: without the remains of an earlier bar, and not too long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
