"""Family 72: variables that are set to find a defect and then left in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ldlm_lint.model import Applicability, Consequence, Edit, Frequency, Probe, Reference, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_view import OUTSIDE_TESTS, Draft, Plan, View, drop, members, rewrite
from ldlm_lint.rules.settings import Setting, Value

_LEVEL, _FILE = "NCCL_DEBUG", "NCCL_DEBUG_FILE"
_LAUNCH, _CHECKS = "CUDA_LAUNCH_BLOCKING", "TORCH_DISTRIBUTED_DEBUG"
NAMES = (_LEVEL, _FILE, _LAUNCH, _CHECKS)

_WORDY = frozenset({"INFO", "ABORT", "TRACE"})
_EFFECTS = {
    _LEVEL: "every rank logs the setup of NCCL, and with TRACE or the COLL subsystem every collective",
    _LAUNCH: "the host waits for every kernel before it launches the next one",
    _CHECKS: "every collective first runs a barrier and compares shapes across the ranks",
}
# A variable that differs, or may differ, between the processes of a machine.
_DISTINCT = lazily(r"rank|proc|pid|local|task|worker|gpu|uuid|random|\$\$|%p", re.I)
_PER_NODE = lazily(r"(?:NODE|GROUP|MACHINE|HOST)_?RANK|NUM_?(?:TASKS|PROCS|GPUS)|N?PROC_?PER_?NODE", re.I)
_UNKNOWN = lazily(r"\$(?:\w+|\{\w+\})")
_STREAMS = lazily(r"(?:/dev/)?(?:stdout|stderr|null)|/dev/.*", re.I)
# Words of NCCL's log at INFO, as a script greps for them.
_OF_LOG = lazily(r"NCCL INFO|\bNET/|\bvia (?:P2P|SHM)|Init (?:COMPLETE|START)|Connected all")
_SUFFIX = lazily(r"\.(?:log|txt|out)(?=[\"']?\Z)")

_DEBUG = Reference("NCCL_DEBUG", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug")
_DEBUG_FILE = Reference(
    "NCCL_DEBUG_FILE", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug-file"
)
_ASYNCHRONOUS = Reference(
    "Asynchronous execution", "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution"
)
_LEVELS = Reference(
    "TORCH_DISTRIBUTED_DEBUG", "https://docs.pytorch.org/docs/stable/distributed.html#torch-distributed-debug"
)

DEBUG_ENVIRONMENT_LEFT_ON = Rule(
    code="W7215",
    symbol="debug-environment-left-on",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(setting)s is meant for debugging: %(effect)s; remove it from normal runs",
    summary="`NCCL_DEBUG` at INFO or TRACE, `CUDA_LAUNCH_BLOCKING`, or `TORCH_DISTRIBUTED_DEBUG=DETAIL` outside of debugging.",
    rationale="These variables are set to find one defect and then stay in the file. CUDA_LAUNCH_BLOCKING makes every "
    "kernel launch wait for its kernel, so the host never runs ahead of the GPU. TORCH_DISTRIBUTED_DEBUG=DETAIL wraps "
    "every process group and checks every collective for consistency. NCCL_DEBUG=INFO fills the log of every rank.",
    cost="CUDA_LAUNCH_BLOCKING and DETAIL cost time in every step; how much depends on the model and was not measured "
    "here. For NCCL_DEBUG=INFO no source gives a cost in time: the cost is log volume.",
    exceptions="Not reported: files that debug, test or measure by their name or by what they launch, settings under "
    "a debug condition, tests, and NCCL_DEBUG=WARN and TORCH_DISTRIBUTED_DEBUG=INFO, which are cheap. Nor are CI "
    "pipelines, an editor's launch configurations, services, pods and stages of an image whose name mentions "
    "debugging or testing, and a variable that the command of its container sets again.",
    versions="torch 2.0 to 2.13, every NCCL.",
    verification="Remove the line and compare the time of a step and the size of the log.",
    references=(_DEBUG, _ASYNCHRONOUS, _LEVELS),
    reads=("sh", "py", "cfg"),
    triggers=(_LEVEL.encode(), _LAUNCH.encode(), _CHECKS.encode()),
    applicability=Applicability.SAFE,
    fix_safety="Safe for NCCL_DEBUG, which becomes WARN, if no file of the project uses its value and the file does "
    "not search for lines of NCCL's log. Unsafe for the other two, because an error is then reported later or with "
    "fewer details.",
    probe=Probe(
        "group-environment",
        "NCCL_DEBUG was INFO or TRACE when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
    overrides="a tool for debugging, which changes no result",
)

NCCL_DEBUG_FILE_SHARED = Rule(
    code="W7216",
    symbol="nccl-debug-file-shared",
    consequence=Consequence.CONFIG,
    message="%(setting)s is one file for all processes of a machine: each of them truncates it, and output is lost or "
    "mixed; put `%%p`, which NCCL replaces with the process id, into the name",
    summary="`NCCL_DEBUG_FILE` without `%%p` although several processes of a machine write it.".replace("%%", "%"),
    rationale="Every process opens and truncates the file itself. NCCL's documentation says that output may be lost "
    "or corrupted if the name is not unique across all processes of the job. The rank of the node is not enough, "
    "because all processes of a node share it. NCCL replaces `%h` with the host name and `%p` with the process id.",
    cost="The log of the one rank that failed can be the one that is overwritten.",
    exceptions="A name with `%p`, or with a variable or command that can differ between processes; launches of one "
    "process per machine; NCCL_DEBUG below INFO, which writes almost nothing; test scripts.",
    versions="Every NCCL.",
    verification="Count the files after a run: one per process.",
    references=(_DEBUG_FILE, _DEBUG),
    reads=("sh", "py", "cfg"),
    triggers=(_FILE.encode(),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the log files get other names, and there is one per process.",
)

RULES = (DEBUG_ENVIRONMENT_LEFT_ON, NCCL_DEBUG_FILE_SHARED)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic; a file that debugs, tests or measures is skipped."""
    if view.scene.diagnostic:
        return
    for setting in view.lasting((_LEVEL, _LAUNCH, _CHECKS)):
        if setting.place.debugging or not (found := members(setting, _WANTED[setting.name])):
            continue
        args = (("value", found[0].text), ("effect", _EFFECTS[setting.name]))
        yield Draft(DEBUG_ENVIRONMENT_LEFT_ON, setting, args, _quieter(setting, view), claims=(OUTSIDE_TESTS,))
    for setting in view.lasting([_FILE]):
        if _is_shared(setting, view):
            text = setting.written.text if setting.written is not None else ""
            yield Draft(
                NCCL_DEBUG_FILE_SHARED,
                setting,
                (("value", text.strip("\"'")),),
                _apart(setting),
                claims=(OUTSIDE_TESTS,),
            )


