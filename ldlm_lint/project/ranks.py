"""The calls that every rank of a distributed training makes: the paths to them, and tests of the rank."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.dispatch import other_methods
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.groups import may_join_group
from ldlm_lint.project.joining import Joining
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.flow import SAVES, CallSite
from ldlm_lint.python.guards import OTHERS, RANK
from ldlm_lint.python.local_ranks import local_test
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of

_DEPTH = 8
_SPAWNS = (
    rb"(?:spawn|start_processes|Process|\w*launch\w*|call_main|Fire|submit|(?<![.\w])run|app\.run)\s*"
    rb"\((?:[^()]|\([^()]*\))*?\b%s\b(?!\s*\()"
)
_PASSED = rb"%s(?<!\w%s)\b(?!\s*\()"
_ENTRIES = {"main", "cli_main"}
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
_SET_BY_RANK = _SET + _GOES_ON + rb"[^\n]*(?:rank|gpu_id|\bpid\b|getpid|uuid|mkdtemp)"
# An option with that name in an argument parser does not count.
_DEFINED_BY_RANK = rb"def(?<!\wdef)[ \t]+%s\b(?:[^\n]*\n){0,12}?(?![^\n]*add_argument\()[^\n]*rank"
_BY_RANK = lazily(rb"rank|gpu_id|\bpid\b|uuid")

_RANK_TEST = Trait(
    re.compile(_TESTS_RANK.replace(b"%%", b"%")),
    (
        *(b"rank", b"RANK", b"is_main", b"ismain", b"main_proc", b"mainproc", b"master", b"primary", b"is_root", b"chief", b"global_zero"),
        *(b"should_save", b"gpu", b"process_index"),
    ),
)
# The parts of a name that distinguishes ranks.
_RANK_NAME = Trait(re.compile(rb"rank|gpu_id|pid|uuid|mkdtemp"), (b"rank", b"gpu_id", b"pid", b"uuid", b"mkdtemp"))

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


def _names_by_rank(data: bytes, word: bytes) -> bool:
    """Whether a text assigns a value that distinguishes ranks to a name."""
    if _pattern(_SET_BY_RANK, word).search(data):
        return True
    return b"def " + word in data and _pattern(_DEFINED_BY_RANK, word).search(data) is not None


class Way(NamedTuple):
    """How processes come to a call: where they start, and the calls on the way (file, call), the last one first."""

    start: Place
    calls: tuple[tuple[str, CallSite], ...]

    @property
    def last(self) -> tuple[str, CallSite] | None:
        """The last call on the way, if any."""
        return self.calls[0] if self.calls else None


class Ranks:
    """Decides whether all ranks or one of them runs a call."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._project = calls.project
        self._joining = Joining(calls)
        self._of_nodes: dict[tuple[str, str], bool] = {}
        self.unreached: set[Place] = set()
        """Places to which no way leads from where ranks may start, by their texts."""

    def ways(self, path: str, call: CallSite) -> Iterator[Way]:
        """The paths on which every rank of a training reaches a call."""
        if not self.guarded(path, call):
            yield from self.ways_into(path, call.scope)

    def ways_into(self, path: str, scope: str, *, of_nodes: bool = False) -> Iterator[Way]:
        """The paths on which every rank of a training reaches a function; ``of_nodes``: or the first of each node."""
        for way in self._up((path, scope), (), frozenset(), of_nodes):
            if self._joining.trains_in_group(way.start):
                yield way

    def _up(self, place: Place, below: tuple[tuple[str, CallSite], ...], seen: frozenset[Place], of_nodes: bool) -> Iterator[Way]:
        path, scope = place
        if place in seen or len(seen) > _DEPTH:
            return
        if not scope:
            # The cells of a notebook run in one process; spawned processes run a function.
            if not is_notebook(path):
                yield Way(place, below)
            return
        callers = list(self._calls.callers(path, scope, self._project.plain))
        for caller, call in callers:
            passes = not self.guarded(caller, call) or (of_nodes and self._is_for_each_node(caller, call))
            if passes and not self._may_test_rank(caller, call, place):
                yield from self._up((caller, call.scope), (*below, (caller, call)), seen | {place}, of_nodes)
        if (not callers and scope in _ENTRIES) or self._is_spawned(place):
            yield Way(place, below)

    def _is_for_each_node(self, path: str, call: CallSite) -> bool:
        """Whether the only rank that is tested on the path to a call is the local rank."""
        key = (path, call.position)
        if key not in self._of_nodes:
            node = self._node_of(path, call)
            self._of_nodes[key] = node is not None and local_test(node) is not None
        return self._of_nodes[key]

    def _may_test_rank(self, path: str, call: CallSite, place: Place) -> bool:
        """Whether a call may go to another class's method that saves on one rank: the class that the ranks use is
        unknown."""
        return any(
            self.guarded(home, one) and (one.callee.name in SAVES or self._calls.saves(home, one.callee))
            for home, scope in other_methods(self._calls, path, call, place)
            for one in self._project.calls_in(home, scope)
        )

    def _is_spawned(self, place: Place) -> bool:
        """Whether a function of a module is passed to a call that starts processes with it."""
        path, scope = place
        if "." in scope:
            return False
        word = scope.encode()
        users = (self._project.data(one) for one in self._project.importers(path))
        # Most texts only define and call it, which is found out in no time.
        return any(_pattern(_PASSED, word).search(data) and _pattern(_SPAWNS, word).search(data) for data in users)

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

    def named_by_rank(self, path: str, names: Iterable[str]) -> bool:
        """Whether one of these variables and functions, in the trainings of a file, holds the rank."""
        return any(self._is_named_by_rank(path, name) for name in names)

    def named_by_rank_here(self, path: str, names: Iterable[str]) -> bool:
        """As `named_by_rank`, by the text of the file alone."""
        data = self._project.data(path)
        return any(word in data and _names_by_rank(data, word) for word in map(str.encode, names))

    def _is_named_by_rank(self, path: str, name: str) -> bool:
        word = name.encode()

        def is_named(one: str) -> bool:
            data = self._project.data(one)
            return word in data and _names_by_rank(data, word)

        files = self._project.showing(_RANK_NAME) & self._files(path)
        return self._project.any_that(files, f"named-by-rank {name}", is_named)

    def passes_rank(self, path: str, call: CallSite, place: Place, parameters: Collection[str]) -> bool:
        """Whether the text of a call mentions the rank, or passes a variable that does for one of these parameters of
        the function at a place."""
        line = int(call.position.partition(":")[0])
        lines = self._project.data(path).splitlines()[line - 1 : line + 5]
        function = self._calls.function(*place)
        passed = [one for one in call.passed if one.slot.kind in ("var", "attr")]
        given = [one for one in passed if function is None or (self._calls.parameter(function, call, one.key) or "") in ("", *parameters)]
        names = [one.slot.name for one in given]
        return any(map(_BY_RANK.search, lines[:1])) or self.named_by_rank(path, names)

    def _files(self, path: str) -> FileSet | frozenset[str]:
        """A file and those of its trainings."""
        return trainings_of(self._project, path) | {path}

    def may_start(self, place: Place) -> bool:
        """Whether ranks may start at a place and train, by the texts of the reached files."""
        return may_join_group(self._project, place[0]) and self._joining.may_train(place)

    def _node_of(self, path: str, call: CallSite) -> nodes.Call | None:
        module = self._project.trees.of(path)
        found = (one for one in nodes_of(module, nodes.Call) if position_of(one) == call.position) if module is not None else iter(())
        return next(found, None)
