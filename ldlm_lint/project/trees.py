"""Trees of project files, for the few questions that need more than the facts of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.python.tree import Parsed, parse
from ldlm_lint.python.walks import release
from ldlm_lint.source import Kind, Source, UnreadableError

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

_KEPT = 200_000
"""How many bytes of text the trees that are kept may have together: each costs some hundred bytes of memory."""
_NOTHING = Parsed(None)


class _Tree:
    """A tree of a text of some bytes, and whether its nodes may still be in use."""

    __slots__ = ("is_lent", "parsed", "size")

    def __init__(self, parsed: Parsed, size: int) -> None:
        self.parsed = parsed
        self.size = size
        self.is_lent = False


class Trees:
    """The trees of files, parsed on demand; the last small ones are kept.

    ``data`` returns the bytes of a file, ``named`` the name of its module.
    """

    def __init__(self, data: Callable[[str], bytes], named: Callable[[str], str]) -> None:
        self._data = data
        self._named = named
        self._kept: dict[str, _Tree] = {}

    def of(self, path: str) -> nodes.Module | None:
        """The tree of a file, or of what is before its first syntax error; None if not even that parses."""
        return self.parsed(path).module

    def parsed(self, path: str) -> Parsed:
        """As `of`, with the syntax error."""
        tree = self._take(path)
        tree.is_lent = True
        self._keep(path, tree)
        return tree.parsed

    def glance(self, path: str, find: Callable[[nodes.Module, bool], T]) -> T | None:
        """The facts found in the tree of a file, which may end at a syntax error; None if nothing parses.

        The facts must not contain nodes: the trees of a large project would fill the memory.
        """
        tree = self._take(path)
        try:
            return None if tree.parsed.module is None else find(tree.parsed.module, not tree.parsed.error_line)
        finally:
            if tree.size <= _KEPT:
                self._keep(path, tree)
            else:
                _let_go(tree)

    def _take(self, path: str) -> _Tree:
        return self._kept.pop(path, None) or self._parse(path)

    def _keep(self, path: str, tree: _Tree) -> None:
        self._kept[path] = tree
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > _KEPT:
            _let_go(self._kept.pop(next(iter(self._kept))))

    def _parse(self, path: str) -> _Tree:
        data = self._data(path)
        try:
            source = Source.from_bytes(path, data, Kind.PYTHON)
        except UnreadableError:
            return _Tree(_NOTHING, 0)
        # Dropping the source also drops the standard library's tree, which is as large as the other one.
        return _Tree(parse(source, self._named(path)), len(data))


def _let_go(tree: _Tree) -> None:
    if tree.parsed.module is not None and not tree.is_lent:
        release(tree.parsed.module)
