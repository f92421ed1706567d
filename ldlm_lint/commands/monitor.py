"""``ldlm-lint monitor``: the health of a training run from its logs, at once or as they grow; two runs compared."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from ldlm_lint.arguments import UsageError, seconds
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, fail, write_document

if TYPE_CHECKING:
    from ldlm_lint.monitor.health import Health
    from ldlm_lint.monitor.sources import Source

LEVELS = ("info", "warning", "critical")
EPILOG = (
    "exit codes: 0 no alarms (or, with --compare, no difference seen); 1 alarms at or above --fail-on, or runs that differ; "
    "2 wrong usage; 3 a log that cannot be read, or in which nothing was understood"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``monitor``."""
    parser.epilog = EPILOG
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="LOG",
        help="a log, a folder of logs (trainer_state.json, metrics.csv, JSON lines and tfevents first), or - for stdin",
    )
    parser.add_argument("--follow", "-f", action="store_true", help="go on as the logs grow, until Ctrl-C")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="compare two runs, aligned by step")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to a file, or to stdout with -")
    parser.add_argument("--rank", type=_count, metavar="N", help="only this rank, and lines without a rank")
    parser.add_argument("--since-step", type=_count, default=0, metavar="N", help="judge records from this step on")
    parser.add_argument(
        "--silence",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="the least gap that is an alarm, if it is 10 times the usual one too (default: 120)",
    )
    parser.add_argument(
        "--fail-on", choices=LEVELS, default="warning", help="lowest level that makes exit code 1 (default: warning)"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="alarms only, no table of series")


def run(arguments: argparse.Namespace) -> int:
    """Read, judge, print, and return the exit code."""
    from ldlm_lint.monitor.sources import MissingExtra, SourceError

    if bool(arguments.paths) == bool(arguments.compare):
        raise UsageError("name a log or a folder, or two of them with --compare")
    if arguments.compare and arguments.follow:
        raise UsageError("--compare reads finished logs; leave out --follow")
    try:
        return _compared(arguments) if arguments.compare else _watched(arguments)
    except MissingExtra as error:
        raise UsageError(str(error)) from error
    except SourceError as error:
        return fail(FAILURE, str(error))


def _watched(arguments: argparse.Namespace) -> int:
    from ldlm_lint.monitor import live, report
    from ldlm_lint.monitor.alarms import Level

    health = _health(arguments)
    found = _found(arguments.paths)
    unread = 0
    if arguments.follow:
        stream = sys.stderr if arguments.json == "-" else sys.stdout
        live.follow(health, found, stream, least_silence=arguments.silence)
    else:
        unread = _read(health, found)
    health.close()
    if arguments.json:
        _write_json(arguments.json, report.document(health))
    if not health.records and not health.book.alarms:
        lines = sum(one.lines for one in health.sources.values())
        return fail(FAILURE, f"nothing was understood: no record and no event in {lines} lines")
    if arguments.json != "-":
        report.write(health, sys.stdout, quiet=arguments.quiet)
    level = Level[arguments.fail_on.upper()]
    if any(health.book.at_least(level)):
        return FINDINGS
    return FAILURE if unread else OK


def _compared(arguments: argparse.Namespace) -> int:
    from ldlm_lint.monitor import compare, compare_report

    runs = []
    for path in arguments.compare:
        health = _health(arguments, capacity=compare.CAPACITY, broken=True)
        _read(health, _found([path]))
        health.close()
        if not health.records:
            return fail(FAILURE, f"{path}: nothing was understood")
        runs.append(health)
    compared = compare.compare(*runs)
    if not compared.quantities and not compared.differ:
        return fail(
            FAILURE, "the runs have no quantity in common (loss, step time, samples, tokens or iterations per second)"
        )
    first, second = arguments.compare
    if arguments.json:
        _write_json(arguments.json, compare_report.document(first, second, compared))
    if arguments.json != "-":
        compare_report.write(first, second, compared, sys.stdout)
    return FINDINGS if compared.differ else OK


def _health(arguments: argparse.Namespace, **options: Any) -> Health:
    from ldlm_lint.monitor.health import Health

    return Health(since=arguments.since_step, rank=arguments.rank, silence=arguments.silence, **options)


def _found(paths: list[str]) -> list[Source]:
    """The sources of all paths, each with a name of its own; raises SourceError where a path holds none."""
    from dataclasses import replace

    from ldlm_lint.monitor.sources import SourceError, find

    every: dict[str, Source] = {}
    for path in paths:
        found = find(path)
        if not found:
            raise SourceError(f"{path}: no log found in it")
        for one in found:
            name = one.name if one.name not in every else one.path
            every[name] = replace(one, name=name)
    return list(every.values())


def _read(health: Health, found: list[Source]) -> int:
    """Read the sources to their ends; one of several that cannot be read is said, counted and passed over."""
    from ldlm_lint.monitor.sources import SourceError, read

    broken: list[SourceError] = []
    for one in found:
        try:
            for line in read(one):
                if line is not None:
                    health.take(one.name, *line)
        except SourceError as error:
            broken.append(error)
            if len(found) > 1:
                print(f"warning: {error}", file=sys.stderr)
    if broken and len(broken) == len(found):
        raise broken[0]
    return len(broken)


def _write_json(path: str, document: dict[str, Any]) -> None:
    write_document(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number
