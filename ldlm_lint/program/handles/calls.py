"""Calls, what they pass, and the options of a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.program import handles
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.handles.expressions import Expr
from ldlm_lint.program.queries import Argument as Found
from ldlm_lint.program.queries import Meaning, State, destination
from ldlm_lint.program.spots import Spot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldlm_lint.code.table import Site
    from ldlm_lint.model import Span
    from ldlm_lint.program.atoms import Value
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.handles.functions import Class, Function
    from ldlm_lint.program.handles.places import Guard, Loop, Try
    from ldlm_lint.program.mappings import Keys
    from ldlm_lint.program.origins import Origin


_CATCHERS = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
"""Contexts that catch what is raised in them."""


class Call(Expr):
    """A call."""

    __slots__ = ()

    @property
    def _site(self) -> Site:
        return self.module.table.sites[self.key & MASK]

    @property
    def end(self) -> int:
        """Where it ends, for `Codebase.span`."""
        return self._site.end

    @property
    def spot(self) -> Spot:
        """Where it runs."""
        site = self._site
        return handles.spot_at(self, site.scope, site.loop, site.guard, site.place)

    @property
    def span(self) -> Span:
        """Where it is written."""
        return self.code.call_span(self.key)

    @property
    def text(self) -> str:
        """Its code."""
        return self.code.call_text(self.key)

    @property
    def made(self) -> Value:
        """Those of its possible values that no other call makes."""
        of = self.code.program.atoms.of
        return frozenset(one for one in self.value if one >= FIRST and self.key in of[one][1:])

    @property
    def called_name(self) -> str:
        """The last name of what is called: ``AdamW`` of ``torch.optim.AdamW()``."""
        return self.module.last_name(self.row[1])

    @property
    def positional(self) -> list[Expr]:
        """The arguments that are given by position."""
        return [self._at(one) for one in self.row[2]]

    @property
    def keywords(self) -> list[tuple[str, Expr]]:
        """The arguments that are given by name; "" for ``**``."""
        return [(name or "", self._at(one)) for name, one in self.row[3]]

    def parameters_for(self, value: Expr) -> list[Expr]:
        """The parameters of the functions that it goes to for which it passes a value."""
        return [one for target in self.targets for one in target.parameters.values() if self.given_for(one) == value]

    @property
    def has_stars(self) -> bool:
        """Whether it passes arguments by stars, so that they are not written out."""
        return any(name is None for name, _ in self.row[3]) or any(one.kind == "star" for one in self.positional)

    @property
    def attributes_read(self) -> list[Expr]:
        """Its arguments, and its receiver, that are attributes which some class of the project may have as a property."""
        names, nodes, row = self.code.property_names, self.module.nodes, self.row
        function = nodes[row[1]]
        read = [*row[2], *(value for _, value in row[3]), *([function[1]] if function[0] == "attr" else [])]
        return [self._at(one) for one in read if nodes[one][0] == "attr" and nodes[one][2] in names]

    @property
    def arguments(self) -> list[Expr]:
        """All arguments as written."""
        return [*self.positional, *(value for _, value in self.keywords)]

    def given_for(self, parameter: Expr) -> Expr | None:
        """What it passes for a parameter of a function that it goes to; None if nothing shows it."""
        target, name = parameter.function, str(parameter.row[2])
        for edge in self.code.program.callers(target.key):
            if edge.call == self.key and edge.how != UNKNOWN:
                node = self.code.program.argument_node(self.key, target.key, edge.how, name)
                return handles.expression(self.code, node) if node is not None else None
        return None

    def argument_for(self, parameter: Expr) -> Argument:
        """The same with what unpacked mappings hold; open also where another package passes what it wants, and behind
        ``*args``."""
        target, name = parameter.function, str(parameter.row[2])
        how = next((edge.how for edge in self.code.program.callers(target.key) if edge.call == self.key), UNKNOWN)
        node = self.code.program.argument_node(self.key, target.key, how, name) if how != UNKNOWN else None
        if how == UNKNOWN or (node is not None and handles.expression(self.code, node).kind == "star"):
            return Argument(self.code, Found(State.OPEN))
        return self.argument(name) if node is None else Argument(self.code, Found(State.GIVEN, (node,), (self.key,)))

    @property
    def callee_span(self) -> Span:
        """Where what it calls is written."""
        if self.callee.place == self.place:
            return self.callee.span
        return self.span._replace(end=self.span.start + len(self.text.partition("(")[0].rstrip().encode()))

    @property
    def last_line(self) -> int:
        """The line on which it ends, from 1."""
        return line_of(self._site.end)

    @property
    def position(self) -> str:
        """Line and column, as ``12:4``."""
        return f"{line_of(self._site.place)}:{column_of(self._site.place)}"

    @property
    def callee(self) -> Expr:
        """The expression that is called."""
        return self._at(self.row[1])

    @property
    def receiver(self) -> Expr | None:
        """The object whose method is called: ``model`` of ``model.train()``."""
        function = self.module.nodes[self.row[1]]
        return self._at(function[1]) if function[0] == "attr" else None

    @property
    def function(self) -> Function:
        """The function that it is in; that of the module outside of all functions."""
        return handles.Function(self.code, self.module.base | self._site.scope, self.module)

    @property
    def guards(self) -> list[Guard]:
        """The conditions around it in its function, innermost first."""
        return handles.guards_at(self, self._site.guard)

    @property
    def loops(self) -> list[Loop]:
        """The loops around it in its function, innermost first."""
        return handles.loops_at(self, self._site.loop)

    @property
    def is_possible(self) -> bool:
        """Whether the conditions around it in its function may hold together, for what is known of its parameters."""
        return self.code.arms.may_take(self.module, self._site.guard, ())

    @property
    def may_run_by_default(self) -> bool:
        """Whether the conditions around it in its function may hold together if no option and no variable is set."""
        return self.code.arms_by_default.may_take(self.module, self._site.guard, ())

    def excludes(self, other: Call) -> bool:
        """Whether a condition lets only one of two calls run, in one run of the code around both."""
        return self.spot.excludes(other.spot)

    @property
    def unpacked(self) -> list[Expr]:
        """The mappings that it unpacks: ``**options``."""
        return [self._at(one) for name, one in self.row[3] if name is None]

    @property
    def unpacked_from(self) -> list[Expr | None]:
        """What may bring unknown keys into the mappings that it unpacks; None for what is not an expression."""
        keys = [self.code.ask.mappings.keys_at(one.key, self.key) for one in self.unpacked]
        opened_by = sorted({one for found in keys for one in found.opened_by})
        return [handles.expression(self.code, one) if one else None for one in opened_by]

    @property
    def targets(self) -> list[Function]:
        """The functions of the project that it may go to."""
        return [handles.Function(self.code, one) for one in sorted(self.code.program.targets_of.get(self.key, ()))]

    @property
    def results(self) -> list[Expr]:
        """What the functions of the project return that it goes to."""
        return [one for target in self.targets for one in target.returned]

    @property
    def is_of_process(self) -> bool:
        """Whether another process or thread makes it: ``run`` of ``spawn(run, …)``."""
        return self.key in self.code.program.starts

    @property
    def is_in_handler(self) -> bool:
        """Whether it is in an ``except`` clause: a second attempt of its ``try``."""
        return self.code.program.stands_in_handler(self.key)

    @property
    def is_as_written(self) -> bool:
        """Whether it shows its function and arguments itself: an import of another package, nothing unpacked."""
        if any(name is None for name, _ in self.row[3]):
            return False
        root = self.callee
        while root.kind == "attr" and root.base is not None:
            root = root.base
        bound = self.function.module.scopes[0].bindings.get(root.name, ()) if root.kind == "free" else ()
        return (self._at(bound[0]) if len(bound) == 1 else root).is_outside_import

    @property
    def is_decoration(self) -> bool:
        """Whether it is what a decorator without parentheses does: ``@custom_fwd``."""
        return any(call == self.key & MASK for call, _, _ in self.module.table.decorations)

    @property
    def is_caught(self) -> bool:
        """Whether an ``except`` may catch what it raises, or a ``with suppress(…)``."""
        entered = (guard.test for guard in self.guards if guard.kind == "with")
        is_suppressed = any(isinstance(one, Call) and one.called_name in _CATCHERS for one in entered)
        return is_suppressed or any(one.begin <= self._site.place < one.end for one in self.module.table.tries)

    @property
    def tries(self) -> list[Try]:
        """The blocks around it in its function whose exceptions an ``except`` catches, innermost first."""
        return self.spot.tries

    def argument(self, name: str, position: int | None = None) -> Argument:
        """What it gives for a parameter, by name or by place among the positional arguments (from 0)."""
        return Argument(self.code, self.code.ask.argument(self.key, name, position))


class Option(Call):
    """An option of a command line: the call that adds it."""

    __slots__ = ()

    @property
    def flag(self) -> str:
        """Its name, with its dashes."""
        return self.code.ask.flag(self.key).name

    @property
    def setting(self) -> str:
        """The name of the attribute that has its value: ``save_every`` of ``--save-every``."""
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def default(self) -> Expr | None:
        """The default that is written for it."""
        found = self.code.ask.flag(self.key).default
        return handles.expression(self.code, found) if found is not None else None

    @property
    def destination(self) -> str:
        """The attribute that it is stored as by default."""
        return destination(self.flag)

    @property
    def turns_on(self) -> bool:
        """Whether it is a switch that is off unless it is given."""
        found = self.code.ask.flag(self.key)
        return found.action == "store_true" and found.default is None

    @property
    def meaning_of_default(self) -> Meaning:
        """Its value if it is not given."""
        return self.code.ask.default_of(self.code.ask.flag(self.key))

    @property
    def default_value(self) -> object:
        """The one constant that it is if it is not given; `Ellipsis` if that is not known."""
        return self.code.ask.default_of(self.code.ask.flag(self.key)).only


class Passed(NamedTuple):
    """What a call passes for a parameter; None if the call does not show it, or leaves it out. Without ``is_visible``
    another package makes the call."""

    call: Call
    value: Expr | None
    is_visible: bool


@dataclass(frozen=True)
class Alternative:
    """One of several interfaces that an expression may be: its dotted name, the class of the project between, and where
    and in which case it is chosen."""

    name: str
    owner: Class | None
    origins: tuple[Origin, ...]

    @property
    def last_name(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    @property
    def is_fallback(self) -> bool:
        """Whether it is chosen only where something else failed."""
        return all(one.is_fallback for one in self.origins)


@dataclass(frozen=True)
class Filled:
    """What a mapping holds at one place."""

    code: Codebase
    found: Keys

    @property
    def names(self) -> frozenset[str]:
        """Its keys."""
        return frozenset(self.found.entries)

    @property
    def is_open(self) -> bool:
        """Whether it may have other keys."""
        return self.found.is_open

    def may_be(self, name: str) -> Meaning:
        """The possible values of a key."""
        return self.code.ask.meaning(*self.found.entries.get(name, ()))

    def argument(self, name: str) -> Argument:
        """What it gives where it is unpacked."""
        sources, givers = self.found.entries.get(name, ()), self.found.put_by.get(name, ())
        state = State.OPEN if self.is_open else State.ABSENT
        if sources:
            state = State.GIVEN if name in self.found.certain else State.MAYBE
        return Argument(self.code, Found(state, tuple(sources), tuple(givers)))

    def givers(self, name: str) -> list[Expr]:
        """What puts these values there."""
        return [handles.expression(self.code, one) for one in self.found.put_by.get(name, ())]


@dataclass(frozen=True)
class Argument:
    """What a call gives for a parameter: surely not, surely, in some cases, or what nothing in the program shows."""

    code: Codebase
    found: Found

    @property
    def is_absent(self) -> bool:
        """Whether the call surely does not give it."""
        return self.found.state is State.ABSENT

    @property
    def is_given(self) -> bool:
        """Whether the call surely gives it."""
        return self.found.state is State.GIVEN

    def may_be(self) -> Meaning:
        """The possible values of all that it may be, and whether these are all."""
        return self.code.ask.meaning(*self.found.sources)

    @property
    def givers(self) -> list[Expr]:
        """The calls and dictionaries that give each of its `values`, as far as they are known."""
        return [handles.expression(self.code, one) for one in self.found.given_by]

    @property
    def is_open(self) -> bool:
        """Whether nothing in the program gives it, and something that it does not show may."""
        return self.found.state is State.OPEN

    @property
    def values(self) -> list[Expr]:
        """The expressions that it may be."""
        return [handles.expression(self.code, one) for one in self.found.sources]

    @property
    def options(self) -> list[str]:
        """The options of a command line that alone can give it: ``--fused``."""
        return [self.code.ask.flag(one).name for one in self.found.flags]

    @property
    def only(self) -> object:
        """The only constant that it may be; `Ellipsis` if there are others, or if it may be left out."""
        return self.code.ask.meaning(*self.found.sources).only if self.is_given and self.found.sources else ...

    @property
    def option(self) -> Option | None:
        """The option of a command line whose value it is, and nothing else."""
        meaning = self.code.ask.meaning(*self.found.sources) if self.found.sources else None
        if meaning is None or len(meaning.flags) != 1 or len(meaning.value) != 1:
            return None
        return Option(self.code, meaning.flags[0])


def with_cases(alternatives: Iterable[Alternative], *, several: bool) -> str:
    """Alternatives as text, of ``several`` with their cases: "AdamW (with `--optimizer adamw`) or SGD"."""
    cases: dict[str, list[str]] = {}
    for one in alternatives:
        cases.setdefault(one.last_name, []).extend(origin.case for origin in one.origins if several)
    return " or ".join(f"{name} ({' or '.join(dict.fromkeys(own))})" if (own := cases[name]) and all(own) else name for name in sorted(cases))
