"""The values of a launch's words: variables, positional parameters of called scripts, the environment."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.launch_paths import variables
from ldlm_lint.project.programs import Given, Possible
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell import tree, words
from ldlm_lint.shell.launch_arguments import Argument, values
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Assignment, Form, Word
from ldlm_lint.untrusted_numbers import whole

_ALL = lazily(r"\$(?:@|\*|\{[@*]\})")
_FROM = lazily(r"\$\{@:(\d+)\}")
_POSITIONAL = lazily(r"\$(?:\{(\d+)(?::?-([^{}]*))?\}|(\d))")
_WHOLE = lazily(r"\$(?:\{(\w+)\}|(\w+))")
_MOST = 16
_UNSURE = frozenset(
    {"while_statement", "for_statement", "if_statement", "case_item", "function_definition", "subshell"}
)
_LONGEST = 500
# Every other form is for one command.
_LASTING = (Form.PLAIN, Form.DECLARED, Form.DEFAULT)
DEFAULT = "unless the environment sets it"


class Frame(NamedTuple):
    """A run of a script: by hand (``arguments`` is None: unknown), or by another script with its arguments.

    ``environment`` are the variables from the calling script.
    """

    code: Code
    path: str
    arguments: tuple[Word, ...] | None = None
    caller: Frame | None = None
    via: tuple[Span, ...] = ()
    environment: tuple[Given, ...] = ()

    @property
    def depth(self) -> int:
        """How many scripts are above."""
        return len(self.via)


def passed(frame: Frame, given: Iterable[Word]) -> Iterator[Word]:
    """Words with ``"$@"`` and bare positional parameters replaced by the caller's arguments."""
    for word in given:
        begin = _FROM.fullmatch(word.text)
        positional = _POSITIONAL.fullmatch(word.text)
        everything = _ALL.fullmatch(word.text) is not None or begin is not None
        left = arguments_at(frame, word.span) if everything or positional else None
        if left is None:
            yield word
        elif everything:
            yield from left[whole(begin[1]) - 1 if begin else 0 :]
        elif positional and 0 <= (index := whole(positional[1] or positional[3]) - 1) < len(left):
            yield left[index]
        else:
            yield word


def arguments_at(frame: Frame, place: Span) -> tuple[Word, ...] | None:
    """The arguments of the script that remain at a place of it; None if they are unknown, and inside functions."""
    if frame.arguments is None or place.path != frame.path:
        return None
    code, dropped = frame.code, 0
    start = place.start - code.source.bom
    node = code.root.descendant_for_byte_range(start, start)
    if node is not None and any(one.type == "function_definition" for one in tree.ancestors(node)):
        return None
    for command in code.nodes["command"]:
        if command.start_byte >= start:
            break
        written = [code.text.of_node(word) for word in tree.words(command)[:2]]
        if written[:1] != ["shift"]:
            if written[:2] == ["set", "--"]:
                return None
            continue
        if any(one.type in _UNSURE for one in tree.ancestors(command)) or not (written[1:] or ["1"])[0].isdecimal():
            return None
        dropped += whole((written[1:] or ["1"])[0])
    return frame.arguments[dropped:]


def split(frame: Frame, given: Iterable[Word]) -> Iterator[Word]:
    """Words with a bare variable replaced by the words of its value: ``ENTRY="-m pkg.train"`` and ``torchrun $ENTRY``."""
    for word in given:
        bare = word.span.end - word.span.start == len(word.text.encode())
        known = possible(frame, word.text, word.span) if bare and _WHOLE.fullmatch(word.text) else None
        parts = known[0].text.split() if known and len({one.text for one in known}) == 1 else ()
        if known and len(parts) > 1:
            # A place may be shorter than the text of all parts; one longer than its text is quoted.
            yield from (Word(part, known[0].span, True) for part in parts)
        else:
            yield word


