"""The base of every checker: messages from the rules, one way to report, and a guard around each visitor.

The light host of `ldlm_lint.checkers.host` runs them, for the command and for the plugin of pylint alike: a finding becomes a
`Finding` with its fix, which `ldlm_lint.checkers.project` hands to pylint as a message. They are checkers of pylint, and one
that is registered by itself reports its messages without the project pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from astroid import nodes
from pylint.checkers import BaseChecker
from pylint.interfaces import HIGH, INFERENCE

from ldlm_lint.model import Claim, Confidence, Finding, Fix, Related, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import handed_on
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

if TYPE_CHECKING:
    from pylint.lint import PyLinter

DOCS = "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/rules.md"
_CAPITALS = lazily(r"(?<!^)(?=[A-Z])")
_LINE_SCOPE = "line-based-msg"

FixBuilder = Callable[[Source], "Fix | None"]


def message_definitions(rules: Iterable[Rule]) -> dict[str, tuple[str, str, str, dict[str, object]]]:
    """pylint's ``msgs`` for rules: template, symbol, description with the docs link, and the extra options."""
    return {
        rule.code: (
            rule.message,
            rule.symbol,
            f"{rule.rationale} See {DOCS}#{rule.symbol}".replace("%", "%%"),
            {
                "scope": _LINE_SCOPE,
                "default_enabled": rule.default,
                "old_names": [(rule.code, name) for name in rule.old_names],
            },
        )
        for rule in rules
    }


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


class LdlmChecker(BaseChecker):
    """A checker of the ``rules`` of one room, which are all of one family: pylint refuses a class with two."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        self.failures: set[tuple[str, str]] = set()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = f"ldlm-{_CAPITALS.sub('-', cls.__name__.removesuffix('Checker')).lower()}"
        cls.msgs = message_definitions(cls.rules)
        for name, member in list(vars(cls).items()):
            if name.startswith(("visit_", "leave_")):
                setattr(cls, name, _guarded(member))

    @property
    def source(self) -> Source:
        """The file that is being visited."""
        host_source = getattr(self.linter, "ldlm_source", None)
        return host_source or _read(self.linter.current_file)

    def may_break(self, *rules: Rule) -> bool:
        """Whether the file's bytes leave it open that one of these rules of the room is broken; in pylint they do."""
        at_risk: Collection[str] | None = getattr(self.linter, "ldlm_at_risk", None)
        return at_risk is None or any(rule.symbol in at_risk for rule in rules)

    def option(self, name: str) -> Any:
        """The value of a rule option for the file that is being visited."""
        options: Mapping[str, object] | None = getattr(self.linter, "ldlm_options", None)
        return (options if options is not None else _options_for(self.linter.current_file))[name]

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
    ) -> None:
        """Report a defect at a node; in the light host with its fix, in pylint as a message.

        ``claims`` are the facts of other files it waits for: pylint gets such a finding from the project pass.
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
                fix=fix(source) if fix and getattr(self.linter, "ldlm_fixes", False) else None,
                claims=(*_presumed(node), *claims),
            )
        )

    def record(self, finding: Finding) -> None:
        """Hand a finding to the host; pylint takes it as a message, unless it waits for other files or is silenced."""
        take = getattr(self.linter, "ldlm_report", None)
        if take is not None:
            take(finding)
        elif not finding.claims and not suppressions(self.source).covers(finding, by_symbol[finding.rule]):
            add_message(self.linter, finding, self.source)


def _presumed(node: nodes.NodeNG) -> tuple[Claim, ...]:
    """What must hold where the call that is reported is of a name which a module of the project hands on."""
    for one in (node, *node.node_ancestors()):
        if isinstance(one, nodes.Call) and (found := handed_on(one.func)) is not None:
            return (Claim("module-hands-on", "|".join(found)),)
        if one.is_statement:
            break
    return ()


def add_message(linter: PyLinter, finding: Finding, source: Source) -> None:
    """Make a finding a message of pylint, which counts columns from 0 in UTF-8 bytes."""
    line, column = _utf8_position(source, finding.span.start)
    end_line, end_column = _utf8_position(source, finding.span.end)
    linter.add_message(
        finding.rule,
        line=line,
        col_offset=column,
        end_lineno=end_line,
        end_col_offset=end_column,
        args=dict(finding.args) or None,
        confidence=HIGH if finding.confidence is Confidence.HIGH else INFERENCE,
    )


def _utf8_position(source: Source, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    return line, len(source.lines[line - 1][: column - 1].encode())


def extent(node: nodes.NodeNG) -> tuple[int, int, int, int]:
    """The 1-based lines and 0-based UTF-8 columns of a node; of a class or function those of its header."""
    position = getattr(node, "position", None)
    if position is not None:
        return position.lineno, position.col_offset, position.end_lineno, position.end_col_offset
    if isinstance(node, nodes.Module) or node.lineno is None:
        return 1, 0, 1, 0
    return node.lineno, node.col_offset or 0, node.end_lineno or node.lineno, node.end_col_offset or 0


def span_of(source: Source, node: nodes.NodeNG) -> Span:
    """The bytes of a node in its file; of a class or function only its header."""
    return source.span_of(*extent(node))


@functools.lru_cache(maxsize=4)
def _read(path: str) -> Source:
    return Source.read(Path(path).absolute(), Kind.PYTHON)


@functools.lru_cache(maxsize=64)
def _options_of_project(root: Path) -> Mapping[str, object]:
    from ldlm_lint.config import Config

    return Config.load(root).facts


def _options_for(path: str) -> Mapping[str, object]:
    from ldlm_lint.config import project_root

    return _options_of_project(project_root(Path(path).absolute()))


__all__ = ["LdlmChecker", "add_message", "extent", "message_definitions", "span_of"]
