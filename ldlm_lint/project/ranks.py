"""Tests of the rank around calls, and the places where the ranks of a training start."""

from __future__ import annotations

import functools
import re

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.groups import may_join_group
from ldlm_lint.project.joining import Joining
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.guards import OTHERS, RANK

_TESTS_RANK = (
    rb"is_?main|main_?proc|is_?master|master_?proc|is_?primary|is_root|rank_?zero|is_?chief|is_global_zero|should_save"
    rb"|get_rank\("
    rb"|(?:rank|RANK)\b[()\]\"']*\s*(?:==|!=|in\b|not in|<|>|%%)|not\s+[\w.]*rank|gpu(?:_id)?\s*==\s*0|process_index"
)
# The continuation lines of a statement.
_GOES_ON = rb"(?:[^\n]*[(\[{,][ \t]*\n){0,4}?"
_ASSIGNED = rb"%s(?<!\w%s)[\"']?\]?\s*(?:=(?!=)|:\s*bool\s*=)" + _GOES_ON + rb"[^\n]*(?:" + _TESTS_RANK + rb")"
_UNDER_RANK = rb"if(?<!\wif)\b[^\n]*(?:" + _TESTS_RANK + rb")[^\n]*:[^\n]*\n(?:[ \t][^\n]*\n){0,8}?[ \t]+(?:\w+\.)?%s\s*=(?!=)"
_DEFINED = rb"def(?<!\wdef)[ \t]+%s\b(?:[^\n]*\n){0,16}?[^\n]*(?:" + _TESTS_RANK + rb")"
_SET = rb"%s(?<!\w%s)\s*=(?!=)"

_RANK_TEST = Trait(
    re.compile(_TESTS_RANK.replace(b"%%", b"%")),
    (
        *(b"rank", b"RANK", b"is_main", b"ismain", b"main_proc", b"mainproc", b"master", b"primary", b"is_root", b"chief", b"global_zero"),
        *(b"should_save", b"gpu", b"process_index"),
    ),
)
Place = tuple[str, str]
"""A file and the dotted name of a function in it; empty for the module."""


@functools.lru_cache(maxsize=1024)
def _pattern(form: bytes, word: bytes) -> re.Pattern[bytes]:
    """The form of a statement about a name."""
    return re.compile(form.replace(b"%s", re.escape(word)).replace(b"%%", b"%"))


def _sets_by_rank(data: bytes, word: bytes) -> bool:
    """Whether a text assigns a test of the rank to a name, or defines a function with that name that does one.

    Text that begins with the name is found fast; the other forms are searched only if possible.
    """
    if _pattern(_ASSIGNED, word).search(data):
        return True
    if _pattern(_SET.replace(rb"(?<!\w%s)", b""), word).search(data) and _pattern(_UNDER_RANK, word).search(data):
        return True
    return b"def " + word in data and _pattern(_DEFINED, word).search(data) is not None


class Ranks:
    """Decides whether a condition singles a rank out."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._project = calls.project
        self._joining = Joining(calls)

    def guarded(self, path: str, call: CallSite) -> bool:
        """Whether one of the conditions on a call of a file singles a process out."""
        guards = self._project.guards(path).get(call.position, ())
        return any(guard == RANK or (guard != OTHERS and self._means_rank(path, guard)) for guard in guards)

    def leaves_to_others(self, path: str, call: CallSite) -> bool:
        """Whether a condition on a call lets all ranks but one make it: ``if rank != 0``."""
        return OTHERS in self._project.guards(path).get(call.position, ())

    def divides(self, path: str, call: CallSite) -> bool:
        """Whether one of the conditions on a call distinguishes one rank from the others, in either direction."""
        return self.leaves_to_others(path, call) or self.guarded(path, call)

    def _means_rank(self, path: str, name: str) -> bool:
        """Whether a name is set by a test of the rank, or is a function that does one, in the trainings of a file."""
        word = name.encode()

        def means_rank(one: str) -> bool:
            data = self._project.data(one)
            return word in data and _sets_by_rank(data, word)

        # Few texts test a rank at all: those are looked for once, and not for each name.
        files = self._project.showing(_RANK_TEST) & self._files(path)
        return self._project.any_that(files, f"means-rank {name}", means_rank)

    def _files(self, path: str) -> FileSet | frozenset[str]:
        """A file and those of its trainings."""
        return trainings_of(self._project, path) | {path}

    def start_at(self, place: Place) -> bool:
        """Whether ranks start at a place: what it runs trains, and joins a process group."""
        return may_join_group(self._project, place[0]) and self._joining.trains_in_group(place)
