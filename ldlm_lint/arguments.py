"""What can be written behind the command's name, and what it stands for: paths, configuration, gate."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.settings import LEVELS, formats

if TYPE_CHECKING:
    from ldlm_lint.cache.session import Session
    from ldlm_lint.config import Config
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.gate import Gate

EXIT_CODES = (
    "exit codes: 0 nothing at or above the fail level, or every path excluded; 1 findings; 2 wrong usage, configuration or "
    "baseline; 3 something could not be checked, fixed or written (docs/exit-codes.md)"
)


GRAPH_EPILOG = """\
what it prints:
  scripts/train.sh
  └── line 9: torchrun (processes 8)
      ├── runs train.py
      ├── reads configs/base.yaml  hydra.main
      └── data.num_workers = 16  scripts/train.sh:5
          └── instead of 4  configs/base.yaml:7

exit codes: 0 also where no launch is found; 2 and 3 as for check"""


MOST_JOBS = 256


class UsageError(Exception):
    """Arguments that make no sense; the text says what to write instead."""


def configure_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check``."""
    parser.usage = "%(prog)s [OPTIONS] [PATH ...]"
    parser.epilog = EXIT_CODES
    _configure_paths(parser)
    configure_options(parser)


def configure_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``check``."""
    for configure in (
        configure_what,
        _configure_output,
        _configure_exit_code,
        _configure_fixes,
        _configure_gate,
        _configure_evidence,
        _configure_questions,
        _configure_editors,
        _configure_run,
    ):
        configure(parser)


def _configure_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=formats(),
        metavar="FORMAT",
        help=f"{', '.join(formats()[:-1])} or {formats()[-1]} (default: text)",
    )
    output.add_argument("--output", metavar="FILE", help="write the report to a file (- is stdout)")
    output.add_argument("--statistics", action="store_true", help="count the findings of each rule")
    output.add_argument("--quiet", action="store_true", help="findings only, no footer")
    output.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="auto, always or never (default: auto, on a terminal; NO_COLOR and FORCE_COLOR are heard)",
    )


def _configure_exit_code(parser: argparse.ArgumentParser) -> None:
    code = parser.add_argument_group("exit code")
    code.add_argument(
        "--fail-level",
        choices=LEVELS,
        metavar="LEVEL",
        help="lowest severity that makes exit code 1 (default: refactor)",
    )
    code.add_argument("--exit-zero", action="store_true", help="exit with 0 in spite of findings")


def _configure_fixes(parser: argparse.ArgumentParser) -> None:
    fixes = parser.add_argument_group("fixes")
    fixes.add_argument(
        "--fix", action="store_true", help="apply safe fixes and show what remains; `ldlm-lint undo` takes them back"
    )
    fixes.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: fixes that change behaviour too"
    )
    fixes.add_argument(
        "--interactive",
        action="store_true",
        help="with --fix: show each fix, unsafe ones too, and ask whether to apply it",
    )
    fixes.add_argument("--diff", action="store_true", help="print what --fix would write, and write nothing")
    fixes.add_argument(
        "--add-ignores", action="store_true", help="write an ignore comment, with a reason to fill in, for each finding"
    )


def _configure_gate(parser: argparse.ArgumentParser) -> None:
    gate = parser.add_argument_group("the gate: what is held back")
    gate.add_argument(
        "--since", metavar="REF", help="only findings on lines changed since a git revision, new files included"
    )
    known = gate.add_mutually_exclusive_group()
    _configure_baseline_file(known)
    known.add_argument("--no-baseline", action="store_true", help="show what the baseline knows too")


def _configure_evidence(parser: argparse.ArgumentParser) -> None:
    proof = parser.add_argument_group("evidence: what `ldlm-lint probe` saw")
    proof.add_argument(
        "--evidence",
        action="append",
        type=Path,
        metavar="DIR",
        help="a folder or file that a probe wrote: verified findings count, refuted ones do not; may be repeated",
    )
    configure_target(proof)


def _configure_questions(parser: argparse.ArgumentParser) -> None:
    questions = parser.add_argument_group("questions that are answered instead").add_mutually_exclusive_group()
    questions.add_argument(
        "--show-files", action="store_true", help="list the files that would be checked, and as what"
    )
    questions.add_argument(
        "--show-settings", action="store_true", help="print the configuration, and where each value comes from"
    )


def _configure_editors(parser: argparse.ArgumentParser) -> None:
    editors = parser.add_argument_group("while you edit (docs/editors.md)")
    editors.add_argument(
        "--stdin-filename",
        metavar="PATH",
        help="check what stdin holds as the file at PATH; --fix then writes the text to stdout, the findings to stderr",
    )
    editors.add_argument("--watch", action="store_true", help="check again after each change, until Ctrl-C")


def _configure_run(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--no-cache", action="store_true", help="read everything anew, and remember nothing (`ldlm-lint clean` removes the cache)"
    )
    run.add_argument(
        "--jobs",
        type=jobs,
        default=0,
        metavar="N",
        help="processes that lint (default: auto, several where there is much to read)",
    )


def configure_target(parser: argparse._ActionsContainer) -> None:
    """Add the device that verdicts are about."""
    parser.add_argument(
        "--target",
        choices=("cpu", "cuda"),
        metavar="DEVICE",
        help="cpu or cuda, the device that the training is for; a run on another one settles nothing that depends on it "
        "(default: an accelerator)",
    )


def configure_baseline(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline``."""
    parser.usage = "%(prog)s [OPTIONS] [PATH ...]"
    parser.epilog = "exit codes: 0 written, or up to date; 2 and 3 as for check"
    _configure_paths(parser)
    configure_what(parser)
    _configure_baseline_file(parser)
    parser.add_argument(
        "--update",
        action="store_true",
        help="add what is new and remove what is gone, and keep what this run does not look at",
    )


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``graph``."""
    parser.epilog = GRAPH_EPILOG
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="scripts and directories (default: .)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text, a tree")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read [tool.ldlm-lint] from this TOML file")
    parser.add_argument("--isolated", action="store_true", help="read no configuration file")


def _configure_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files and directories (default: .)")


def configure_what(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the rules and the configuration."""
    what = parser.add_argument_group("what is checked")
    for flag, text in (
        (
            "--select",
            "apply these rules instead of the default set: names, codes, families (72) or ALL, with commas; may be repeated",
        ),
        ("--extend-select", "apply these rules too, opt-in ones included"),
        ("--ignore", "leave these rules out"),
    ):
        what.add_argument(flag, action="extend", type=_names, metavar="NAMES", help=text)
    what.add_argument("--pedantic", action="store_true", help="apply opt-in rules too, as if they were on by default")
    what.add_argument(
        "--level",
        choices=LEVELS,
        metavar="LEVEL",
        help="error, warning, refactor or info: lowest severity that is shown and fixed (default: info)",
    )
    what.add_argument("--config", type=Path, metavar="FILE", help="read [tool.ldlm-lint] from this TOML file")
    what.add_argument("--isolated", action="store_true", help="read no configuration file and no default baseline")


