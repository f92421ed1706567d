"""Which rules a run applies: names, codes, families, consequences and ``ALL``, resolved as ruff resolves them.

A consequence (``hang``) is as specific as a family (``72``). Within one layer (the configuration file, then the command
line) the more specific selector wins; if two are equally specific, the one that ignores wins: ``select = ["72"]`` with
``ignore = ["W7201"]`` leaves W7201 out, ``select = ["W7201"]`` with ``ignore = ["72"]`` keeps it. A ``select`` replaces
everything that earlier layers decided; without one a layer adds rules to it and removes rules from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ldlm_lint.families import UMBRELLAS
from ldlm_lint.model import DEPRECATED, Consequence, Rule, Severity
from ldlm_lint.patterns import lazily

EVERYTHING = "ALL"
LINTER_FAMILY = "68"
CONSEQUENCES = tuple(consequence.value for consequence in Consequence)
_EXACT = 9
_FAMILY_SPECIFICITY = 2
_LEAST = 4
_MOST_NAMED = 4
_PREFIX = lazily(r"[A-Z]\d{0,4}")
_FAMILY = lazily(r"\d{2}")


class SelectorError(ValueError):
    """A selector that names no rule; the text names the nearest existing one."""

    def __init__(self, selector: str, message: str) -> None:
        super().__init__(message)
        self.selector = selector


class Layer(NamedTuple):
    """The selectors of one source; ``select`` is None if that source does not replace the set."""

    select: tuple[str, ...] | None = None
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


NOTHING = Layer()


class _Match(NamedTuple):
    """The meaning of a selector: the rules, and how specific it is (0 for ``ALL``, `_EXACT` for one rule)."""

    rules: tuple[Rule, ...]
    specificity: int


def selected(
    rules: Sequence[Rule],
    select: Iterable[str] | None,
    extend: Iterable[str] = (),
    ignore: Iterable[str] = (),
    *,
    base: frozenset[str] | None = None,
    opt_in: bool = False,
) -> frozenset[str]:
    """The symbols of the rules that one layer of selectors leaves switched on.

    ``base`` is what earlier layers left, None for the default set. An opt-in rule is switched on by ``ALL``, by its own
    name or code, and by any selector in ``extend``, but not by a family, a prefix or a consequence in ``select``. A
    deprecated rule is switched on by its own name or code alone. The rules about the linter itself (a file that does
    not parse) stay on under a ``select``, since the result for such a file would otherwise look complete; ``ignore``
    removes them. With ``opt_in`` there are no opt-in rules: every one of them counts as a default. Raises
    SelectorError.
    """
    switches: dict[str, bool] = {}
    for match, state, with_opt_in in _by_specificity(rules, select or (), extend, ignore):
        for rule in match.rules:
            if state is False or rule.default or with_opt_in or opt_in:
                switches[rule.symbol] = state
    if select is not None:
        start = frozenset(rule.symbol for rule in rules if rule.family == LINTER_FAMILY and rule.default)
    else:
        usual = (rule for rule in rules if rule.default or (opt_in and rule.status != DEPRECATED))
        start = frozenset(rule.symbol for rule in usual) if base is None else base
    on = {symbol for symbol, state in switches.items() if state}
    return (start | on) - (switches.keys() - on)


def selected_by_layers(rules: Sequence[Rule], layers: Iterable[Layer], *, opt_in: bool = False) -> frozenset[str]:
    """The symbols that several layers leave switched on, the last one deciding; raises SelectorError."""
    symbols: frozenset[str] | None = None
    for layer in layers:
        symbols = selected(rules, layer.select, layer.extend, layer.ignore, base=symbols, opt_in=opt_in)
    return selected(rules, None, opt_in=opt_in) if symbols is None else symbols


def at_level(rules: Sequence[Rule], symbols: Iterable[str], level: Severity) -> frozenset[str]:
    """Those of the symbols whose rules are at least as severe as ``level``.

    A rule has one severity, so a level is another way of deselecting: hidden findings are not fixed and do not affect
    the exit code.
    """
    wanted = set(symbols)
    return frozenset(rule.symbol for rule in rules if rule.symbol in wanted and rule.severity >= level)


def named(rules: Sequence[Rule], selector: str) -> frozenset[str]:
    """The symbols of all rules that a selector names, opt-in ones too; raises SelectorError."""
    return frozenset(rule.symbol for rule in _match(rules, selector).rules)


def by_name(rules: Sequence[Rule], layers: Iterable[Layer]) -> frozenset[str]:
    """The symbols of the rules that the last ``select`` of the layers, or an ``extend`` since then, names individually.

    ``ALL``, families and prefixes name none. Raises SelectorError.
    """
    found: frozenset[str] = frozenset()
    for layer in layers:
        matches = [_match(rules, selector) for selector in (*(layer.select or ()), *layer.extend)]
        own = frozenset(rule.symbol for match in matches if match.specificity == _EXACT for rule in match.rules)
        found = own if layer.select is not None else found | own
    return found


def deprecated(rules: Sequence[Rule], layers: Iterable[Layer]) -> tuple[Rule, ...]:
    """The deprecated rules that a layer switches on by name, in the order of the rules; raises SelectorError."""
    chosen = [selector for layer in layers for selector in (*(layer.select or ()), *layer.extend)]
    asked = {rule.symbol for selector in chosen for rule in _match(rules, selector).rules}
    return tuple(rule for rule in rules if rule.symbol in asked and rule.status == DEPRECATED)


def find(rules: Sequence[Rule], name: str) -> Rule:
    """The one rule with this name, old name, code or number; raises SelectorError with the nearest real name."""
    for rule in rules:
        if rule.is_called(name):
            return rule
    family = [rule.symbol for rule in rules if rule.family == name]
    if family:
        raise SelectorError(name, f'"{name}" is a family of {len(family)} rules, which `ldlm-lint rules {name}` lists')
    leading = [rule.symbol for rule in rules if rule.consequence.value == name.lower()]
    if leading:
        raise SelectorError(name, f'"{name}" is the consequence of {len(leading)} rules, which `ldlm-lint rules {name}` lists')
    umbrella = next((one for one, called in UMBRELLAS.items() if called == name), None)
    if umbrella is not None:
        raise SelectorError(name, f'"{name}" is the name of the family in pylint: {umbrella}, which `ldlm-lint rules {umbrella}` lists')
    known = [known for rule in rules for known in (rule.symbol, rule.code)]
    raise SelectorError(name, f'unknown rule "{name}"{_about(rules, name) or nearest(name, known)}')


def _about(rules: Sequence[Rule], word: str) -> str:
    """``; rules that mention it: X, Y`` for an identifier such as ``weights_only``, the rule that is most about it first; else nothing."""
    from ldlm_lint.rules.relevance import named, relevance

    found = sorted((rule for rule in rules if word in named(rule)), key=lambda rule: -relevance(rule, word))
    if not found:
        return ""
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"; rules that mention it: {', '.join(rule.symbol for rule in found[:_MOST_NAMED])}{more}"


def nearest(word: str, words: Iterable[str]) -> str:
    """``, did you mean "X"?`` with the closest of the words, or the first that contains it; nothing if none does."""
    import difflib

    words = list(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    close = close or [one for one in words if len(word) >= _LEAST and word.lower() in one]
    return f', did you mean "{close[0]}"?' if close else ""


def _by_specificity(
    rules: Sequence[Rule], select: Iterable[str], extend: Iterable[str], ignore: Iterable[str]
) -> list[tuple[_Match, bool, bool]]:
    """Each selector's match, the state it sets and whether it reaches opt-in rules, weakest first."""
    chosen = [_match(rules, selector) for selector in select]
    found = [(match, True, match.specificity in (0, _EXACT)) for match in chosen]
    found += [(_match(rules, selector), True, True) for selector in extend]
    found += [(_match(rules, selector), False, True) for selector in ignore]
    return sorted(found, key=lambda one: one[0].specificity)


