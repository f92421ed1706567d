"""``ldlm-lint bench -- CMD...``: compares the command on the current tree and on the tree with the fixes applied."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.arguments import UsageError, count, seconds
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, STDOUT, check_page, fail, write_document
from ldlm_lint.extras import install
from ldlm_lint.options import configure_page

if TYPE_CHECKING:
    from ldlm_lint.bench.compare import Comparison
    from ldlm_lint.bench.invocation import Invocation
    from ldlm_lint.bench.losses import Losses
    from ldlm_lint.bench.rounds import Job
    from ldlm_lint.bench.samples import Sample
    from ldlm_lint.bench.trees import Trees

EPILOG = (
    "Every run gets a fresh copy of its tree. Each round runs both trees, and the unchanged tree a second time to measure "
    "how much equal trees differ (A/A). Exit codes: 0 compared, nothing got worse; 1 something got worse, or the losses "
    "differ; 2 invalid usage, or nothing to compare; 3 a run failed, or the budget allowed too few rounds to decide."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bench``."""
    parser.epilog = EPILOG
    trees = parser.add_argument_group("the trees")
    trees.add_argument("--select", action="append", default=[], metavar="NAMES", help="apply fixes of these rules only")
    trees.add_argument("--unsafe-fixes", action="store_true", help="also apply fixes that can change behaviour")
    trees.add_argument("--before", type=Path, metavar="DIR", help="compare this tree ...")
    trees.add_argument("--after", type=Path, metavar="DIR", help="... with this one, instead of applying fixes")
    trees.add_argument("--link", action="append", default=[], metavar="PATH", help="link this git-ignored path into the copies")
    runs = parser.add_argument_group("the runs")
    runs.add_argument(
        "--rounds", type=count, default=7, metavar="N", help="number of rounds, each with three runs; at least 5 (default: 7)"
    )
    runs.add_argument("--warmup", type=int, choices=range(6), default=1, help="warm-up runs of each tree (default: 1)")
    runs.add_argument("--steps", type=count, default=0, metavar="N", help="end each run after N optimizer steps")
    runs.add_argument("--max-seconds", type=seconds, metavar="S", help="fail a run that takes longer")
    runs.add_argument("--budget", type=seconds, metavar="S", help="start no round that would end after S seconds")
    runs.add_argument("--offline", action="store_true", help="switch experiment trackers and the Hugging Face hub to offline mode")
    runs.add_argument("--seed", type=int, default=0, help="random seed for the order of the runs (default: 0)")
    parser.add_argument("--json", metavar="FILE", help="write all results as JSON; - is stdout, without the table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw times and losses (png, svg, pdf)")
    configure_page(parser, "the comparison")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- CMD...", help="the command to run in each tree")


def run(arguments: argparse.Namespace) -> int:
    """Compare, print the result, and return the exit code."""
    import tempfile

    from ldlm_lint.bench.guards import only_on_cuda
    from ldlm_lint.bench.rounds import measured
    from ldlm_lint.bench.trees import AFTER, BEFORE, BenchError
    from ldlm_lint.probe.machine import cpu_pressure

    root, job = _job(arguments, Path.cwd())
    pressure = cpu_pressure()
    _say("each run executes the real program with all its side effects, in copies of the tree.")
    with tempfile.TemporaryDirectory(prefix="ldlm-bench-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve()
        try:
            trees = _trees(arguments, root, scratch)
        except BenchError as error:
            raise UsageError(str(error)) from error
        _say_trees(trees, job.command, root)
        guarded = only_on_cuda(trees.arms[BEFORE], trees.arms[AFTER])
        try:
            samples = measured(
                job,
                trees,
                scratch,
                rounds=arguments.rounds,
                warmup=arguments.warmup,
                budget=arguments.budget,
                seed=arguments.seed,
                say=_say,
            )
        except BenchError as error:
            return fail(FAILURE, str(error))
    if not samples:
        return fail(FAILURE, f"no round fits into {arguments.budget:g} s; give it more with --budget")
    return _report(arguments, job, trees.fixes, samples, pressure, guarded)


def _job(arguments: argparse.Namespace, cwd: Path) -> tuple[Path, Job]:
    """The project, and the command to run in its copies; raises UsageError for invalid arguments."""
    from ldlm_lint.bench.rounds import Job
    from ldlm_lint.probe import projects

    _check_rounds(arguments.rounds)
    if (arguments.before is None) is not (arguments.after is None):
        raise UsageError("--before and --after must be used together")
    if arguments.before and (arguments.select or arguments.unsafe_fixes):
        raise UsageError(
            "--select and --unsafe-fixes choose fixes; --before and --after compare two trees without fixes"
        )
    if arguments.plot and importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"--plot needs matplotlib: {install('plot')}")
    check_page(arguments.json, arguments.html)
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    inside_of = arguments.before.absolute() if arguments.before else cwd
    try:
        command = projects.command_of(words, inside_of)
    except projects.CommandError as error:
        raise UsageError(str(error).replace("probe run", "bench")) from error
    if arguments.before:
        root, inside = inside_of, Path()
    else:
        root = projects.root_of(command, cwd)
        inside = cwd.resolve().relative_to(root) if cwd.resolve().is_relative_to(root) else Path()
    job = Job(tuple(command), inside, dict(os.environ), arguments.steps, arguments.max_seconds, arguments.offline)
    return root, job


