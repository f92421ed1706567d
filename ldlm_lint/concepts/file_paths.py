"""Which files a path may name: the patterns of its last component, its beginning, and the calls that download it.

Two paths that agree in these name the same files, even if one is written and the other is read much later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.path_patterns import JOINS, OF_PATHS, PathPatterns, called_name
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.vocabulary.downloads import COMMANDS, DOWNLOADS, PUBLISHED_NAMES, SHELLS


class Home(NamedTuple):
    """What a path begins with: a kind, the function, class or file that it belongs to, if any, and a name.

    ``parameter`` of a function, attribute ``of self`` of a class, ``setting``, ``global`` of a file, ``value`` (an expression),
    ``memory`` of a file, ``temporary`` (the call that makes it), and `SHIPPED`.
    """

    kind: str
    owner: object = None
    name: str = ""


SHIPPED = Home("shipped")
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
_MADE = frozenset({"call", "op", "fstr", "elem", "part"})
_HOLDERS = frozenset({"free", "param", "attr", "imp", "impf"})


@dataclass
class FilePath:
    """The known facts of a path; ``fetched`` are the calls that download the file, and addresses of it."""

    names: set[str] = field(default_factory=set)
    homes: set[Home] = field(default_factory=set)
    fetched: set[Call | str] = field(default_factory=set)

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
        begun = {home for home in homes if home.kind not in ("value", "parameter")}
        if begun and all(home.kind == "temporary" for home in begun) and begun.isdisjoint(others):
            return True
    scopes = [{home.owner for home in homes if home.kind in _SCOPED} for homes in (one, other)]
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


class _Asked(NamedTuple):
    """Which part of a path is asked for: its beginning, its last component, or both; and the calls whose results are looked at,
    each with its function, the outermost first."""

    begins: bool
    ends: bool
    entered: tuple[tuple[Function, Call], ...] = ()


class FilePaths(Concept):
    """Analyses the parts of paths; the work for one path is bounded."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._patterns = code[PathPatterns]
        self._seen: set[tuple[Expr, _Asked]] = set()
        self._shared: dict[tuple[object, ...], FilePath] = {}

    def of(self, path: Expr) -> FilePath:
        """The path that an expression is."""
        self._seen = set()
        found = FilePath()
        self._visit(path, found, _Asked(True, True))
        return found

    def downloads(self, call: Call) -> bool:
        """Whether a call is of a function of the project that brings a file onto the machine."""
        return not self._downloading.isdisjoint(call.targets)

    @cached_property
    def _downloading(self) -> frozenset[Function]:
        commands = (call for call in self.code.calls(SHELLS) if self.is_download(call))
        return frozenset(call.function for call in (*self.code.calls(DOWNLOADS), *commands))

    def is_download(self, call: Call) -> bool:
        """Whether a call that runs a command has it bring a file onto the machine."""
        return any(text.lstrip().startswith(COMMANDS) for one in call.argument("args", 0).values for text in self._command(one))

    def _command(self, command: Expr) -> Iterable[str]:
        """The command line that a text or a list of words is."""
        words = command.plain
        return [" ".join(min(self._patterns.of(one)) for one in words.operands)] if words.kind == "seq" else self._patterns.of(command)

    def _visit(self, expr: Expr, found: FilePath, asked: _Asked) -> None:
        """Add the parts of an expression: as the beginning of the path, as its last component, or as both."""
        if (expr, asked) in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add((expr, asked))
        kind = expr.kind
        if asked.begins and kind in _MADE:
            found.homes.add(Home("value", expr))
        if isinstance(expr, Call):
            self._call(expr, found, asked)
        elif kind == "param":
            self._parameter(expr, found, asked)
        elif kind == "free":
            self._name(expr, found, asked)
        elif kind == "attr":
            self._attribute(expr, found, asked)
        elif kind == "item":
            self._item(expr, found, asked)
        elif kind in ("const", "fstr", "op"):
            self._put_together(expr, _parts(expr), found, asked)
        else:
            for one in _ways(expr):
                self._visit(one, found, asked)

    def _put_together(self, expr: Expr, parts: Sequence[Expr], found: FilePath, asked: _Asked) -> None:
        if asked.begins and parts:
            self._visit(parts[0], found, asked._replace(ends=False))
        if asked.ends and self._take_names(expr, found, asked) and len(parts) > 1:
            self._visit(parts[-1], found, asked._replace(begins=False))

    def _take_names(self, expr: Expr, found: FilePath, asked: _Asked) -> bool:
        """Add the known names of an expression; returns whether a last component is unknown."""
        texts = self._patterns.of(expr)
        found.fetched |= {one.partition("*")[0] for one in texts if asked.begins and one.startswith(_OUTSIDE)}
        names = {_pattern(one) for one in texts if "://" not in one}
        found.names |= names - {"*"}
        return "*" in names

    def _parameter(self, parameter: Expr, found: FilePath, asked: _Asked) -> None:
        """The arguments of a function's callers, and its default; of the one call whose result is looked at."""
        function = parameter.function
        if asked.entered and asked.entered[-1][0] == function:
            given = asked.entered[-1][1].given_for(parameter) or parameter.default
            if given is not None:
                self._visit(given, found, asked._replace(entered=asked.entered[:-1]))
            return
        if asked.begins:
            found.homes.add(Home("parameter", function, parameter.name))
        passed = [one for one in (parameter.default, *parameter.given[:_CALLERS]) if one is not None]
        self._add((function, parameter.name), passed, found, asked)

    def _add(self, key: tuple[object, ...], sources: Iterable[Expr], found: FilePath, asked: _Asked) -> None:
        """Add the parts that are the same for every path through here; they are computed once."""
        key = (*key, asked.entered)
        if key not in self._shared:
            whole = self._shared[key] = FilePath()
            for one in sources:
                self._visit(one, whole, asked._replace(begins=True, ends=True))
        shared = self._shared[key]
        found.names |= shared.names if asked.ends else set()
        found.homes |= shared.homes if asked.begins else set()
        found.fetched |= shared.fetched

    def _name(self, name: Expr, found: FilePath, asked: _Asked) -> None:
        """A name of the module, of an enclosing function, or one that is imported."""
        bound = name.bound_outside
        if asked.begins:
            found.homes.add(SHIPPED if name.name == "__file__" else Home("global", name.module.path, name.name))
        if asked.ends and not any(one.kind in ("param", "call") for one in bound):
            for one in bound[:1]:
                self._take_names(one, found, asked)
        for one in bound:
            self._visit(one, found, asked)

    def _attribute(self, attribute: Expr, found: FilePath, asked: _Asked) -> None:
        """A setting, or an attribute of an object."""
        owner, base = attribute.owner_of_self, attribute.base
        if owner is None and base is not None:
            if attribute.name in _ABOVE:
                self._visit(base, found, asked._replace(ends=False))
                return
            found.homes |= {Home("setting", name=attribute.name)} if asked.begins else set()
            if asked.ends:
                self._take_names(attribute, found, asked)
            if base.plain.kind == "call":
                # ``requests.get(url).content``
                holder = FilePath()
                self._visit(base, holder, asked._replace(ends=False))
                found.fetched |= holder.fetched
        if owner is not None:
            found.homes |= {Home("of self", owner, attribute.name)} if asked.begins else set()
            for one in owner.written(attribute.name):
                self._visit(one, found, asked)
            for function in owner.methods(attribute.name):
                if not _PROPERTIES.isdisjoint(one.last_name for one in function.decorators):
                    self._add((function,), function.returned, found, asked)

    def _item(self, item: Expr, found: FilePath, asked: _Asked) -> None:
        """A setting by its name, or one of several: the index selects it, not the container."""
        if item.base is None or item.index is None:
            return
        index, holder = item.index.constant, item.base.plain
        named = index if isinstance(index, str) else _key_of_setting(item.index, asked)
        if named:
            found.homes |= {Home("setting", name=named)} if asked.begins else set()
            return
        is_plain = holder.kind in _HOLDERS and holder.owner_of_self is None
        if is_plain and asked.begins and index is not ...:
            found.homes.add(Home("setting", index, holder.name))
        self._visit(item.base, found, asked._replace(begins=asked.begins and not is_plain))

    def _call(self, call: Call, found: FilePath, asked: _Asked) -> None:
        names = call.callee.interfaces
        if names & DOWNLOADS.keys() or self.downloads(call):
            found.fetched.add(call)
        if asked.begins and not names.isdisjoint(_OF_CODE):
            found.homes.add(SHIPPED)
        if asked.begins and not names.isdisjoint(_TEMPORARY):
            found.homes.add(Home("temporary", call))
        receiver = call.callee.plain.base if call.callee.plain.kind == "attr" else None
        if receiver is not None and not names:
            if self._method(call, receiver, found, asked):
                return
        elif receiver is not None and called_name(call) == "format":
            self._formatted(call, receiver, found, asked)
            return
        self._function(call, receiver, found, asked)

    def _method(self, call: Call, receiver: Expr, found: FilePath, asked: _Asked) -> bool:
        """What a method of a path or a text gives; returns whether it is such a method."""
        name = called_name(call)
        if name in _BELOW:
            self._visit(receiver, found, asked._replace(ends=False))
            for one in call.positional[:1]:
                # A file system receives the whole path.
                self._visit(one, found, asked)
        elif name == "open" and call.positional and call.positional[0].kind != "const":
            # ``fs.open(path, "rb")``; the method of a path receives the mode only.
            self._visit(call.positional[0], found, asked)
        elif name == "format":
            self._formatted(call, receiver, found, asked)
        elif name in _OF_RECEIVER:
            self._take_names(call, found, asked)
            self._visit(receiver, found, asked)
        else:
            return False
        return True

    def _formatted(self, call: Call, template: Expr, found: FilePath, asked: _Asked) -> None:
        self._take_names(call, found, asked)
        first = _filled_first(template, call.positional, call.keywords)
        self._visit(first or template, found, asked._replace(ends=False))

    def _function(self, call: Call, receiver: Expr | None, found: FilePath, asked: _Asked) -> None:
        name, names, given = called_name(call), call.callee.interfaces, call.positional
        if name in JOINS and (names or receiver is not None):
            first = [receiver] if name == "joinpath" and receiver is not None else []
            self._put_together(call, [*first, *given], found, asked)
        elif name in _ABOVE and names and given:
            self._visit(given[0], found, asked._replace(ends=False))
        elif name in OF_PATHS and len(given) > 1:
            self._put_together(call, given, found, asked)
        elif name in _SAME_FILE and given:
            self._visit(given[0], found, asked)
            if name == "BytesIO" and asked.begins and not (found.names or found.fetched or any(home.kind != "value" for home in found.homes)):
                # Bytes of unknown origin: those written to such a buffer here, if any.
                found.homes.add(Home("memory", call.module.path))
        elif name == "BytesIO":
            found.homes.add(Home("memory", call.module.path))
        else:
            for one in call.targets[:_CALLERS]:
                if all(one != function for function, _ in asked.entered):
                    self._add((call, one), one.returned, found, asked._replace(entered=(*asked.entered, (one, call))))


