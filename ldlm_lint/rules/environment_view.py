"""Shared parts of family 72's environment rules: the settings of a file, its role, and draft findings.

A topic is a module with ``RULES``, ``NAMES`` (the variables it mentions) and ``drafts``. A draft lists its fixes in
order of preference; which settings can be removed from a file is known after all drafts exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Finding, Fix, Interface, Related, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.requirements import NEWEST_TORCH, OLDEST_TORCH
from ldlm_lint.rules.settings import Removal, Setting, Value
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.wording import quoted

TRUE = frozenset({"y", "yes", "1", "t", "true"})
FALSE = frozenset({"n", "no", "0", "f", "false"})
OUTSIDE_TESTS = Claim("stands-outside-tests")

_INTEGER = lazily(r"\s*([+-]?\d+)")


class Scene(NamedTuple):
    """Further facts of a file about the processes that get its variables.

    ``diagnostic``: it debugs, tests or measures instead of training. ``launchers`` are the launchers it starts
    (`ldlm_lint.shell.script.Launch`), ``entries`` the Python files that these run, ``several`` whether one of them
    starts more than one process on a machine. ``unset`` are the names it unsets, ``text`` its code without comments;
    ``lists_environment``: it prints all variables.
    """

    diagnostic: bool = False
    launchers: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    several: bool = False
    unset: frozenset[str] = frozenset()
    text: str = ""
    lists_environment: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The settings of one file, the rule options, and the scene."""

    settings: tuple[Setting, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    scene: Scene = field(default_factory=Scene)

    @property
    def target_torch(self) -> tuple[int, int] | None:
        """The newest torch that the project runs on, such as ``(2, 4)``; None without an upper bound."""
        value = self.options.get(NEWEST_TORCH)
        return value if isinstance(value, tuple) else None

    def older_than(self, version: tuple[int, int]) -> bool:
        """Whether the project runs on versions of torch before ``version`` only."""
        return self.target_torch is not None and self.target_torch < version

    def supports_older_than(self, version: tuple[int, int]) -> bool:
        """Whether the project also supports torch versions before ``version``."""
        oldest = self.options.get(OLDEST_TORCH)
        return isinstance(oldest, tuple) and oldest < version

    def needs(self, version: tuple[int, int]) -> bool:
        """Whether the project requires torch ``version`` or newer."""
        oldest = self.options.get(OLDEST_TORCH)
        return isinstance(oldest, tuple) and oldest >= version

    def named(self, names: Iterable[str]) -> Iterator[Setting]:
        """The settings of the given names, in the file's order."""
        wanted = frozenset(names)
        return (setting for setting in self.settings if setting.name in wanted)

    def lasting(self, names: Iterable[str]) -> Iterator[Setting]:
        """Those that the file does not take back anywhere."""
        return self.named(frozenset(names) - self.scene.unset)

    def beside(self, setting: Setting, names: Iterable[str]) -> Iterator[Setting]:
        """The settings of the given names that can be active together with ``setting``."""
        return (one for one in self.named(names) if one is not setting and one.place.shared_with(setting.place))


class Plan(NamedTuple):
    """A planned fix: edits, or (``drop``) the removal of the draft's setting, whose edits its file decides."""

    title: str
    edits: tuple[Edit, ...] | None = None
    reason: str = ""
    drop: bool = False
    needs: tuple[Interface, ...] = ()

    def fix(self, removal: Removal | None) -> Fix | None:
        """The fix, None if it is not possible; SAFE if neither the plan nor the removal has a reason against it."""
        edits, reason = self.edits, self.reason
        if self.drop:
            if removal is None:
                return None
            edits = removal.edits
            reason = "; ".join(one for one in (self.reason, removal.reason) if one)
        if not edits:
            return None
        return Fix(self.title, edits, Applicability.UNSAFE if reason else Applicability.SAFE, reason, needs=self.needs)


class Draft(NamedTuple):
    """A finding whose fix is not decided yet; the first of its plans that is possible becomes its fix.

    ``confidence`` is that of the setting's value unless given.
    """

    rule: Rule
    setting: Setting
    args: tuple[tuple[str, object], ...] = ()
    plans: tuple[Plan, ...] = ()
    related: tuple[Related, ...] = ()
    claims: tuple[Claim, ...] = ()
    confidence: Confidence | None = None

    @property
    def drops(self) -> bool:
        """Whether it would like to take its setting out."""
        return not self.setting.expanded and any(plan.drop for plan in self.plans)

    def finding(self, removal: Removal | None) -> Finding:
        """The finding, given how its setting can be removed."""
        fixes = (plan.fix(None if self.setting.expanded else removal) for plan in self.plans)
        return Finding(
            self.rule.symbol,
            self.rule.code,
            self.setting.span,
            (("name", self.setting.name), ("setting", assigned(self.setting.name, dict(self.args).get("value"))), *self.args),
            self.setting.confidence if self.confidence is None else self.confidence,
            self.related,
            next((fix for fix in fixes if fix is not None), None),
            self.claims,
        )


def assigned(name: str, value: object) -> str:
    """A variable with its value, as in a message; the variable alone without a value."""
    return quoted(name if value is None else f"{name}={value}")


def always_beside(one: Setting, other: Setting) -> bool:
    """Whether every process that gets the other setting gets this one too."""
    return not one.place.conditional and other.place.scope[: len(one.place.scope)] == one.place.scope


def drop(setting: Setting, reason: str) -> Plan:
    """The plan to remove a setting; ``reason`` is why that is not safe."""
    return Plan(f"remove {setting.name}", reason=reason, drop=True)


def rewrite(setting: Setting, wanted: Callable[[Value], bool], text: str, reason: str) -> Plan:
    """The plan to make the wanted values of a setting ``text``."""
    return Plan(f"set {setting.name} to {text}", rewrites(setting, members(setting, wanted), text), reason)


def members(setting: Setting, wanted: Callable[[Value], bool]) -> tuple[Value, ...]:
    """The known values of a setting that are selected."""
    return tuple(value for value in setting.values or () if wanted(value))


def rewrites(setting: Setting, values: tuple[Value, ...], text: str) -> tuple[Edit, ...] | None:
    """The edits that make the given values of a setting ``text``, None if one of them cannot be edited."""
    edits = tuple(edit for value in values if (edit := value.rewritten(text)) is not None)
    return edits if len(edits) == len(values) else None


def number(value: Value) -> int | None:
    """The number that torch reads from a value: the leading integer (``std::stoi``), None if there is none."""
    match = _INTEGER.match(value.text)
    return whole(match[1]) if match else None


def is_true(value: Value) -> bool:
    """Whether torch reads a value as true."""
    return value.text.lower() in TRUE


def is_false(value: Value) -> bool:
    """Whether torch reads a value as false."""
    return value.text.lower() in FALSE
