"""What the paths of files are made of that a program reads and writes, through variables, attributes, callers and helpers.

A path is known by the pattern of its last component (``ckpt_*.pt``) and by what it begins with (``args.output_dir``): two
places that agree in these speak of the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice

from astroid import nodes

from ldlm_lint.checkers.checkpoint_names import Value, parts_of
from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.downloads import DOWNLOADS, PUBLISHED_NAMES

_MOST = 300
_CALLERS = 30
# What differs from one file of a series to the next: numbers, and values that are put in.
_VARIES = lazily(r"[\0\d]+")
_ANY = "#"
_NO_LETTERS = lazily(r"\.\w+$|[^A-Za-z]")
_LEAST_LETTERS = 3
# What gives one of the paths, or the path itself in another form; a file that is open is at its path.
_SAME_FILE = frozenset({
    *("sorted", "max", "min", "list", "reversed", "next", "iter", "str", "open", "fspath", "Path", "PurePath", "abspath"),
    *("realpath", "expanduser", "normpath", "glob", "iglob", "natsorted", "BytesIO"),
})
_OF_RECEIVER = frozenset({"resolve", "absolute", "expanduser", "as_posix", "strip", "replace", "with_suffix", "open", "pop", "read_bytes"})
_BELOW = frozenset({"glob", "rglob"})


@dataclass
class FilePath:
    """The patterns of a path's last component, what it begins with, and the calls that download the file."""

    names: set[str] = field(default_factory=set)
    homes: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)

    def is_one_of(self, other: FilePath) -> bool:
        """Whether two paths speak of the same files: by the name, or by the same beginning where not both have a name."""
        own, others = _telling(self.names), _telling(other.names)
        if any(_match(one, two) for one in own for two in others):
            return not _lie_apart(self.homes, other.homes)
        return bool(self.homes & other.homes) and not (own and others)


def _lie_apart(one: set[str], other: set[str]) -> bool:
    """Whether two paths begin with different variables of the same function: what a converter reads and what it writes."""
    scopes = [{home.rpartition(":")[0] for home in homes if ":" in home} for homes in (one, other)]
    return one.isdisjoint(other) and not scopes[0].isdisjoint(scopes[1])


def _telling(names: set[str]) -> set[str]:
    """The patterns that tell one kind of file from another, and that no published model has."""
    tails = ((one, one.rpartition("/")[2]) for one in names)
    return {one for one, tail in tails if len(_NO_LETTERS.sub("", tail)) >= _LEAST_LETTERS and tail not in PUBLISHED_NAMES}


def _match(one: str, two: str) -> bool:
    (folder, _, name), (other, _, others) = one.rpartition("/"), two.rpartition("/")
    if folder and other and folder != other:
        return False
    return name == others or fnmatchcase(name, others) or fnmatchcase(others, name)


def _pattern(text: str) -> str:
    """The last component of a path, behind its folder where that is written out, with a sign for what varies.

    >>> _pattern("runs/ckpt_0010.pt")
    'runs/ckpt_#.pt'
    """
    folder, _, name = text.rpartition("/")
    above = folder.rpartition("/")[2]
    written = above if "\0" not in folder and above not in ("", ".", "..") else ""
    return "/".join(filter(None, (written, _VARIES.sub(_ANY, name))))


