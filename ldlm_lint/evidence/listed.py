"""The findings of a JSON report (``ldlm-lint --format json``), with the fields that evidence needs to distinguish
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ldlm_lint.evidence.model import EvidenceError, Judgement, Verdict

SCHEMA = "ldlm-lint/1"
MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A finding of a report: its rule, its first and last line, the other places it depends on, and its fingerprint."""

    rule: str
    path: str
    line: int
    end_line: int
    related: tuple[tuple[str, int], ...] = ()
    fingerprint: str = ""

    @property
    def place(self) -> str:
        """``train.py:29``."""
        return f"{self.path}:{self.line}"


def read(path: Path) -> tuple[Listed, ...]:
    """The findings of a report on disk; raises EvidenceError, naming the file, if it is not such a report."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise EvidenceError(f"{path}: larger than {MOST_BYTES} bytes")
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise EvidenceError(f"{path}: not findings of schema {SCHEMA}; ldlm-lint --format json writes them")
        return tuple(_listed(one) for one in document["findings"])
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise EvidenceError(f"{path}: not findings of schema {SCHEMA} ({type(error).__name__}: {error})") from error


def _listed(values: Mapping[str, Any]) -> Listed:
    first, last = int(values["line"]), int(values["end_line"])
    related = tuple((str(one["path"]), int(one["line"])) for one in values["related"])
    return Listed(str(values["rule"]), str(values["path"]), first, last, related, str(values.get("fingerprint", "")))


def of(judgement: Judgement, findings: Sequence[Listed]) -> tuple[Listed, ...]:
    """The findings of a judgement: those at its likeliest place, else the only one of its rule in the file.

    A report has no file contents, so it is unknown here whether a file has changed, or whether a run observed elsewhere
    executed a finding's lines; `check --evidence` can decide both. Refutations apply to their own lines only.
    """
    mine = [one for one in findings if one.rule == judgement.rule]
    if judgement.verdict is Verdict.REFUTED:
        mine = [one for one in mine if any(_meets(site.path, site.lines, *_spots(one)[0]) for site in judgement.sites)]
    for site in judgement.sites:
        hit = tuple(one for one in mine if any(_meets(site.path, site.lines, *spot) for spot in _spots(one)))
        if hit:
            return hit
    named = [one for one in mine if any(_same_file(site.path, one.path) for site in judgement.sites)]
    return tuple(named) if len(named) == 1 else ()


def _spots(finding: Listed) -> list[tuple[str, range]]:
    """The lines of a finding and of its related places."""
    own = (finding.path, range(finding.line, finding.end_line + 1))
    return [own, *((path, range(line, line + 1)) for path, line in finding.related)]


def _meets(path: str, lines: range, other: str, others: range) -> bool:
    return _same_file(path, other) and lines.start < others.stop and others.start < lines.stop


def _same_file(one: str, other: str) -> bool:
    """Whether one path is the end of the other: a report's paths begin where the linter was run, not at the root."""
    ours, theirs = PurePosixPath(one).parts, PurePosixPath(other).parts
    shorter = min(len(ours), len(theirs))
    return shorter > 0 and ours[-shorter:] == theirs[-shorter:]
