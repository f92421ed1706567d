"""What a defect of ours leaves behind: one finding with the place and who failed; everything else goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.model import Finding, Span
from ldlm_lint.rules.linter import INTERNAL_ERROR


def failed(span: Span, reason: str) -> Finding:
    """A place where we could not do what is ours to do."""
    return Finding(INTERNAL_ERROR.symbol, INTERNAL_ERROR.code, span, (("error", reason),))


def internal_error(span: Span, error: Exception, who: str = "") -> Finding:
    """The failure of ``who`` (the symbol of a rule, a room of rules) at a place."""
    import traceback

    where = traceback.extract_tb(error.__traceback__)[-1].name
    return failed(span, f"{who + ': ' if who else ''}{where}: {type(error).__name__}: {error}")


def guarded(findings: Iterable[Finding], span: Span, who: str) -> Iterator[Finding]:
    """The findings of one room of rules, up to its failure, which is one of them."""
    try:
        yield from findings
    except Exception as error:
        yield internal_error(span, error, who)
