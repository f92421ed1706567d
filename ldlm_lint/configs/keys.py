"""Keys of a project's own configuration files, which its Python reads.

A key is a candidate by its name and value; the project decides whether a program reads the file, and whether the value
matters where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs import edits
from ldlm_lint.configs.document import Document, Entry
from ldlm_lint.configs.framework_sections import DocumentEditor, setting_of
from ldlm_lint.frameworks.sections import Section
from ldlm_lint.model import Applicability, Claim, Confidence, Finding, Fix, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.data import (
    DATALOADER_TOO_MANY_WORKERS,
    IN_MAIN_PROCESS,
    NUM_WORKERS,
    OPTIONS_WITHOUT_WORKERS,
    PERSISTENT_WORKERS,
    SHARE_CORES,
    WORKERS_LIMIT,
    fewer_workers,
)
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.ddp_graph import FIND_UNUSED_WITH_REENTRANT_CHECKPOINT, STATIC_GRAPH_WITH_NO_SYNC
from ldlm_lint.rules.linter import DEAD_CONFIG_KEY
from ldlm_lint.source import Source
from ldlm_lint.wording import listed, quoted

_WORKERS = lazily(r"(?:.*_)?(?:n|num_?|n_|number_of_)?(?:data_?|data_?loader_)?workers(?:_per_\w+)?", re.I)
# ``${eval:"len(__import__('os').sched_getaffinity(0))"}``: a resolver counts the CPUs of the node.
_CPU_COUNT = lazily(
    r"\$\{[\w.]+:\s*[\"']?((?:len\()?(?:__import__\([\"']\w+[\"']\)|os|multiprocessing|psutil)"
    r"\.(?:sched_getaffinity\(0\)\)|(?:process_)?cpu_count\(\)))[\"']?\}"
)
# A loader in a section for evaluation may work in the main process.
_EVALUATES = lazily(
    r"(?:^|_)(?:val|valid|validation|test|testing|eval|evaluation|dev|predict|infer\w*|sampl\w*)(?:_|\d|$|set|loader|data|dl)", re.I
)
# The main process loads the data when debugging.
_DEBUGS = lazily(r"(?:^|[_.-])(?:debug\w*|local|smoke|toy|tiny|overfit|dry|dev|test)(?:[_.-]|$)", re.I)
# A file with more keys than this is data, not a configuration; a list of files may have any length.
_MOST = 1000
_REASON = "another number of workers takes other memory and draws other random numbers, and fewer can be too few"


class _Switch(NamedTuple):
    """A flag of a call whose value in a configuration may be a defect."""

    rule: Rule
    name: re.Pattern[str]
    value: bool
    claim: Claim
    args: tuple[tuple[str, object], ...] = ()
    reason: str = ""


_SWITCHES = (
    _Switch(
        PERSISTENT_WORKERS,
        re.compile(r"(?:.*_)?persistent_workers"),
        False,
        Claim("configured-value-reaches-call", "workers-not-persistent"),
        (("where", "by the code that reads this value"), ("how", "off")),
        "workers keep their copies of the dataset and their random streams between epochs",
    ),
    _Switch(
        FIND_UNUSED_PARAMETERS,
        re.compile(r"(?:.*_)?find_unused_parameters"),
        True,
        Claim("configured-value-reaches-call", "unused-parameters"),
    ),
    _Switch(
        FIND_UNUSED_WITH_REENTRANT_CHECKPOINT,
        re.compile(r"(?:.*_)?find_unused_parameters"),
        True,
        Claim("configured-value-reaches-call", "reentrant-checkpoint"),
        (("where", ""),),
    ),
    _Switch(
        STATIC_GRAPH_WITH_NO_SYNC,
        re.compile(r"(?:.*_)?static_graph"),
        True,
        Claim("configured-value-reaches-call", "static-graph"),
        (("accumulation", ""),),
        "a parameter without a gradient, and a layer that is checkpointed twice, then raise errors",
    ),
)


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about values that the program reads from here, and about unread keys."""
    if sum(1 for entry in document.entries if entry.name) > _MOST:
        return
    for entry in document.scalars():
        if not entry.name or entry.shared:
            continue
        yield from _of_workers(source, document, entry, options)
        yield from _of_switch(source, document, entry)
    yield from findings_of(_own_settings(source, document), options)
    yield from _dead(document)


def _own_settings(source: Source, document: Document) -> Section:
    """The keys with single values, for rules that know their own by name."""
    scalars = (one for one in document.scalars() if one.name and not one.shared)
    settings = {f"{one.document}:{'.'.join(map(str, one.path))}": setting_of(one, one.name) for one in scalars}
    return Section("own", settings, DocumentEditor(source, document), complete=False)


def _number(options: Mapping[str, object], name: str, default: object) -> int:
    value = options.get(name, default)
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {value!r}")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Workers


