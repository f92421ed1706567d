"""What all handles are: something at a place of a codebase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.modules import Module



class Handle:
    """Something at a place of a codebase.

    Questions make millions of them, and ask most for their rows: what that takes is kept.
    """

    __slots__ = ("code", "key", "module")

    def __init__(self, code: Codebase, key: int, module: Module | None = None) -> None:
        self.code: Final = code
        self.key: Final = key
        """Its number; for ``program/`` and for concepts that were not written with handles yet."""
        self.module: Final = code.program.module_of(key) if module is None else module
        """The file that it is in."""

    def may_run_with(self, other: Handle) -> bool:
        """Whether one program may run it and something else: the files of both take part in it."""
        return other.module.index in self.code.program.together.programs_of(self.module)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.module.path}, {self.key & MASK})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Handle) and other.key == self.key

    def __hash__(self) -> int:
        return self.key
