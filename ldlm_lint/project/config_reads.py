"""The Python calls of a project that get a value from a configuration, and the keys.

Only the files with a call that matters are parsed; from there a value is followed back, through variables, parameters
and attributes, to the keys that are read. Anything but a plain read (arithmetic, a condition) is not followed: unknown
is not a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.configs.document import Document, Entry
from ldlm_lint.patterns import lazily
from ldlm_lint.project.call_texts import may_hand_on
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.config_homes import CLASS_KEYS, Home
from ldlm_lint.project.index import Project
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.key_reads import ELEMENT, KeyRead, reads_of, sections_of
from ldlm_lint.python.names import qualified
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of

_DEPTH = 5
_CALLERS = 20
# Sections that are not the training's own.
_OTHER_SECTION = lazily(r"val|test|eval|infer|sampl|generat|token|preproc|download|export|serv", re.I)
# The keys above the arguments of a class, if they are not next to its name.
_ARGUMENT_KEYS = ("params", "init_args", "kwargs", "args")


class Origin(NamedTuple):
    """The origin of a value: the read keys, and the place of the read.

    ``maker`` is the (path, name) of the class or function whose argument the last key is, if only configurations call
    it; ``cap`` the largest number that gets through, None without a bound.
    """

    keys: tuple[str, ...]
    path: str
    position: str
    cap: int | None = None
    maker: tuple[str, str] | None = None


class Sink(NamedTuple):
    """A call that receives values: its file, its place and its node."""

    path: str
    position: str
    node: nodes.Call


class ConfigReads:
    """Follows the arguments of calls back to the keys of configurations."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self._project = project
        self._calls = calls
        self._trees: dict[str, nodes.Module | None] = {}
        self._sinks: dict[tuple[frozenset[str], str], tuple[Sink, ...]] = {}
        self._origins: dict[tuple[str, str, str, tuple[str, ...]], tuple[Origin, ...]] = {}

    def tree(self, path: str) -> nodes.Module | None:
        """The tree of a file of the project, cached."""
        if path not in self._trees:
            self._trees[path] = self._project.trees.of(path)
        return self._trees[path]

    def sinks(self, names: frozenset[str], parameter: str = "", positional: tuple[str, ...] = ()) -> tuple[Sink, ...]:
        """The calls of functions with these qualified names, without tests.

        With a parameter, files without a call that can pass a read value for it are left out, too.
        """
        key = names, parameter
        if key not in self._sinks:
            place = positional.index(parameter) if parameter in positional else None
            self._sinks[key] = tuple(self._find_sinks(names, parameter, place))
        return self._sinks[key]

    def _find_sinks(self, names: frozenset[str], parameter: str, position: int | None) -> Iterator[Sink]:
        last = {name.rpartition(".")[2] for name in names}
        words = [name.encode() for name in last]
        for path in sorted(self._project.files):
            data = self._project.data(path)
            if self._project.is_test(path) or not any(word in data for word in words):
                continue
            if parameter and not may_hand_on(data, last, parameter, position):
                continue
            tree = self.tree(path)
            for node in nodes_of(tree, nodes.Call) if tree is not None else ():
                if qualified(node.func) <= names:
                    yield Sink(path, position_of(node), node)

    def origins(self, sink: Sink, parameter: str, positional: tuple[str, ...] = ()) -> tuple[Origin, ...]:
        """The keys that an argument of a call may come from, including those of a section that is passed whole."""
        key = (sink.path, sink.position, parameter, positional)
        if key not in self._origins:
            self._origins[key] = tuple(dict.fromkeys(self._of_argument(sink, parameter, positional)))
        return self._origins[key]

    def read_by(self, names: frozenset[str], parameter: str, positional: tuple[str, ...], key: str) -> list[tuple[Sink, Origin]]:
        """The calls with an argument from a key of this name, in any section."""
        found = ((sink, origin) for sink in self.sinks(names, parameter, positional) for origin in self.origins(sink, parameter, positional))
        return [(sink, origin) for sink, origin in found if origin.keys[-1] == key]

    def _of_argument(self, sink: Sink, parameter: str, positional: tuple[str, ...]) -> Iterator[Origin]:
        node = Arguments(sink.node, positional)[parameter].node
        reads = reads_of(node) if node is not None else self._below_sections(sink.node, parameter)
        for read in reads:
            yield from self._followed(sink.path, read, 0)

    def origins_of(self, path: str, node: nodes.NodeNG) -> tuple[Origin, ...]:
        """The keys behind an expression of a file."""
        return tuple(dict.fromkeys(one for read in reads_of(node) for one in self._followed(path, read, 0)))

    @staticmethod
    def _below_sections(call: nodes.Call, parameter: str) -> tuple[KeyRead, ...]:
        return tuple(one._replace(keys=(*one.keys, parameter)) for one in sections_of(call))

    def _followed(self, path: str, read: KeyRead, depth: int) -> Iterator[Origin]:
        """A read and, if it begins at a parameter, the arguments of the callers."""
        own = Origin(read.keys, path, read.position, read.cap)
        if not read.parameter or depth > _DEPTH:
            if read.keys:
                yield own
            return
        found = [one for one in self._from_callers(path, read, depth)]
        yield from found
        if read.keys and not found:
            yield own
        elif not read.keys:
            # A configuration may name the class, and pass the argument by its name.
            yield own._replace(keys=(read.parameter,), maker=(path, read.scope.removesuffix(".__init__")))

    def _from_callers(self, path: str, read: KeyRead, depth: int) -> Iterator[Origin]:
        function = self._calls.function(path, read.scope)
        if function is None:
            return
        names = function.params[1:] if function.params[:1] in (("self",), ("cls",)) else function.params
        for number, (caller, call) in enumerate(self._calls.callers(path, read.scope)):
            if number >= _CALLERS:
                return
            node = self._call_at(caller, call.position)
            if node is None or self._project.is_test(caller):
                continue
            given = Arguments(node, names)[read.parameter].node
            passed = reads_of(given) if given is not None else self._below_sections(node, read.parameter)
            for outer in passed:
                caps = [one for one in (read.cap, outer.cap) if one is not None]
                joined = outer._replace(keys=outer.keys + read.keys, cap=min(caps) if caps else None)
                for origin in self._followed(caller, joined, depth + 1):
                    # The last key is read here, for any section that the caller passes.
                    yield origin._replace(path=path, position=read.position) if read.keys else origin

    def _call_at(self, path: str, position: str) -> nodes.Call | None:
        tree = self.tree(path)
        return next((one for one in nodes_of(tree, nodes.Call) if position_of(one) == position), None) if tree is not None else None


