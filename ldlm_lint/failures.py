"""Turns a defect of ours into one finding with the place and the failing part; everything else continues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.model import Finding, Span
from ldlm_lint.rules.linter import INTERNAL_ERROR


def failed(span: Span, reason: str) -> Finding:
    """A place where our own code failed."""
    return Finding(INTERNAL_ERROR.symbol, INTERNAL_ERROR.code, span, (("error", reason),))


def internal_error(span: Span, error: Exception, who: str = "") -> Finding:
    """The failure of ``who`` (the symbol of a rule, a checker) at a place."""
    import traceback

    where = traceback.extract_tb(error.__traceback__)[-1].name
    return failed(span, f"{who + ': ' if who else ''}{where}: {type(error).__name__}: {error}")


def guarded(findings: Iterable[Finding], span: Span, who: str) -> Iterator[Finding]:
    """The findings of one checker up to its failure, which is added as a finding."""
    try:
        yield from findings
    except Exception as error:
        yield internal_error(span, error, who)
