"""``ldlm-lint probe judge``."""

from __future__ import annotations

import argparse

from ldlm_lint.arguments import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``probe judge``."""


def run(arguments: argparse.Namespace) -> int:
    """Run it, print what came out, and return the exit code."""
    raise UsageError("not built yet")
