"""The options of `check`, and those shared by other commands, as data."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ldlm_lint.arguments import jobs, names, patterns
from ldlm_lint.report.formats import FORMATS, canonical
from ldlm_lint.report.ranking import GROUPS, ORDERS
from ldlm_lint.settings import LEVELS, formats

CONFIDENCES = ("high", "medium", "low")
_Options = Mapping[str, Mapping[str, Any]]
"""Options by their names, with what argparse is told of each."""


class _Group(NamedTuple):
    """Options that help shows together, and of which those in ``either`` exclude each other."""

    title: str
    options: _Options
    either: _Options | None = None


EXIT_CODES = (
    "exit codes: 0 no finding at or above the fail level, or every path excluded; 1 findings; 2 invalid usage, configuration or "
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

exit codes: 0 also if no launch is found; 2 and 3 as for check"""

# Short forms, and the names that users of other linters write by habit.
_ALIASES = {
    "--format": ("--output-format",),
    "--quiet": ("-q",),
    "--output": ("-o", "--output-file"),
    "--jobs": ("-j",),
    "--watch": ("-w",),
}
_FLAG = {"action": "store_true"}
_NAMES = {"action": "extend", "type": names, "metavar": "NAMES"}
_PATTERNS = {"action": "extend", "type": patterns, "metavar": "PATTERNS"}
_LEVEL = {"choices": LEVELS, "metavar": "LEVEL"}
_CONFIG = {
    "--config": {
        "type": Path,
        "metavar": "FILE",
        "help": "use this TOML file as the configuration of all files: a table [tool.ldlm-lint], or the keys at its top",
    }
}
_EXCLUDE = {
    "--exclude": {
        **_PATTERNS,
        "help": "exclude files and directories that match these gitignore patterns (comma-separated), instead of `exclude` in the configuration",
    },
    "--extend-exclude": {**_PATTERNS, "help": "exclude these too, in addition to the configuration"},
}
_BASELINE = {
    "--baseline": {
        "type": Path,
        "metavar": "FILE",
        "help": "the file of accepted findings (default: .ldlm-lint-baseline.json)",
    }
}
_TARGET = {
    "--target": {
        "choices": ("cpu", "cuda"),
        "metavar": "DEVICE",
        "help": "cpu or cuda: the device you train on; a run on another device cannot confirm what depends on the device "
        "(default: any accelerator)",
    }
}
_PATHS = {"paths": {"nargs": "*", "default": ["."], "metavar": "PATH", "help": "files and directories (default: .)"}}

_WHAT = _Group(
    "what is checked",
    {
        "--select": {
            **_NAMES,
            "help": "apply these rules instead of the default set: names, codes, families (72), "
            "consequences (hang) or ALL, comma-separated; repeatable",
        },
        "--extend-select": {**_NAMES, "help": "apply these rules too, opt-in ones included"},
        "--ignore": {**_NAMES, "help": "do not apply these rules"},
        "--pedantic": {**_FLAG, "help": "apply opt-in rules too, as if they were on by default"},
        "--level": {
            **_LEVEL,
            "help": "error, warning, refactor or info: the lowest severity to show and fix (default: info)",
        },
        **_EXCLUDE,
        **_CONFIG,
        "--isolated": {**_FLAG, "help": "ignore configuration files and the default baseline"},
    },
)