def _is_wordy(value: Value) -> bool:
    return value.text.upper() in _WORDY


_WANTED: dict[str, Callable[[Value], bool]] = {
    _LEVEL: _is_wordy,
    _LAUNCH: lambda value: value.text == "1",
    _CHECKS: lambda value: value.text.upper() == "DETAIL",
}


def _quieter(setting: Setting, view: View) -> tuple[Plan, ...]:
    wanted = _WANTED[setting.name]
    if setting.name == _LEVEL:
        reason = "the file searches the log of NCCL" if _OF_LOG.search(view.scene.text) else ""
        return (rewrite(setting, wanted, "WARN", "the file uses the value in other places" if setting.expanded else reason),)
    if setting.name == _CHECKS:
        return (rewrite(setting, wanted, "INFO", "torch no longer explains a mismatch of collectives where it happens"),)
    reason = "an error in a kernel is then reported at a later call"
    return (drop(setting, reason), rewrite(setting, wanted, "0", reason))


def _is_shared(setting: Setting, view: View) -> bool:
    """Whether several processes of a machine write one file, and more than a few lines."""
    wordy = any(members(one, _is_wordy) for one in view.beside(setting, [_LEVEL]))
    if setting.written is None or setting.place.debugging or not wordy or not view.scene.several:
        return False
    text = setting.written.text.strip("\"'")
    name = text.rpartition("/")[2]
    if not name or _UNKNOWN.fullmatch(name) or "$(" in text or "`" in text or _STREAMS.fullmatch(text):
        return False
    return not _DISTINCT.search(_PER_NODE.sub("", text))


def _apart(setting: Setting) -> tuple[Plan, ...]:
    """The plan for one file per process: host and process id are inserted before the suffix."""
    written = setting.written
    if written is None or written.span is None or setting.expanded:
        return ()
    suffix = _SUFFIX.search(written.text)
    tail = written.text[suffix.start() :] if suffix else written.text[len(written.text.rstrip("\"'")) :]
    end = written.span.end - len(tail.encode())
    edit = Edit(Span(written.span.path, end, end, written.span.cell), ".%h.%p")
    return (Plan("give each process a file of its own", (edit,), "the log files get other names"),)
