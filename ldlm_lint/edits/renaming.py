"""Renaming what a file imports, and calls that need a new first argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.named_uses import NamedUse, NamedUses
from ldlm_lint.edits.written_parts import Part, parts_of
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import reached

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Expr

_GAP = lazily(r"\s*[(,](?:\s|#[^\n]*\n)*")


class Renaming(NamedTuple):
    """The edits that give uses their new names, these uses, and the import that changes with them (all that it binds)."""

    edits: tuple[Edit, ...]
    uses: Sequence[NamedUse]
    statement: Sequence[Expr] = ()


def renaming(
    use: NamedUse, uses: Sequence[NamedUse], package: str, modules: Mapping[str, str], names: Collection[str], more: Callable[[NamedUse], tuple[Edit, ...]]
) -> Renaming | None:
    """Rename what a use names through its package, or in the import of its name, with all ``uses`` of that import.

    ``modules`` are the new modules of some ``names`` by their old ones, ``more`` are the other edits of a use: without any it cannot
    be renamed.
    """
    imports, code = use.imports, use.named.code
    if {name for one in imports for name in one.outside_names} == {package}:
        edits = _renamed(use, modules, through_package=True, more=more(use))
        return Renaming(edits, [use]) if edits else None
    statement = [one for one in code.expressions_in(use.named.module, imports[0].kind) if one.place == imports[0].place] if len(imports) == 1 else []
    together = [one for one in uses if one.imports and one.imports[0] in statement]
    parts = [_renamed(one, modules, through_package=False, more=more(one)) for one in together]
    first = renamed_import(statement, modules, names) if statement and all(parts) else None
    if first is None or not is_all_that_uses(statement, [one.call for one in together if one.call is not None]):
        return None
    return Renaming((first, *(edit for part in parts for edit in part)), together, statement)


def _renamed(use: NamedUse, modules: Mapping[str, str], *, through_package: bool, more: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits of one use; a module that its import renames needs no other name."""
    call = use.call
    if call is None or not more:
        return ()
    span = call.span if call.is_decoration else call.callee_span
    written = call.code.source(call.module).slice(span)
    root, _, inner = written.partition(".")
    module, _, name = use.name.rpartition(".")
    new = f"{root}.{modules[module].partition('.')[2]}.{name}" if through_package else f"{root}.{name}" if inner else written
    return (*([Edit(span, new)] if written != new else []), *more)


def renamed_import(statement: Sequence[Expr], modules: Mapping[str, str], names: Collection[str]) -> Edit | None:
    """Import the same names from another module, given by the old one; None if some are not among ``names``, or the old module is
    not to be renamed. The statement is given by all that it binds."""
    first = statement[0]
    old, inner = first.imported
    if first.kind == "impf" and old in modules:
        if not all(one.imported[1] in names for one in statement):
            return None
        new = modules[old]
    elif first.kind == "impf" and len(statement) == 1 and f"{old}.{inner}" in modules and modules[f"{old}.{inner}"].endswith(f".{inner}"):
        new = modules[f"{old}.{inner}"].removesuffix(f".{inner}")
    elif first.kind == "imp" and len(statement) == 1 and old in modules:
        new = modules[old]
    else:
        return None
    source = first.code.source(first.module)
    begin = source.line_starts[first.line - 1]
    start = source.data.find(old.encode(), begin)
    return Edit(source.span(start, start + len(old)), new) if start >= 0 else None


def is_all_that_uses(statement: Sequence[Expr], calls: Collection[Call]) -> bool:
    """Whether a file does nothing else with the names of an import than some calls; a type in a test of types is not called."""
    for one in statement:
        names = {event.name for event in one.events if event.kind == "bind"}
        reads = [one, *(free for free in one.code.expressions_in(one.module, "free") if free.name in names and free.bound_outside == [one])]
        parts = list(reached(reads, lambda at: [by for by in at.users if by.kind in ("attr", "copy", "phi")]))
        bound = {event.name for part in parts for event in part.events if event.kind == "bind"}
        unbound = {free for free in one.code.expressions_in(one.module, "free") if free.name in names and not free.bound_outside}
        is_mixed = any(way not in parts and way not in unbound for part in parts if part.kind == "phi" for way in part.ways)
        others = {by for part in parts for by in part.users if isinstance(by, Call) and by.callee == part} - set(calls)
        if len(bound) != 1 or is_mixed or others or any(True for part in parts for _ in one.code[NamedUses].takers(part)):
            return False
    return True


def put_first(call: Call, new: Sequence[str], names: Sequence[str]) -> tuple[Edit, ...]:
    """Put arguments before all others, and ``names`` before those that were given by position; empty for a layout that is too
    unusual."""
    source, parts = call.code.source(call.module), parts_of(call)
    positional = [one for one in parts if not one.name]
    if len(parts) != len(call.arguments) or (names and len(positional) > len(names)):
        return ()
    end = call.callee_span.end
    if not parts:
        opening = source.data.find(b"(", end)
        return (Edit(source.span(opening + 1, opening + 1), ", ".join(new)),) if not source.data[end:opening].strip() else ()
    edits: list[Edit] = []
    for index, part in enumerate(positional or parts[:1]):
        gap = source.data[end : part.whole.start].decode(source.encoding, "replace")
        if not _GAP.fullmatch(gap) or _is_in_parentheses(part):
            return ()
        separator = f",{source.newline}{gap.rpartition(chr(10))[2]}" if "\n" in gap else ", "
        text = "".join(f"{one}{separator}" for one in new) if not index else ""
        text += f"{names[index]}=" if names and positional else ""
        edits += [Edit(source.span(part.whole.start, part.whole.start), text)] if text else []
        end = part.whole.end
    return tuple(edits)


def name_at(call: Call, module: str, *names: str) -> str:
    """The one of some names under which code around a call has a module itself; empty if it has not."""
    bound = ((name, call.function.visible(name)) for name in names)
    return next((name for name, found in bound if found and all(one.imported == (module, "") for one in found)), "")


def _is_in_parentheses(part: Part) -> bool:
    return not part.name and part.span.start != part.whole.start and not part.text.startswith("*")