def possible(frame: Frame, text: str, span: Span) -> tuple[Possible, ...] | None:
    """Every possible value of a text in a command, with the place to edit it; None if one is unknown."""
    home = home_of(frame, span)
    if home is None:
        return None
    known = values(home.code, Argument("", text, span, span))
    positional = _POSITIONAL.fullmatch(text)
    if positional and whole(positional[1] or positional[3]) and (known is None or positional[2] is not None):
        return _from_caller(home, whole(positional[1] or positional[3]) - 1, positional[2], span)
    if known is not None:
        return tuple(Possible(one.text, one.span, DEFAULT if one.origin is Origin.DEFAULT else "") for one in known)
    match = _WHOLE.fullmatch(text)
    if match:
        return _from_positional(home, match[1] or match[2], span)
    return _joined(home, text, span)


def home_of(frame: Frame, span: Span) -> Frame | None:
    """The frame of a word's script: a forwarded argument belongs to the caller."""
    here: Frame | None = frame
    while here is not None and here.path != span.path:
        here = here.caller
    return here


def _from_caller(frame: Frame, index: int, default: str | None, span: Span) -> tuple[Possible, ...] | None:
    """The value of a positional parameter, with its default if it is not passed."""
    plain = default is not None and "$" not in default
    left = arguments_at(frame, span)
    if left is None or frame.caller is None:
        return (
            (Possible(default, span, "unless an argument of the script sets it"),)
            if plain and default is not None
            else None
        )
    if index < len(left):
        return possible(frame.caller, left[index].text, left[index].span)
    return (Possible(default, span),) if plain and default is not None else None


def _from_positional(frame: Frame, name: str, span: Span) -> tuple[Possible, ...] | None:
    """``CONFIG=$1``, set once."""
    assigned = frame.code.assigned(name)
    if len(assigned) != 1 or assigned[0].append:
        return None
    raw = words.read_word(frame.code.source.slice(assigned[0].value_span))
    if not _POSITIONAL.fullmatch(raw):
        return None
    return possible(frame, raw, assigned[0].span) if assigned[0].span.start < span.start else None


def _joined(frame: Frame, text: str, span: Span) -> tuple[Possible, ...] | None:
    """A text with variables in it: ``configs/${MODEL}.yaml``."""
    names = list(dict.fromkeys(variables(text)))
    if not names or "$(" in text or "`" in text:
        return None
    choices = []
    for name in names:
        known = possible(frame, f"${{{name}}}", span)
        if known is None:
            return None
        choices.append([(name, one.text) for one in known])
    if len(text) > _LONGEST or math.prod(map(len, choices)) > _MOST:
        return None
    found = []
    for chosen in itertools.product(*choices):
        made = text
        for name, value in chosen:
            # A value may hold backslashes, which a replacement template would interpret.
            made = value.join(re.split(rf"\$(?:\{{{name}\}}|{name}(?!\w))", made))
        if "$" in made:
            return None
        found.append(Possible(made, span))
    return tuple(found)


def environment_of(frame: Frame, place: Span, sourced: Iterable[tuple[Code, Span]] = ()) -> Iterator[Given]:
    """The variables that a script passes to a command, in the order in which they are set.

    ``sourced`` are the files that the script sources, with the commands that do it.
    """
    assigned = frame.code.script.assignments
    found = [(one.span.start, _variable(one)) for one in assigned if _reaches(frame.code, one, place)]
    for code, command in sourced:
        if command.end <= place.start:
            found += [(command.start, _variable(one)) for one in code.script.assignments if _is_exported(one)]
    yield from (one for _, one in sorted(found, key=lambda pair: pair[0]))


def _is_exported(assignment: Assignment) -> bool:
    return assignment.exported and assignment.form in _LASTING


def _reaches(code: Code, assignment: Assignment, place: Span) -> bool:
    """Whether an assignment is a prefix of a command, or exported before it; scheduler directives apply to all."""
    span = assignment.span
    start = span.start - code.source.bom
    if assignment.form is Form.OPTION and code.text.data.startswith(b"#", code.text.line_start(start)):
        return True
    if assignment.form in _LASTING:
        return assignment.exported and span.start < place.start
    return place.start <= span.start and span.end <= place.end


def _variable(assignment: Assignment) -> Given:
    values = assignment.values
    span = assignment.span
    known = None if values is None else tuple(Possible(one.text, span, _note(one.origin)) for one in values)
    return Given((assignment.name,), known, span)


def _note(origin: Origin) -> str:
    return DEFAULT if origin is Origin.DEFAULT else ""
