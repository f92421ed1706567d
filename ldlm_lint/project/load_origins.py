"""Where the file that a load reads comes from: from outside, from the project itself, or nobody knows.

It decides what is at stake. A file from outside can run code of somebody else; a checkpoint of one's own training can
only fail to load. That is told by where the path comes from, and by what is done with the content: a training that goes
on restores its optimizer, and nobody publishes an optimizer to start from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from astroid import nodes

from ldlm_lint.checkers.checkpoint_paths import save_of
from ldlm_lint.code.table import Table, column_of, line_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.of_project import table_of_file
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.file_paths import FilePath, FilePaths, call_at, functions_called
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import qualified
from ldlm_lint.python.places import function_of, position_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.downloads import COMMANDS, DOWNLOADS, SHELLS

_SAVES = Trait(lazily(rb"\bsave(?:_file|_model)?\("), (b"save(", b"save_file(", b"save_model("))
_FETCHING = sorted({one.rpartition(".")[2].encode() for one in DOWNLOADS} | {one.split()[0].encode() for one in COMMANDS})
_FETCHES = Trait(lazily(b"|".join(_FETCHING)), tuple(_FETCHING))
_RANDOM_STATE = frozenset({"torch.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all", "random.setstate", "numpy.random.set_state"})
# Last resort: what the variable holds is made elsewhere. A file to start from holds nothing that one restores into these.
_OF_A_RUN = lazily(r"optim|sched|scaler|(^|_)opt(_|$)", re.I)


class Origin(NamedTuple):
    """``fetched``: the call or address that brings the file; ``written``: where the project writes it (file, line);
    ``resumes``: what is restored from it belongs to a training that goes on. None of them: unknown."""

    fetched: str = ""
    written: tuple[str, int] | None = None
    resumes: bool = False


class _Written(NamedTuple):
    where: str
    line: int
    path: FilePath


class LoadOrigins:
    """Answers where the files come from that a project loads."""

    def __init__(self, calls: Calls, trees: Trees) -> None:
        self._calls = calls
        self._trees = trees
        self._paths = FilePaths(calls, trees)
        self._tables: dict[str, Table | None] = {}

    def of(self, path: str, position: str) -> Origin:
        """The origin of the file that the load at ``line:column`` of a file reads."""
        call = call_at(self._trees, path, position)
        read = Arguments(call, ("f",))["f"].node if call is not None else None
        if call is None or read is None:
            return Origin()
        known = self._paths.of(path, read)
        fetched = next(iter(sorted(known.fetched)), "") or self._fetched_to(path, call, read, known)
        if fetched:
            return Origin(fetched=fetched)
        written = min((one for one in self._written if known.is_one_of(one.path)), key=lambda one: one.where != path, default=None)
        return Origin(written=(written.where, written.line) if written else None, resumes=self._resumes(path, call))

    @cached_property
    def _written(self) -> list[_Written]:
        """The files that the project writes with torch or safetensors; what only a test writes is left out."""
        project = self._calls.project
        return [one for path in project.showing(_SAVES) if not project.is_test(path) for one in self._written_in(path)]

    def _written_in(self, path: str) -> Iterator[_Written]:
        module = self._trees.of(path)
        for call in nodes_of(module, nodes.Call) if module is not None else ():
            save = save_of(call)
            if save is not None:
                yield _Written(path, call.lineno or 1, self._paths.of(path, save.path))

    def _fetched_to(self, path: str, load: nodes.Call, read: nodes.NodeNG, known: FilePath) -> str:
        """The call that downloads to the path: a downloader in this file, or a function of the project that is given this variable."""
        for call in nodes_of(load.root(), nodes.Call):
            for name in qualified(call.func) & DOWNLOADS.keys():
                place = DOWNLOADS[name]
                target = Arguments(call, ("",) * place[1] + (place[0],))[place[0]].node if place else None
                if target is not None and self._paths.of(path, target).is_one_of(known):
                    return call.func.as_string()
        names = {one.name for one in nodes_of(read, nodes.Name)}
        for call in nodes_of(function_of(load), nodes.Call) if names else ():
            given = {one.name for argument in call.args for one in (argument,) if isinstance(one, nodes.Name)}
            if call is not load and given & names and any(map(_downloads, self._functions(path, call))):
                return call.func.as_string()
        return ""

    def _resumes(self, path: str, load: nodes.Call) -> bool:
        """Whether the function that loads a file restores from it what only a training that goes on has."""
        restoring = {position_of(one): one for one in nodes_of(function_of(load), nodes.Call) if _restores(one)}
        table = self._table(path) if restoring else None
        if table is None:
            return False
        at = {f"{line_of(site.place)}:{column_of(site.place)}": number for number, site in table.sites.items()}
        wanted = at.get(position_of(load))
        given = (one for position in restoring if (number := at.get(position)) for one in table.nodes[number][2])
        return wanted is not None and any(_reaches(table, one, wanted) for one in given)

    def _table(self, path: str) -> Table | None:
        if path not in self._tables:
            self._tables[path] = table_of_file(self._calls.project, path)
        return self._tables[path]

    def _functions(self, path: str, call: nodes.Call) -> Iterator[nodes.FunctionDef]:
        """The functions of the project that a call goes to, in files whose words may download."""
        among = self._calls.project.showing(_FETCHES)
        return (function for _, function in functions_called(self._calls, self._trees, path, call, among)) if among else iter(())


def _downloads(function: nodes.FunctionDef) -> bool:
    """Whether a function brings a file onto the machine, by a library or by a command."""
    calls = list(nodes_of(function, nodes.Call))
    if any(qualified(one.func) & DOWNLOADS.keys() for one in calls):
        return True
    shells = (one for one in calls if qualified(one.func) & SHELLS)
    texts = (text.value for one in shells for text in nodes_of(one, nodes.Const) if isinstance(text.value, str))
    return any(text.lstrip().startswith(COMMANDS) for text in texts)


def _restores(call: nodes.Call) -> bool:
    """Whether a call restores what only a training that goes on has."""
    if qualified(call.func) & _RANDOM_STATE:
        return True
    is_state = isinstance(call.func, nodes.Attribute) and call.func.attrname == "load_state_dict"
    return is_state and _OF_A_RUN.search(call.func.expr.as_string()) is not None


def _reaches(table: Table, start: int, wanted: int) -> bool:
    """Whether a value is another one, or a part of it, by whichever way."""
    waiting, seen = [start], {start}
    while waiting:
        number = waiting.pop()
        if number == wanted:
            return True
        fresh = set(_came_from(table.nodes[number])) - seen
        seen |= fresh
        waiting.extend(fresh)
    return False


def _came_from(row: tuple[Any, ...]) -> tuple[int, ...]:
    """What a value is, or is taken out of."""
    kind = row[0]
    if kind in ("attr", "item", "part", "elem", "copy", "upd"):
        return (row[1],)
    if kind == "phi":
        return tuple(row[1])
    if kind == "choice":
        return tuple(row[2:4])
    # ``state.get("optimizer")``, ``to_device(state)``
    return (row[1], *row[2][:1]) if kind == "call" else ()


__all__ = ["LoadOrigins", "Origin"]
