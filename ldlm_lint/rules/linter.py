"""Family 68, the linter itself: what kept a file from being checked in full."""

from __future__ import annotations

from ldlm_lint.model import Reference, Rule

_DOCS = Reference("ldlm-lint documentation", "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/rules.md")


def _rule(code: str, symbol: str, message: str, summary: str, rationale: str, cost: str) -> Rule:
    return Rule(
        code=code,
        symbol=symbol,
        message=message,
        summary=summary,
        rationale=rationale,
        cost=cost,
        exceptions="None.",
        versions="Independent of torch.",
        verification="Run the linter again after mending the cause.",
        references=(_DOCS,),
        reads=("py", "sh"),
        triggers=(b"",),
        status="stable",
    )


INTERNAL_ERROR = _rule(
    "E6801",
    "ldlm-internal-error",
    "ldlm-lint failed here (%(error)s); the other rules and files went on, please report this",
    "A rule of ldlm-lint raised an exception.",
    "The rule's findings for this file are missing; every other rule and file is complete.",
    "The run ends with exit code 3, so that a gate does not pass on half an answer.",
)
UNPARSABLE_FILE = _rule(
    "E6802",
    "unparsable-file",
    "cannot be parsed: %(error)s; only what stands before it was checked",
    "A file with a syntax error.",
    "What stands before the error is still checked, what stands after it is not.",
    "Python would not run this file, and what follows the error is unchecked.",
)
UNREADABLE_FILE = _rule(
    "E6803",
    "unreadable-file",
    "cannot be read: %(error)s",
    "A file that is not text in its encoding, may not be read, or is too large.",
    "Nothing of the file was checked.",
    "The run ends with exit code 3, so that a gate does not pass on an unread file.",
)

RULES = (INTERNAL_ERROR, UNPARSABLE_FILE, UNREADABLE_FILE)