class FilePaths:
    """Finds out what paths are made of; what one path needs is bounded, whatever it is put together from."""

    def __init__(self, calls: Calls, trees: Trees) -> None:
        self._calls = calls
        self._trees = trees
        self._seen: set[tuple[str, str, int]] = set()
        self._shared: dict[tuple[str, str, str], FilePath] = {}

    def of(self, where: str, node: nodes.NodeNG) -> FilePath:
        """The path that an expression of a file is."""
        self._seen = set()
        found = FilePath()
        self._visit(where, node, found, begins=True, ends=True)
        return found

    def _visit(self, where: str, node: nodes.NodeNG | None, found: FilePath, *, begins: bool, ends: bool) -> None:
        """Take what an expression adds: as the beginning of the path, as its last component, or as both."""
        key = (where, node.as_string() if node is not None else "", getattr(node, "lineno", 0) or 0)
        if node is None or key in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add(key)
        for one in _choices(node):
            self._visit(where, one, found, begins=begins, ends=ends)
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            self._text(node.value, found, begins=begins, ends=ends)
        elif isinstance(node, nodes.Name):
            self._name(where, node, found, begins=begins, ends=ends)
        elif isinstance(node, (nodes.Attribute, nodes.Subscript)):
            self._member(where, node, found, begins=begins, ends=ends)
        elif (parts := parts_of(node)) != [Value(node)]:
            self._put_together(where, parts, found, begins=begins, ends=ends)
        elif isinstance(node, nodes.Call):
            self._call(where, node, found, begins=begins, ends=ends)

    def _text(self, text: str, found: FilePath, *, begins: bool, ends: bool) -> None:
        if begins and "://" in text:
            found.fetched.add(text)
        elif ends:
            found.names.add(_pattern(text))

    def _put_together(self, where: str, parts: list[str | Value], found: FilePath, *, begins: bool, ends: bool) -> None:
        first, last = parts[0], parts[-1]
        if begins and isinstance(first, Value):
            self._visit(where, first.node, found, begins=True, ends=len(parts) == 1 and ends)
        elif begins and isinstance(first, str) and "://" in first:
            found.fetched.add(first)
        name = _pattern("".join(one if isinstance(one, str) else "\0" for one in parts))
        if ends and name == _ANY and isinstance(last, Value):
            self._visit(where, last.node, found, begins=False, ends=True)
        elif ends:
            found.names.add(name)

    def _name(self, where: str, node: nodes.Name, found: FilePath, *, begins: bool, ends: bool) -> None:
        for binding in bindings(node):
            if isinstance(binding, nodes.Arguments) or isinstance(binding.parent, nodes.Arguments):
                self._parameter(where, node, found, begins=begins, ends=ends)
            else:
                for value in _bound(binding):
                    self._visit(where, value, found, begins=begins, ends=ends)
            if begins and not isinstance(binding, (nodes.Import, nodes.ImportFrom, nodes.FunctionDef, nodes.ClassDef)):
                found.homes.add(f"{where}:{scope_name(binding.scope())}:{node.name}")

    def _member(self, where: str, node: nodes.Attribute | nodes.Subscript, found: FilePath, *, begins: bool, ends: bool) -> None:
        """A setting, an attribute of an object, an element of a list."""
        key = node.attrname if isinstance(node, nodes.Attribute) else constant(node.slice)
        if isinstance(node, nodes.Subscript) and not isinstance(key, str):
            # One of several: which one is told by the number, not by what holds them.
            plain = isinstance(node.value, (nodes.Name, nodes.Attribute))
            found.homes |= {f".{node.as_string()}"} if plain and begins and isinstance(key, int) else set()
            self._visit(where, node.value, found, begins=begins and not plain, ends=ends)
            return
        owner = node.expr if isinstance(node, nodes.Attribute) else node.value
        if not (isinstance(owner, nodes.Name) and owner.name == "self"):
            found.homes |= {f".{key}"} if begins else set()
            return
        around = next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        if around is None:
            return
        found.homes |= {f"{where}:{scope_name(around)}.{key}"} if begins else set()
        for target in nodes_of(around, nodes.AssignAttr):
            if target.attrname == key and isinstance(target.parent, (nodes.Assign, nodes.AnnAssign)):
                self._visit(where, target.parent.value, found, begins=begins, ends=ends)

    def _parameter(self, where: str, node: nodes.Name, found: FilePath, *, begins: bool, ends: bool) -> None:
        """What the callers of a function give it, and its default."""
        function = next((one for one in node.node_ancestors() if isinstance(one, nodes.FunctionDef) and node.name in one.argnames()), None)
        if function is not None:
            key = (where, scope_name(function), node.name)
            self._add(key, lambda whole: self._given(where, function, node.name, whole), found, begins=begins, ends=ends)

    def _given(self, where: str, function: nodes.FunctionDef, name: str, found: FilePath) -> None:
        self._visit(where, _default(function, name), found, begins=True, ends=True)
        scope, positional = scope_name(function), _positional(function)
        for other, site in islice(self._calls.callers(where, scope), _CALLERS):
            call = call_at(self._trees, other, site.position)
            if call is not None:
                self._visit(other, Arguments(call, positional)[name].node, found, begins=True, ends=True)

    def _add(self, key: tuple[str, str, str], find: Callable[[FilePath], None], found: FilePath, *, begins: bool, ends: bool) -> None:
        """Add what is the same for every path that comes by here; it is found once."""
        if key not in self._shared:
            whole = self._shared[key] = FilePath()
            find(whole)
        shared = self._shared[key]
        found.names |= shared.names if ends else set()
        found.homes |= shared.homes if begins else set()
        found.fetched |= shared.fetched

    def _call(self, where: str, node: nodes.Call, found: FilePath, *, begins: bool, ends: bool) -> None:
        name, names = last_name(node.func), qualified(node.func)
        if names & DOWNLOADS.keys():
            found.fetched.add(node.func.as_string())
        elif isinstance(node.func, nodes.Attribute) and name in _BELOW and names.isdisjoint({"glob.glob", "glob.iglob"}):
            self._visit(where, node.func.expr, found, begins=begins, ends=False)
            self._visit(where, node.args[0] if node.args else None, found, begins=False, ends=ends)
        elif isinstance(node.func, nodes.Attribute) and name in _OF_RECEIVER:
            self._visit(where, node.func.expr, found, begins=begins, ends=ends)
        elif name in _SAME_FILE and node.args:
            self._visit(where, node.args[0], found, begins=begins, ends=ends)
        else:
            self._returned(where, node, found, begins=begins, ends=ends)

    def _returned(self, where: str, node: nodes.Call, found: FilePath, *, begins: bool, ends: bool) -> None:
        """What a function of the project gives back."""
        key = (where, "()", position_of(node))
        self._add(key, lambda whole: self._given_back(where, node, whole), found, begins=begins, ends=ends)

    def _given_back(self, where: str, node: nodes.Call, found: FilePath) -> None:
        for other, function in functions_called(self._calls, self._trees, where, node):
            if any(qualified(call.func) & DOWNLOADS.keys() for call in nodes_of(function, nodes.Call)):
                found.fetched.add(node.func.as_string())
            for one in nodes_of(function, nodes.Return):
                if function_of(one) is function:
                    self._visit(other, one.value, found, begins=True, ends=True)


