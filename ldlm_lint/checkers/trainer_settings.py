"""The settings that Python gives a Trainer, handed to the rules as sections: in calls, copies, dictionaries, classes, and on
existing arguments, also through other files and flags."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ldlm_lint.checkers.rule_files import findings_of, rule_files
from ldlm_lint.checkers.setting_edits import CodeEditor
from ldlm_lint.concepts.trainer_arguments import Stored, TrainerArguments
from ldlm_lint.edits.written_parts import (
    Part,
    bound_by,
    entry_as_written,
    entry_of,
    keyword_of,
    set_by,
    written_argument,
)
from ldlm_lint.frameworks.checkpoints import ADAPTER, LIMIT
from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.model import Claim, Finding, Related, Span
from ldlm_lint.program.handles import Call
from ldlm_lint.tables.training_arguments import WORDS as NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Class
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Meaning

RULES = tuple(rule for file in rule_files() if file.of_settings is not None for rule in file.rules)
WORDS: tuple[bytes, ...] = (b"Trainer(", *NAMED)
"""Code that trains with one of the classes creates a Trainer."""
_FIELDS = vocabulary("transformers").fields
_SAVING = frozenset({"save_steps", "save_strategy", LIMIT})
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)
# Their statements about a group or DDP apply wherever the arguments are used; the others affect only a training.
_OF_ANY_RUN = frozenset({"excessive-collective-timeout", "ddp-find-unused-parameters", "find-unused-with-reentrant-checkpoint"})
_IN_FORCE = "trainer-setting-is-in-force"
_UNSET = "trainer-setting-is-unset"


def find(code: ProjectCode) -> Iterator[Finding]:
    """What the rules say about these settings."""
    for module, section in sections(code):
        if _trains(section) and not code[TrainerArguments].only_predicts(module):
            for finding in findings_of(section, code.options_of(code.path(module))):
                yield _claiming(finding, section)


def sections(code: ProjectCode) -> Iterator[tuple[Module, Section]]:
    """The settings of each place, with its file."""
    arguments = code[TrainerArguments]
    for call in arguments.calls:
        yield call.module, _of_call(code, call)
    for call in arguments.copies:
        # Unchanged fields keep their values.
        yield call.module, _at(code, call, {**dict(_given(call, _named_by(call))), **_stored(arguments.stored_on(call))}, is_complete=False)
    for call, given in arguments.dictionaries:
        held = given.filled_at(call)
        if vocabulary("transformers").recognises(held.names, 1):
            settings = {key: one for name in sorted(held.names) for key, one in _settings(call, name, held.argument(name))}
            yield call.module, _at(code, call, settings, is_complete=not held.is_open, takes_more=False)
    for call, fields in arguments.stored_on_parsed:
        yield call.module, _at(code, call, _stored(fields), is_complete=False, takes_more=False)
    for owner in arguments.classes:
        yield owner.module, _of_class(code, owner)


def _trains(section: Section) -> bool:
    """Whether the arguments are those of a training, as far as known."""
    return section.flag("do_train") is not False and not (section.on("do_predict") and not section.on("do_train"))


def _claiming(finding: Finding, section: Section) -> Finding:
    """A finding with the claims about its file; no launch overrides an argument that the code passes."""
    flags = {one.flag for one in section.settings.values()}
    claims = tuple(one for one in finding.claims if section.call is None or one.kind != _IN_FORCE or one.subject in flags)
    if section.call is None:
        # The user may pass fields that a class leaves to transformers.
        claims = tuple(Claim("trainer-default-is-left", one.subject) if one.kind == _UNSET else one for one in claims)
    return finding._replace(claims=claims if finding.rule in _OF_ANY_RUN else (Claim("belongs-to-training"), *claims))


def _at(code: ProjectCode, call: Call, settings: dict[str, Setting], *, is_complete: bool, takes_more: bool = True) -> Section:
    """The settings of a call; ``takes_more``: a further one can be passed there."""
    whole = _unknown("", call.span, is_certain=True)
    if code[TrainerArguments].trains_adapter(call.module, call):
        settings.setdefault(ADAPTER, whole)
    editor = CodeEditor(code.source(call.module), call if takes_more else None)
    return Section("transformers", settings, editor, is_complete, _OUTSIDE_TESTS, call=whole, in_code=True)


def _of_call(code: ProjectCode, call: Call) -> Section:
    """The arguments of a call, the defaults of flags that it passes, and what is set later."""
    settings = dict(_given(call, _named_by(call) | _FIELDS, first="output_dir"))
    for owner in (one for named in call.callee.as_classes for one in named.bases):
        for name in (*owner.own_names, *(write.name for method in owner.functions for write in method.writes)):
            # Its default is reported at the class.
            settings.setdefault(name, _unknown(name, call.span))
    settings.update(_stored(code[TrainerArguments].stored_on(call)))
    return _at(code, call, settings, is_complete=call.argument("").is_absent)


def _named_by(call: Call) -> frozenset[str]:
    """The names of the arguments that a call gives, as far as known."""
    unpacked = (name for mapping in call.unpacked for name in mapping.filled_at(call).names)
    return frozenset([*(name for name, _ in call.keywords if name), *unpacked])


def _given(call: Call, names: Iterable[str], first: str = "") -> Iterator[tuple[str, Setting]]:
    """The arguments of these names; ``first`` is the name of the first one."""
    for name in sorted(names):
        argument = call.argument(name, 0 if name == first else None)
        if not argument.is_absent:
            yield from _settings(call, name, argument)


def _settings(call: Call, name: str, argument: Argument) -> Iterator[tuple[str, Setting]]:
    """An argument of a call, and its entries if it is a dictionary, wherever that was created."""
    setting = _setting(call, name, argument, call.span)
    yield name, setting
    if argument.is_given and len(argument.values) == 1 and setting.text is None:
        held = argument.values[0].filled_at(call)
        for key in sorted(held.names):
            yield f"{name}.{key}", _setting(call, key, held.argument(key), setting.span)._replace(name=f"{name}.{key}")


def _setting(call: Call, name: str, argument: Argument, elsewhere: Span) -> Setting:
    """A value where it is written in the file of a call, or else at a place that is given."""
    part = _written(call, name, argument)
    related: tuple[Related, ...] = ()
    span = elsewhere if part is None else part.whole
    if part is not None and not (call.span.start <= span.start and span.end <= call.span.end):
        related = (Related(call.callee_span, "the value is passed on here"),)
    option = argument.option if argument.is_given else None
    if option is not None and option.default_value is not ... and option.default_value is not None:
        note = Related(option.span, f"this is the default of `{option.flag}`")
        return Setting(name, _text(option.meaning_of_default), span, False, part, (*related, note), option.setting)
    return Setting(name, _text(argument.may_be()) if argument.is_given else None, span, place=part, related=related)


def _written(call: Call, name: str, argument: Argument) -> Part | None:
    """How the file of a call writes the one value of an argument."""
    givers = argument.givers
    if len(givers) != 1 or givers[0].module is not call.module:
        return None
    if givers[0] == call:
        return written_argument(call, name, 0)
    part = entry_as_written(argument.values[0], givers[0], name)
    return part if part is None or isinstance(givers[0], Call) else part._replace(whole=part.span)


def _stored(fields: Mapping[str, Stored]) -> dict[str, Setting]:
    """The fields that are set on existing arguments."""
    found = {}
    for name, stored in fields.items():
        part = set_by(stored.first)
        span = stored.first.spot.line_span if part is None else part.whole
        is_known = stored.only is not None and part is not None
        found[name] = Setting(name, _text(stored.first.value.may_be()), span, place=part) if is_known else _unknown(name, span)
    return found


def _of_class(code: ProjectCode, owner: Class) -> Section:
    """The defaults of a class's fields; calls, as far as they are known, and the command line may pass others."""
    settings = dict(_defaults(owner))
    writes = [write for method in owner.functions for write in method.writes]
    # ``__post_init__`` runs last.
    settings.update((write.name, _unknown(write.name, write.spot.line_span)) for write in writes)
    if code[TrainerArguments].trains_adapter(owner.module):
        settings.setdefault(ADAPTER, _unknown(ADAPTER, owner.span))
    constructions = owner.constructions
    is_open = any(call.unpacked for call in constructions)
    if _SAVING.isdisjoint(settings):
        # The save interval is not decided there.
        settings.setdefault(LIMIT, _unknown(LIMIT, owner.span))
    decided = dict(_set_after_making(owner))
    settings.update(decided)
    for name in sorted(frozenset().union(*map(_named_by, constructions)) & _FIELDS - decided.keys()):
        settings[name] = _unknown(name, owner.span)
    is_alone = len(owner.bases) == 1 and len(owner.written_bases) == 1
    editor = CodeEditor(code.source(owner.module), None)
    return Section("transformers", settings, editor, is_alone and not is_open, _OUTSIDE_TESTS, in_code=True)


