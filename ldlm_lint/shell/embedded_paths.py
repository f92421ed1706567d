"""The path of a Python program inside a script within a project, and the conversion of its findings to the script."""

from __future__ import annotations

import re

from ldlm_lint.model import Edit, Finding, Fix, Related, Span
from ldlm_lint.patterns import lazily

_INNER = lazily(r"(.+)@(\d+)\.py")


def inner_path(script: str, start: int) -> str:
    """The name of the program that begins at an offset of a script; it is next to the script and imports from its
    folder."""
    return f"{script}@{start}.py"


def script_of(path: str) -> str | None:
    """The script of a program inside it; None for a file."""
    match = _INNER.fullmatch(path)
    return match[1] if match else None


def start_of(path: str) -> int:
    """The offset at which a program inside a script begins."""
    match = _INNER.fullmatch(path)
    return int(match[2]) if match else 0


def as_of_script(finding: Finding) -> Finding:
    """A finding about a program inside a script at its place in the script; other findings unchanged."""
    path = finding.span.path
    script = script_of(path)
    if script is None:
        return finding
    # Messages name files by the last part of their path, or by all of it.
    shown = re.compile(rf"{re.escape(path.rpartition('/')[2])}(?!\w)")
    name = script.rpartition("/")[2]

    def home(span: Span) -> Span:
        return span._replace(path=script) if span.path == path else span

    def told(value: object) -> object:
        return shown.sub(lambda _: name, value) if isinstance(value, str) else value

    return finding._replace(
        span=home(finding.span),
        args=tuple((key, told(value)) for key, value in finding.args),
        related=tuple(Related(home(one.span), str(told(one.message))) for one in finding.related),
        fix=None if finding.fix is None else _fix(finding.fix, path, script),
    )


def _fix(fix: Fix, path: str, script: str) -> Fix:
    edits = tuple(Edit(one.span._replace(path=script), one.text) if one.span.path == path else one for one in fix.edits)
    return fix._replace(edits=edits)


__all__ = ["as_of_script", "inner_path", "script_of", "start_of"]
