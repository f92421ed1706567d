"""Optimizers whose class is a text next to its options.

    dict(class_name="torch.optim.Adam", lr=1e-3)          optimizer = dict(type="AdamW", lr=1e-4)

The second is a configuration of OpenMMLab, from which its runner creates torch's class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import Node, column_of, line_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr

if TYPE_CHECKING:
    from ldlm_lint.code import Table
    from ldlm_lint.model import Span

_MENTIONED = lazily(rb"[\"']torch\.optim\.(?:\w+\.)?(?:Adam|AdamW|SGD)[\"']")
_NAMED = lazily(r"^torch\.optim\.(?:\w+\.)?(Adam|AdamW|SGD)$")
_SETTING = lazily(rb"(?m)^(?:optimizer|optim_wrapper)[ \t]*=[ \t]*dict\(")
_MODEL = lazily(rb"(?m)^model[ \t]*=")
_CLASSES = ("Adam", "AdamW", "SGD")
_OPTIONS = frozenset({"lr", "params", "betas", "weight_decay", "momentum"})


class NamedOptimizer(NamedTuple):
    """A class of torch by its short name, the file and the place of its settings, and these if code creates it."""

    name: str
    path: str
    span: Span
    expr: Expr | None


class NamedOptimizers(Concept):
    """Finds those whose options are all known."""

    def without(self, *choices: str) -> list[NamedOptimizer]:
        """The settings of optimizers with none of these options: dictionaries, calls, configurations."""
        naming = [module for module in self.program.live if _MENTIONED.search(self.code.files.data(self.code.path(module)))]
        in_code = [one for module in naming for kind in ("map", "call") for one in self.code.expressions_in(module, kind)]
        named = [(one, name) for one in in_code if (name := _named_in(one)) and _misses(one, choices)]
        found = [NamedOptimizer(name, self.code.path(one.module), one.span, one) for one, name in named]
        return [*found, *self._configured(frozenset(choices))]

    def _configured(self, choices: frozenset[str]) -> Iterator[NamedOptimizer]:
        """The settings of OpenMMLab for which no file of a configuration sets one of the choices."""
        tables = {path: table for path in self.code.python_files() if (table := self._table(path)) is not None}
        settings = {path: _settings(table, choices) for path, table in tables.items()}
        for path, one in settings.items():
            # A class of the project may be registered under the name.
            known = one.name in _CLASSES and not one.chooses and one.name not in self.program.classes
            if known and self._is_in_force(path, settings):
                source, site = self.code.source_of(path), tables[path].sites[one.call]
                begin, end = (source.offset(line_of(place), column_of(place)) for place in (site.place, site.end))
                yield NamedOptimizer(one.name, path, source.span(begin, end), None)

    def _table(self, path: str) -> Table | None:
        """The table of a configuration with an optimizer; None for another file."""
        is_one = _SETTING.search(self.code.files.data(path)) and self.code.configurations.is_config(path)
        return self.code.table_of(path) if is_one else None

    def _is_in_force(self, path: str, settings: Mapping[str, _Settings]) -> bool:
        """Whether some configuration that has a model takes the class from a file: duplicates are reported only there."""
        configs, own = self.code.configurations, settings[path]
        derived = configs.made_of(path)
        for files in configs.compositions(path):
            texts = [self.code.files.data(one) for one in files if one in self._files]
            others = {one: settings[one] for one in files - {path} if one in settings}
            decided = any(other.chooses for other in others.values())
            replaced = any(one in derived and (not other.adds or other.name not in ("", own.name)) for one, other in others.items())
            said = own.adds and any(one not in derived and other.name == own.name for one, other in others.items())
            if not decided and not replaced and not said and any(map(_MODEL.search, texts)):
                return True
        return False

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self.code.python_files())


def _named_in(settings: Expr) -> str:
    """The class that a dictionary or call names by its dotted name; empty if it names none."""
    values = [one for _, one in settings.keywords] if isinstance(settings, Call) else settings.operands
    named = (_NAMED.match(one.constant) for one in values if isinstance(one.constant, str))
    return next((one[1] for one in named if one is not None), "")


def _misses(settings: Expr, choices: Collection[str]) -> bool:
    """Whether settings have options of an optimizer, and surely none of the choices."""
    if isinstance(settings, Call):
        unpacked = [one for name, one in settings.keywords if not name]
        given = {name for name, _ in settings.keywords if name}.union(*(one.keys for one in unpacked))
        given |= settings.keys if settings.called_name == "dict" else frozenset()
        is_open = any(one.may_have_other_keys for one in unpacked)
    else:
        given, is_open = {*settings.keys}, settings.may_have_other_keys
    return not is_open and not _OPTIONS.isdisjoint(given) and given.isdisjoint(choices)


class _Settings(NamedTuple):
    """The optimizer in one file: the row of the call, the class, whether it extends a base's, and whether it sets a
    choice."""

    call: int
    name: str
    adds: bool
    chooses: bool


_NOTHING = _Settings(0, "", False, False)


def _settings(table: Table, choices: frozenset[str]) -> _Settings:
    for variable in ("optimizer", "optim_wrapper"):
        number = next(reversed(table.scopes[0].bindings.get(variable, ())), 0)
        row = table.nodes[number]
        if variable == "optim_wrapper" and row[0] == "call":
            number = next((value for name, value in row[3] if name == "optimizer"), 0)
            row = table.nodes[number]
        if row[0] == "call" and number in table.sites and not row[2] and all(name for name, _ in row[3]):
            given = dict(row[3])
            kind: Node = table.nodes[given.get("type", 0)]
            name = str(kind[1]) if kind[0] == "const" else ""
            return _Settings(number, name, "_delete_" not in given, not choices.isdisjoint(given))
    return _NOTHING
