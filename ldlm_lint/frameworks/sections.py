"""The settings of a framework in one place, in a common form for configuration files and launch commands."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Finding, Fix, Interface, Option, Related, Rule, Span
from ldlm_lint.patterns import lazily

Scalar = str | int | float | bool | None
Options = Mapping[str, Scalar]
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
_NULL = frozenset({"", "null", "none", "~"})
_SMALLEST, _LARGEST = 1e-9, 1e12
SHARDED = ("deepspeed", "fsdp", "fsdp_config", "fsdp_version", "tensor_parallel_size")
"""Where one of these is on, DDP does not wrap the model, and the optimizer is not torch's, or works on flat shards."""
_UNKNOWN = lazily(r"\$|\{\{|<[A-Za-z_]|%\(|^auto$")


class Setting(NamedTuple):
    """A value under its name in the file or command.

    ``text`` is the value without its quotes, None if it has several or is computed; ``span`` covers name and value.
    ``certain``: it is a literal, not as the default of a variable. ``place`` identifies it for the editor, ``related``
    are the places that pass the value on. ``flag`` is the option of the project's own command line whose default the
    value is, if any: a user may pass another one.
    """

    name: str
    text: str | None
    span: Span
    certain: bool = True
    place: object = None
    related: tuple[Related, ...] = ()
    flag: str = ""

    @property
    def known(self) -> bool:
        """Whether the value is there, with no template or variable in it."""
        return self.text is not None and _UNKNOWN.search(self.text) is None

    @property
    def empty(self) -> bool:
        """Whether it means "not set"."""
        return self.text is not None and self.text.strip().lower() in _NULL


class Editor(Protocol):
    """How the place is edited; None if an edit is not plain."""

    def replace(self, setting: Setting, value: Scalar) -> tuple[Edit, ...] | None:
        """Write another value."""

    def add(self, beside: Setting, name: str, value: Scalar | Options) -> tuple[Edit, ...] | None:
        """Write one more setting after another one; only Python accepts a dictionary."""

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """Take a setting out."""


class Section(NamedTuple):
    """The settings of one framework in one place, by transformers' names (`Vocabulary.names`).

    ``complete``: missing settings are not set there. ``claims`` belong to every finding about the place: that the
    framework reads it at all. ``call``: the settings are the arguments of this Python call, ``in_code``: they are in
    Python code. ``made`` is the class of an object that a configuration creates from them, with ``call``, the line that
    names it, and ``where`` the name of the file with the dotted place in it. The framework ``own`` stands for the keys of a project's own configuration, by their dotted paths.
    """

    framework: str
    settings: Mapping[str, Setting]
    editor: Editor
    complete: bool = True
    claims: tuple[Claim, ...] = ()
    from_command: bool = False
    call: Setting | None = None
    in_code: bool = False
    made: str = ""
    where: str = ""

    def has(self, *names: str) -> bool:
        """Whether one of the settings has a value, known or not."""
        return any(name in self.settings and not self.settings[name].empty for name in names)

    def on(self, *names: str) -> bool:
        """Whether one of the settings has a value that may be true."""
        return any(self.has(name) and self.flag(name) is not False for name in names)

    def text(self, name: str) -> str | None:
        """The known value of a setting."""
        setting = self.settings.get(name)
        return setting.text if setting is not None and setting.known and not setting.empty else None

    def flag(self, name: str) -> bool | None:
        """A known switch; None if it is not set or unknown."""
        text = (self.text(name) or "").lower()
        return True if text in _TRUE else False if text in _FALSE else None

    def number(self, name: str) -> float | None:
        """A known number; None if it is not set, unknown, not a number, or an absurd one."""
        text = (self.text(name) or "").replace("_", "")
        try:
            number = float(text)
        except ValueError:
            return None
        return number if number == 0 or _SMALLEST <= abs(number) <= _LARGEST else None

    def written(self, name: str) -> str:
        """This framework's name of a setting."""
        return self.settings[name].name if name in self.settings else vocabulary(self.framework).names.get(name, name)

    def shown(self, name: str, value: Scalar) -> str:
        """A setting with a value as the place would write it: ``bf16: true``, in Python ``bf16=True``."""
        return f"{self.written(name)}={value}" if self.in_code else f"{self.written(name)}: {self.spelled(value)}"

    def spelled(self, value: Scalar) -> str:
        """A value as the place would write it."""
        return str(value).lower() if isinstance(value, bool) and not self.in_code else str(value)

    def report(
        self,
        rule: Rule,
        setting: Setting,
        args: Mapping[str, object],
        *,
        fix: Fix | None = None,
        claims: Iterable[Claim] = (),
        confidence: Confidence | None = None,
        related: Iterable[Related] = (),
    ) -> Finding:
        """A finding at a setting."""
        level = rule.confidence if confidence is None else confidence
        return Finding(
            rule.symbol,
            rule.code,
            setting.span,
            tuple(sorted(args.items())),
            confidence=level if setting.certain else min(level, Confidence.MEDIUM),
            related=(*setting.related, *related),
            fix=fix,
            claims=(*self.claims, *claims),
        )


def integer(options: Mapping[str, object], option: Option) -> int:
    """The value of an option that is an integer; raises TypeError for any other."""
    value = options.get(option.name, option.default)
    if not isinstance(value, int):
        raise TypeError(f"{option.name} must be an int, not {value!r}")
    return value


def in_force(setting: Setting) -> Claim:
    """The claim that no launch reading the place overrides the setting."""
    return Claim("trainer-setting-is-in-force", setting.flag or setting.name)


def unsafe(title: str, edits: tuple[Edit, ...] | None, reason: str, needs: tuple[Interface, ...] = ()) -> Fix | None:
    """A fix that changes the behaviour of the training and ``needs`` this torch; None if it cannot be expressed."""
    return Fix(title, edits, Applicability.UNSAFE, reason, needs=needs) if edits else None


class Vocabulary(NamedTuple):
    """A framework's names of its settings (`ldlm_lint/tables/vocabularies.json`).

    ``distinctive`` names are this framework's among few others, ``certain`` ones its own; ``excluding`` ones are those
    of a record of a run, of a model's configuration, or of another program that shares some names.
    """

    title: str
    distinctive: frozenset[str]
    certain: frozenset[str]
    needed: int
    excluding: frozenset[str]
    names: Mapping[str, str]
    defaults: Mapping[str, Scalar]
    fields: frozenset[str]

    def recognises(self, names: Iterable[str], needed: int | None = None) -> bool:
        """Whether settings of these names are this framework's: ``needed`` of its distinctive names, one of its certain ones."""
        given = set(names)
        if given & self.excluding or (self.certain and not given & self.certain):
            return False
        return len(given & self.distinctive) >= (needed or self.needed)


@functools.cache
def vocabulary(framework: str) -> Vocabulary:
    """The vocabulary of a framework; KeyError if there is none."""
    table = tables.vocabulary(framework)
    return Vocabulary(
        table["title"],
        frozenset(table["distinctive"]),
        frozenset(table["certain"]),
        table["needed"],
        frozenset(table["excluding"]),
        table["names"],
        table["defaults"],
        frozenset(table["fields"]),
    )