def _defaults(owner: Class) -> Iterator[tuple[str, Setting]]:
    """The fields that a class declares, and the entries of those that are dictionaries."""
    for event in owner.body.events_of("bind"):
        if event.name not in owner.body.annotations:
            continue
        part = bound_by(event)
        span, value = event.spot.line_span if part is None else part.whole, event.expr
        if isinstance(value, Call) and value.called_name == "field":
            part, given = keyword_of(value, "default"), dict(value.keywords)
            made = [one for function in given["default_factory"].functions for one in function.returned] if "default_factory" in given else []
            value = given.get("default", made[0] if len(made) == 1 else value)
        yield event.name, Setting(event.name, _text(value.may_be()), span, certain=False, place=part)
        for key, inner in value.items:
            name = f"{event.name}.{key.constant}"
            yield name, Setting(name, _text(inner.may_be()), span, certain=False, place=entry_of(value, str(key.constant)))


def _set_after_making(owner: Class) -> Iterator[tuple[str, Setting]]:
    """The fields that ``__post_init__`` always sets to a literal."""
    writes = Counter(write.name for method in owner.functions for write in method.writes)
    for write in (write for method in owner.own_methods_named("__post_init__")[-1:] for write in method.writes):
        is_plain = write.base.owner_if_self == owner and not (write.spot.guards or write.spot.loops or write.spot.tries)
        part = set_by(write) if is_plain and writes[write.name] == 1 and write.name in _FIELDS else None
        if part is not None and part.is_constant:
            yield write.name, Setting(write.name, _text(write.value.may_be()), part.whole, place=part)


def _unknown(name: str, span: Span, *, is_certain: bool = False) -> Setting:
    return Setting(name, None, span, is_certain)


def _text(meaning: Meaning) -> str | None:
    """The one possible value as a configuration file would write it; None if there are several, or a part is unknown."""
    value = meaning.only
    if value is ...:
        return _member(meaning.names[0]) if len(meaning.names) == len(meaning.value) == 1 and meaning.is_complete else None
    if value is None:
        return ""
    return None if isinstance(value, str) and "*" in value else str(value)


def _member(name: str) -> str | None:
    """A member of an enumeration of transformers has its lower-case name as value: ``OptimizerNames.ADAMW_TORCH``."""
    parts = name.split(".")
    is_member = len(parts) >= 3 and parts[0] == "transformers" and parts[-2][:1].isupper() and parts[-1].isupper()
    return parts[-1].lower() if is_member else None
