"""``ldlm-lint monitor``: the health of a training run from its logs, once or as they grow; two runs compared."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.arguments import UsageError, seconds
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, STDOUT, check_page, check_writable, fail, write_document
from ldlm_lint.extras import install

if TYPE_CHECKING:
    from ldlm_lint.monitor.health import Health
    from ldlm_lint.monitor.progress import Progress
    from ldlm_lint.monitor.serving import Board
    from ldlm_lint.monitor.sources import Source

SHORTEST = 0.1
LEVELS = ("info", "warning", "critical")
EPILOG = (
    "exit codes: 0 no alarms (or, with --compare, no difference seen); 1 alarms at or above --fail-on, or runs that differ; "
    "2 invalid usage; 3 an unreadable log, or one without any line that the monitor recognises"
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
        "--follow", "-f", action="store_true", help="wait for the logs and read them as they grow, until Ctrl-C"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="follow the logs and show the run in the browser, on this machine only; the address is printed",
    )
    parser.add_argument("--port", type=_port, metavar="N", help="the port of --serve (default: a free one)")
    parser.add_argument("--open", action="store_true", help="open the page of --serve in the browser")
    parser.add_argument(
        "--interval",
        type=_interval,
        metavar="SECONDS",
        help="how often --follow and --serve look for new lines and redraw (default: 1)",
    )
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="compare two runs, aligned by step")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to a file, or to stdout with -")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw loss, gradient norm and throughput with the alarms (png, svg, pdf)",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write a page for the browser: the curves with the alarms, what to do next (one file, works offline); - is stdout, without the text",
    )
    parser.add_argument("--rank", type=_count, metavar="N", help="report only this rank, and lines without a rank")
    parser.add_argument("--since-step", type=_count, default=0, metavar="N", help="report only records from this step on")
    parser.add_argument(
        "--silence",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="the shortest gap that is an alarm, if it is also 10 times the usual gap (default: 120)",
    )
    parser.add_argument(
        "--fail-on", choices=LEVELS, default="warning", help="the lowest level that gives exit code 1 (default: warning)"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="alarms only, no table of series")


def run(arguments: argparse.Namespace) -> int:
    """Read, judge, print, and return the exit code."""
    from ldlm_lint.monitor.sources import MissingExtra, SourceError

    if bool(arguments.paths) == bool(arguments.compare):
        raise UsageError("give a log or a folder, or two with --compare")
    following = arguments.follow or arguments.serve
    if arguments.compare and following:
        raise UsageError(f"--compare reads finished logs; leave out {'--serve' if arguments.serve else '--follow'}")
    if arguments.interval is not None and not following:
        raise UsageError("--interval needs --follow or --serve")
    if not arguments.serve and (arguments.open or arguments.port is not None):
        raise UsageError(f"{'--open' if arguments.open else '--port'} belongs to --serve; add --serve")
    logs = [path for path in arguments.paths or arguments.compare if path != STDOUT]
    if arguments.plot:
        _check_plot(arguments, logs)
    check_page(arguments.json, arguments.html, logs)
    if arguments.json and arguments.json != STDOUT:
        check_writable("--json", arguments.json, logs)
    try:
        return _compared(arguments) if arguments.compare else _watched(arguments)
    except MissingExtra as error:
        raise UsageError(str(error)) from error
    except SourceError as error:
        return fail(FAILURE, str(error))


def _watched(arguments: argparse.Namespace) -> int:
    from ldlm_lint.monitor import report
    from ldlm_lint.monitor.alarms import Level
    from ldlm_lint.monitor.sources import NoLog

    health = _health(arguments)
    unread = 0
    progress: dict[str, Progress] = {}
    if arguments.follow or arguments.serve:
        missing = _followed(arguments, health, progress)
        if missing and not health.sources:
            return fail(FAILURE, "\n".join(f"{path}: no log appeared" for path in missing))
    else:
        try:
            found = _found(arguments.paths)
        except NoLog as error:
            return fail(FAILURE, f"{error}; with --follow, ldlm-lint monitor waits for it")
        unread = _read(health, found, progress if arguments.html else None)
    health.close()
    if arguments.json:
        _write_json(arguments.json, report.document(health))
    if not health.records and not health.book.alarms:
        lines = sum(one.lines for one in health.sources.values())
        return fail(FAILURE, f"no metric and no known error found in {lines} lines")
    if STDOUT not in (arguments.json, arguments.html):
        report.write(health, sys.stdout, quiet=arguments.quiet)
    if arguments.html:
        _write_run(arguments, health, progress)
    if arguments.plot and not _drawn(health, arguments.plot):
        return fail(
            FAILURE, f"--plot: no loss, gradient norm or throughput was read, so {arguments.plot} was not written"
        )
    level = Level[arguments.fail_on.upper()]
    if any(health.book.at_least(level)):
        return FINDINGS
    return FAILURE if unread else OK


def _followed(arguments: argparse.Namespace, health: Health, progress: dict[str, Progress]) -> list[str]:
    """Follow the logs until Ctrl-C, in the terminal and with --serve in browsers; returns the paths without a log."""
    from ldlm_lint.monitor import live
    from ldlm_lint.monitor.arrivals import Arrivals

    stream = sys.stderr if STDOUT in (arguments.json, arguments.html) else sys.stdout
    arrivals = Arrivals(arguments.paths)
    with _served(arguments) as board:
        found = live.follow(
            health,
            [],
            stream,
            least_silence=arguments.silence,
            poll=arguments.interval or live.INTERVAL,
            arrivals=arrivals,
            board=board,
        )
    progress.update(found)
    return list(arrivals.waiting)


@contextmanager
def _served(arguments: argparse.Namespace) -> Iterator[Board | None]:
    """With --serve what browsers are shown, until the end of the block; its address is said on stderr."""
    if not arguments.serve:
        yield None
        return
    from ldlm_lint.monitor.serving import Board, Server

    board = Board(_name(arguments.paths))
    try:
        server = Server(board, arguments.port or 0)
    except OSError as error:
        raise UsageError(f"--port {arguments.port}: {error.strerror or error}") from error
    try:
        print(f"{server.address}  (on this machine only; Ctrl-C stops)", file=sys.stderr, flush=True)
        if arguments.open:
            import webbrowser

            webbrowser.open(server.address)
        yield board
    finally:
        server.close()


def _compared(arguments: argparse.Namespace) -> int:
    from ldlm_lint.monitor import compare, compare_report

    runs = []
    for path in arguments.compare:
        health = _health(arguments, capacity=compare.CAPACITY, broken=True)
        _read(health, _found([path]))
        health.close()
        if not health.records:
            return fail(FAILURE, f"{path}: no metric found")
        runs.append(health)
    compared = compare.compare(*runs)
    if not compared.quantities and not compared.differ:
        return fail(
            FAILURE, "the runs have no metric in common (loss, step time, samples, tokens or iterations per second)"
        )
    first, second = arguments.compare
    if arguments.json:
        _write_json(arguments.json, compare_report.document(first, second, compared))
    if STDOUT not in (arguments.json, arguments.html):
        compare_report.write(first, second, compared, sys.stdout)
    if arguments.html:
        from ldlm_lint.monitor.compare_page import page

        a, b = _name([first]), _name([second])
        write_document(arguments.html, page(a, b, compared) if a != b else page(first, second, compared), "--html")
    return FINDINGS if compared.differ else OK


def _health(arguments: argparse.Namespace, **options: Any) -> Health:
    from ldlm_lint.monitor.health import Health

    return Health(since=arguments.since_step, rank=arguments.rank, silence=arguments.silence, **options)


def _found(paths: list[str]) -> list[Source]:
    """The sources of all paths, each with a unique name; raises NoLog if a path has none."""
    from ldlm_lint.monitor.arrivals import Arrivals

    arrivals = Arrivals(paths)
    found = arrivals.look()
    for missing in arrivals.waiting.values():
        raise missing
    return found


def _read(health: Health, found: list[Source], far: dict[str, Progress] | None = None) -> int:
    """Read the sources to their ends; one unreadable source of several is reported, counted and skipped.

    ``far`` gets how far each is.
    """
    from ldlm_lint.monitor.progress import Progress
    from ldlm_lint.monitor.sources import SourceError, read

    broken: list[SourceError] = []
    for one in found:
        try:
            for line in read(one):
                if line is not None:
                    health.take(one.name, *line)
                    if far is not None:
                        far.setdefault(one.name, Progress(one)).take((line,), caught_up=False)
        except SourceError as error:
            broken.append(error)
            if len(found) > 1:
                print(f"warning: {error}", file=sys.stderr)
    if broken and len(broken) == len(found):
        raise broken[0]
    return len(broken)


def _write_json(path: str, document: dict[str, Any]) -> None:
    write_document(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _write_run(arguments: argparse.Namespace, health: Health, progress: dict[str, Progress]) -> None:
    from ldlm_lint.monitor.now import Now
    from ldlm_lint.monitor.run_page import page

    write_document(arguments.html, page(health, _name(arguments.paths), Now(progress, live=False)), "--html")


def _name(paths: list[str]) -> str:
    """What a run is called in titles: its log, or its folder."""
    first = os.path.basename(os.path.abspath(paths[0])) if paths[0] != "-" else "stdin"
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def _check_plot(arguments: argparse.Namespace, logs: list[str]) -> None:
    from ldlm_lint.monitor.drawing import SUFFIXES

    if arguments.compare:
        raise UsageError("--plot draws one run and cannot be combined with --compare")
    if arguments.plot.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {arguments.plot}: the suffix must be one of {', '.join(SUFFIXES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"--plot needs matplotlib: {install('plot')}")
    check_writable("--plot", str(arguments.plot), logs)


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
        raise argparse.ArgumentTypeError(f"{text} is below the shortest interval, {SHORTEST} seconds")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 1 to 65535")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number
