"""The settings of Trainers in Python: in calls, dictionaries, classes and stores, also through other files and
flags.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from astroid import nodes

from ldlm_lint.checkers.base import extent, span_of
from ldlm_lint.checkers.checkpoints.unbounded_checkpoints import RULE as UNBOUNDED_CHECKPOINTS
from ldlm_lint.checkers.prediction_scripts import only_predicts
from ldlm_lint.checkers.project_code import ProjectCode
from ldlm_lint.checkers.trainer_sections import of_call, of_class, of_dictionary, of_stores
from ldlm_lint.checkers.trainer_settings import about
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.frameworks.checkpoints import LIMIT
from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.model import Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.tables.training_arguments import WORDS as NAMED

RULES = (UNBOUNDED_CHECKPOINTS,)
ASKS_RULE_FILES = True
"""Rules with a file of their own report these settings, too."""
# Code that trains with one of the classes creates a Trainer.
WORDS: tuple[bytes, ...] = (b"Trainer(", *NAMED)


_REPLACES = frozenset({"dataclasses.replace", "copy.replace"})
_SAVING = frozenset({"save_steps", "save_strategy", LIMIT})


def find(view: ProjectCode) -> Iterator[Finding]:
    """The findings about arguments of calls in a training, of parsers, and about defaults of classes."""
    written: dict[int, set[str]] = defaultdict(set)
    for owner, name in view.program.own_writes:
        written[owner].add(name)
    for call, _ in view.ask.calls_of(TRAINING_ARGUMENTS):
        yield from _about(view, call, functools.partial(of_call, told=_Told(view, call, written)))
    for call, _ in view.ask.calls_of(_REPLACES):
        if _changes_arguments(view, call):
            yield from _about(view, call, functools.partial(of_call, told=_Kept()))
    for call in view.program.calls.get("parse_dict", ()):
        yield from _about(view, call, of_dictionary)
    for module in _setting_modules(view):
        yield from _about_stores(view, module)
    for owner in _derived(view):
        module = view.program.module_of(owner)
        node = node_at(view, module, module.scopes[owner & MASK].place, nodes.ClassDef)
        source = view.source(module)
        if isinstance(node, nodes.ClassDef) and not only_predicts(source.data):
            yield from about(_of_class(view, source, node, owner), node, view.options_of(source.path))


def _changes_arguments(view: ProjectCode, call: int) -> bool:
    """Whether the arguments of a Trainer are copied with changes by a call."""
    row = view.program.module_of(call).nodes[call & MASK]
    copied = view.ask.meaning(view.program.module_of(call).base | row[2][0]) if row[2] else None
    if copied is None:
        return False
    own = any(view.program.outside_of(owner) & TRAINING_ARGUMENTS for owner in copied.classes)
    return own or not TRAINING_ARGUMENTS.isdisjoint(copied.names)


class _Kept:
    """A copy with changes: unchanged fields keep their values."""

    is_complete = False

    def complete(self, settings: dict[str, Setting], call: nodes.Call) -> None:
        """Add nothing; the first argument is the copied object, not a setting."""
        settings.pop("output_dir", None)


def _about(view: ProjectCode, call: int, section_of: Callable[[Source, nodes.Call], Section | None]) -> Iterator[Finding]:
    """The findings about the settings in a call."""
    module = view.program.module_of(call)
    node = node_at(view, module, module.table.sites[call & MASK].place, nodes.Call)
    source = view.source(module)
    if isinstance(node, nodes.Call) and not only_predicts(source.data):
        section = section_of(source, node)
        if section is not None:
            yield from about(section, node, view.options_of(source.path))


def _setting_modules(view: ProjectCode) -> list[Module]:
    """The modules that set fields of arguments which other code created."""
    fields = vocabulary("transformers").fields & view.program.other_writes.keys()
    found = {view.program.module_of(target).index for name in fields for target, _ in view.program.other_writes[name]}
    return [view.program.modules.all[index] for index in sorted(found)]


def _about_stores(view: ProjectCode, module: Module) -> Iterator[Finding]:
    """The findings about fields that a module sets on parsed arguments."""
    source, tree = view.source(module), view.context.trees.of(view.path(module))
    if tree is not None and not only_predicts(source.data):
        for node, section in of_stores(source, tree):
            yield from about(section, node, view.options_of(source.path))


def _of_class(view: ProjectCode, source: Source, node: nodes.ClassDef, owner: int) -> Section:
    """The defaults of a class: other fields have the defaults of transformers, unless the project sets them."""
    section = of_class(source, node)
    settings = dict(section.settings)
    if _SAVING.isdisjoint(settings):
        # The save interval is not decided there.
        settings.setdefault(LIMIT, Setting(LIMIT, None, span_of(source, node), certain=False))
    decided = dict(_set_after_making(source, node))
    settings.update(decided)
    for call in view.program.constructions(owner):
        given = {name for name, _ in view.program.module_of(call).nodes[call & MASK][3]}
        for name in given & vocabulary("transformers").fields - decided.keys():
            settings[name] = Setting(name, None, span_of(source, node), certain=False)
        if None in given:
            return section
    bases = view.program.order(owner)
    return section._replace(settings=settings, complete=len(bases) == 1 and len(node.bases) == 1)


def _set_after_making(source: Source, node: nodes.ClassDef) -> Iterator[tuple[str, Setting]]:
    """The fields that ``__post_init__`` always sets to a literal."""
    made = node.locals.get("__post_init__", [])
    body = made[-1].body if made and isinstance(made[-1], nodes.FunctionDef) else []
    writes = Counter(one.attrname for one in nodes_of(node, nodes.AssignAttr))
    for one in body:
        target = one.targets[0] if isinstance(one, nodes.Assign) and len(one.targets) == 1 else None
        if not isinstance(target, nodes.AssignAttr) or not isinstance(target.expr, nodes.Name) or target.expr.name != "self":
            continue
        name = target.attrname
        if name in vocabulary("transformers").fields and writes[name] == 1 and isinstance(one.value, nodes.Const):
            yield name, Setting(name, _text(one.value.value), span_of(source, one), place=one.value)


def _derived(view: ProjectCode) -> list[int]:
    """The classes of the project that are derived from TrainingArguments, through any files."""
    owners = {owner for classes in view.program.classes.values() for owner in classes}
    return sorted(owner for owner in owners if view.program.outside_of(owner) & TRAINING_ARGUMENTS)


def node_at(view: ProjectCode, module: Module, place: int, kind: type[nodes.NodeNG]) -> nodes.NodeNG | None:
    """The tree's node of a call or class; that of a class may begin at its decorators."""
    tree = view.context.trees.of(view.path(module))
    if tree is None:
        return None
    places = remembered(tree, ("nodes by place", kind.__name__), lambda: _by_place(tree, kind))
    return places.get((line_of(place), column_of(place)))


