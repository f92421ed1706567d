"""The HTML report of the example repository, as a page of the site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.report.formats import FORMATS
from website.pages import ROOT

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EXAMPLE = "examples/latent-captions"
NAME = "report.html"
_FOUND_SOMETHING = 1


def write(output: Path) -> bool:
    """Write the report, or return False where this version has no such format; raises CalledProcessError."""
    if "html" not in FORMATS:
        return False
    command = [sys.executable, "-m", "ldlm_lint", "--no-cache", "--format", "html", "--output", str(output), EXAMPLE]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    if done.returncode != _FOUND_SOMETHING:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return True


def setup(app: Sphinx) -> None:
    """Write the report beside the pages when they are written, and tell the templates that there is one."""

    def finished(app: Sphinx, failure: Exception | None) -> None:
        if failure is None:
            write(Path(app.outdir, NAME))

    app.connect("build-finished", finished)
    app.connect("html-page-context", lambda app, page, template, context, tree: context.update(has_report="html" in FORMATS))
