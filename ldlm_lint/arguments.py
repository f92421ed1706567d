"""Converts the command-line arguments: numbers and names, paths, configuration, gate.

`ldlm_lint.options` declares the options.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldlm_lint.baseline import Known
    from ldlm_lint.config import Config, Overrides
    from ldlm_lint.configurations import Configurations, Note
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.gate import Gate

MOST_JOBS = 256


class UsageError(Exception):
    """Invalid arguments; the text says what to write instead."""


def names(text: str) -> list[str]:
    """The names of a comma-separated list, for argparse."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("needs at least one name")
    return names


def count(text: str) -> int:
    """A number of steps or rounds, above 0, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps or rounds: write a whole number above 0")
    return int(text)


def jobs(text: str) -> int:
    """A number of processes, 0 for as many as pay, for argparse."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes: write 1 to {MOST_JOBS}, or auto")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0, for argparse; neither NaN nor infinite."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


def patterns(text: str) -> list[str]:
    """The gitignore patterns of a comma-separated list, for argparse."""
    from ldlm_lint.config import spec_of

    found = names(text)
    for pattern in found:
        try:
            spec_of(pattern)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f'"{pattern}" is not a gitignore pattern') from error
    return found


def configuration(
    arguments: argparse.Namespace, base: Path, note: Note | None = None
) -> tuple[list[Path], Configurations]:
    """The paths to lint, absolute, and the configurations of their files; raises what loading the configuration of the
    run raises. ``note`` is called for each look at the file system."""
    from ldlm_lint.config import common_directory
    from ldlm_lint.configurations import Configurations

    if arguments.config and arguments.isolated:
        raise UsageError("--config and --isolated cannot be combined")
    # Not resolved: a link that the user names keeps its name in the report.
    paths = list(dict.fromkeys(Path(os.path.abspath(base / path)) for path in arguments.paths))
    explicit = Path(os.path.abspath(base / arguments.config)) if arguments.config else None
    start = common_directory(paths)
    known: dict[str, Any] = {} if note is None else {"note": note}
    overrides = _overrides(arguments, base, start)
    configured = Configurations(start, explicit=explicit, isolated=arguments.isolated, overrides=overrides, **known)
    # An error in the configuration of the run is reported before anything else is done.
    assert configured.run is not None
    return paths, configured


def _overrides(arguments: argparse.Namespace, base: Path, start: Path) -> Overrides:
    """The settings of the command line; its patterns are relative to the current directory, those of a file to the
    project."""
    from ldlm_lint.config import LEVELS as SEVERITIES
    from ldlm_lint.config import NO_PATTERNS, Overrides, Patterns, project_root
    from ldlm_lint.select import Layer

    select, level = getattr(arguments, "select", None), getattr(arguments, "level", None)
    fail_level = getattr(arguments, "fail_level", None)
    exclude, more = getattr(arguments, "exclude", None), getattr(arguments, "extend_exclude", None)
    root = base if base == start or base in start.parents else project_root(start)
    return Overrides(
        Layer(
            tuple(select) if select is not None else None,
            tuple(getattr(arguments, "extend_select", None) or ()),
            tuple(getattr(arguments, "ignore", None) or ()),
        ),
        SEVERITIES[level] if level else None,
        SEVERITIES[fail_level] if fail_level else None,
        getattr(arguments, "pedantic", False),
        Patterns(root.as_posix(), (*(exclude or ()), *(more or ()))) if exclude or more else NO_PATTERNS,
        replace=exclude is not None,
    )


def baseline_file(arguments: argparse.Namespace, config: Config, base: Path) -> tuple[Path, Path | None]:
    """Where the baseline is or would be, and the directory that it must not leave (None: the user named it)."""
    from ldlm_lint.baseline import FILE_NAME

    if arguments.baseline:
        return Path(os.path.abspath(base / arguments.baseline)), None
    return Path(config.root, config.baseline or FILE_NAME), Path(config.root)


def evidence(arguments: argparse.Namespace, base: Path) -> Dossier | None:
    """The evidence of probes, None if no evidence file was named; raises UsageError for an unusable one."""
    if not arguments.evidence:
        if arguments.target:
            raise UsageError("--target is the device of the evidence: add --evidence DIR")
        return None
    from ldlm_lint.evidence.dossier import load
    from ldlm_lint.evidence.model import EvidenceError

    try:
        return load([Path(os.path.abspath(base / place)) for place in arguments.evidence], arguments.target or "")
    except EvidenceError as error:
        raise UsageError(f"--evidence: {error}") from error


def baselines(arguments: argparse.Namespace, config: Config, base: Path) -> Iterator[Path]:
    """The files that may be the baseline of a check: the named one, else the default locations."""
    from ldlm_lint import baseline

    if arguments.baseline or config.baseline:
        yield baseline_file(arguments, config, base)[0]
    elif not arguments.isolated:
        yield from baseline.candidates(Path(config.root))


def _known(arguments: argparse.Namespace, config: Config, base: Path) -> Known:
    """The defects in a baseline."""
    from ldlm_lint import baseline

    if arguments.baseline or config.baseline:
        return baseline.read(baseline_file(arguments, config, base)[0])
    return {} if arguments.isolated else baseline.nearest(Path(config.root))


def gate(arguments: argparse.Namespace, paths: list[Path], config: Config, base: Path) -> Gate:
    """The findings that a check holds back; raises ConfigError for a baseline that cannot be used, GitError for a
    revision."""
    from ldlm_lint.config import common_directory
    from ldlm_lint.gate import Gate
    from ldlm_lint.model import Confidence

    known = {} if arguments.no_baseline else _known(arguments, config, base)
    confidence = Confidence[arguments.min_confidence.upper()]
    if arguments.since is None:
        return Gate(known, confidence=confidence)
    from ldlm_lint.gitdiff import changes_since

    return Gate(known, changes_since(common_directory(paths), arguments.since), confidence=confidence)
