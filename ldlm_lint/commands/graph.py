"""``ldlm-lint graph``: the launches of a project."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ldlm_lint import arguments as arguments_of
from ldlm_lint.commands.output import FAILURE, OK, place
from ldlm_lint.options import configure_graph

configure = configure_graph


def run(arguments: argparse.Namespace) -> int:
    """Print the launches as a tree or JSON and return the exit code."""
    from ldlm_lint import graph
    from ldlm_lint.report import graph as shown

    base = Path.cwd()
    paths, config = arguments_of.configuration(arguments, base)
    found = graph.build(paths, config, base)
    if arguments.format == "json":
        sys.stdout.write(shown.render(found, base=base))
    else:
        shown.write(found, sys.stdout, base=base)
        sys.stdout.flush()
        for problem in found.problems:
            print(f"error: {place(problem, base)}{problem.message}", file=sys.stderr)
    return FAILURE if found.problems else OK
