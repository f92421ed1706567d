"""Whether functions of the project can be called with some arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ldlm_lint.program.handles.expressions import Expr
    from ldlm_lint.program.handles.functions import Function


class Signature(NamedTuple):
    """How a function takes arguments: after the object that it is bound to, or plainly."""

    function: Function
    is_bound: bool

    @property
    def _by_position(self) -> list[str]:
        """The parameters that may be given by position."""
        return self.function.positional_names[self.is_bound :]

    @property
    def _by_keyword_only(self) -> list[str]:
        return [one for one in self.function.parameter_names if one not in self.function.positional_names]

    def refuses(self, given: Sequence[Expr], keywords: Collection[str] | None) -> list[str]:
        """The parameters that can only be given by keyword, where a call fails for them: it gives too much by position, or
        leaves one out; ``keywords`` is None if it may give any."""
        only = self._by_keyword_only
        if len(given) > len(self._by_position) and not self.function.takes_any_positional:
            return only
        return [name for name in only if keywords is not None and name not in keywords and self.function.default(name) is None]

    def takes(self, given: Sequence[Expr], keywords: Collection[str]) -> bool:
        """Whether a call can give some arguments by position and some by keyword, and leaves none out."""
        function, ordered = self.function, self._by_position
        if (len(given) > len(ordered) and not function.takes_any_positional) or not set(ordered[: len(given)]).isdisjoint(keywords):
            return False
        open_ones = [*ordered[len(given) :], *self._by_keyword_only]
        is_known = function.takes_any_keyword or set(open_ones).issuperset(keywords)
        return is_known and all(name in keywords or function.default(name) is not None for name in open_ones)


__all__ = ["Signature"]
