"""Findings about settings of a Trainer: timeouts, DDP flags, the optimizer, the loader's workers, the checkpoints it
keeps.

`decide` gets a `Section` of transformers' settings, or of a framework that forwards them, in any form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.frameworks.sections import SHARDED, Section, in_force, unsafe
from ldlm_lint.model import Finding
from ldlm_lint.rules.ddp_graph import STATIC_GRAPH_WITH_NO_SYNC
from ldlm_lint.wording import quoted

STATIC_GRAPH = "ddp_static_graph"
_STEPS = "gradient_accumulation_steps"


def decide(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """Every finding about the settings of one place; ``options`` are the rule options by name."""
    if not section.has(*SHARDED):
        yield from _static_graph(section)
    yield from findings_of(section, options)


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