def _key_of_setting(key: Expr, asked: _Asked) -> str:
    """The text that the call entered last passes for an index: ``get("output")`` reads ``self.config[name]``."""
    if key.kind != "param" or not asked.entered or asked.entered[-1][0] != key.function:
        return ""
    given = asked.entered[-1][1].given_for(key) or key.default
    return given.constant if given is not None and isinstance(given.constant, str) else ""


def _parts(expr: Expr) -> list[Expr]:
    """The parts of a text or a path."""
    if expr.kind == "fstr" or expr.operator in ("Add", "Div"):
        return expr.operands
    if expr.operator != "Mod":
        return []
    template, filled = expr.operands[0], expr.operands[1].plain
    first = _filled_first(template, filled.operands if filled.kind == "seq" else expr.operands[1:], ())
    return [first or template]


def _filled_first(template: Expr, given: Sequence[Expr], named: Iterable[tuple[str, Expr]]) -> Expr | None:
    """What a text begins with, of those that are filled in: ``"{}/model.pt".format(folder)``; None if it begins with a letter."""
    text = template.plain.constant
    field = _FIELD.match(text) if isinstance(text, str) else None
    if field is None:
        return None
    name = field[1] or ""
    if name and not name.isdigit():
        return next((value for key, value in named if key == name), None)
    number = int(name or 0)
    return given[number] if number < len(given) else None


def _ways(expr: Expr) -> list[Expr]:
    """The expressions of which one is the value, or that hold it."""
    if expr.kind == "seq":
        return expr.operands
    return [expr.base] if expr.kind in ("star", "enter", "elem", "part", "comp") and expr.base is not None else expr.ways


__all__ = ["SHIPPED", "FilePath", "FilePaths", "Home"]