def _by_place(tree: nodes.Module, kind: type[nodes.NodeNG]) -> dict[tuple[int, int], nodes.NodeNG]:
    """The first node of a kind that begins at each place: in a chain of calls that is the last one, which contains the
    others."""
    found: dict[tuple[int, int], nodes.NodeNG] = {}
    for one in nodes_of(tree, kind):
        for begin in ((one.lineno, one.col_offset), (one.fromlineno, one.col_offset), extent(one)[:2]):
            found.setdefault(begin, one)
    return found


class _Told:
    """The facts of the program about the arguments of one call."""

    def __init__(self, view: ProjectCode, call: int, written: Mapping[int, Collection[str]]) -> None:
        """``written`` are the attributes that classes set on their own objects."""
        self._view, self._call, self._written = view, call, written
        self.is_complete = view.ask.argument(call, "").state is State.ABSENT

    def complete(self, settings: dict[str, Setting], call: nodes.Call) -> None:
        """Add the values from other files or the defaults of flags, and the fields that a class of the project sets."""
        source = self._view.source(self._view.program.module_of(self._call))
        for name in sorted(vocabulary("transformers").fields):
            given = settings.get(name)
            if given is None or given.text is None:
                argument = self._view.ask.argument(self._call, name)
                setting = self._setting(source, call, name, argument, given)
                if setting is not None:
                    settings[name] = setting
                    settings.update((key, one) for key, one in self._inside(setting, argument) if key not in settings or settings[key].text is None)
        for name in self._fields():
            settings.setdefault(name, Setting(name, None, span_of(source, call), certain=False))

    def _setting(self, source: Source, call: nodes.Call, name: str, argument: Argument, given: Setting | None) -> Setting | None:
        if argument.state is State.ABSENT:
            return None
        old = given or Setting(name, None, span_of(source, call))
        if argument.state is not State.GIVEN or not argument.sources:
            return old
        meaning = self._view.ask.meaning(*argument.sources)
        if len(meaning.flags) == 1 and len(meaning.value) == 1:
            return self._of_flag(old, meaning.flags[0])
        return old if meaning.only is ... else old._replace(text=_text(meaning.only))

    def _inside(self, setting: Setting, argument: Argument) -> Iterator[tuple[str, Setting]]:
        """The entries of a dictionary argument, wherever it was created."""
        ask = self._view.ask
        if argument.state is not State.GIVEN or len(argument.sources) != 1 or setting.known:
            return
        for key, sources in ask.mappings.keys_at(argument.sources[0], self._call).entries.items():
            value = ask.meaning(*sources).only
            yield f"{setting.name}.{key}", setting._replace(name=f"{setting.name}.{key}", text=None if value is ... else _text(value), place=None)

    def _of_flag(self, old: Setting, key: int) -> Setting:
        """The default of an option of the command line, which a user may override."""
        ask = self._view.ask
        flag = ask.flag(key)
        default = ask.default_of(flag).only
        if default is ... or default is None:
            return old
        note = Related(self._view.call_span(key), f"this is the default of `{flag.name}`")
        related = (*old.related, note)
        return old._replace(text=_text(default), certain=False, related=related, flag=flag.name.lstrip("-").replace("-", "_"))

    def _fields(self) -> Iterator[str]:
        """The fields that the project's classes between the call and transformers set: their defaults are reported at the class."""
        program = self._view.program
        module = program.module_of(self._call)
        function = program.ask(module.base | module.nodes[self._call & MASK][1])
        for fields in program.atoms.kinds(function, "c"):
            for owner in program.order(fields[1]):
                yield from program.module_of(owner).scopes[owner & MASK].bindings
                yield from self._written.get(owner, ())


def _text(value: object) -> str | None:
    """A constant as a configuration file would write it; None for a text with an unknown part."""
    if value is None:
        return ""
    return None if isinstance(value, str) and "*" in value else str(value)
