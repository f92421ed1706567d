"""The functions of a file, each with its enclosing definitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(eq=False)
class Owner:
    """A function, or the module: the code that runs when it is called, without the functions defined inside it.

    ``around`` are its enclosing definitions, outermost first, ``inner`` the functions directly inside it.
    """

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    around: tuple[Definition, ...] = ()
    inner: list[Owner] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the function; empty for the module."""
        return getattr(self.node, "name", "")

    @property
    def scope(self) -> str:
        """The dotted name of the function in its file; empty for the module."""
        return ".".join(one.name for one in (*self.around, *([] if isinstance(self.node, ast.Module) else [self.node])))

    @property
    def holder(self) -> ast.ClassDef | None:
        """The class whose method it is."""
        last = self.around[-1] if self.around else None
        return last if isinstance(last, ast.ClassDef) else None

    def within(self) -> Iterator[Owner]:
        """The function and all that are defined inside of it."""
        yield self
        for one in self.inner:
            yield from one.within()
