"""``ldlm-lint probe machine``: experiments on this machine and torch build, each tied to rules."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FAILURE, INTERRUPTED, OK, STDOUT, check_page, fail, write_document
from ldlm_lint.options import configure_page

if TYPE_CHECKING:
    from ldlm_lint.evidence.model import Evidence
    from ldlm_lint.probe.micro.runner import Progress, Results

_EPILOG = (
    "Each experiment runs in its own process, so a crash, a hang or a lack of memory ends only that experiment. Experiments "
    "that the budget does not allow are inconclusive. A run on a CPU cannot confirm or refute rules about an accelerator, "
    "unless --target cpu says that you train on the CPU. "
    "exit codes: 0 measured, whatever the result; 2 invalid usage, no torch, or no CUDA device although --device asks for one; "
    "3 torch is broken, or no experiment finished"
)
_LEAST_BUDGET = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``probe machine``."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="names of experiments, rules or codes (default: all)",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the experiments with their rules, measure nothing"
    )
    parser.add_argument(
        "--budget", type=float, default=90.0, metavar="SECONDS", help="the maximum time (default: 90)"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="", help="default: CUDA if it works, otherwise the CPU"
    )
    parser.add_argument(
        "--target", choices=("cpu", "cuda"), default="", help="the device you train on, which the verdicts are about"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write the verdicts as JSON; - is stdout, without the table"
    )
    configure_page(parser, "the verdicts")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write an evidence file for `check --evidence DIR`"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed for the order of rounds and the data (default: 0)")
    parser.add_argument("--same", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run it, print the results, and return the exit code."""
    began = time.monotonic()
    from ldlm_lint.probe.micro import table

    if arguments.list:
        for one in table.EXPERIMENTS:
            print(f"{one.name:<26}about {one.seconds:.0f} s  {one.title} ({', '.join(one.rules)})")
        return OK
    if not (math.isfinite(arguments.budget) and arguments.budget >= _LEAST_BUDGET):
        raise UsageError(f"--budget needs at least {_LEAST_BUDGET:g} second, not {arguments.budget:g}")
    check_page(arguments.json, arguments.html)
    try:
        experiments, rules = table.selected(arguments.only)
    except LookupError as error:
        names = ", ".join(one.name for one in table.EXPERIMENTS)
        raise UsageError(
            f"no experiment has the name or tests the rule {error.args[0]}; the experiments are {names} "
            "(their rules: ldlm-lint probe --list)"
        ) from error
    from ldlm_lint.probe.micro import runner

    if not runner.has_torch():
        raise UsageError("the experiments need torch: python -m pip install torch")
    options = runner.Options(
        end=began + arguments.budget,
        budget=arguments.budget,
        device=arguments.device,
        target=arguments.target,
        seed=arguments.seed,
        rules=rules,
        same=arguments.same,
    )
    try:
        with _progress() as progress:
            evidence, results = runner.run(experiments, options, progress)
    except runner.ProbeError as error:
        if error.usage:
            raise UsageError(str(error)) from error
        return fail(FAILURE, str(error))
    return _report(arguments, evidence, results)


def _report(arguments: argparse.Namespace, evidence: Evidence, results: Results) -> int:
    from ldlm_lint.evidence.files import write
    from ldlm_lint.report.verdict_table import write_verdicts
    from ldlm_lint.report.verdicts_json import render

    notes = [*evidence.notes, *_machine(evidence)]
    text = render(evidence.judgements, evidence=[evidence], notes=notes)
    if arguments.json == STDOUT:
        sys.stdout.write(text)
    elif arguments.html != STDOUT:
        write_verdicts(evidence.judgements, sys.stdout, notes=notes, answered=evidence.judgements, experiments=True)
    if arguments.html:
        from ldlm_lint.report.html import verdicts as page

        places = (str(arguments.out),) if arguments.out else ()
        subject = page.Subject([evidence], notes, evidence.judgements, places=places, experiments=True)
        write_document(arguments.html, page.page(evidence.judgements, subject), "--html")
    try:
        if arguments.json not in (None, STDOUT):
            Path(arguments.json).write_text(text, encoding="utf-8")
        if arguments.out is not None:
            print(f"evidence: {write(evidence, arguments.out)}", file=sys.stderr)
    except OSError as error:
        return fail(FAILURE, f"{error.filename}: {error.strerror}")
    if results.interrupted:
        return INTERRUPTED
    return FAILURE if results.failed and not results.finished else OK


def _machine(evidence: Evidence) -> Iterator[str]:
    """The machine of the figures, in one line."""
    seen = evidence.environment
    pressure = "" if seen.cpu_pressure is None else f", tasks waited for a CPU {seen.cpu_pressure:g} % of the last 10 s"
    versions = " ".join(one for one in (f"torch {seen.torch}" if seen.torch else "", f"Python {seen.python}") if one)
    yield f"{seen.device_name or seen.device}, {seen.cpus:g} CPUs, {versions}{pressure}; {evidence.run.seconds:.0f} s"


@contextmanager
def _progress() -> Iterator[Progress]:
    """Shows progress on stderr: a status line on a terminal, plain lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:
        yield lambda name, what: print(f"{name}: {what}", file=sys.stderr, flush=True)
        return
    with console.status("") as status:

        def told(name: str, what: str) -> None:
            status.update(f"{name}: {what}")
            console.print(f"{name}: {what}", style="dim")

        yield told
