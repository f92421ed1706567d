"""``ldlm-lint probe run -- CMD...``: watches the first optimizer steps of a program, and judges the rules by them."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError, count, seconds
from ldlm_lint.commands.output import (
    FAILURE,
    FINDINGS,
    INTERRUPTED,
    OK,
    STDOUT,
    check_page,
    fail,
    write_document,
)
from ldlm_lint.options import configure_page

if TYPE_CHECKING:
    from ldlm_lint.evidence.model import Judgement
    from ldlm_lint.probe.copies import Copy
    from ldlm_lint.probe.outcome import Outcome

WARNING = (
    "the program runs with all its side effects: it writes checkpoints and logs, deletes old ones, and reports to trackers "
    "(W&B) and hubs. --scratch runs it in a copy of the project, --offline switches trackers and hubs off."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``probe run``."""
    parser.epilog = (
        "Exit codes: 0 nothing verified, 1 a defect was verified, of a rule that fails `ldlm-lint check` in the project (not "
        "of opt-in rules and trades), 2 invalid usage, 3 the program crashed, hung or left no evidence (partial evidence is "
        "kept)."
    )
    add = parser.add_argument
    add("--steps", type=count, default=20, metavar="N", help="number of optimizer steps to watch (default: 20)")
    add("--no-stop", action="store_true", help="let the program run to its end, instead of ending it after N steps")
    add("--max-seconds", type=seconds, metavar="S", help="end the program after S seconds in any case")
    add("--out", type=Path, metavar="DIR", help="folder for the evidence (default: a new one in .ldlm-lint/evidence)")
    add("--target", choices=("cpu", "cuda"), default="", help="the device you train on, which the verdicts are about")
    add("--json", metavar="FILE", help="write the verdicts as JSON; - is stdout, the program's output goes to stderr")
    configure_page(parser, "the verdicts")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--scratch", action="store_true", help="run in a temporary copy of the project")
    place.add_argument("--copy", type=Path, metavar="DIR", help="run in a copy of the project at DIR, and keep it")
    add("--link", action="append", default=[], metavar="PATH", help="link this git-ignored path into the copy")
    add(
        "--offline", action="store_true", help="switch W&B, Neptune, ClearML, Comet and the Hugging Face hub to offline mode"
    )
    add("--yes", action="store_true", help="do not ask before running the program")
    add(
        "words",
        nargs=argparse.REMAINDER,
        metavar="-- CMD...",
        help="the command to run: python, torchrun, accelerate launch",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run and watch the command, print what came out, and return the exit code."""
    from ldlm_lint.probe import launch, outcome, projects
    from ldlm_lint.probe.settings import Settings

    check_page(arguments.json, arguments.html)
    cwd = Path.cwd()
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    try:
        command = projects.command_of(words, cwd)
    except projects.CommandError as error:
        raise UsageError(str(error)) from error
    root = projects.root_of(command, cwd)
    run_id = os.urandom(8).hex()
    out = _folder(arguments.out, root, run_id)
    if not _agreed(command, arguments):
        return fail(INTERRUPTED, "not run")
    with _place(arguments, root, cwd) as (where, inside):
        settings = Settings(
            out=str(out),
            root=str(where),
            shown_root=str(root),
            run_id=run_id,
            command=projects.without_secrets(command),
            steps=arguments.steps,
            stop=not arguments.no_stop,
            deadline=time.time() + arguments.max_seconds if arguments.max_seconds else 0.0,
        )
        environ = launch.environment_of(settings, os.environ, offline=arguments.offline)
        stdout = launch.output_of(STDOUT in (arguments.json, arguments.html))
        try:
            ended = launch.run(command, inside, environ, run_id=run_id, seconds=arguments.max_seconds, stdout=stdout)
        except OSError as error:
            return fail(FAILURE, f"{command[0]}: {error.strerror or error}")
    return _report(outcome.outcome_of(out, run_id, ended), out, root, arguments)


def _folder(named: Path | None, root: Path, run_id: str) -> Path:
    """The folder for evidence, made if missing; raises UsageError if it cannot be written."""
    import tempfile

    now = time.strftime("%Y%m%d-%H%M%S")
    folder = named.absolute() if named else root / ".ldlm-lint" / "evidence" / f"{now}-{run_id[:4]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if named is None and not (ignore := root / ".ldlm-lint" / ".gitignore").exists():
            ignore.write_text("*\n", encoding="utf-8")
        with tempfile.TemporaryFile(dir=folder):
            pass
        (folder / ".processes").unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"{folder}: cannot write evidence here ({reason}); choose a folder with --out") from error
    return folder


def _agreed(command: list[str], arguments: argparse.Namespace) -> bool:
    """Warn that the program will run; on a terminal, ask."""
    import shlex

    print(f"warning: {WARNING}", file=sys.stderr)
    print(f"runs: {shlex.join(command)}", file=sys.stderr)
    asked = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    if arguments.yes or not asked:
        return True
    print("run it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def _place(arguments: argparse.Namespace, root: Path, cwd: Path) -> Iterator[tuple[Path, Path]]:
    """The project's root and the working directory for the program: the user's own, or those in a copy."""
    from ldlm_lint.probe import copies

    if not (arguments.scratch or arguments.copy):
        if arguments.link:
            raise UsageError("--link needs --scratch or --copy")
        yield root, cwd
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ldlm-probe-", ignore_cleanup_errors=True) as folder:
        where = arguments.copy.absolute() if arguments.copy else Path(folder).resolve() / root.name
        try:
            made = copies.make(root, where, arguments.link)
        except (copies.CopyError, OSError) as error:
            raise UsageError(f"cannot make the copy: {error}") from error
        _say_copy(made, root, arguments.words)
        inside = where / cwd.resolve().relative_to(root) if cwd.resolve().is_relative_to(root) else where
        inside.mkdir(parents=True, exist_ok=True)
        yield where, inside


def _say_copy(made: Copy, root: Path, words: list[str]) -> None:
    print(f"copy: {made.files} files, {made.bytes:,} bytes in {made.root}", file=sys.stderr)
    if made.left_out:
        shown = ", ".join(made.left_out[:8]) + (f" and {len(made.left_out) - 8} more" if len(made.left_out) > 8 else "")
        print(f"note: ignored by git, so not in the copy: {shown}; add --link PATH to link one", file=sys.stderr)
    for word in words:
        if str(root) in word:
            print(f"warning: {word} is a path in the original project, not in the copy", file=sys.stderr)


def _report(found: Outcome, out: Path, root: Path, arguments: argparse.Namespace) -> int:
    """Print the verdicts, what could not be observed and the probe's cost; return the exit code."""
    import shlex

    from ldlm_lint.evidence.account import notes_of
    from ldlm_lint.evidence.gating import failing
    from ldlm_lint.evidence.verdicts import assess
    from ldlm_lint.report.verdict_table import write_verdicts

    assessed = assess(found.evidence, arguments.target)
    notes = (*found.notes, *notes_of(found.evidence), *assessed.notes)
    if arguments.json:
        _write_json(arguments.json, assessed.judgements, found, notes)
    if found.evidence:
        write_verdicts(assessed.judgements, sys.stderr, notes=notes, launch=found.evidence[0].run.command)
        if arguments.html:
            from ldlm_lint.report.html import verdicts as page

            launch = found.evidence[0].run.command
            subject = page.Subject(found.evidence, notes, places=(str(out),), launch=launch)
            write_document(arguments.html, page.page(assessed.judgements, subject), "--html")
        print(f"evidence: {out} (ldlm-lint check --evidence {shlex.quote(str(out))})", file=sys.stderr)
    if found.problem:
        return fail(found.code, found.problem)
    return FINDINGS if failing(assessed.judgements, root) else OK


def _write_json(place: str, judgements: Sequence[Judgement], found: Outcome, notes: tuple[str, ...]) -> None:
    from ldlm_lint.report.verdicts_json import render

    problems = (found.problem,) if found.problem else ()
    text = render(judgements, evidence=found.evidence, notes=(*problems, *notes))
    write_document(place, text)
