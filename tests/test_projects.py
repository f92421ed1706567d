"""Small repositories, each read as one program: scripts, configurations and Python together.

``tests/fixtures/projects/<name>/`` announces every finding of the default rules by ``# expect: symbol`` comments (or an
``.expect`` file beside a JSON file); what is not announced must not be found.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from collected import for_every
from harness import PROJECTS, Case, announced, lint, materialize, seen_by_engine

from ldlm_lint.model import Applicability, Fix

NAMES = sorted(path.name for path in PROJECTS.iterdir() if path.is_dir())


@for_every("name", NAMES)
def test_what_is_announced_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    folder = PROJECTS / name
    root = materialize(Case("projects", folder), folder, tmp_path / name)
    seen = Counter((one.path, one.line, one.rule) for one in seen_by_engine(root, lint(root)))
    assert seen == announced(folder)


@for_every("name", NAMES)
def test_findings_show_the_places_they_rest_on_and_reasons_for_unsafe_fixes(name: str, tmp_path: Path) -> None:
    folder = PROJECTS / name
    root = materialize(Case("projects", folder), folder, tmp_path / name)
    report = lint(root)
    for finding in report.findings:
        assert all(related.span.path in report.sources for related in finding.related)
        if isinstance(finding.fix, Fix) and finding.fix.applicability is not Applicability.SAFE:
            assert finding.fix.reason