def _of_workers(source: Source, document: Document, entry: Entry, options: Mapping[str, object]) -> Iterator[Finding]:
    if not _WORKERS.fullmatch(entry.name):
        return
    limit = _number(options, WORKERS_LIMIT.name, WORKERS_LIMIT.default)
    if isinstance(entry.value, str) and (counted := _CPU_COUNT.fullmatch(entry.value)):
        yield _finding(
            DATALOADER_TOO_MANY_WORKERS,
            entry,
            (("advice", SHARE_CORES), ("workers", quoted(counted[1]))),
            Claim("configured-value-reaches-call", "all-cpus-for-workers"),
            None,
        )
    if type(entry.value) is not int:
        return
    if entry.value >= limit:
        yield _finding(
            DATALOADER_TOO_MANY_WORKERS,
            entry,
            (("advice", fewer_workers(limit)), ("workers", entry.value)),
            Claim("configured-value-reaches-call", "too-many-workers"),
            _setting(source, document, entry, limit // 2, _REASON) if limit > 1 else None,
        )
    elif entry.value == 0 and not _is_meant(document, entry):
        yield from _no_workers(source, document, entry, _number(options, NUM_WORKERS.name, NUM_WORKERS.default))


def _is_meant(document: Document, entry: Entry) -> bool:
    """No workers for an evaluation, or in a file for debugging."""
    return any(_EVALUATES.search(str(key)) for key in entry.path) or _DEBUGS.search(document.path.rpartition("/")[2]) is not None


def _no_workers(source: Source, document: Document, entry: Entry, count: int) -> Iterator[Finding]:
    """Options next to it that need workers raise an error; without them the loader is only slow."""
    beside = {one.name: one for one in document.children(*entry.path[:-1], document=entry.document)}
    needs = {"prefetch_factor": _is_number, "persistent_workers": lambda value: value is True}
    wrong = [beside[name] for name, matters in needs.items() if name in beside and matters(beside[name].value)]
    if wrong:
        names = listed(f"{one.name}={one.value}" for one in wrong)
        yield _finding(
            OPTIONS_WITHOUT_WORKERS,
            entry,
            (("option", entry.name), ("options", names), ("error", "ValueError")),
            Claim("configured-section-reaches-loader", " ".join(one.name for one in wrong)),
            # Users who set these options want workers: removing the options would fix the error but keep the slow
            # loader.
            _setting(source, document, entry, count, _REASON),
        )
    yield _finding(
        IN_MAIN_PROCESS,
        entry,
        (("option", entry.name), ("why", f" ({quoted(entry.name)} is 0 here)")),
        Claim("configured-value-reaches-call", " ".join(["no-workers", *(one.name for one in wrong)])),
        _setting(source, document, entry, count, _REASON),
    )


# Flags


def _of_switch(source: Source, document: Document, entry: Entry) -> Iterator[Finding]:
    for switch in _SWITCHES:
        if entry.value is not switch.value or not switch.name.fullmatch(entry.name):
            continue
        if switch.rule is PERSISTENT_WORKERS and _has_no_workers(document, entry):
            continue
        fix = _setting(source, document, entry, not switch.value, switch.reason) if switch.reason else None
        # What is slower is a choice in the file; the others are defects.
        is_choice = switch.rule is PERSISTENT_WORKERS
        named = (("option", entry.name), ("setting", f"{entry.name}: true")) if switch.rule is PERSISTENT_WORKERS else ()
        found = _finding(switch.rule, entry, (*switch.args, *named), switch.claim, fix)
        yield found.lowered("switched off on purpose") if is_choice else found


def _has_no_workers(document: Document, entry: Entry) -> bool:
    beside = document.children(*entry.path[:-1], document=entry.document)
    return any(_WORKERS.fullmatch(one.name) and type(one.value) is int and one.value == 0 for one in beside)


def _finding(rule: Rule, entry: Entry, args: tuple[tuple[str, object], ...], claim: Claim, fix: Fix | None = None) -> Finding:
    return Finding(rule.symbol, rule.code, entry.whole, tuple(sorted(args)), Confidence.MEDIUM, fix=fix, claims=(claim,))


def _setting(source: Source, document: Document, entry: Entry, value: int | bool, reason: str) -> Fix | None:
    changes = edits.set_value(source, document, entry, value)
    text = str(value).lower()
    return Fix(f"set {entry.name} to {text}", changes, Applicability.UNSAFE, reason) if changes else None


# Unread keys


def _dead(document: Document) -> Iterator[Finding]:
    """Every key of a mapping may be unread; the project decides, and names only the topmost of a section."""
    for entry in document.entries:
        if entry.name and entry.key_span is not None and not entry.shared:
            args = (("key", ".".join(map(str, entry.path))), ("program", "a program"))
            claims = (Claim("configuration-key-is-dead"),)
            yield Finding(DEAD_CONFIG_KEY.symbol, DEAD_CONFIG_KEY.code, entry.key_span, args, Confidence.MEDIUM, claims=claims)
