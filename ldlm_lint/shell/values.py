"""The possible values of a variable at a place of a script: every value that reaches it, with its place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import provenance, templates, words
from ldlm_lint.shell.reaching import Change, Reaching, Step
from ldlm_lint.shell.regions import Region
from ldlm_lint.shell.text import Text, byte_offset

_DEPTH = 12
_RANGE = lazily(r"\{(\d{1,4})\.\.(\d{1,4})\}")
_GLOB = lazily(r"[*?\[\]{}~]")
_REFERENCE = lazily(r"(\"?)\$(?:\{(\w+)(?:\[[@*]\])?\}|(\w+))\1")
_ARRAY_WORD = lazily(r"#[^\n]*|(?:[^\s'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+", re.S)


Outside = Callable[[str, int], tuple[Value, ...] | None]
"""What the code around a script, or the scripts that it sources, know of a variable at a place of the file."""


@dataclass(eq=False)
class Variables:
    """The variables of one script. Places are offsets of the file."""

    text: Text | None = None
    reaching: Reaching | None = None
    shifts: Sequence[tuple[int, int]] = ()
    outside: Outside | None = None
    _known: dict[tuple[str, int], tuple[Value, ...] | None] = field(default_factory=dict)
    _running: set[tuple[str, int]] = field(default_factory=set)

    def at(self, name: str, place: int) -> tuple[Value, ...] | None:
        """The possible values of a variable at a place, None if one is unknown or it is not set.

        A value that comes from elsewhere has its ``home``: the assignment with the literal. Its origin is DEFAULT if
        the variable may also come from outside.
        """
        return self.inside(name, place - self.text.source.bom) if self.text is not None else None

    def steps_at(self, name: str, place: int) -> tuple[Step, ...]:
        """The possibly last changes of a variable before a place."""
        return self._changes.at(name, place - self._text.source.bom)[0] if self.reaching is not None else ()

    def home(self, step: Step) -> Span:
        """The place of a step in the file."""
        return self._text.span(step.start, step.end)

    @property
    def _text(self) -> Text:
        if self.text is None:
            raise ValueError("no script")
        return self.text

    @property
    def _changes(self) -> Reaching:
        if self.reaching is None:
            raise ValueError("no script")
        return self.reaching

    def inside(self, name: str, offset: int) -> tuple[Value, ...] | None:
        """As `at`, for an offset of the text."""
        key = (name, offset)
        if key in self._known:
            return self._known[key]
        if key in self._running or len(self._running) > _DEPTH:
            return None
        self._running.add(key)
        try:
            found = self._positional(name, offset) if name.isdigit() else self._variable(name, offset)
        finally:
            self._running.discard(key)
        self._known[key] = found
        return found

    def _variable(self, name: str, offset: int) -> tuple[Value, ...] | None:
        steps, sure = self._changes.at(name, offset)
        if not steps:
            return self._from_outside(name, offset)
        found: list[Value] = []
        for step in steps:
            values = self.of(step)
            if values is None:
                return None
            found += [value if value.home else provenance.elsewhere(value, self.home(step)) for value in values]
        if not sure:
            found = [provenance.weakened(value) for value in (*(self._from_outside(name, offset) or ()), *found)]
        return provenance.unique(found) if len(found) <= templates.MAX_VALUES else None

    def _from_outside(self, name: str, offset: int) -> tuple[Value, ...] | None:
        return self.outside(name, self._text.span(offset, offset).start) if self.outside is not None else None

    def of(self, step: Step) -> tuple[Value, ...] | None:
        """The values that a step assigns to its variable."""
        if step.change is Change.UNSET:
            return ()
        raw = self._text.slice(step.value_start, step.end)
        if step.change is Change.UNKNOWN or "\ufffd" in raw:
            return None
        if step.change is Change.EACH:
            return self._listed(step, raw)
        if step.change is Change.DEFAULT:
            return self._default(step, raw)
        if step.change is Change.APPEND:
            return self._appended(step, raw)
        return self.read(raw, step.value_start, step.end)

    def read(self, raw: str, start: int, end: int) -> tuple[Value, ...] | None:
        """The values of a word at ``[start, end)`` of the text, written as ``raw``."""
        known = words.read_value(raw)
        if isinstance(known, words.Literal):
            first, last = (start + byte_offset(raw, index) for index in (known.start, known.end))
            if not known.is_default:
                return (Value(known.text, self._text.span(first, last)),)
            return self._with_default(raw, start, Value(known.text, self._text.span(first, last), Origin.DEFAULT))
        whole = self._text.span(start, end)
        if isinstance(known, words.Reference) and _REFERENCE.fullmatch(raw):
            found = self.inside(known.name, start)
            if found is None:
                return None
            kept = whole if len(found) == 1 else None
            return tuple(provenance.through(value, kept) for value in found)
        texts = templates.expand(raw, lambda name: self._texts(name, start))
        if not texts:
            return None
        return tuple(Value(one.text, whole if len(texts) == 1 else None, one.origin) for one in texts)

    def _with_default(self, raw: str, start: int, default: Value) -> tuple[Value, ...]:
        """``${X:-d}`` if the script may have set X before."""
        match = re.match(r"\"?\$\{(\w+)", raw)
        before = self.inside(match[1], start) if match else None
        if not before:
            return (default,)
        held = tuple(provenance.through(value, None) for value in before if value.text)
        if len(held) == len(before) and all(value.origin is not Origin.DEFAULT for value in held):
            return held
        return provenance.unique((*held, default))

    def _texts(self, name: str, offset: int) -> tuple[templates.Text, ...] | None:
        found = self.inside(name, offset)
        return None if found is None else tuple(templates.Text(one.text, one.origin) for one in found)

    def _default(self, step: Step, raw: str) -> tuple[Value, ...] | None:
        known = self.read(raw, step.value_start, step.end)
        if known is None:
            return None
        default = tuple(Value(one.text, one.span, Origin.DEFAULT, home=one.home, home_value=one.home_value) for one in known)
        before = self.inside(step.name, step.start)
        if before and all(value.text and value.origin is not Origin.DEFAULT for value in before):
            return tuple(provenance.through(value, None) for value in before)
        return provenance.unique((*(value for value in before or () if value.text), *default))

    def _appended(self, step: Step, raw: str) -> tuple[Value, ...] | None:
        if raw.startswith("("):
            return None
        before, more = self.inside(step.name, step.start), self.read(raw, step.value_start, step.end)
        if before is None or more is None or len(before) * len(more) > templates.MAX_VALUES:
            return None
        return tuple(Value(a.text + b.text, None, Origin.VARIABLE) for a, b in itertools.product(before, more))

    # Lists

    def _listed(self, step: Step, raw: str) -> tuple[Value, ...] | None:
        """The members of the list that a ``for`` runs over."""
        found: list[Value] = []
        for match in _ARRAY_WORD.finditer(raw):
            start, end = (step.value_start + byte_offset(raw, index) for index in match.span())
            members = self._members(match[0], start, end)
            if members is None or len(found) > templates.MAX_VALUES:
                return None
            found += [one if one.home else provenance.elsewhere(one, one.span or self._text.span(start, end)) for one in members]
        return provenance.unique(found)

    def _members(self, raw: str, start: int, end: int) -> Sequence[Value] | None:
        if match := _RANGE.fullmatch(raw):
            first, last = int(match[1]), int(match[2])
            if not 0 <= last - first < templates.MAX_VALUES:
                return None
            return [Value(str(number), None) for number in range(first, last + 1)]
        reference = _REFERENCE.fullmatch(raw)
        if reference and ("[" in raw or not reference[1]):
            return self._elements(reference[2] or reference[3], start, split="[" not in raw)
        if _GLOB.search(raw) and "$" not in raw and raw[0] not in "'\"":
            return None
        return self.read(raw, start, end)

    def _elements(self, name: str, offset: int, *, split: bool) -> Sequence[Value] | None:
        """The words in a variable that is split, or the elements of an array."""
        if not split:
            steps, _ = self._changes.at(name, offset)
            found = [self._array(step) for step in steps]
            return [value for one in found for value in one or ()] if found and None not in found else None
        known = self.inside(name, offset)
        if known is None:
            return None
        return [provenance.piece(value, word) for value in known for word in value.text.split()]

    def _array(self, step: Step) -> tuple[Value, ...] | None:
        raw = self._text.slice(step.value_start, step.end)
        if step.change is not Change.SET or not raw.startswith("(") or not raw.endswith(")"):
            return None
        inner = Step(step.name, Change.EACH, step.start, step.value_start + 1, step.end - 1)
        return None if "#" in raw else self._listed(inner, raw[1:-1])

    # Functions

    def _positional(self, name: str, offset: int) -> tuple[Value, ...] | None:
        """The arguments for a function's parameter with this number, over all its calls."""
        function = self._changes.function(offset)
        calls = self._changes.calls.get(function.name, ()) if function is not None else ()
        if function is None or not calls or name == "0":
            return None
        index = int(name) - 1 + self.shifted(function, offset)
        found: list[Value] = []
        for call in calls:
            if index >= len(call.words) or any(self.spreads(extent) for extent in call.words[: index + 1]):
                return None
            start, end = call.words[index]
            values = self.read(self._text.slice(start, end), start, end)
            if values is None:
                return None
            found += [value if value.home else provenance.elsewhere(value, self._text.span(start, end)) for value in values]
        return provenance.unique(found) if len(found) <= templates.MAX_VALUES else None

    def spreads(self, extent: tuple[int, int]) -> bool:
        """Whether a word of a call may become several."""
        raw = self._text.slice(*extent)
        return "@" in raw or ("$" in raw and not raw.startswith('"')) or "*" in raw

    def shifted(self, function: Region, offset: int) -> int:
        """How many parameters a function has dropped by ``shift`` before a place."""
        return sum(count for place, count in self.shifts if function.start <= place < offset)