def _configure_baseline_file(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="the file of known defects (default: .ldlm-lint-baseline.json)"
    )


def _names(text: str) -> list[str]:
    """The names of a comma-separated list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("needs at least one name")
    return names


def count(text: str) -> int:
    """A number of steps or rounds, above 0, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of steps or rounds: a whole number above 0 is needed")
    return int(text)


def jobs(text: str) -> int:
    """A number of processes, 0 for as many as pay, for argparse."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes: 1 to {MOST_JOBS}, or auto")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0, for argparse; neither NaN nor infinite."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return found


def configuration(
    arguments: argparse.Namespace, base: Path, session: Session | None = None
) -> tuple[list[Path], Config]:
    """The paths to lint, absolute, and the configuration that serves them all; raises what `Config.load` raises."""
    from ldlm_lint.config import LEVELS as SEVERITIES
    from ldlm_lint.config import Config, Overrides, common_directory
    from ldlm_lint.select import Layer

    if arguments.config and arguments.isolated:
        raise UsageError("--config and --isolated exclude each other")
    # Not resolved: a link that the user names keeps its name in the report.
    paths = list(dict.fromkeys(Path(os.path.abspath(base / path)) for path in arguments.paths))
    fail_level = getattr(arguments, "fail_level", None)
    select, level = getattr(arguments, "select", None), getattr(arguments, "level", None)
    overrides = Overrides(
        Layer(
            tuple(select) if select is not None else None,
            tuple(getattr(arguments, "extend_select", None) or ()),
            tuple(getattr(arguments, "ignore", None) or ()),
        ),
        SEVERITIES[level] if level else None,
        SEVERITIES[fail_level] if fail_level else None,
        getattr(arguments, "pedantic", False),
    )
    explicit = Path(os.path.abspath(base / arguments.config)) if arguments.config else None
    start = common_directory(paths)
    known = {} if session is None else {"torch_of": session.torch_range}
    return paths, Config.load(start, explicit=explicit, isolated=arguments.isolated, overrides=overrides, **known)


def baseline_file(arguments: argparse.Namespace, config: Config, base: Path) -> tuple[Path, Path | None]:
    """Where the baseline is or would be, and the directory that it must not leave (None: the user named it)."""
    from ldlm_lint.baseline import FILE_NAME

    if arguments.baseline:
        return Path(os.path.abspath(base / arguments.baseline)), None
    return Path(config.root, config.baseline or FILE_NAME), Path(config.root)


def evidence(arguments: argparse.Namespace, base: Path) -> Dossier | None:
    """What probes saw, None where no evidence was named; raises UsageError for what cannot be used."""
    if not arguments.evidence:
        if arguments.target:
            raise UsageError("--target says what evidence is about, and needs --evidence")
        return None
    from ldlm_lint.evidence.dossier import load
    from ldlm_lint.evidence.model import EvidenceError

    try:
        return load([Path(os.path.abspath(base / place)) for place in arguments.evidence], arguments.target or "")
    except EvidenceError as error:
        raise UsageError(f"--evidence: {error}") from error


def gate(arguments: argparse.Namespace, paths: list[Path], config: Config, base: Path) -> Gate:
    """What a check holds back; raises ConfigError for a baseline that cannot be used, GitError for a revision."""
    from ldlm_lint import baseline
    from ldlm_lint.config import common_directory
    from ldlm_lint.gate import Gate

    place, _ = baseline_file(arguments, config, base)
    named = bool(arguments.baseline or config.baseline)
    found = named or (not arguments.isolated and os.path.lexists(place))
    known = baseline.read(place) if found and not arguments.no_baseline else {}
    if arguments.since is None:
        return Gate(known)
    from ldlm_lint.gitdiff import changes_since

    return Gate(known, changes_since(common_directory(paths), arguments.since))