def may_match(origin: Origin, document: Document, entry: Entry) -> bool:
    """Whether a value of a file can belong to an origin, for any reading program and prefix."""
    own = tuple(ELEMENT if isinstance(key, int) else key for key in entry.path)
    if origin.maker is not None:
        return any(_classes_named(origin, document, entry))
    shared = min(len(own), len(origin.keys))
    if not shared or own[-shared:] != origin.keys[-shared:] or ELEMENT in own[:-shared]:
        return False
    return len(origin.keys) > 1 or len(own) < 2 or not _is_ambiguous(document, entry, own[-2])


def _is_ambiguous(document: Document, entry: Entry, section: str) -> bool:
    """Whether the name of a key does not determine the section a program reads it from, or it does not belong to the
    training."""
    return len({one.path for one in document.named(entry.name)}) > 1 or _OTHER_SECTION.search(section) is not None


def matches(origin: Origin, document: Document, entry: Entry, home: Home, project: Project) -> bool:
    """Whether a value of a file, read by a program, belongs to an origin."""
    if origin.maker is not None:
        return _is_argument_of(origin, document, entry, home, project)
    full = (*home.prefix, *(ELEMENT if isinstance(key, int) else key for key in entry.path))
    skipped, taken = full[: -len(origin.keys)], full[-len(origin.keys) :]
    if taken != origin.keys or ELEMENT in skipped:
        return False
    return len(origin.keys) == len(full) or len(origin.keys) > 1 or _is_in_a_section_of(document, entry, full, home, project)


def _is_in_a_section_of(document: Document, entry: Entry, full: tuple[str, ...], home: Home, project: Project) -> bool:
    """Whether a single key, read from an unknown root, can only be that of its section, which the program mentions."""
    if _is_ambiguous(document, entry, full[-2]):
        return False
    section = re.compile(rb"[.\"']%s\b" % re.escape(full[-2]).encode())
    return any(section.search(project.data(file)) for file in project.reach(home.entry))


def _is_argument_of(origin: Origin, document: Document, entry: Entry, home: Home, project: Project) -> bool:
    """Whether the mapping around an entry passes arguments to the class of an origin's parameter."""
    for named in _classes_named(origin, document, entry):
        found = project.resolve(home.entry, named)
        return found is None or found == origin.maker
    return False


def _classes_named(origin: Origin, document: Document, entry: Entry) -> Iterator[str]:
    """The names, as written, of classes that get an entry's value and have the last name of an origin's maker."""
    if not entry.path or entry.path[-1] != origin.keys[-1] or origin.maker is None:
        return
    holder = entry.path[:-1]
    if holder and holder[-1] in _ARGUMENT_KEYS:
        holder = holder[:-1]
    for key in CLASS_KEYS:
        named = document.get(*holder, key, document=entry.document)
        if named is None or not isinstance(named.value, str):
            continue
        if named.value.rpartition(".")[2] == origin.maker[1].rpartition(".")[2]:
            yield named.value
