"""The words of a command as arguments: options, overrides and positionals, with all possible values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.launch_values import Frame, possible
from ldlm_lint.project.programs import Given
from ldlm_lint.shell.launch_grammar import Option
from ldlm_lint.shell.script import Word

_OVERRIDE = lazily(r"([+~]{0,2})([A-Za-z_][\w./@-]*)=(.*)", re.S)
_DOTTED = lazily(r"[+~]{0,2}[A-Za-z_]\w*[./@][\w./@-]+=.*|[+~]{1,2}[A-Za-z_][\w./@-]*=.*", re.S)
_DELETED = lazily(r"(~)([A-Za-z_][\w./@-]*)")
_LONG = lazily(r"(--?)([A-Za-z][\w.-]*)(?:=(.*))?", re.S)
_LIST = lazily(r"\$(?:\{(?:\w+\[[@*]\]|[@*][^{}]*)\}|[@*])")
_EXPANSION = lazily(r"\$(?:\{[^{}]*\}|\w+)")
# Hydra's own options without a value that an override may follow.
_ALONE = frozenset({"--multirun", "-m", "--hydra-help", "--resolve"})
_NEAR = 100


def keys_of(name: str) -> tuple[str, ...]:
    """The keys of a name as written: ``dataloader.num-workers``, ``model/encoder``, ``db@package``."""
    return tuple(part.replace("-", "_") for part in re.split(r"[./]", name.partition("@")[0]) if part)


def arguments(frame: Frame, written: Sequence[Word]) -> tuple[tuple[Given, ...], bool]:
    """The arguments in a program's words, and whether no others can reach it."""
    found: list[Given] = []
    complete, index = True, 0
    while index < len(written):
        word = written[index]
        index += 1
        if _is_unknown_list(word):
            complete = False
        elif match := _LONG.fullmatch(word.text):
            value = _value(word, match, written[index] if index < len(written) else None)
            index += isinstance(value, Word)
            found.append(_option(frame, word, match, value))
        elif match := _OVERRIDE.fullmatch(word.text):
            found.append(
                Given(keys_of(match[2]), possible(frame, match[3], word.span), word.span, True, match[1], match[2])
            )
        elif match := _DELETED.fullmatch(word.text):
            found.append(Given(keys_of(match[2]), (), word.span, True, match[1], match[2]))
        elif word.text != "--":
            found.append(Given((), possible(frame, word.text, word.span), word.span))
    return tuple(found), complete


def _is_unknown_list(word: Word) -> bool:
    """Whether a word may be any number of arguments: an array or ``$@`` with unknown contents, an unquoted
    expansion.
    """
    if _LIST.fullmatch(word.text) or word.text.startswith(("$(", "`")):
        return True
    bare = word.span.end - word.span.start == len(word.text.encode())
    return bare and _EXPANSION.fullmatch(word.text) is not None


def _value(word: Word, match: re.Match[str], following: Word | None) -> Word | str | None:
    """The value of an option: after its ``=``, or the next word, which may also be the next option."""
    if match[3] is not None:
        return match[3]
    if following is None or word.text in _ALONE or _LIST.fullmatch(following.text):
        return None
    text = following.text
    option = re.match(r"--?[A-Za-z]", text)
    return None if option or _DOTTED.fullmatch(text) else following


def _option(frame: Frame, word: Word, match: re.Match[str], value: Word | str | None) -> Given:
    if value is None:
        return Given(keys_of(match[2]), (), word.span, mark=match[1], written=match[2])
    if isinstance(value, str):
        return Given(keys_of(match[2]), possible(frame, value, word.span), word.span, mark=match[1], written=match[2])
    together = value.span.path == word.span.path and 0 <= value.span.start - word.span.end < _NEAR
    span = Span(word.span.path, word.span.start, value.span.end, word.span.cell) if together else word.span
    return Given(keys_of(match[2]), possible(frame, value.text, value.span), span, mark=match[1], written=match[2])


def options(frame: Frame, found: Sequence[Option]) -> Iterator[Given]:
    """The options of launchers."""
    for one in found:
        if not one.name:
            continue
        span = one.values[-1].span if one.values else one.word.span
        values = () if one.text is None else possible(frame, one.text, span)
        inside = one.values and span.path == one.word.span.path and span.end > one.word.span.start
        whole = Span(span.path, one.word.span.start, span.end, span.cell) if inside else one.word.span
        written = one.word.text.partition("=")[0] if one.joined is None or one.name.startswith("--") else one.name
        bare = written.lstrip("-")
        yield Given(
            keys_of(one.name.lstrip("-")), values, whole, mark=written[: len(written) - len(bare)], written=bare
        )
