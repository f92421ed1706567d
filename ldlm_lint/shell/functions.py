"""Launches through functions of the script: ``launch() { torchrun "$@"; }`` and ``run() { "$@"; }``, with the arguments
of each call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launchers, words
from ldlm_lint.shell.reaching import Call
from ldlm_lint.shell.regions import Region
from ldlm_lint.shell.script import Launch, Word
from ldlm_lint.shell.text import Text
from ldlm_lint.shell.values import Variables
from ldlm_lint.untrusted_numbers import whole

_ALL = lazily(r"\$(?:[@*]|\{[@*](?::(\d+))?\})")
_ONE = lazily(r"\$(?:(\d)|\{(\d+)\})")
# A function that runs its argument as a command, after nothing but assignments and well-known wrappers.
_RUNS = lazily(rb"(?:^|[;&|({]|\bthen|\bdo|\belse|!)[ \t\n]*(?:(?:\w+=\S*|nohup|time|exec|command|env|eval)[ \t]+)*\"?\$(?:[@*]|\{[@*]\})\"?", re.M)
_MOST_CALLS = 50


def through(text: Text, launches: Iterable[Launch], variables: Variables) -> Iterator[Launch]:
    """The launches of a script; one with words from its function's call appears once per call."""
    reaching = variables.reaching
    if reaching is None or not reaching.calls:
        yield from launches
        return
    for launch in launches:
        place = launch.span.start - text.source.bom
        function = reaching.function(place)
        calls = reaching.calls.get(function.name, ())[:_MOST_CALLS] if function is not None else ()
        if function is None or not calls or not any(map(_is_positional, launch.words)):
            yield launch
            continue
        dropped = variables.shifted(function, place)
        filled = (Launch(launch.launcher, launch.span, tuple(_filled(text, launch, call, dropped))) for call in calls)
        yield from dict.fromkeys(filled)
    yield from _given(text, variables)


def _is_positional(word: Word) -> bool:
    return _ALL.fullmatch(word.text) is not None or _ONE.fullmatch(word.text) is not None


def _filled(text: Text, launch: Launch, call: Call, dropped: int) -> Iterator[Word]:
    """The words of a launch with those of a call instead of its parameters."""
    given = _words(text, call)
    for word in launch.words:
        if match := _ALL.fullmatch(word.text):
            yield from given[dropped + max(whole(match[1] or "1") - 1, 0) :]
        elif match := _ONE.fullmatch(word.text):
            index = whole(match[1] or match[2]) - 1 + dropped
            yield given[index] if 0 <= index < len(given) else word
        else:
            yield word


def _given(text: Text, variables: Variables) -> Iterator[Launch]:
    """The commands that a script passes to a function that runs them."""
    reaching = variables.reaching
    functions = [region for region in reaching.regions.functions() if _runs(text, region)] if reaching is not None else []
    for function in functions:
        for call in reaching.calls.get(function.name, ()) if reaching is not None else ():
            given = _words(text, call)[variables.shifted(function, function.end) :]
            launcher = launchers.launcher_of([word.text for word in given])
            if launcher is not None:
                start, end = given[0].span.start - text.source.bom, given[-1].span.end - text.source.bom
                yield Launch(launcher, text.span(start, end), tuple(given))


def _runs(text: Text, function: Region) -> bool:
    return _RUNS.search(text.data, function.start, function.end) is not None


def _words(text: Text, call: Call) -> list[Word]:
    made = []
    for start, end in call.words:
        raw = text.slice(start, end)
        made.append(Word(words.read_word(raw), text.span(start, end), "$" not in raw and "`" not in raw))
    return made
