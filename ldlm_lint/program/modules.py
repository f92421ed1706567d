"""The modules of a program: their tables, their names, and the targets of their imports."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from ldlm_lint.code import Scope, Table, packed, unpacked
from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import SHIFT


class Shown(NamedTuple):
    """The facts of a file that need no table: its imports (`Table.imports`), and whether it trains, imports by computed
    names, or joins ranks."""

    imports: list[tuple[str, str, int, int]]
    trains: bool
    imports_by_name: bool
    joins: bool = False
    searched: frozenset[str] = frozenset()
    """The names of folders in a file that adds some to ``sys.path``: absolute ones are no part of the project."""
    registers: bool = False
    """Whether importing it puts something into a registry."""
    computes_loss: bool = False
    """Whether it has a class that is called a loss: who trains with it may stand elsewhere."""
    keeps_files: bool = False
    """Whether it reads or writes what torch has saved."""


NOTHING_SHOWN = Shown([], False, False)


class Module:
    """A Python file of the program: ``path`` below the root with forward slashes, its dotted name, and its table.

    A table stored as bytes is decoded on first use, see `Shelf`.
    """

    __slots__ = ("at_hand", "base", "index", "is_test", "name", "nodes", "packed", "path", "scopes", "shelf", "shown", "table")

    table: Table
    nodes: list[Node]
    scopes: list[Scope]

    def __init__(self, index: int, path: str, shown: Shown, is_test: bool, shelf: Shelf) -> None:
        self.index = index
        self.base = index << SHIFT
        self.path = path
        self.name = path.removesuffix(".py").removesuffix(".pyi").replace("/", ".").removesuffix(".__init__")
        self.is_test = is_test
        self.shown = shown
        self.packed = b""
        self.shelf = shelf
        self.at_hand = False

    def hold(self, table: Table) -> None:
        """Keep a table in memory."""
        self.table, self.nodes, self.scopes = table, table.nodes, table.scopes
        self.at_hand = True

    def keep(self) -> None:
        """Keep the current state of the table when it is stored as bytes."""
        if self.packed:
            self.packed = packed(self.table)

    def let_go(self) -> None:
        """Keep the table as bytes only."""
        if self.at_hand:
            del self.table, self.nodes, self.scopes
            self.at_hand = False

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes missing in the slots: the table is not in memory.
        if name not in ("table", "nodes", "scopes"):
            raise AttributeError(name)
        self.hold(self.shelf.take(self))
        return getattr(self, name)

    def last_name(self, number: int, steps: int = 0) -> str:
        """The last name in an expression, as in `Table.named`; empty if it has none."""
        row = self.nodes[number]
        kind = row[0]
        if kind in ("attr", "free", "param", "impf"):
            return str(row[2])
        if steps > 8:
            return ""
        if kind == "phi":
            return self.last_name(row[1][0], steps + 1)
        if kind == "copy":
            return self.last_name(row[1], steps + 1)
        if kind == "imp":
            return str(row[1]).rpartition(".")[2]
        if kind == "call":
            return f"(){self.last_name(row[1], steps + 1)}"
        if kind in ("def", "class"):
            return self.scopes[row[1]].name
        return ""

    def uncopied(self, number: int) -> int:
        """The expression that names bound to other names stand for: of ``b`` after ``b = a`` what ``a`` is."""
        while self.nodes[number][0] == "copy":
            number = self.nodes[number][1]
        return number

    def plain(self, number: int) -> Node:
        """The row of an expression after copies, and after the first way of phis."""
        row = self.nodes[number]
        for _ in range(12):
            if row[0] == "copy":
                row = self.nodes[row[1]]
            elif row[0] == "phi":
                row = self.nodes[row[1][0]]
            else:
                break
        return row


class Shelf:
    """The tables that are kept as bytes: decoded tables stay in memory up to a number of expressions, the most used
    ones longest."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        """How often a table was read from its bytes."""
        self._at_hand: deque[tuple[Module, int]] = deque()
        self._expressions = 0
        self._takes: Counter[int] = Counter()
        self._chances: Counter[int] = Counter()
        """How often a table passes before it goes: as often as it was read."""

    def take(self, module: Module) -> Table:
        """Read a table from its bytes; others go for it where there are too many."""
        table = unpacked(module.packed) if module.packed else Table()
        self.taken += 1
        self._takes[module.index] += 1
        self._chances[module.index] = self._takes[module.index] - 1
        self._at_hand.append((module, len(table.nodes)))
        self._expressions += len(table.nodes)
        while self._expressions > self.most and len(self._at_hand) > 1:
            other, size = self._at_hand.popleft()
            if self._chances[other.index] > 0 or other is module:
                self._chances[other.index] -= 1
                self._at_hand.append((other, size))
                continue
            self._expressions -= size
            other.let_go()
        return table


class Modules:
    """All modules by name, also by the ends of their names: a script finds its neighbours without their package."""

    def __init__(self, most: int = 1 << 60) -> None:
        self.all: list[Module] = []
        self.shelf = Shelf(most)
        self.by_name: dict[str, Module] = {}
        self.by_path: dict[str, Module] = {}
        self._ends: dict[str, list[Module]] = defaultdict(list)
        self._searched: frozenset[str] | None = None
        self.dropped: set[int] = set()
        """The modules whose tables are no part of a program that trains."""

    def add(self, path: str, shown: Shown, is_test: bool) -> Module:
        """A new module, without a table so far."""
        module = Module(len(self.all), path, shown, is_test, self.shelf)
        self.all.append(module)
        self.by_name[module.name] = module
        self.by_path[path] = module
        parts = module.name.split(".")
        for index in range(len(parts)):
            self._ends[".".join(parts[index:])].append(module)
        return module

    def absolute(self, module: Module, name: str, level: int) -> str:
        """The dotted name that an import of a module names."""
        if not level:
            return name
        package = module.name if module.path.endswith("__init__.py") else module.name.rpartition(".")[0]
        parts = package.split(".") if package else []
        if level > 1:
            parts = parts[: max(0, len(parts) - (level - 1))]
        return ".".join([*parts, *([name] if name else [])])

    def find(self, name: str, near: Module | None = None) -> Module | None:
        """The module of a dotted name, as seen from a module ``near`` it."""
        found = self._find(name, near)
        return found if found is None or found.index not in self.dropped else None

    def _find(self, name: str, near: Module | None) -> Module | None:
        module = self.by_name.get(name)
        if module is not None:
            return self._beside(name, near) or module
        candidates = self._ends.get(name)
        if candidates and "." not in name and near is not None:
            # A module alone in a folder often has the name of another package: ``lib/datasets.py``.
            candidates = [one for one in candidates if self._is_on_path(one, near)]
        if not candidates:
            return None
        if len(candidates) == 1 or near is None:
            return candidates[0]
        # The one that shares most of the path with the importing module.
        return max(candidates, key=lambda one: (_shared(one.path, near.path), -len(one.path)))

    def _beside(self, name: str, near: Module | None) -> Module | None:
        """The module in the folder of a script, which is first on its path; a file of a package is not a script."""
        folder = near.path.rpartition("/")[0] if near is not None else ""
        if not folder or f"{folder}/__init__.py" in self.by_path:
            return None
        return self.by_path.get(f"{folder}/{name.replace('.', '/')}.py")

    def _is_on_path(self, module: Module, near: Module) -> bool:
        """Whether a file finds a module by its bare name: from its folder or one around it, as a package, or in a folder of ``sys.path``."""
        folder, _, name = module.path.rpartition("/")
        if name == "__init__.py" or not folder or folder == "src" or near.path.startswith(f"{folder}/"):
            return True
        if self._searched is None:
            self._searched = frozenset[str]().union(*(one.shown.searched for one in self.all))
        return folder.rpartition("/")[2] in self._searched

    def is_known(self, name: str) -> bool:
        """Whether a dotted name ends the name of a module."""
        return name in self._ends

    def linked(self, module: Module) -> set[int]:
        """The modules that run when a module is imported, including its own packages."""
        found = set(self._with_packages(module))
        for name, imported, level, _ in module.shown.imports:
            full = self.absolute(module, name, level)
            target = self._find(full, module) if full else None
            if target is not None:
                found.update(self._with_packages(target))
            if imported and imported != "*":
                inner = self.inner(module, full, imported, level, target)
                if inner is not None:
                    found.update(self._with_packages(inner))
        found.discard(module.index)
        return found

    def inner(self, module: Module, full: str, imported: str, level: int, target: Module | None) -> Module | None:
        """The module that ``from full import imported`` may mean."""
        package = target.name if target is not None else full
        inner = self.by_name.get(f"{package}.{imported}" if package else imported)
        if inner is None and target is None and (level or self.is_known(f"{full}.{imported}")):
            inner = self._find(f"{full}.{imported}" if full else imported, module)
        return inner

    def _with_packages(self, module: Module) -> Iterable[int]:
        yield module.index
        name = module.name
        while "." in name:
            name = name.rpartition(".")[0]
            package = self.by_name.get(name)
            if package is not None:
                yield package.index


def _shared(one: str, other: str) -> int:
    """The number of characters with which two paths begin alike."""
    return next((index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other)))
