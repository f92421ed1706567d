"""The formats of a report as data; the module of a format is imported only when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from ldlm_lint.report.view import View


class Format(NamedTuple):
    """One way to show a report.

    Its module in `ldlm_lint.report` has ``write(view, stream)``; ``sorts`` and ``groups`` say that it respects
    ``--sort`` and ``--group-by``. ``complete``: it includes what could not be checked, so stderr does not repeat it.
    ``counts``: it supports ``--statistics``. ``workspace`` names the variable of a CI system with the directory that
    its paths must be relative to. ``launches``: it draws the launches of the project, for which the project is read
    once more.
    """

    name: str
    help: str
    complete: bool = True
    counts: bool = False
    sorts: bool = False
    groups: bool = False
    workspace: str = ""
    launches: bool = False

    def write(self, view: View, stream: TextIO) -> None:
        """Write a report to a stream."""
        importlib.import_module(f"ldlm_lint.report.{self.name}").write(view, stream)


FORMATS = {
    one.name: one
    for one in (
        Format("text", "ranked, one block for each rule, for people", complete=False, counts=True, sorts=True, groups=True),
        Format("full", "every finding with source lines and fix, for people", complete=False, counts=True, sorts=True),
        Format("concise", "one line for each finding, for editors and grep", complete=False, counts=True, sorts=True),
        Format("json", "everything, for programs", counts=True),
        Format("sarif", "SARIF 2.1.0, for code scanning", workspace="GITHUB_WORKSPACE"),
        Format("github", "annotations of a GitHub workflow", sorts=True, workspace="GITHUB_WORKSPACE"),
        Format("gitlab", "a code quality report of GitLab", complete=False, workspace="CI_PROJECT_DIR"),
        Format("junit", "JUnit XML, for test reports of CI systems"),
        Format("html", "one page with code, fixes, filters and the launch graph, for a browser", launches=True),
        Format("markdown", "a summary for the page of a CI job or a pull request", counts=True, sorts=True),
    )
}
DEFAULT = "text"
FOR_PEOPLE = ("text", "full")
ALIASES = {"grouped": "text"}
"""Other names of formats, as ruff has them."""


def canonical(name: str) -> str:
    """The name of a format as `FORMATS` has it.

    >>> canonical("grouped"), canonical("json")
    ('text', 'json')
    """
    return ALIASES.get(name, name)
