"""Checks that a ``.env`` file or a Dockerfile is still valid after a fix."""

from __future__ import annotations

import re
from collections.abc import Collection

from ldlm_lint.configs import instructions
from ldlm_lint.configs.instructions import Instruction
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind, Source, UnreadableError

_VARIABLE = lazily(r"[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*(?:=|$)")
_PAIRS_AND_BLANKS = lazily(
    r"\s*(?:[A-Za-z_][\w.-]*=(?:\"(?:\\[\s\S]|[^\"\\])*\"|'[^']*'|\\[\s\S]|[^\s\"'\\])*(?:\s+|\Z))+"
)


def validate_dotenv(before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
    """The damage in a ``.env`` file: more lines than before that set nothing."""
    return "a line would no longer set a variable" if _lost(after) > _lost(before) else None


def _lost(data: bytes) -> int:
    """The number of lines that set no variable although they are neither empty nor comments."""
    lines = (line.strip() for line in data.decode("utf-8-sig", errors="replace").splitlines())
    return sum(not _VARIABLE.match(line) for line in lines if line and not line.startswith("#"))


def validate_dockerfile(before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
    """The damage in a Dockerfile: instructions may be removed but not added, lists stay lists, ``ENV`` keeps its
    form.
    """
    old, new = _instructions(before), _instructions(after)
    waiting = iter(one.keyword for one in old)
    if not all(any(keyword == one.keyword for keyword in waiting) for one in new):
        return "it would have a new instruction"
    for keyword in ("CMD", "ENTRYPOINT", "SHELL", "RUN"):
        if _lists(new, keyword) != _lists(old, keyword):
            return f"a {keyword} would no longer be a list of words"
    if _broken(new) > _broken(old):
        return "an ENV would no longer set its variables"
    return None


def _instructions(data: bytes) -> tuple[Instruction, ...]:
    try:
        return tuple(instructions.read(Source.from_bytes("Dockerfile", data, Kind.DOCKERFILE)))
    except UnreadableError:
        return ()


def _lists(found: tuple[Instruction, ...], keyword: str) -> int:
    return sum(one.keyword == keyword and instructions.words(one) is not None for one in found)


def _broken(found: tuple[Instruction, ...]) -> int:
    """The number of ``ENV`` that set nothing, or have words that are not a pair although they begin with one."""
    bodies = [one.body.decode(errors="replace") for one in found if one.keyword == "ENV"]
    joined = [body for body in bodies if re.match(r"\s*[A-Za-z_][\w.-]*=", body)]
    return sum(not body.strip() for body in bodies) + sum(not _PAIRS_AND_BLANKS.fullmatch(body) for body in joined)
