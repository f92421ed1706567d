"""Places that only some versions of torch come to: under a test of the version or of a name that only some have, in a block
that catches the error of a missing name, or in what catches it.

    if hasattr(torch.backends, "fp32_precision"): …             try: …   except AttributeError: …
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.concepts.named_uses import NamedUse
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Guard
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import Through, reached, steps_back
from ldlm_lint.vocabulary.past import TORCH_2, VERSION_NAMES, VERSION_WORDS

_OF_A_MISSING_NAME = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError", "NameError"})
_ASKS_FOR_NAMES = frozenset({"hasattr", "getattr", "find_spec", "signature"})
_HELD_BY = Through.NAMES | Through.CHOICES | Through.OUTSIDE | Through.RETURNS | Through.PARTS


class VersionTests(Concept):
    """Answers for the places of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Expr, bool] = {}

    def decide(self, spot: Spot) -> bool:
        """Whether the version decides about a place."""
        is_tested = any(guard.kind == "except" or (guard.is_test and self._asks(guard.test)) for guard in spot.guards)
        return is_tested or any(map(_catches_a_missing_name, (handler for one in spot.tries for handler in one.handlers)))

    def decide_use(self, use: NamedUse) -> bool:
        """Whether the version decides about a use of a name, or about what binds it; an import in a block that catches anything
        finds out whether torch has the name."""
        choices = [one.test for one in use.named.users if one.test is not None and one.test != use.named]
        if self.decide(use.spot) or any(map(self._asks, choices)):
            return True
        return any(self.decide(bound) or (one.kind in ("imp", "impf") and bool(bound.tries)) for one, bound in _bound(use))

    @staticmethod
    def tell_apart_torch_2(use: NamedUse) -> bool:
        """Whether a test around either mentions a version of torch 2."""
        around = [*use.spot.guards, *(guard for _, bound in _bound(use) for guard in bound.guards)]
        return any(TORCH_2.search(one.test.text) for one in around if one.is_test)

    def _asks(self, test: Expr) -> bool:
        """Whether a test asks for the version, or for a name of torch."""
        if test not in self._known:
            self._known[test] = any(map(_is_of_version, reached([test], _before)))
        return self._known[test]


def _before(expr: Expr) -> Iterator[Expr]:
    yield from steps_back(expr, _HELD_BY)
    yield from expr.operands


def _bound(use: NamedUse) -> Iterator[tuple[Expr, Spot]]:
    """What the name that a use begins with is bound to, and where."""
    for one in use.root.origins(Through.NAMES | Through.OUTSIDE):
        yield from ((one, event.spot) for event in one.events if event.kind == "bind")


def _is_of_version(expr: Expr) -> bool:
    # A parameter, and what a missing package gives, has only its name.
    if expr.outside_names & VERSION_NAMES or (expr.kind in ("param", "attr", "impf", "free") and VERSION_WORDS.search(expr.name)):
        return True
    asked = expr.arguments[:1] if isinstance(expr, Call) and expr.called_name in _ASKS_FOR_NAMES else []
    return any(name.partition(".")[0] == "torch" for one in asked for name in (*one.outside_names, str(one.constant)))


def _catches_a_missing_name(handler: Guard) -> bool:
    caught = handler.test.operands if handler.test.kind == "seq" else [handler.test]
    return any(one.last_name in _OF_A_MISSING_NAME for one in caught)


__all__ = ["VersionTests"]
