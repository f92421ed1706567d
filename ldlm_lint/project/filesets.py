"""Sets of a project's files, as the bits of one number: unions over thousands of files cost almost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set


class Universe:
    """The files of a project in order; every set of them is created here."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths: tuple[str, ...] = tuple(sorted(set(paths)))
        self.numbers: dict[str, int] = {path: number for number, path in enumerate(self.paths)}

    def of(self, paths: Iterable[str]) -> FileSet:
        """The set of these files; other files are ignored."""
        if isinstance(paths, FileSet):
            return paths
        bits = 0
        for path in paths:
            number = self.numbers.get(path)
            bits |= 0 if number is None else 1 << number
        return FileSet(self, bits)

    def joined(self, *sets: Iterable[str]) -> FileSet:
        """The files in any of these."""
        bits = 0
        for one in sets:
            bits |= self.of(one).bits
        return FileSet(self, bits)

    @property
    def all(self) -> FileSet:
        """Every file."""
        return FileSet(self, (1 << len(self.paths)) - 1)


class FileSet(Set[str]):
    """Some files of a project; it yields them in order."""

    __slots__ = ("_universe", "bits")

    def __init__(self, universe: Universe, bits: int) -> None:
        self._universe = universe
        self.bits = bits

    def __contains__(self, path: object) -> bool:
        number = self._universe.numbers.get(path)  # type: ignore[call-overload]
        return number is not None and bool(self.bits >> number & 1)

    def __iter__(self) -> Iterator[str]:
        paths, bits = self._universe.paths, bin(self.bits)[:1:-1]
        at = bits.find("1")
        while at >= 0:
            yield paths[at]
            at = bits.find("1", at + 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __hash__(self) -> int:
        return hash(self.bits)

    def __eq__(self, other: object) -> bool:
        return self.bits == other.bits if isinstance(other, FileSet) else super().__eq__(other)

    def __or__(self, other: Iterable[str]) -> FileSet | frozenset[str]:  # type: ignore[override]
        """The files in either; a plain set if one of them is not a Python file of the project."""
        found = self._universe.of(other)
        if found is not other and len(found) < len(set(other)):
            return frozenset(self).union(other)
        return FileSet(self._universe, self.bits | found.bits)

    def __and__(self, other: Iterable[str]) -> FileSet:
        return FileSet(self._universe, self.bits & self._universe.of(other).bits)

    def __sub__(self, other: Iterable[str]) -> FileSet:
        return FileSet(self._universe, self.bits & ~self._universe.of(other).bits)

    __ror__, __rand__ = __or__, __and__

    def isdisjoint(self, other: Iterable[str]) -> bool:
        """Whether no file is in both."""
        return self.bits & self._universe.of(other).bits == 0

    def __repr__(self) -> str:
        return f"FileSet({list(self)!r})"
