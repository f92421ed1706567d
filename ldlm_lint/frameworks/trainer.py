"""Findings about settings of a Trainer: timeouts, DDP flags, the optimizer, the loader's workers, the checkpoints it
keeps.

`decide` gets a `Section` of transformers' settings, or of a framework that forwards them, in any form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.frameworks.sections import SHARDED, Section, Setting, in_force, unsafe
from ldlm_lint.model import Claim, Finding, Fix
from ldlm_lint.rules.ddp_graph import FIND_UNUSED_WITH_REENTRANT_CHECKPOINT, STATIC_GRAPH_WITH_NO_SYNC
from ldlm_lint.rules.segments import NON_REENTRANT
from ldlm_lint.wording import quoted

SEARCH, STATIC_GRAPH = "ddp_find_unused_parameters", "ddp_static_graph"
_STEPS = "gradient_accumulation_steps"
_CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")
_OPTIONS = ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs")
# LLaMA-Factory enables checkpointing itself.
_OWN_CHECKPOINTING = ("finetuning_type", "use_reentrant_gc")
_REENTRANT = ("gradient_checkpointing_kwargs.use_reentrant", "activation_checkpointing_kwargs.use_reentrant")


def decide(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """Every finding about the settings of one place; ``options`` are the rule options by name."""
    if not section.has(*SHARDED):
        yield from _meets_reentrant(section)
        yield from _static_graph(section)
    yield from findings_of(section, options)


def _meets_reentrant(section: Section) -> Iterator[Finding]:
    """The search for unused parameters next to a checkpoint that is reentrant, by its options or by the default of old
    releases."""
    switch = next((name for name in _CHECKPOINTING if section.flag(name) is True), None)
    if section.flag(SEARCH) is not True or section.on(STATIC_GRAPH):
        return
    setting = section.settings[SEARCH]
    if switch is None:
        yield from _meets_switch_of_model(section, setting)
        return
    option = next((name for name in _REENTRANT if section.flag(name) is True), None)
    by_default = section.framework == "transformers" and section.complete and not section.has(*_REENTRANT, *_OPTIONS, *_OWN_CHECKPOINTING)
    if option is None and not by_default:
        return
    claims = (in_force(setting), *(() if option else (Claim("transformers-is-old"),)))
    where = f"the reentrant checkpoint ({quoted(section.shown(option or switch, True))})"
    fix = _not_reentrant(section, setting, option)
    yield section.report(FIND_UNUSED_WITH_REENTRANT_CHECKPOINT, setting, {"where": where}, claims=claims, fix=fix)


def _meets_switch_of_model(section: Section, setting: Setting) -> Iterator[Finding]:
    """The program that reads a file or a command may enable checkpointing itself; Python arguments are visible
    there.
    """
    if not section.in_code and not section.has(*_CHECKPOINTING, *_REENTRANT):
        claims = (in_force(setting), Claim("program-checkpoints-reentrantly"))
        yield section.report(FIND_UNUSED_WITH_REENTRANT_CHECKPOINT, setting, {"where": ""}, claims=claims)


def _not_reentrant(section: Section, setting: Setting, option: str | None) -> Fix | None:
    """In Python the other implementation can be selected in the same call."""
    if not section.in_code:
        return None
    if option is not None:
        edits = section.editor.replace(section.settings[option], False)
    else:
        edits = section.editor.add(setting, _OPTIONS[0], {"use_reentrant": False})
    return unsafe("pass use_reentrant=False in gradient_checkpointing_kwargs", edits, NON_REENTRANT)


def _static_graph(section: Section) -> Iterator[Finding]:
    steps = section.number(_STEPS)
    if section.flag(STATIC_GRAPH) is not True or steps is None or steps <= 1:
        return
    setting = section.settings[STATIC_GRAPH]
    yield section.report(
        STATIC_GRAPH_WITH_NO_SYNC,
        setting,
        {"accumulation": f"gradient accumulation ({quoted(section.shown(_STEPS, f'{steps:g}'))})"},
        fix=unsafe(f"set {setting.name} to {section.spelled(False)}", section.editor.replace(setting, False), "a layer that is checkpointed twice then raises an error"),
        claims=(in_force(setting),),
    )
