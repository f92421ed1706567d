"""What an advice for loaders with few workers asks: whether a caller, a launch or a configuration gives more."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.model import Finding
from ldlm_lint.numerals import whole
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.wrappers import given
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Entry

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
_WORKERS = lazily(rb"workers", re.I)
_LARGE = lazily(rb"workers\w*[\"']?[ \t]*[:=][ \t]*[\"']?\d", re.I)
# An attribute, a field, a key of a dictionary and a flag with a default, with the number or what of the machine it gets.
# It begins with the name, which is found fast.
_NUMBER = (
    rb"[ \t]*(?:field\(default=)?"
    rb"(\d{1,9}\b(?!\.)|(?:(?:int|len)\()?(?:\w+\.)*(?:(?:cpu_count|device_count|sched_getaffinity)\(|environ\[))"
)
_SET = rb"%(name)s(?:(?<=\.%(name)s)[ \t]*=(?!=)|[ \t]*:[^=\n#]*=(?!=)|[\"'][ \t]*:|[\"'][^)]{0,200}?\bdefault=)" + _NUMBER
# A keyword is a setting where the call makes the settings: others name the workers of their own loader.
_KEYWORD = rb"\b(?:dict|Namespace|set_defaults)\([^()]{0,400}?\b%(name)s[ \t]*=(?!=)" + _NUMBER


def _has_few_workers(context: Context, finding: Finding, subject: str) -> Verdict:
    """Nothing that reaches the loader gives it more workers than that: ``most|position|function|names``."""
    number, position, scope, names = subject.split("|")
    most, path = int(number), finding.span.path
    settings = set(filter(None, names.split(",")))
    if scope:
        calls = [one for name in settings for one in given(context.calls, path, scope, name)]
        if any(one.number is not None and one.number > most for one in calls):
            return Verdict(False)
        settings |= {one.setting for one in calls if one.setting}
    many = _in_code(context, path, settings, most) or _of_launches(context, path, settings, most) or _configured(context, path, position, most)
    return Verdict(not many)


def _in_code(context: Context, path: str, settings: Collection[str], most: int) -> bool:
    """Whether a file of the loader's trainings gives one of the settings a large number, or what the machine has."""
    texts = [context.project.data(one) for one in {*trainings_of(context.project, path), path}]
    for word in map(str.encode, settings):
        name = {b"name": re.escape(word).replace(b"_", b"[_-]")}
        patterns = [re.compile(_SET % name), re.compile(_KEYWORD % name)]
        if any(_is_many(match[1], most) for data in texts for pattern in patterns for match in pattern.finditer(data)):
            return True
    return False


def _is_many(text: bytes, most: int) -> bool:
    return not text.isdigit() or whole(text) > most


def _of_launches(context: Context, path: str, settings: Collection[str], most: int) -> bool:
    """Whether a launch of a program with the loader passes a large number for one of the settings, or one that the shell computes."""
    if not settings or not any(_WORKERS.search(context.project.data(one)) for one in context.project.of_kind(Kind.SHELL)):
        return False
    arguments = [one for program in context.launches.running(path) for one in program.arguments if one.keys and one.keys[-1] in settings]
    return any(one.values is None or any(_may_be_many(value.text, most) for value in one.values) for one in arguments)


def _may_be_many(text: str, most: int) -> bool:
    """Whether the text of an argument is a large number, or is one only after the shell has put something in."""
    return "$" in text or "`" in text or (text.isdecimal() and whole(text) > most)


def _configured(context: Context, path: str, position: str, most: int) -> bool:
    """Whether a configuration gives the loader itself a large number."""
    found = list(_large_entries(context, most))
    if not found:
        return False
    from ldlm_lint.project.configured import TOPICS
    from ldlm_lint.project.questions.configuration import reached_by

    topic = TOPICS["too-many-workers"]
    return any(
        True
        for file, entry in found
        if (document := context.project.document(file)) is not None
        for _ in reached_by(context, document, entry, topic, lambda sink: (sink.path, sink.position) == (path, position))
    )


def _large_entries(context: Context, most: int) -> Iterator[tuple[str, Entry]]:
    """The large numbers of workers in the project's configurations."""
    for file in context.project.of_kind(*_DOCUMENTS):
        document = context.project.document(file) if _LARGE.search(context.project.data(file)) else None
        for entry in document.scalars() if document is not None else ():
            if _WORKERS.search(entry.name.encode()) and type(entry.value) is int and entry.value > most:
                yield file, entry


QUESTIONS: dict[str, Question] = {"loader-has-few-workers": _has_few_workers}
