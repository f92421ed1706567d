"""Which files a path may name: the patterns of its last component, its beginning, and the calls that download it.

Two paths that agree in these name the same files, even if one is written and the other is read much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from ldlm_lint.concepts.path_patterns import JOINS, OF_PATHS, PathPatterns, called_name
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, expression
from ldlm_lint.vocabulary.downloads import COMMANDS, DOWNLOADS, PUBLISHED_NAMES, SHELLS

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

Entered = tuple[tuple[int, int], ...]
"""The functions whose results are looked at, each with the call (keys), the outermost first."""
Home = tuple[object, ...]
"""What a path begins with: ``("parameter", function, name)``, ``("of self", class, name)``, ``("setting", name)``, ``("global", module, name)``,
``("value", key)``, ``("memory", module)``, ``("temporary", key)``, and `SHIPPED`."""
SHIPPED: Home = ("shipped",)
"""The folder of the code itself, or one of a package."""
_SCOPED = frozenset({"parameter", "of self"})
_OUTSIDE = ("http://", "https://", "ftp://", "hf://")
"""How an address begins that anybody may publish at; a bucket (``s3://``) holds one's own files as well."""
_MOST = 300
_CALLERS = 30
_DIGITS = lazily(r"\d+")
"""What is written out of a series: one of its numbers."""
_FIELD = lazily(r"\{(\w*)[^{}]*\}|%s")
"""A place at the beginning of a text that `str.format` or ``%`` fills."""
_NO_LETTERS = lazily(r"(?:\.\w+)+$|[^A-Za-z]")
_LEAST_LETTERS = 3
_SAME_FILE = frozenset({*OF_PATHS, "open", "BytesIO", "sorted", "max", "min", "list", "reversed", "next", "iter", "glob", "iglob", "natsorted", "enumerate", "tqdm"})
"""Functions that give a path in another form, one of several paths, or the open file."""
_TEMPORARY = frozenset({"tempfile.TemporaryDirectory", "tempfile.mkdtemp", "tempfile.NamedTemporaryFile", "tempfile.mkstemp"})
"""Functions that make a folder or a file which is new, under a name of its own."""
_OF_RECEIVER = frozenset({"resolve", "absolute", "expanduser", "as_posix", "strip", "replace", "with_suffix", "open", "pop", "read", "read_bytes"})
"""Methods of paths, of lists of them and of open files that do so."""
_BELOW = frozenset({"glob", "rglob"})
_ABOVE = frozenset({"dirname", "parent", "parents"})
"""Functions and attributes of a path that give a folder above it."""
_OF_CODE = frozenset({"inspect.getfile", "inspect.getsourcefile", "inspect.getabsfile", "importlib.resources.files", "pkg_resources.resource_filename"})
"""Functions that give the file of a piece of code, or one that its package contains."""
_PROPERTIES = frozenset({"property", "cached_property"})


@dataclass
class FilePath:
    """The known facts of a path; ``fetched`` are the calls (keys) that download the file, and addresses of it."""

    names: set[str] = field(default_factory=set)
    homes: set[Home] = field(default_factory=set)
    fetched: set[int | str] = field(default_factory=set)

    def is_one_of(self, other: FilePath) -> bool:
        """Whether two paths name the same files: by their names, or by the same beginning if not both have a name."""
        own, others = _telling(self.names), _telling(other.names)
        if any(_match(one, two) for one in own for two in others):
            return not _lie_apart(self.homes, other.homes)
        return bool(self.homes & other.homes) and not (own and others)


def _lie_apart(one: set[Home], other: set[Home]) -> bool:
    """Whether two paths begin with different parameters of one function, or attributes of one object, the input and the
    output of a converter, or one of them in a temporary folder and the other not."""
    for homes, others in ((one, other), (other, one)):
        begun = {home for home in homes if home[0] not in ("value", "parameter")}
        if begun and all(home[0] == "temporary" for home in begun) and begun.isdisjoint(others):
            return True
    scopes = [{home[1] for home in homes if home[0] in _SCOPED} for homes in (one, other)]
    return one.isdisjoint(other) and not scopes[0].isdisjoint(scopes[1])


def _telling(names: set[str]) -> set[str]:
    """The patterns that are specific to one kind of file and that no published model has."""
    tails = ((one, one.rpartition("/")[2]) for one in names)
    return {one for one, tail in tails if len(_NO_LETTERS.sub("", tail)) >= _LEAST_LETTERS and tail not in PUBLISHED_NAMES}


def _match(one: str, two: str) -> bool:
    (folder, _, name), (other, _, others) = one.rpartition("/"), two.rpartition("/")
    if folder and other and folder != other:
        return False
    # A variable part matches only itself: ``*_last.pt`` names none of ``step_*.pt``.
    return name == others or fnmatchcase(name.replace("*", "#"), others) or fnmatchcase(others.replace("*", "#"), name)


def _pattern(text: str) -> str:
    """The last component of a path, with its folder if that is a literal, with a sign for numbers.

    >>> _pattern("runs/ckpt_0010.pt")
    'runs/ckpt_#.pt'
    """
    folder, _, name = text.rpartition("/")
    above = folder.rpartition("/")[2]
    written = above if "*" not in folder and above not in ("", ".", "..") else ""
    return "/".join(filter(None, (written, _DIGITS.sub("#", name))))


class FilePaths(Concept):
    """Analyses the parts of paths; the work for one path is bounded."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._patterns = code[PathPatterns]
        self._seen: set[tuple[int, bool, bool, Entered]] = set()
        self._entered: Entered = ()
        self._shared: dict[tuple[object, ...], FilePath] = {}
        self._downloading: frozenset[int] | None = None

    def of(self, key: int) -> FilePath:
        """The path that an expression (key) is."""
        self._seen, self._entered = set(), ()
        found = FilePath()
        self._visit(key, found, begins=True, ends=True)
        return found

    def downloads(self, call: int) -> bool:
        """Whether a call is of a function of the project that brings a file onto the machine."""
        if self._downloading is None:
            self._downloading = frozenset(self._functions_that_download())
        return not self._downloading.isdisjoint(self.program.targets_of.get(call, ()))

    def _functions_that_download(self) -> Iterator[int]:
        yield from (self.program.function_of(call) for call, _ in self.ask.calls_of(DOWNLOADS))
        yield from (self.program.function_of(call) for call, _ in self.ask.calls_of(SHELLS) if self.is_download(call))

    def is_download(self, call: int) -> bool:
        """Whether a call that runs a command has it bring a file onto the machine."""
        sources = self.ask.argument(call, "args", 0).sources
        return any(text.lstrip().startswith(COMMANDS) for one in sources for text in self._command(one))

    def _command(self, key: int) -> Iterable[str]:
        """The command line that a text or a list of words is."""
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if row[0] != "seq":
            return self._patterns.of(expression(self.code, key))
        return [" ".join(next(iter(sorted(self._patterns.of(expression(self.code, module.base | one))))) for one in row[2])]

    def _visit(self, key: int, found: FilePath, *, begins: bool, ends: bool) -> None:
        """Add the parts of an expression: as the beginning of the path, as its last component, or as both."""
        if (key, begins, ends, self._entered) in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add((key, begins, ends, self._entered))
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if begins and kind in ("call", "op", "fstr", "elem", "part"):
            found.homes.add(("value", key))
        if kind == "param":
            self._parameter(module.base | row[1], row[2], found, begins=begins, ends=ends)
        elif kind == "free":
            self._name(module, row, found, begins=begins, ends=ends)
        elif kind == "attr":
            self._attribute(key, module, row, found, begins=begins, ends=ends)
        elif kind == "item":
            self._item(module, row, found, begins=begins, ends=ends)
        elif kind == "call":
            self._call(key, module, row, found, begins=begins, ends=ends)
        elif kind in ("const", "fstr", "op"):
            self._put_together(key, _parts(module, row), found, begins=begins, ends=ends)
        else:
            for one in _ways(row):
                self._visit(module.base | one, found, begins=begins, ends=ends)

    def _put_together(self, key: int, parts: tuple[int, ...], found: FilePath, *, begins: bool, ends: bool) -> None:
        base = key & ~MASK
        if begins and parts:
            self._visit(base | parts[0], found, begins=True, ends=False)
        if ends and self._take_names(key, found, begins=begins) and len(parts) > 1:
            self._visit(base | parts[-1], found, begins=False, ends=True)

    def _take_names(self, key: int, found: FilePath, *, begins: bool) -> bool:
        """Add the known names of an expression; returns whether a last component is unknown."""
        texts = self._patterns.of(expression(self.code, key))
        found.fetched |= {one.partition("*")[0] for one in texts if begins and one.startswith(_OUTSIDE)}
        names = {_pattern(one) for one in texts if "://" not in one}
        found.names |= names - {"*"}
        return "*" in names

    def _parameter(self, function: int, name: str, found: FilePath, *, begins: bool, ends: bool) -> None:
        """The arguments of a function's callers, and its default; of the one call whose result is looked at."""
        if self._entered and self._entered[-1][0] == function:
            given = self._argument(name)
            if given is not None:
                entered, self._entered = self._entered, self._entered[:-1]
                self._visit(given, found, begins=begins, ends=ends)
                self._entered = entered
            return
        if begins:
            found.homes.add(("parameter", function, name))
        self._add((function, name), lambda whole: self._given(function, name, whole), found, begins=begins, ends=ends)

    def _argument(self, name: str) -> int | None:
        """What the call that was entered last passes for a parameter, or its default; None if that is not known."""
        (function, call), program = self._entered[-1], self.program
        module = program.module_of(function)
        hows = {edge.how for edge in program.callers(function) if edge.call == call}
        given = (
            program.argument_node(call, function, hows.pop(), name) if len(hows) == 1 and UNKNOWN not in hows else None
        )
        default = module.scopes[function & MASK].defaults.get(name)
        return given if given is not None or default is None else module.base | default

    def _given(self, function: int, name: str, found: FilePath) -> None:
        module = self.program.module_of(function)
        default = module.scopes[function & MASK].defaults.get(name)
        given = [node for _, node in self.program.given_for(function, name)[:_CALLERS]]
        for one in [module.base | default, *given] if default else given:
            self._visit(one, found, begins=True, ends=True)

    def _add(self, key: tuple[object, ...], find: Callable[[FilePath], None], found: FilePath, *, begins: bool, ends: bool) -> None:
        """Add the parts that are the same for every path through here; they are computed once."""
        key = (*key, self._entered)
        if key not in self._shared:
            whole = self._shared[key] = FilePath()
            find(whole)
        shared = self._shared[key]
        found.names |= shared.names if ends else set()
        found.homes |= shared.homes if begins else set()
        found.fetched |= shared.fetched

    def _name(self, module: Module, row: Node, found: FilePath, *, begins: bool, ends: bool) -> None:
        """A name of the module, of an enclosing function, or one that is imported."""
        bound = list(self.ask.bound_to(module, row))
        if begins:
            found.homes.add(SHIPPED if row[2] == "__file__" else ("global", module.index, row[2]))
        if ends and not any(module.nodes[one & MASK][0] in ("param", "call") for one in bound):
            for one in bound[:1]:
                self._take_names(one, found, begins=begins)
        for one in bound:
            self._visit(one, found, begins=begins, ends=ends)

    def _attribute(self, key: int, module: Module, row: Node, found: FilePath, *, begins: bool, ends: bool) -> None:
        """A setting, or an attribute of an object."""
        owner = self.program.class_of_self(module, row[1])
        if owner is None and row[2] in _ABOVE:
            self._visit(module.base | row[1], found, begins=begins, ends=False)
            return
        if owner is None:
            found.homes |= {("setting", row[2])} if begins else set()
            if ends:
                self._take_names(key, found, begins=begins)
            if module.plain(row[1])[0] == "call":
                # ``requests.get(url).content``
                holder = FilePath()
                self._visit(module.base | row[1], holder, begins=begins, ends=False)
                found.fetched |= holder.fetched
            return
        found.homes |= {("of self", owner, row[2])} if begins else set()
        for one in (value for cls in self.program.order(owner) for value in self.program.own_writes.get((cls, row[2]), ())):
            self._visit(one, found, begins=begins, ends=ends)
        for function in self.program.methods(owner, row[2]):
            if not _PROPERTIES.isdisjoint(self.program.decorator_names(function)):
                self._add((function,), partial(self._given_back, function), found, begins=begins, ends=ends)

    def _item(self, module: Module, row: Node, found: FilePath, *, begins: bool, ends: bool) -> None:
        """A setting by its name, or one of several: the index selects it, not the container."""
        key = module.nodes[row[2]]
        if key[0] == "const" and isinstance(key[1], str):
            found.homes |= {("setting", key[1])} if begins else set()
            return
        named = self._key_of_setting(key)
        if named:
            found.homes |= {("setting", named)} if begins else set()
            return
        holder = module.plain(row[1])
        is_own = holder[0] == "attr" and self.program.class_of_self(module, holder[1]) is not None
        is_plain = not is_own and holder[0] in ("free", "param", "attr", "imp", "impf")
        if is_plain and begins and key[0] == "const":
            found.homes.add(("setting", holder[-1] if holder[0] != "impf" else holder[2], key[1]))
        self._visit(module.base | row[1], found, begins=begins and not is_plain, ends=ends)

    def _key_of_setting(self, key: Node) -> str:
        """The text that the call entered last passes for an index: ``get("output")`` reads ``self.config[name]``."""
        if key[0] != "param" or not self._entered:
            return ""
        given = self._argument(str(key[2])) if self._entered[-1][0] & MASK == key[1] else None
        row = self.program.module_of(given).nodes[given & MASK] if given is not None else ("",)
        return row[1] if row[0] == "const" and isinstance(row[1], str) else ""

    def _call(self, key: int, module: Module, row: Node, found: FilePath, *, begins: bool, ends: bool) -> None:
        name, function = called_name(Call(self.code, key)), module.plain(row[1])
        names = self.ask.names_of(self.program.ask(module.base | row[1]))
        is_method = function[0] == "attr" and not names
        if names & DOWNLOADS.keys() or self.downloads(key):
            found.fetched.add(key)
        if begins and not names.isdisjoint(_OF_CODE):
            found.homes.add(SHIPPED)
        if begins and not names.isdisjoint(_TEMPORARY):
            found.homes.add(("temporary", key))
        if is_method and name in _BELOW:
            self._visit(module.base | function[1], found, begins=begins, ends=False)
            for one in row[2][:1]:
                # A file system receives the whole path.
                self._visit(module.base | one, found, begins=begins, ends=ends)
        elif is_method and name == "open" and row[2] and module.nodes[row[2][0]][0] != "const":
            # ``fs.open(path, "rb")``; the method of a path receives the mode only.
            self._visit(module.base | row[2][0], found, begins=begins, ends=ends)
        elif function[0] == "attr" and (name == "format" or (is_method and name in _OF_RECEIVER)):
            self._take_names(key, found, begins=begins)
            begin = _filled_first(module, function[1], row[2], row[3]) if name == "format" else 0
            self._visit(module.base | (begin or function[1]), found, begins=begins, ends=ends and name != "format")
        elif name in JOINS and (names or function[0] == "attr"):
            first = (function[1],) if name == "joinpath" else ()
            self._put_together(key, (*first, *row[2]), found, begins=begins, ends=ends)
        elif name in _ABOVE and names and row[2]:
            self._visit(module.base | row[2][0], found, begins=begins, ends=False)
        elif name in _SAME_FILE and len(row[2]) > 1 and name in OF_PATHS:
            self._put_together(key, row[2], found, begins=begins, ends=ends)
        elif name in _SAME_FILE and row[2]:
            self._visit(module.base | row[2][0], found, begins=begins, ends=ends)
            if name == "BytesIO" and begins and not (found.names or found.fetched or any(home[0] != "value" for home in found.homes)):
                # Bytes of unknown origin: those written to such a buffer here, if any.
                found.homes.add(("memory", module.index))
        elif name == "BytesIO":
            found.homes.add(("memory", module.index))
        else:
            self._add((key,), lambda whole: self._returned(key, whole), found, begins=begins, ends=ends)

    def _returned(self, call: int, found: FilePath) -> None:
        """The results of a function of the project."""
        for function in sorted(self.program.targets_of.get(call, ()))[:_CALLERS]:
            if all(function != one for one, _ in self._entered):
                self._entered = (*self._entered, (function, call))
                self._given_back(function, found)
                self._entered = self._entered[:-1]

    def _given_back(self, function: int, found: FilePath) -> None:
        module = self.program.module_of(function)
        for value, _ in module.scopes[function & MASK].returns:
            if value:
                self._visit(module.base | value, found, begins=True, ends=True)


def _parts(module: Module, row: Node) -> tuple[int, ...]:
    """The parts of a text or a path."""
    if row[0] == "fstr":
        return tuple(row[1])
    if row[0] != "op" or row[1] != "Mod":
        return tuple(row[2:4]) if row[0] == "op" and row[1] in ("Add", "Div") else ()
    filled = module.plain(row[3])
    return (_filled_first(module, row[2], filled[2] if filled[0] == "seq" else (row[3],), ()) or row[2],)


def _filled_first(module: Module, template: int, given: Sequence[int], named: Iterable[tuple[str, int]]) -> int:
    """What a text begins with, of those that are filled in: ``"{}/model.pt".format(folder)``; 0 if it begins with a letter."""
    text = module.plain(template)
    if text[0] != "const" or not isinstance(text[1], str):
        return 0
    field = _FIELD.match(text[1])
    if field is None:
        return 0
    name = field[1] or ""
    if name and not name.isdigit():
        return next((value for key, value in named if key == name), 0)
    number = int(name or 0)
    return given[number] if number < len(given) else 0


def _ways(row: Node) -> tuple[int, ...]:
    """The expressions of which one is the value, or that hold it."""
    kind = row[0]
    if kind == "phi":
        return tuple(row[1])
    if kind in ("choice", "seq", "bool"):
        return tuple(row[2]) if kind != "choice" else tuple(row[2:4])
    return (row[1],) if kind in ("copy", "star", "enter", "elem", "part", "comp") else ()


__all__ = ["SHIPPED", "FilePath", "FilePaths", "Home"]
