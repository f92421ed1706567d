"""Passes a process group the timeout that an unread variable was meant to set."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from astroid import nodes

from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.group_timeouts import POSITIONAL, makes_default_group
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.environment_names import TIMEOUTS
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.model import Edit, Span
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches
    from ldlm_lint.project.programs import Program

# Other code that creates the default group, with its own timeout.
_OTHER_MAKERS = lazily(
    rb"init_distributed\b|InitProcessGroupKwargs|ddp_timeout|\bAccelerator\(|TrainingArguments|(?:DDP|FSDP)Strategy|\bFabric\("
)
_MAKER = b"init_process_group"


class Maker(NamedTuple):
    """The only call that creates the default group of these programs; ``place`` is its extent."""

    path: str
    place: tuple[int, int, int, int]
    takes_timeout: bool


class Makers:
    """The calls that create default groups, searched once for all variables of the same programs.

    ``sets_later`` says whether one of the files sets the timeouts of existing groups.
    """

    def __init__(self, project: Project, launches: Launches, sets_later: Callable[[Collection[str]], bool]) -> None:
        self._project = project
        self._sets_later = sets_later
        self._launches = launches
        self._found: dict[frozenset[str], Maker | None] = {}
        self._edits: dict[tuple[Maker, int], tuple[Edit, ...] | None] = {}

    def maker_for(self, setting: Span, seconds: int) -> Maker | None:
        """The call that can get a timeout for the variable at a place; None if there is not exactly one.

        It must be the only one of all programs that get the variable, take no timeout yet, and have no launch that sets
        another one.
        """
        entries = _entries(self._project, self._launches, setting)
        if entries not in self._found:
            files = self._project.reach_of_all(entries) if entries else ()
            self._found[entries] = None if self._sets_later(files) else _only_maker(self._project, entries)
        maker = self._found[entries]
        agreed = maker is not None and all(_agrees(one, seconds) for one in self._launches.running(maker.path))
        return maker if agreed else None

    def edits_for(self, maker: Maker, seconds: int) -> tuple[Edit, ...] | None:
        """The edits that pass the timeout; None if the call or the file cannot be edited."""
        key = (maker, seconds)
        if key not in self._edits:
            self._edits[key] = _edits(self._project, maker, seconds)
        return self._edits[key]


def _only_maker(project: Project, entries: frozenset[str]) -> Maker | None:
    makers: dict[tuple[str, int], Maker] = {}
    for path in project.reach_of_all(entries) if entries else ():
        data = project.data(path)
        if _OTHER_MAKERS.search(data):
            return None
        makers |= {(path, one.place[0]): one for one in _makers_in(project, path)}
    if len(makers) != 1:
        return None
    (maker,) = makers.values()
    return None if maker.takes_timeout or not all(_makes(project, one, maker) for one in entries) else maker


def _edits(project: Project, maker: Maker, seconds: int) -> tuple[Edit, ...] | None:
    source = Source.from_bytes(maker.path, project.data(maker.path), Kind.PYTHON)
    try:
        needed, timedelta = ensure_import(source, "datetime", "timedelta")
    except SyntaxError:
        return None
    passed = add_keyword(source, source.span_of(*maker.place), "timeout", f"{timedelta}(seconds={seconds})")
    return None if passed is None else tuple(filter(None, (needed, passed)))


def _entries(project: Project, launches: Launches, setting: Span) -> frozenset[str]:
    """The Python files that are run with the variable; empty if one of them is unknown."""
    if setting.path in project.files:
        return frozenset({setting.path})
    found = {one.entry for one in launches.programs if _gets(one, setting)}
    return frozenset() if None in found else frozenset(filter(None, found))


def _gets(program: Program, setting: Span) -> bool:
    return any(
        one.span.path == setting.path and setting.start <= one.span.start and one.span.end <= setting.end
        for one in program.environment
    )


def _makers_in(project: Project, path: str) -> list[Maker]:
    """The calls of a file that make a default group."""
    module = project.trees.of(path) if _MAKER in project.data(path) and not project.is_test(path) else None
    calls = nodes_of(module, nodes.Call) if module is not None else ()
    return [
        Maker(path, (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset), not Arguments(call, POSITIONAL)["timeout"].absent)
        for call in calls
        if makes_default_group(call)
    ]


def _makes(project: Project, entry: str, maker: Maker) -> bool:
    return maker.path in project.reach(entry)


def _agrees(program: Program, seconds: int) -> bool:
    """Whether a launch promises no other timeout."""
    given = [one for one in program.environment if one.keys and one.keys[0] in TIMEOUTS]
    return all(one.texts == {str(seconds)} for one in given)
