"""The rules of launch commands applied to commands that Python starts: ``subprocess.run(["torchrun", …])``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Finding
from ldlm_lint.project.traits import Trait
from ldlm_lint.rules import ALL

RULES = tuple(rule for rule in ALL if "sh" in rule.reads)
WORDS = (b"subprocess", b"os.system", b"os.exec", b"Popen")
LAUNCHES = Trait(
    re.compile(rb"\b(?:subprocess|os\.system|os\.exec|Popen)"),
    WORDS,
    code=True,
    beside=re.compile(rb"torchrun|torch\.distributed\.(?:run|launch)|[\"'](?:accelerate|deepspeed|python)|sys\.executable"),
)


def find(view: View) -> Iterator[Finding]:
    """The findings of the launch rules; without fixes, which would be shell code."""
    for path, code in view.launches_of_python:
        from ldlm_lint.shell import launch

        call = code.script.launches[0].span
        for finding in launch.findings((code,), view.context.facts_of(path)):
            # A word without a place in Python is reported at the command's start.
            span = call if finding.span.path == call.path and finding.span.start == call.start else finding.span
            related = tuple(one for one in finding.related if one.span != finding.span)
            yield finding._replace(span=span, fix=None, related=related)