def _check_rounds(rounds: int) -> None:
    from ldlm_lint.bench.compare import FEWEST_ROUNDS

    if rounds < FEWEST_ROUNDS:
        raise UsageError(
            f"--rounds {rounds} cannot decide anything: use at least {FEWEST_ROUNDS}, because with fewer rounds equal "
            "trees too often differ in the same direction by chance"
        )


def _trees(arguments: argparse.Namespace, root: Path, scratch: Path) -> Trees:
    from ldlm_lint.bench.trees import BenchError, fixed, given

    for tree in (arguments.before, arguments.after):
        if tree is not None and not tree.is_dir():
            raise BenchError(f"{tree}: no such folder")
    if arguments.before:
        return given(arguments.before.resolve(), arguments.after.resolve(), scratch, arguments.link)
    return fixed(root, scratch, arguments.link, select=_select(arguments), unsafe=arguments.unsafe_fixes)


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _say_trees(trees: Trees, command: Sequence[str], root: Path) -> None:
    if trees.fixes:
        listed = ", ".join(f"{rule} {count}" for rule, count in sorted(trees.fixes.items()))
        _say(f"fixes in the second tree: {listed}")
    if trees.left_out:
        shown = ", ".join(trees.left_out[:8]) + (" ..." if len(trees.left_out) > 8 else "")
        _say(f"ignored by git, so not in the copies: {shown}; add --link PATH to link one")
    for word in command:
        if str(root) in word:
            _say(f"warning: {word} is a path in the original tree, not in the copies")


def _report(
    arguments: argparse.Namespace,
    job: Job,
    fixes: Mapping[str, int],
    samples: Sequence[Sample],
    pressure: float | None,
    guarded: Sequence[str],
) -> int:
    from ldlm_lint.bench import compare, report
    from ldlm_lint.bench.losses import losses as compared_losses
    from ldlm_lint.bench.notes import all_notes
    from ldlm_lint.evidence.model import Environment, plain
    from ldlm_lint.probe import machine

    busy = pressure is not None and pressure > machine.MOST_PRESSURE
    why = f"before the first run, tasks waited for a CPU {pressure:.0f} % of the time" if busy else ""
    comparisons, losses = compare.compared(samples, busy=why), compared_losses(samples)
    notes = tuple(all_notes(comparisons, samples, arguments.rounds, guarded))
    rounds = len({one.round for one in samples})
    environment = machine.environment() if arguments.json or arguments.html else Environment()
    if arguments.json:
        seen: dict[str, Any] = plain(environment)
        values = report.document(
            comparisons, losses, samples, command=job.command, fixes=fixes, environment=seen, notes=notes
        )
        write_document(arguments.json, report.render(values))
    if STDOUT not in (arguments.json, arguments.html):
        report.write(comparisons, losses, sys.stdout, rounds=rounds, notes=notes)
    if arguments.plot:
        _draw(samples, comparisons, job.command, arguments.plot)
    if arguments.html:
        from ldlm_lint.bench import page

        invocation = _invocation(arguments, job)
        found = page.Compared(comparisons, losses, samples, fixes, environment, notes, invocation)
        write_document(arguments.html, page.page(found), "--html")
    if _worse(comparisons, losses):
        return FINDINGS
    return OK if rounds >= compare.FEWEST_ROUNDS else FAILURE


def _invocation(arguments: argparse.Namespace, job: Job) -> Invocation:
    """The arguments of the command, to run it again."""
    from ldlm_lint.bench.invocation import Invocation

    return Invocation(
        job.command,
        select=_select(arguments),
        unsafe=arguments.unsafe_fixes,
        before=str(arguments.before or ""),
        after=str(arguments.after or ""),
        links=tuple(arguments.link),
        steps=job.steps,
        max_seconds=job.seconds,
        offline=job.offline,
    )


def _select(arguments: argparse.Namespace) -> tuple[str, ...]:
    return tuple(name.strip() for names in arguments.select for name in names.split(",") if name.strip())


def _worse(comparisons: Sequence[Comparison], losses: Losses) -> bool:
    from ldlm_lint.bench.compare import Change
    from ldlm_lint.bench.losses import Agreement

    return losses.agreement is Agreement.DIFFERENT or any(one.change is Change.WORSE for one in comparisons)


def _draw(samples: Sequence[Sample], comparisons: Sequence[Comparison], command: Sequence[str], path: Path) -> None:
    from ldlm_lint.bench.plot import draw

    try:
        draw(samples, comparisons, command, path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from error