def _match(rules: Sequence[Rule], selector: str) -> _Match:
    upper = selector.upper()
    current = [rule for rule in rules if rule.status != DEPRECATED]
    if upper == EVERYTHING:
        return _Match(tuple(current), 0)
    exact = tuple(rule for rule in rules if rule.is_called(selector))
    if exact:
        return _Match(exact, _EXACT)
    if selector.lower() in CONSEQUENCES:
        matching = tuple(rule for rule in current if rule.consequence.value == selector.lower())
        specificity = _FAMILY_SPECIFICITY
    elif _FAMILY.fullmatch(selector):
        matching = tuple(rule for rule in current if rule.family == selector)
        specificity = _FAMILY_SPECIFICITY
    elif _PREFIX.fullmatch(upper):
        matching = tuple(rule for rule in current if rule.code.startswith(upper))
        # A family (two digits) is more specific than a letter alone and less so than letter and family.
        specificity = 1 if len(upper) == 1 else len(upper) + 1
    else:
        matching, specificity = (), 0
    if not matching:
        raise SelectorError(selector, f'unknown rule "{selector}"{nearest(selector, _names(rules))}')
    return _Match(matching, specificity)


def _names(rules: Sequence[Rule]) -> list[str]:
    families = sorted({rule.family for rule in rules})
    return [*(rule.symbol for rule in rules), *(rule.code for rule in rules), *CONSEQUENCES, *families, EVERYTHING]
