"""``ldlm-lint graph``: shows the launches of a project."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ldlm_lint import arguments as arguments_of
from ldlm_lint.commands.output import STDOUT, check_writable, code_of, print_lines_of, print_notes, write_document
from ldlm_lint.options import configure_graph

configure = configure_graph


def run(arguments: argparse.Namespace) -> int:
    """Print the launches as a tree or JSON, draw them as a page if requested, and return the exit code."""
    from ldlm_lint import graph
    from ldlm_lint.report import graph as shown

    base = Path.cwd()
    if arguments.html and arguments.html != STDOUT:
        check_writable("--html", arguments.html)
    paths, configured = arguments_of.configuration(arguments, base)
    found = graph.build(paths, configured, base)
    if arguments.html:
        from ldlm_lint.config import common_directory, project_root
        from ldlm_lint.report.html import graph_document

        page = graph_document(found, base, project_root(common_directory(paths)))
        write_document(arguments.html, page, "--html")
    if arguments.html == STDOUT:
        print_lines_of(found.problems, base)
    elif arguments.format == "json":
        sys.stdout.write(shown.render(found, base=base))
    else:
        shown.write(found, sys.stdout, base=base)
        sys.stdout.flush()
        print_lines_of(found.problems, base)
    print_notes(found.warnings, base)
    return code_of(found.problems)
