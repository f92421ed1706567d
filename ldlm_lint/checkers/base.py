"""The base of every checker: messages from the rules, one way to report, and a guard around each visitor.

`ldlm_lint.checkers.host` runs them: a finding becomes a `Finding` with its fix. Their visitors have the same names as in pylint's
checkers, but they do not derive from those, since importing pylint takes longer than checking a file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from astroid import nodes

from ldlm_lint.model import Claim, Confidence, Finding, Fix, Related, Rule, Severity, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import handed_on
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_CAPITALS = lazily(r"(?<!^)(?=[A-Z])")

FixBuilder = Callable[[Source], "Fix | None"]


def _guarded(visit: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """A visitor whose failure becomes a finding, since one exception makes pylint drop the whole file."""

    @functools.wraps(visit)
    def call(self: LdlmChecker, node: nodes.NodeNG) -> None:
        try:
            visit(self, node)
        except Exception as error:
            failure = (visit.__qualname__, self.source.path)
            if failure not in self.failures:
                self.failures.add(failure)
                rules = ", ".join(rule.symbol for rule in self.rules)
                reason = f"{failure[0]} of {rules}: {type(error).__name__}: {error}"
                self.report(INTERNAL_ERROR, node, args={"error": reason})

    return call


class LdlmChecker:
    """A checker for the ``rules`` of one group, which all belong to one family."""

    name: ClassVar[str]
    rules: ClassVar[tuple[Rule, ...]] = ()

    def __init__(self, linter: Host) -> None:
        self.linter = linter
        self.failures: set[tuple[str, str]] = set()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = f"ldlm-{_CAPITALS.sub('-', cls.__name__.removesuffix('Checker')).lower()}"
        for name, member in list(vars(cls).items()):
            if name.startswith(("visit_", "leave_")):
                setattr(cls, name, _guarded(member))

    @property
    def source(self) -> Source:
        """The file that is being visited."""
        return self.linter.ldlm_source

    def span(self, node: nodes.NodeNG) -> Span:
        """The bytes of a node; of a class or function only its header."""
        return span_of(self.source, node)

    def report(
        self,
        rule: Rule,
        node: nodes.NodeNG,
        *,
        args: Mapping[str, object] | None = None,
        confidence: Confidence | None = None,
        related: Iterable[tuple[nodes.NodeNG, str]] = (),
        claims: tuple[Claim, ...] = (),
        fix: FixBuilder | None = None,
        level: Severity | None = None,
    ) -> None:
        """Report a defect at a node with its fix; ``claims`` are the facts of other files that it waits for.

        ``level`` replaces the rule's severity.
        """
        source = self.source
        self.record(
            Finding(
                rule=rule.symbol,
                code=rule.code,
                span=self.span(node),
                args=tuple(sorted((args or {}).items())),
                confidence=rule.confidence if confidence is None else confidence,
                related=tuple(Related(self.span(place), note) for place, note in related),
                fix=fix(source) if fix and self.linter.ldlm_fixes else None,
                claims=(*presumed(node), *claims),
                level=level,
            )
        )

    def record(self, finding: Finding) -> None:
        """Hand a finding to the host."""
        self.linter.ldlm_report(finding)


def presumed(node: nodes.NodeNG) -> tuple[Claim, ...]:
    """The claims for a reported call whose name is re-exported by a module of the project."""
    for one in (node, *node.node_ancestors()):
        if isinstance(one, nodes.Call) and (found := handed_on(one.func)) is not None:
            return (Claim("module-hands-on", "|".join(found)),)
        if one.is_statement:
            break
    return ()


def extent(node: nodes.NodeNG) -> tuple[int, int, int, int]:
    """The 1-based lines and 0-based UTF-8 columns of a node; for a class or function those of its header."""
    position = getattr(node, "position", None)
    if position is not None:
        return position.lineno, position.col_offset, position.end_lineno, position.end_col_offset
    if isinstance(node, nodes.Module) or node.lineno is None:
        return 1, 0, 1, 0
    return node.lineno, node.col_offset or 0, node.end_lineno or node.lineno, node.end_col_offset or 0


def span_of(source: Source, node: nodes.NodeNG) -> Span:
    """The bytes of a node in its file; of a class or function only its header."""
    return source.span_of(*extent(node))


__all__ = ["LdlmChecker", "extent", "presumed", "span_of"]
