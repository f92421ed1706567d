"""``ldlm-lint doctor``: shows what a run uses, and its problems."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FINDINGS, OK

if TYPE_CHECKING:
    from ldlm_lint.doctor import Health

SCHEMA = "ldlm-lint-doctor/1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    parser.epilog = "exit codes: 0 no problems; 1 warnings; 2 invalid usage"
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="any path in the project (default: .)")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", metavar="FORMAT", help="text or json (default: text)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what a run at the path would use and return the exit code."""
    from ldlm_lint.doctor import examined

    path = Path(os.path.abspath(arguments.path))
    if not path.exists():
        raise UsageError(f"{arguments.path}: no such file or directory")
    folder = path if path.is_dir() else path.parent
    health = examined(folder)
    sys.stdout.write(_document(health) if arguments.format == "json" else _text(health))
    return FINDINGS if health.warnings else OK


def _text(health: Health) -> str:
    from ldlm_lint.report.cells import clean

    width = max(len(fact.name) for fact in health.facts)
    lines = [f"{fact.name:<{width}}  {clean(fact.value)}" for fact in health.facts]
    warnings = [f"warning: {clean(line)}" for text in health.warnings for line in text.splitlines()]
    notes = [f"note: {clean(text)}" for text in health.notes]
    return "\n".join([*lines, "", *(warnings or ["No problems found."]), *notes]) + "\n"


def _document(health: Health) -> str:
    facts = {fact.name: fact.value for fact in health.facts}
    document = {"schema": SCHEMA, "facts": facts, "warnings": list(health.warnings), "notes": list(health.notes)}
    return json.dumps(document, indent=2) + "\n"
