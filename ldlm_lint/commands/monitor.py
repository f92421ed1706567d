"""``ldlm-lint monitor``: the health of a training run from its logs, at once or as they grow; two runs compared."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.arguments import UsageError, seconds
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, check_writable, fail, write_document
from ldlm_lint.extras import install

if TYPE_CHECKING:
    from ldlm_lint.monitor.health import Health
    from ldlm_lint.monitor.sources import Source

SHORTEST = 0.1
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
    parser.add_argument(
        "--follow", "-f", action="store_true", help="wait for the logs and read on as they grow, until Ctrl-C"
    )
    parser.add_argument(
        "--interval",
        type=_interval,
        metavar="SECONDS",
        help="how often --follow looks for new lines and redraws (default: 1)",
    )
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="compare two runs, aligned by step")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to a file, or to stdout with -")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw loss, gradient norm and throughput with the alarms (png, svg, pdf)",
    )
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
    if arguments.interval is not None and not arguments.follow:
        raise UsageError("--interval says how often --follow looks; add --follow")
    if arguments.plot:
        _check_plot(arguments)
    try:
        return _compared(arguments) if arguments.compare else _watched(arguments)
    except MissingExtra as error:
        raise UsageError(str(error)) from error
    except SourceError as error:
        return fail(FAILURE, str(error))


def _watched(arguments: argparse.Namespace) -> int:
    from ldlm_lint.monitor import live, report
    from ldlm_lint.monitor.alarms import Level
    from ldlm_lint.monitor.arrivals import Arrivals
    from ldlm_lint.monitor.sources import NoLog

    health = _health(arguments)
    unread = 0
    if arguments.follow:
        stream = sys.stderr if arguments.json == "-" else sys.stdout
        arrivals = Arrivals(arguments.paths)
        interval = arguments.interval or live.INTERVAL
        live.follow(health, [], stream, least_silence=arguments.silence, poll=interval, arrivals=arrivals)
        if not health.sources and arrivals.waiting:
            return fail(FAILURE, "\n".join(f"{path}: no log appeared" for path in arrivals.waiting))
    else:
        try:
            found = _found(arguments.paths)
        except NoLog as error:
            return fail(FAILURE, f"{error}; with --follow, ldlm-lint monitor waits for it")
        unread = _read(health, found)
    health.close()
    if arguments.json:
        _write_json(arguments.json, report.document(health))
    if not health.records and not health.book.alarms:
        lines = sum(one.lines for one in health.sources.values())
        return fail(FAILURE, f"nothing was understood: no metric and no known error in {lines} lines")
    if arguments.json != "-":
        report.write(health, sys.stdout, quiet=arguments.quiet)
    if arguments.plot and not _drawn(health, arguments.plot):
        return fail(
            FAILURE, f"--plot: no loss, gradient norm or throughput was read, so {arguments.plot} was not written"
        )
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
            return fail(FAILURE, f"{path}: nothing was understood: no metric in it")
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
    """The sources of all paths, each with a name of its own; raises NoLog where a path holds none."""
    from ldlm_lint.monitor.arrivals import Arrivals

    arrivals = Arrivals(paths)
    found = arrivals.look()
    for missing in arrivals.waiting.values():
        raise missing
    return found


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


def _check_plot(arguments: argparse.Namespace) -> None:
    from ldlm_lint.monitor.drawing import SUFFIXES

    if arguments.compare:
        raise UsageError("--plot draws one run; leave out --compare")
    if arguments.plot.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {arguments.plot}: the suffix names the format, one of {', '.join(SUFFIXES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"--plot needs matplotlib: {install('plot')}")
    check_writable("--plot", str(arguments.plot))


def _drawn(health: Health, path: Path) -> bool:
    from ldlm_lint.monitor.drawing import draw
    from ldlm_lint.monitor.picture import picture

    made = picture(health)
    if made is None:
        return False
    try:
        draw(made, path)
    except OSError as error:
        raise UsageError(f"--plot {path}: {error.strerror or error}") from error
    return True


def _interval(text: str) -> float:
    number = seconds(text)
    if number < SHORTEST:
        raise argparse.ArgumentTypeError(f"{text} is below {SHORTEST} seconds, the shortest interval")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number
