"""dataloader-too-many-workers: constants of any file, settings, defaults and counts of the node's CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import tables
from ldlm_lint.checkers.data.amount_fixes import fewer_fix, shared_fix
from ldlm_lint.checkers.data.common import MULTIPROCESS, SOURCE, WORKERS_LIMIT, fewer_workers
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.edits.written_parts import bound_at, constant_at, written_argument
from ldlm_lint.frameworks.loaders import another_number, loader_of, own_workers
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Probe,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS_OF_TORCH
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7106",
    symbol="dataloader-too-many-workers",
    consequence=Consequence.SLOW,
    message="%(workers)s DataLoader workers per rank means %(workers)s x (ranks on the node) processes on one node's CPU "
    "cores and memory, which can slow loading down; %(advice)s",
    summary="At least `workers-limit` DataLoader workers per rank, or as many per rank as the node has CPUs.",
    rationale="`num_workers` applies to each DataLoader of each rank. 16 workers on a node with 8 ranks are 128 "
    "processes for the training set, and as many again for a validation set that is open at the same time. They "
    "compete with the ranks for the CPUs, and each of them holds a copy of the dataset object and `prefetch_factor` "
    "batches. `os.cpu_count()` counts the CPUs of the whole node, even if a rank or a container gets only a share of "
    "them.",
    cost="Host memory and /dev/shm, slow starts, and CPU time that the training processes need. Not measured in "
    "general. torch's own warning compares one loader of one process with the CPUs that this process may use, so it "
    "does not warn about 8 ranks with 16 workers each on a node with 128 CPUs.",
    exceptions="One process per node with spare CPUs, or a decoding load that was measured to need the workers: raise "
    "`workers-limit`.",
    versions="All versions.",
    verification="Count the worker processes on a node and watch its CPU load; lower the number until the time spent "
    "waiting for the loader grows.",
    references=(
        MULTIPROCESS,
        SOURCE,
        Reference("os.cpu_count", "https://docs.python.org/3/library/os.html#os.cpu_count"),
        Reference("torchrun, environment variables", "https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"workers", b"WORKERS"),
    setting_triggers=(b"workers", b"WORKERS"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: fewer workers can be too few for a slow dataset, and the random streams of the workers change "
    "with their number. torchrun and launchers that use it set `LOCAL_WORLD_SIZE`; elsewhere 1 is assumed.",
    options=(WORKERS_LIMIT,),
    probe=Probe("loader-workers", "the workers of all ranks of the machine are more than its cores", device_bound=True),
)

_SHARE_CORES = "divide them by the number of ranks on the node"
# ``${eval:"len(__import__('os').sched_getaffinity(0))"}``: a resolver counts the CPUs of the node.
_CPU_COUNT = re.compile(
    r"\$\{[\w.]+:\s*[\"']?((?:len\()?(?:__import__\([\"']\w+[\"']\)|os|multiprocessing|psutil)"
    r"\.(?:sched_getaffinity\(0\)\)|(?:process_)?cpu_count\(\)))[\"']?\}"
)
_POSITION = tables.positional("torch.utils.data.DataLoader").index("num_workers")


class _Amount(NamedTuple):
    """A number of workers, or None for the CPUs of the node: its text, its place, and its fix."""

    number: int | None
    text: str
    span: Span
    fix: Fix | None


def find(code: ProjectCode) -> Iterator[Finding]:
    """All numbers of workers at the limit or above it, once where each is written."""
    seen: set[Span] = set()
    for call in code.calls(LOADERS_OF_TORCH):
        if code[Replicas].are_of_one_process(call.module):
            # One process loads for all GPUs of its node.
            continue
        limit = int(str(code.facts(call.module).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)))
        for amount in _amounts(code, call, limit):
            if amount.span not in seen and _may_matter(code, call, amount):
                seen.add(amount.span)
                yield _finding(code, call, amount, limit)


def _may_matter(code: ProjectCode, call: Call, amount: _Amount) -> bool:
    """Whether a number is one of a training; that of all CPUs matters where several ranks share them."""
    if not code.trainings.belong_to(amount.span.path):
        return False
    return amount.number is not None or (code.trainings.run_on_many_ranks(amount.span.path) and _may_train(code, call))


def _may_train(code: ProjectCode, call: Call) -> bool:
    """Whether a loader trains or its use is unknown: data preparation may use all CPUs."""
    passes = code[LoaderPasses].of(call)
    return not passes or any(code[Roles].trains(one.function.module) for one in passes) or code[LoaderPasses].trains(call) is not None


def _amounts(code: ProjectCode, call: Call, limit: int) -> Iterator[_Amount]:
    """The numbers at the limit or above it that a loader may get, and the counts of the node's CPUs."""
    workers = call.argument("num_workers", _POSITION)
    for value, giver in zip(workers.values, workers.givers, strict=True):
        yield from _constants(code, call, value, giver, limit)
        for number, spot in code[Workers].settings_of(value):
            if number >= limit:
                yield _number(code, number, spot.function.module, spot.place, limit)
        for count in code[Workers].of_whole_node(value, limit):
            source = code.source(count.module)
            yield _Amount(None, source.slice(count.span), count.span, shared_fix(source, count.span, count.row))


