"""The words that a launch command loses by ending too early: its program, options of its launcher, arguments of the
program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launch_grammar
from ldlm_lint.shell.launch_grammar import Form, Invocation
from ldlm_lint.shell.script import Launch, Word
from ldlm_lint.wording import listed, quoted

_NAMED = lazily(r"--?[A-Za-z]|[+~]{0,2}\w[\w./@-]*=")
_REDIRECTION = lazily(r"(?:\d|&)?(?:>|<)|\|")
_SHOWN = 4


def described(launch: Launch, lost: Sequence[Word]) -> str:
    """The lost words for a message: the program first, since without it the launcher starts nothing."""
    given = [word for word in lost if word.text.strip()]
    end = next((index for index, word in enumerate(given) if _REDIRECTION.match(word.text)), len(given))
    kept = tuple(word for word in launch.words if word.text.strip())
    invocation = launch_grammar.read((*kept, *given[:end]))
    if invocation is None or invocation.form is Form.UNKNOWN:
        return _listed(_without_grammar(given))
    places = {word.span for word in given[:end]}
    program = _program(invocation) if invocation.entry is not None and invocation.entry.span in places else []
    options = [word.word for word in invocation.options if word.word.span in places]
    named = [
        _name(word)
        for word in (*options, *(one for one in invocation.arguments if one.span in places))
        if _NAMED.match(word.text)
    ]
    return _listed([*program, *named] or _without_grammar(given))


def _program(invocation: Invocation) -> list[str]:
    text = invocation.entry_text
    return [f"-m {text}" if invocation.form is Form.MODULE else text.rpartition("/")[2]]


def _without_grammar(lost: Sequence[Word]) -> list[str]:
    """Scripts, then the names of options and overrides; at least one word."""
    scripts = [word.text.rpartition("/")[2] for word in lost if word.text.endswith(".py")]
    named = [_name(word) for word in lost if _NAMED.match(word.text)]
    return [*scripts, *named] or [re.sub(r"[{}\"']", "", lost[0].text)]


def _name(word: Word) -> str:
    return word.text.partition("=")[0]


def _listed(names: list[str]) -> str:
    shown = names[: _SHOWN if len(names) > _SHOWN + 1 else len(names)]
    if len(names) > len(shown):
        return f"{', '.join(map(quoted, shown))} and {len(names) - len(shown)} more arguments"
    return listed(shown)