def call_at(trees: Trees, path: str, position: str) -> nodes.Call | None:
    """The call at a position of a file."""
    module = trees.of(path)
    return next((one for one in nodes_of(module, nodes.Call) if position_of(one) == position), None) if module is not None else None


def functions_called(
    calls: Calls, trees: Trees, path: str, node: nodes.Call, among: Collection[str] | None = None
) -> Iterator[tuple[str, nodes.FunctionDef]]:
    """The functions of the project, or of some of its files, that a call goes to, each with its file."""
    site = next((one for one in calls.project.flow(path).calls if one.position == position_of(node)), None)
    for other, function in calls.targets(path, site.callee)[:_CALLERS] if site is not None else ():
        module = trees.of(other) if among is None or other in among else None
        for one in nodes_of(module, nodes.FunctionDef) if module is not None else ():
            if scope_name(one) == function.scope:
                yield other, one


def _choices(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The expressions of which one is the value."""
    if isinstance(node, nodes.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, nodes.BoolOp):
        return list(node.values)
    if isinstance(node, (nodes.List, nodes.Tuple, nodes.Set)):
        return list(node.elts)
    if isinstance(node, (nodes.ListComp, nodes.GeneratorExp)):
        return [node.elt]
    return [node.value] if isinstance(node, (nodes.NamedExpr, nodes.Await, nodes.Starred)) else []


def _bound(binding: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """What a name is bound to, or an element of which it is."""
    parent = binding.parent
    if isinstance(parent, (nodes.Assign, nodes.AnnAssign, nodes.AugAssign, nodes.NamedExpr)) and parent.value is not None:
        yield parent.value
    elif isinstance(parent, (nodes.For, nodes.Comprehension)) and parent.target is binding:
        yield parent.iter
    elif isinstance(parent, nodes.With):
        yield from (context for context, target in parent.items if target is binding)


def _positional(function: nodes.FunctionDef) -> tuple[str, ...]:
    names = tuple(one.name for one in (*function.args.posonlyargs, *function.args.args))
    return names[1:] if isinstance(function.parent, nodes.ClassDef) and names[:1] in (("self",), ("cls",)) else names


def _default(function: nodes.FunctionDef, name: str) -> nodes.NodeNG | None:
    positional = [one.name for one in (*function.args.posonlyargs, *function.args.args)]
    defaults = function.args.defaults or []
    pairs = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    pairs.update(zip((one.name for one in function.args.kwonlyargs), function.args.kw_defaults or [], strict=False))
    return pairs.get(name)


__all__ = ["FilePath", "FilePaths", "call_at", "functions_called"]