def _constants(code: ProjectCode, call: Call, value: Expr, giver: Expr, limit: int) -> Iterator[_Amount]:
    for number in value.may_be().constants:
        if type(number) is not int or number < limit:
            continue
        for origin in value.origins_of(number):
            home, place = origin.home, origin.place
            if not place and origin.expr == value and giver == call:
                home, place = call.module, _bound_at(code, call, value)
            if not place:
                home, place = giver.module, giver.place
            yield _number(code, number, home, place, limit)


def _bound_at(code: ProjectCode, call: Call, value: Expr) -> int:
    """Where the name that is at a call is bound to a constant; 0 if the constant itself is there."""
    written = written_argument(call, "num_workers", _POSITION)
    return bound_at(value, written.text) if written is not None and written.is_name else 0


def _number(code: ProjectCode, number: int, home: Module, place: int, limit: int) -> _Amount:
    span = constant_at(code, home, place, number)
    fix = fewer_fix(span, limit) if span is not None else None
    return _Amount(number, str(number), span or code.line_span(home, place), fix)


def _finding(code: ProjectCode, call: Call, amount: _Amount, limit: int) -> Finding:
    taker = call.spot.line_span
    related = (Related(taker, "this DataLoader takes the number"),) if not _meet(taker, amount.span) else ()
    advice = _SHARE_CORES if amount.number is None else fewer_workers(limit)
    shown = quoted(amount.text) if amount.number is None else amount.text
    confidence = Confidence.MEDIUM if amount.number is None else Confidence.HIGH
    return code.finding(RULE, amount.span, {"workers": shown, "advice": advice}, related, fix=amount.fix, confidence=confidence)


def _meet(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """The number of a Trainer, of a loader that a configuration creates, and in the project's own configuration."""
    limit, loader = integer(options, WORKERS_LIMIT), loader_of(section)
    for path, setting in own_workers(section):
        counted = _CPU_COUNT.fullmatch(setting.text or "")
        number = section.number(path) or 0
        if counted is not None:
            args: dict[str, object] = {"advice": _SHARE_CORES, "workers": quoted(counted[1])}
            yield section.report(RULE, setting, args, claims=(Claim("configured-value-reaches-call", "all-cpus-for-workers"),), confidence=Confidence.MEDIUM)
        elif number >= limit and number == int(number):
            args = {"advice": fewer_workers(limit), "workers": int(number)}
            claim, fix = Claim("configured-value-reaches-call", "too-many-workers"), another_number(section, setting, limit // 2) if limit > 1 else None
            yield section.report(RULE, setting, args, fix=fix, claims=(claim,), confidence=Confidence.MEDIUM)
    # Options for any program are already checked by the launch rules.
    if loader is not None and (loader.workers or 0) >= limit and not section.from_command:
        setting, fewer = section.settings[loader.names.workers], limit // 2
        args = {"workers": int(loader.workers or 0), "advice": fewer_workers(limit)}
        fix = unsafe(f"set {setting.name} to {fewer}", section.editor.replace(setting, fewer), "fewer workers can be too few for a slow dataset") if fewer else None
        yield section.report(RULE, setting, args, fix=fix, claims=(in_force(setting),))
