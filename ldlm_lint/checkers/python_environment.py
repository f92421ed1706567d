"""The environment variables that Python sets, or gives to processes that it starts, for the rules about variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.environment import Environment, EnvironmentWrite
from ldlm_lint.concepts.text_parts import Place
from ldlm_lint.concepts.version_tests import VersionTests
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.edits.statements import statements_around
from ldlm_lint.edits.written_parts import Part, parts_of, stored_by
from ldlm_lint.model import Edit, Finding, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules import (
    by_symbol,
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_deepspeed,
    environment_error_handling,
    environment_names,
    environment_tuning,
    environment_values,
    environment_watchdog,
)
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide, is_relevant
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.rules.roles import is_diagnostic, speaks_of_debugging
from ldlm_lint.rules.settings import Origin, Removal, Setting, Surroundings, Twin, Value
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_ROOMS = (
    *(environment, environment_aliases, environment_allocator, environment_connections),
    *(environment_debugging, environment_error_handling, environment_tuning, environment_values),
)
RULES = (*(rule for room in _ROOMS for rule in room.RULES), by_symbol["excessive-collective-timeout"])
_NAMES = {*environment_names.UNREAD, *(name for topic in (*_ROOMS[1:], environment_watchdog, environment_deepspeed) for name in topic.NAMES)}
WORDS = (b"NCCL_", *sorted(name.encode() for name in _NAMES if "NCCL_" not in name))
_INHERITED = "a process that the program starts may read it"
_SEVERAL = ("init_process_group", "init_distributed", "Accelerator", "spawn", "Fabric")
# ``def enable_full_determinism():`` makes runs repeatable at any cost, as its name says.
_DETERMINISM = lazily(r"determinis", re.I)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The findings about variables, file by file."""
    writes: dict[ProjectCode, list[EnvironmentWrite]] = {}
    for own, module in code.files_with(*WORDS):
        if own not in writes:
            found = own[Environment]
            writes[own] = [*found.writes(is_relevant), *found.of_processes(is_relevant)]
        here: dict[object, list[EnvironmentWrite]] = {}
        for write in writes[own]:
            if write.module is module:
                here.setdefault((write.name, write.key), []).append(write)
        if here:
            yield from _in_file(own, module, list(map(_joined, here.values())))


def _joined(writes: list[EnvironmentWrite]) -> EnvironmentWrite:
    """One write of a name that the store itself has: callers give the value alone."""
    first = writes[0]
    if first.key.holder != first.written:
        return first
    texts = dict.fromkeys(text for one in writes for text in one.texts) if all(one.texts for one in writes) else ()
    return first._replace(given_by=None, texts=tuple(texts))


def _in_file(code: ProjectCode, module: Module, writes: list[EnvironmentWrite]) -> Iterator[Finding]:
    source = code.source(module)
    settings = [(_Writer(code, source, one).setting, one) for one in writes]
    settings.sort(key=lambda one: one[0].span.start)
    for finding in decide([setting for setting, _ in settings], code.facts(module), _Editor(source), _scene(code, module)):
        is_old = finding.rule == DEPRECATED_NCCL_VARIABLE.symbol
        if not is_old or not any(setting.span == finding.span and _is_for_some_versions(code, one) for setting, one in settings):
            yield finding


def _is_for_some_versions(code: ProjectCode, write: EnvironmentWrite) -> bool:
    """Whether the version of torch decides about a write: those before 2.2 have no other name for the variable."""
    made = write.key.holder.events if write.key.holder is not None else []
    return any(map(code[VersionTests].decide, (write.spot, *(event.spot for event in made))))


def _scene(code: ProjectCode, module: Module) -> Scene:
    """The facts of a file about the processes that get its variables."""
    source = code.source(module)
    text = without_comments(source.data).decode(errors="replace")
    return Scene(
        is_diagnostic(source.path, ()),
        several=any(True for _ in code.calls_in(module, *_SEVERAL)),
        unset=code[Environment].removed_by(module),
        text=text,
    )


