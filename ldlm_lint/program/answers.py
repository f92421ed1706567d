"""Answers of concepts: yes, no, or unknown."""

from __future__ import annotations

import enum
from typing import NoReturn


class Answer(enum.Enum):
    """Whether something is so. A rule says which answer it means: ``is Answer.YES``, ``is not Answer.NO``."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> NoReturn:
        raise TypeError("an answer may be unknown: compare it with YES, NO or UNKNOWN")
