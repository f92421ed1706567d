"""What can be written behind the command's name, as data: the options of `check` and of the commands that share them."""

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
        "help": "read this TOML file instead of the nearest ones: a table [tool.ldlm-lint], or the keys at its top",
    }
}
_EXCLUDE = {
    "--exclude": {
        **_PATTERNS,
        "help": "leave out files and directories by gitignore patterns, with commas, instead of those of the configuration",
    },
    "--extend-exclude": {**_PATTERNS, "help": "leave these out besides those of the configuration"},
}
_BASELINE = {
    "--baseline": {
        "type": Path,
        "metavar": "FILE",
        "help": "the file of known defects (default: .ldlm-lint-baseline.json)",
    }
}
_TARGET = {
    "--target": {
        "choices": ("cpu", "cuda"),
        "metavar": "DEVICE",
        "help": "cpu or cuda, the device that the training is for; a run on another one cannot confirm what depends on it "
        "(default: an accelerator)",
    }
}
_PATHS = {"paths": {"nargs": "*", "default": ["."], "metavar": "PATH", "help": "files and directories (default: .)"}}

_WHAT = _Group(
    "what is checked",
    {
        "--select": {
            **_NAMES,
            "help": "apply these rules instead of the default set: names, codes, families (72), "
            "consequences (hang) or ALL, with commas; may be repeated",
        },
        "--extend-select": {**_NAMES, "help": "apply these rules too, opt-in ones included"},
        "--ignore": {**_NAMES, "help": "leave these rules out"},
        "--pedantic": {**_FLAG, "help": "apply opt-in rules too, as if they were on by default"},
        "--level": {
            **_LEVEL,
            "help": "error, warning, refactor or info: lowest severity that is shown and fixed (default: info)",
        },
        **_EXCLUDE,
        **_CONFIG,
        "--isolated": {**_FLAG, "help": "read no configuration file and no default baseline"},
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
            "--output": {"metavar": "FILE", "help": "write the report to a file (- is stdout)"},
            "--sort": {
                "choices": tuple(ORDERS),
                "metavar": "ORDER",
                "help": "consequence, severity, rule or path, for text, full, concise, github and markdown (default: path for "
                "full and concise, else consequence: the worst, most frequent and surest first)",
            },
            "--group-by": {
                "choices": GROUPS,
                "metavar": "WHAT",
                "help": "rule, file or none: what gets a block of the format text (default: rule)",
            },
            "--min-confidence": {
                "choices": CONFIDENCES,
                "default": CONFIDENCES[-1],
                "metavar": "LEVEL",
                "help": "high, medium or low: lowest confidence that is shown, fixed and counted for the exit code, in every "
                "format (default: low)",
            },
            "--show-unreached": {
                **_FLAG,
                "help": "show and fix findings in code that was copied from another project or that no program reaches "
                "like the others, instead of counting them by folder",
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
            "--fail-level": {**_LEVEL, "help": "lowest severity that makes exit code 1 (default: refactor)"},
            "--exit-zero": {**_FLAG, "help": "exit with 0 in spite of findings"},
        },
    ),
    _Group(
        "fixes",
        {
            "--fix": {
                **_FLAG,
                "help": "apply safe fixes and show what remains; `ldlm-lint undo` takes them back",
            },
            "--unsafe-fixes": {**_FLAG, "help": "with --fix or --diff: fixes that change behaviour too"},
            "--interactive": {
                **_FLAG,
                "help": "with --fix: show each fix, unsafe ones too, and ask whether to apply it",
            },
            "--diff": {**_FLAG, "help": "print what --fix would write, and write nothing"},
            "--add-ignores": {
                **_FLAG,
                "help": "write an ignore comment, with a reason to fill in, for each finding",
            },
        },
    ),
    _Group(
        "only new findings",
        {
            "--since": {
                "metavar": "REF",
                "help": "only findings on lines changed since a git revision, new files included",
            }
        },
        either={**_BASELINE, "--no-baseline": {**_FLAG, "help": "report the findings of the baseline too"}},
    ),
    _Group(
        "evidence: what `ldlm-lint probe` measured",
        {
            "--evidence": {
                "action": "append",
                "type": Path,
                "metavar": "DIR",
                "help": "a folder or file that a probe wrote: verified findings count, refuted ones do not; may be repeated",
            },
            **_TARGET,
        },
    ),
    _Group(
        "print this instead of checking",
        {},
        either={
            "--show-files": {**_FLAG, "help": "list the files that would be checked, and as what"},
            "--show-settings": {**_FLAG, "help": "print the configuration, and where each value comes from"},
        },
    ),
    _Group(
        "while you edit (docs/editors.md)",
        {
            "--stdin-filename": {
                "metavar": "PATH",
                "help": "check what stdin holds as the file at PATH; --fix then writes the text to stdout, the findings "
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
                "help": "read every file again, and store nothing (`ldlm-lint clean` removes the cache)",
            },
            "--jobs": {
                "type": jobs,
                "default": 0,
                "metavar": "N",
                "help": "processes that lint (default: auto, several where there is much to read)",
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
    update = {**_FLAG, "help": "add new findings and remove those that are gone; keep those of files that this run does not check"}
    _add(parser, _PATHS)
    configure_what(parser)
    _add(parser, {**_BASELINE, "--update": update})


def configure_graph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``graph``."""
    parser.epilog = GRAPH_EPILOG
    _add(parser, {"paths": {**_PATHS["paths"], "help": "scripts and directories (default: .)"}})
    _add(parser, {"--format": {"choices": ("text", "json"), "default": "text", "help": "default: text, a tree"}})
    _add(parser, {"--html": {"metavar": "FILE", "help": "draw the launches in a page for a browser too; - for stdout instead"}})
    _add(parser, {**_EXCLUDE, **_CONFIG, "--isolated": {**_FLAG, "help": "read no configuration file"}})


def configure_what(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the rules and the configuration."""
    _add_group(parser, _WHAT)


def configure_page(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--html``, which writes what a command found as a page too."""
    parser.add_argument(
        "--html", metavar="FILE", help=f"also write {what} as a page for a browser; - for stdout instead of the table"
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
