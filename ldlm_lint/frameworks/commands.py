"""The settings of a launch command for a Trainer: the flags of transformers' arguments, as a section of settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ldlm_lint.frameworks.sections import Options, Scalar, Section, Setting, vocabulary
from ldlm_lint.model import Claim, Edit, Related, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell.launch_arguments import Argument, Known, arguments, values, written_words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import entry_of, is_training
from ldlm_lint.shell.script import Launch, Word

# The number of fields with which a command counts as complete; one must be specific to transformers, and the launched
# Python must parse them as the Trainer's.
_NEEDED = 3
# Commands that pass their options to the Trainer; LLaMA-Factory trains adapters by default.
_LLAMA_FACTORY = "llamafactory-cli"
_TOOLS = (_LLAMA_FACTORY, "trl")
# In a file it distinguishes a model's configuration from that of a training; a script that creates a new model accepts
# it.
_OF_MODELS = frozenset({"model_type"})
_OPTION = lazily(r"--[A-Za-z][\w-]*")
_LONGEST_JSON = 4000
_VARIABLE = lazily(r"\"?\$(?:\{\w+(?:\[[@*]\])?(?::?[-+].*)?\}|\w+)\"?")
_OPEN = lazily(r"\$[@*]|\$\{[@*]|\$\(")


class _Place(NamedTuple):
    """The place of a setting in a command: its argument, None for a flag without a value, and its one value."""

    argument: Argument | None
    known: Known | None


@dataclass(frozen=True, slots=True)
class CommandEditor:
    """Edits of a launch command for settings whose place is one of its arguments."""

    def replace(self, setting: Setting, value: Scalar) -> tuple[Edit, ...] | None:
        """Write another value in place: in the command or in its variable."""
        known = _place(setting).known
        span = None if known is None else _value_span(known)
        return None if span is None else (Edit(span, str(value)),)

    def add(self, beside: Setting, name: str, value: Scalar | Options) -> tuple[Edit, ...] | None:
        """Write one more option after another one."""
        argument = _place(beside).argument
        if argument is None or argument.value_span is None or isinstance(value, Mapping) or not argument.name.startswith("--"):
            return None
        end = argument.value_span.end
        return (Edit(Span(argument.value_span.path, end, end, argument.value_span.cell), f" --{name} {value}"),)

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """None: the end of an option among others is unclear."""
        return None


def _place(setting: Setting) -> _Place:
    if not isinstance(setting.place, _Place):
        raise TypeError(f"{setting.name} is no argument of a command")
    return setting.place


def _value_span(known: Known) -> Span | None:
    """The characters of a value; None if they are not literal."""
    assignment = known.assignment
    if assignment is None:
        return known.value_span
    value = assignment.values[0] if assignment.values and len(assignment.values) == 1 else None
    return value.span if value is not None and value.origin is not Origin.VARIABLE else None


def sections(code: Code, script: Code) -> Iterator[Section]:
    """The settings of the trainings that a script launches with the arguments of transformers' Trainer."""
    for launch in code.script.launches:
        section = _section(script, launch) if is_training(launch) else None
        if section is not None:
            yield section


def _section(script: Code, launch: Launch) -> Section | None:
    words = written_words(script, launch)
    settings = {**_switches(words), **{one.name: one for one in _given(script, launch)}}
    settings.update(_inside(settings))
    entry = entry_of(launch)
    known = vocabulary("transformers")
    if not entry or not known.recognises(settings.keys() - _OF_MODELS, 1):
        return None
    # In a command with few of them only the given ones count, not the missing ones.
    enough = len(settings.keys() & known.fields) >= _NEEDED
    if entry == _LLAMA_FACTORY:
        settings.setdefault("finetuning_type", Setting("finetuning_type", "lora", launch.span))
    claims = () if entry in _TOOLS else (Claim("launch-runs-trainer", entry),)
    return Section("transformers", settings, CommandEditor(), enough and _is_complete(words), claims, from_command=True)


def _given(script: Code, launch: Launch) -> Iterator[Setting]:
    for argument in arguments(script, launch):
        if not argument.name.startswith("--"):
            continue
        possible = values(script, argument)
        known = possible[0] if possible and len({one.text for one in possible}) == 1 else None
        certain = known is not None and known.origin is Origin.LITERAL
        name = argument.name.lstrip("-").replace("-", "_")
        # The variable is where the user edits; it has its own place only if one assignment sets it.
        span = known.span if known is not None else argument.span
        passed = (Related(argument.span, "the value is passed on here"),) if known is not None and known.assignment else ()
        yield Setting(name, known.text if known is not None else None, span, certain, _Place(argument, known), passed)


def _switches(words: Sequence[Word]) -> dict[str, Setting]:
    """The options without a value: those followed by another option or nothing."""
    found = {}
    for word, following in zip(words, (*words[1:], None), strict=True):
        if _OPTION.fullmatch(word.text) and (following is None or following.text.startswith("--")):
            name = word.text.lstrip("-").replace("-", "_")
            found[name] = Setting(name, "true", word.span, place=_Place(None, None))
    return found


def _inside(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The entries of options whose value is a dictionary in JSON: ``--gradient_checkpointing_kwargs '{"use_reentrant": true}'``."""
    found = {}
    for name, one in settings.items():
        text = (one.text or "").strip()
        held = _read(text) if text.startswith("{") and len(text) <= _LONGEST_JSON else None
        for key, value in held.items() if isinstance(held, dict) else ():
            if value is None or isinstance(value, (bool, int, float, str)):
                inner = f"{name}.{key}"
                # It has no own place for an edit.
                found[inner] = one._replace(name=inner, text="" if value is None else str(value), place=_Place(None, None))
    return found


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # Not JSON: the launched program reports that.
        return None


def _is_complete(words: Sequence[Word]) -> bool:
    """Whether all arguments are known: none come from outside, or from an unknown variable."""
    previous = ""
    for word in words:
        is_value = _OPTION.fullmatch(previous) is not None
        previous = word.text
        if _OPEN.search(word.text) or (not is_value and _VARIABLE.fullmatch(word.text)):
            return False
    return True
