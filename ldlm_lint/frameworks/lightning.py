"""Findings about settings of Lightning and of torch objects created by a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.frameworks.sections import Section, unsafe
from ldlm_lint.model import Finding
from ldlm_lint.rules.ddp_graph import STATIC_GRAPH_WITH_NO_SYNC

_ACCUMULATE = "accumulate_grad_batches"


def trainer(section: Section) -> Iterator[Finding]:
    """The findings about the arguments of a Lightning Trainer, with those of its strategy one level below."""
    static = next((one for one in ("strategy.init_args.static_graph", "strategy.static_graph") if section.flag(one)), None)
    steps = section.number(_ACCUMULATE)
    if static is not None and steps is not None and steps > 1:
        setting = section.settings[static]
        yield section.report(
            STATIC_GRAPH_WITH_NO_SYNC,
            setting,
            {"accumulation": f"gradient accumulation (`{_ACCUMULATE}: {steps:g}`)"},
            fix=unsafe("set static_graph to false", section.editor.replace(setting, False), "a layer that is checkpointed twice then raises an error"),
        )
