"""Findings and fixes of ``.env`` files, Dockerfiles and job files, for the tests of their front ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from ldlm_lint.checkers.configurations import containers, images
from ldlm_lint.configs import dotenv
from ldlm_lint.configs.read import read
from ldlm_lint.model import Applicability, Edit, Finding
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind, Source

DEFAULTS = {option.name: option.default for rule in ALL for option in rule.options}


def findings(text: str | bytes, kind: Kind, name: str = "") -> list[Finding]:
    data = text if isinstance(text, bytes) else text.encode()
    source = Source.from_bytes(name or f"job.{kind.value}", data, kind)
    if kind is Kind.DOTENV:
        found = dotenv.findings(source, DEFAULTS)
    elif kind is Kind.DOCKERFILE:
        found = images.findings(source, DEFAULTS)
    else:
        found = containers.findings(source, read(source), DEFAULTS)
    return sorted(found, key=lambda one: one.order)


def found(text: str, kind: Kind, name: str = "") -> list[str]:
    return [one.rule for one in findings(text, kind, name)]


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    for edit in sorted(edits, reverse=True):
        data = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
    return data


def fixed(text: str | bytes, kind: Kind, level: Applicability = Applicability.UNSAFE) -> str:
    """The file after rounds of fixes, those of one group as one; no two edits of a round overlap."""
    data = text if isinstance(text, bytes) else text.encode()
    for _ in range(20):
        groups: dict[str, set[Edit]] = {}
        for index, one in enumerate(findings(data, kind)):
            if one.fix is not None and one.fix.applicability >= level:
                groups.setdefault(one.fix.group or str(index), set()).update(one.fix.edits)
        taken: list[Edit] = []
        for edits in groups.values():
            merged = sorted({*taken, *edits})
            if all(left.span.end <= right.span.start for left, right in itertools.pairwise(merged)):
                taken = merged
            else:
                own = sorted(edits)
                assert all(left.span.end <= right.span.start for left, right in itertools.pairwise(own))
        if not taken:
            return data.decode()
        data = apply(data, taken)
    raise AssertionError("the fixes do not come to an end")