_CHECK = (
    _WHAT,
    _Group(
        "output",
        {
            "--format": {
                "choices": formats(),
                "type": canonical,
                "metavar": "FORMAT",
                "help": f"{', '.join(FORMATS)} (default: text, also called grouped)",
            },
            "--output": {"metavar": "FILE", "help": "write the report to FILE (- is stdout)"},
            "--sort": {
                "choices": tuple(ORDERS),
                "metavar": "ORDER",
                "help": "consequence, severity, rule or path, for text, full, concise, github and markdown (default: path for "
                "full and concise, otherwise consequence: the worst, most frequent and most certain first)",
            },
            "--group-by": {
                "choices": GROUPS,
                "metavar": "WHAT",
                "help": "rule, file or none: what a block of the text format contains (default: rule)",
            },
            "--min-confidence": {
                "choices": CONFIDENCES,
                "default": CONFIDENCES[-1],
                "metavar": "LEVEL",
                "help": "high, medium or low: the lowest confidence to show, fix and count for the exit code, in every "
                "format (default: low)",
            },
            "--show-unreached": {
                **_FLAG,
                "help": "show and fix findings in copied code, in examples beside a library and in code that no program reaches "
                "like all others, instead of counting them by folder",
            },
            "--statistics": {**_FLAG, "help": "count the findings of each rule"},
            "--quiet": {**_FLAG, "help": "findings only, no footer"},
            "--color": {
                "choices": ("auto", "always", "never"),
                "default": "auto",
                "metavar": "WHEN",
                "help": "auto, always or never (default: auto, on a terminal; NO_COLOR and FORCE_COLOR are respected)",
            },
        },
    ),
    _Group(
        "exit code",
        {
            "--fail-level": {**_LEVEL, "help": "the lowest severity that gives exit code 1 (default: refactor)"},
            "--exit-zero": {**_FLAG, "help": "exit with 0 even if there are findings"},
        },
    ),
    _Group(
        "fixes",
        {
            "--fix": {
                **_FLAG,
                "help": "apply safe fixes and show the remaining findings; `ldlm-lint undo` reverts them",
            },
            "--unsafe-fixes": {**_FLAG, "help": "with --fix or --diff: also apply fixes that can change behaviour"},
            "--interactive": {
                **_FLAG,
                "help": "with --fix: show each fix, also unsafe ones, and ask whether to apply it",
            },
            "--diff": {**_FLAG, "help": "print the changes of --fix as a patch, write nothing"},
            "--add-ignores": {
                **_FLAG,
                "help": "write an ignore comment for each finding, with a reason for you to fill in",
            },
        },
    ),
    _Group(
        "only new findings",
        {
            "--since": {
                "metavar": "REF",
                "help": "show only findings on lines changed since a git revision, and in new files",
            }
        },
        either={**_BASELINE, "--no-baseline": {**_FLAG, "help": "report the accepted findings too"}},
    ),
    _Group(
        "evidence: what `ldlm-lint probe` measured",
        {
            "--evidence": {
                "action": "append",
                "type": Path,
                "metavar": "DIR",
                "help": "a folder or file that a probe wrote: verified findings count, refuted ones do not; repeatable",
            },
            **_TARGET,
        },
    ),
    _Group(
        "print information instead of checking",
        {},
        either={
            "--show-files": {**_FLAG, "help": "list the files that would be checked and their kinds"},
            "--show-settings": {**_FLAG, "help": "print the configuration and where each value comes from"},
        },
    ),
    _Group(
        "while you edit (docs/editors.md)",
        {
            "--stdin-filename": {
                "metavar": "PATH",
                "help": "check the text on stdin as if it were the file PATH; --fix then writes the text to stdout and the findings "
                "to stderr",
            },
            "--watch": {**_FLAG, "help": "check again after each change, until Ctrl-C"},
        },
    ),
    _Group(
        "the run",
        {
            "--no-cache": {
                **_FLAG,
                "help": "do not read or write the cache (`ldlm-lint clean` removes it)",
            },
            "--jobs": {
                "type": jobs,
                "default": 0,
                "metavar": "N",
                "help": "number of processes (default: auto, several if there is much to read)",
            },
        },
    ),
)


def configure_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check``."""
    parser.usage = "%(prog)s [OPTIONS] [PATH ...]"
    parser.epilog = EXIT_CODES
    _add(parser, _PATHS)
    configure_options(parser)


def configure_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``check``."""
    for group in _CHECK:
        _add_group(parser, group)


def configure_baseline(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline``."""
    parser.usage = "%(prog)s [OPTIONS] [PATH ...]"
    parser.epilog = "exit codes: 0 written, or up to date; 2 and 3 as for check"
    update = {**_FLAG, "help": "add new findings and remove fixed ones; keep entries of files that this run does not check"}
    _add(parser, _PATHS)
    configure_what(parser)
    _add(parser, {**_BASELINE, "--update": update})


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``graph``."""
    parser.epilog = GRAPH_EPILOG
    _add(parser, {"paths": {**_PATHS["paths"], "help": "scripts and directories (default: .)"}})
    _add(parser, {"--format": {"choices": ("text", "json"), "default": "text", "help": "default: text, a tree"}})
    _add(parser, {"--html": {"metavar": "FILE", "help": "also write the launches as an HTML page; - is stdout, without the text"}})
    _add(parser, {**_EXCLUDE, **_CONFIG, "--isolated": {**_FLAG, "help": "read no configuration file"}})


def configure_what(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the rules and the configuration."""
    _add_group(parser, _WHAT)


def configure_page(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--html``, which also writes the result of a command as a page."""
    parser.add_argument(
        "--html", metavar="FILE", help=f"also write {what} as an HTML page; - is stdout, without the table"
    )


def configure_target(parser: argparse._ActionsContainer) -> None:
    """Add the device that verdicts are about."""
    _add(parser, _TARGET)


def _add_group(parser: argparse.ArgumentParser, group: _Group) -> None:
    holder = parser.add_argument_group(group.title)
    _add(holder, group.options)
    if group.either:
        _add(holder.add_mutually_exclusive_group(), group.either)


def _add(holder: argparse._ActionsContainer, options: _Options) -> None:
    for name, told in options.items():
        holder.add_argument(*sorted((name, *_ALIASES.get(name, ())), key=len), **told)