class _Writer(NamedTuple):
    """A write in the form for decisions about variables."""

    code: ProjectCode
    source: Source
    write: EnvironmentWrite

    @property
    def setting(self) -> Setting:
        """That form."""
        write, source = self.write, self.source
        key, value = self._literal(self._key_span(), write.name), self._part(write.value)
        span, around = self._span(value), self._statement()
        is_beside = value is not None and span.start <= value.span.start and value.span.end <= span.end
        literal = self._literal(value.span, write.value.expr.constant) if value is not None and is_beside else None
        # A mapping from elsewhere may also be read by its keys.
        is_shared = (around is None or not (around.start <= span.start and span.end <= around.end)) and source.data.count(write.name.encode()) > 1
        return Setting(
            write.name,
            self._values(literal),
            span,
            key=None if is_shared else key,
            written=Value(source.slice(value.span), literal.span if literal is not None else None) if value is not None else None,
            twin=self._twin(key, value),
            place=self._surroundings(span, around),
        )

    def _values(self, literal: Value | None) -> tuple[Value, ...] | None:
        write = self.write
        origin = Origin.DEFAULT if write.is_default else Origin.LITERAL if write.is_written_out else Origin.VARIABLE
        if literal is not None:
            return (literal._replace(origin=origin),)
        return tuple(Value(text, None, origin) for text in write.texts) or None

    def _literal(self, span: Span | None, text: object) -> Value | None:
        """A text in plain quotes at a place, None for everything else."""
        written = self.source.slice(span) if span is not None else ""
        is_plain = isinstance(text, str) and written[:1] in ("'", '"') and written == f"{written[:1]}{text}{written[:1]}"
        return Value(str(text), span, quote=written[:1]) if is_plain else None

    def _part(self, place: Place) -> Part | None:
        """A key or value with the part of a construct that it is written as."""
        if place.holder is None or place.holder.module is not self.write.module:
            return None
        if place.holder.kind == "upd":
            return stored_by(place.holder)
        return next(iter(parts_of(place.holder)[place.nth :]), None)

    def _key_span(self) -> Span | None:
        """The name as it is written."""
        part, holder = self._part(self.write.key), self.write.key.holder
        if part is None or holder is None or holder.kind not in ("upd", "map"):
            return part.span if part is not None else None
        head = self.source.data[part.whole.start : part.span.start]
        at = head.rfind(self.write.name.encode()) if holder.kind == "upd" else 1
        start = part.whole.start + at - 1
        return part.whole._replace(start=start, end=start + len(self.write.name.encode()) + 2)

    def _span(self, value: Part | None) -> Span:
        """The statement or call that sets a variable, or the entry with its name and value."""
        write, key = self.write, self._part(self.write.key)
        holder = write.key.holder
        if key is None or holder is None:
            return write.at.span
        if isinstance(holder, Call) and holder.called_name in ("setdefault", "putenv"):
            return holder.span
        whole = key.whole if key.name or holder.kind in ("upd", "map") else key.span
        return whole._replace(end=value.span.end) if value is not None and holder == write.value.holder else whole

    def _statement(self) -> Span | None:
        """What writes it, in the same file."""
        at = self.write.at
        if at.module is not self.write.module:
            return None
        bound = stored_by(at) if at.kind == "upd" else None
        # The place of ``x |= y`` is that of ``x``.
        end = max(at.span.end, *(one.span.end for one in at.operands if one.place)) if at.operator == "BitOr" else at.span.end
        return bound.whole if bound is not None else at.span._replace(end=end)

    def _twin(self, key: Value | None, value: Part | None) -> Twin | None:
        """A second target of the same assignment assigns the value to another name."""
        if key is None or key.span is None or value is None or self.write.written.kind != "upd" or self.write.key.holder != self.write.written:
            return None
        before = self.source.slice(key.span._replace(start=value.whole.start, end=key.span.start))
        after = self.source.slice(key.span._replace(start=key.span.end, end=value.span.start)).partition("=")[0].rstrip()
        start = value.whole.start
        return Twin(key.span._replace(start=start, end=start), before + key.quote, f"{key.quote}{after} = ")

    def _surroundings(self, span: Span, around: Span | None) -> Surroundings:
        """The branches and functions around a write, and the comments next to it."""
        scope: list[int] = []
        spot: Spot | None = self.write.spot
        tests: list[Expr] = []
        names: list[str] = []
        while spot is not None:
            guards = [guard for guard in spot.guards if guard.kind in ("if", "except")]
            scope += [4 * guard.line + (guard.kind == "except" or not guard.holds) for guard in guards]
            scope += [4 * one.line + 2 for one in spot.tries]
            tests += [guard.test for guard in guards if guard.kind == "if"]
            function = spot.function
            spot = function.defined_at
            if spot is not None and not function.is_class:
                names.append(function.name)
                scope.append(4 * function.spot.line + 3)
        conditions = [test for test in tests if not _is_of_course(test)]
        remarks = [remark_at(self.source, one.start, one.end) for one in dict.fromkeys((around, span)) if one is not None]
        return Surroundings(
            tuple(sorted(scope)) if around is not None else (),
            bool(conditions) or around is None,
            any(speaks_of_debugging(one) or _DETERMINISM.search(one) for one in (*(test.text for test in conditions), *names)),
            " ".join(dict.fromkeys(filter(None, remarks))),
        )


def _is_of_course(test: Expr) -> bool:
    """Whether a condition is independent of the machine and the user: the main guard, a variable that is not set yet."""
    asked = [one for one in test.within if one.operator in ("NotIn", "Is")]
    return any(one.name == "__name__" for one in test.within) or any(part.name == "environ" for one in asked for part in one.within)


class _Editor(NamedTuple):
    """Removes unread assignments; other variables are rewritten in place."""

    source: Source

    def removals(self, groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
        """See `ldlm_lint.rules.settings.Editor`."""
        useless = {one.span: one for one in groups if environment_names.why_ineffective(one.name) is not None}
        found: dict[Setting, Removal] = {}
        for span, setting in useless.items():
            placed = next(iter(statements_around(self.source, span)), None)
            statement = placed.statement if placed is not None else None
            # Only a constant is removed: nothing is called, and the block keeps another statement.
            if placed is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Constant):
                continue
            lines = _lines_of(self.source, span)
            is_alone = all(self._span(one) in useless for one in placed.block)
            if lines is not None and self._span(statement) == span and not is_alone:
                found[setting] = Removal((Edit(lines, ""),), reason=_INHERITED)
        return found

    def _span(self, statement: ast.stmt) -> Span:
        end = statement.end_lineno or statement.lineno, statement.end_col_offset or 0
        return self.source.span_of(statement.lineno, statement.col_offset, *end)


def _lines_of(source: Source, span: Span) -> Span | None:
    """The lines of a statement with the comment after it, None if another statement is on them."""
    lines = delete_line(source, span).span
    before, after = source.data[lines.start : span.start], source.data[span.end : lines.end].strip()
    return lines if not before.strip() and (not after or after.startswith(b"#")) else None

