"""Findings about settings of Lightning and of torch objects created by a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.frameworks.sections import Section, Setting, unsafe
from ldlm_lint.model import Applicability, Confidence, Finding, Fix
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.ddp_graph import STATIC_GRAPH_WITH_NO_SYNC

_ACCUMULATE = "accumulate_grad_batches"
_RAISES = "if a parameter gets no gradient, the second step raises"


def trainer(section: Section) -> Iterator[Finding]:
    """The findings about the arguments of a Lightning Trainer, with those of its strategy one level below."""
    name = section.text("strategy") or ""
    if name.startswith("ddp") and name.endswith("find_unused_parameters_true"):
        setting = section.settings["strategy"]
        plain = name.replace("find_unused_parameters_true", "find_unused_parameters_false")
        yield _find_unused(section, setting, plain)
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


def strategy(section: Section) -> Iterator[Finding]:
    """The findings about the arguments of DDPStrategy or FSDPStrategy."""
    if section.flag("find_unused_parameters") is True and not section.on("static_graph"):
        yield _find_unused(section, section.settings["find_unused_parameters"], False)


def _find_unused(section: Section, setting: Setting, plain: str | bool) -> Finding:
    edits = section.editor.replace(setting, plain)
    title = f"set {setting.name} to {str(plain).lower()}"
    fix = Fix(title, edits, Applicability.DISPLAY, _RAISES) if edits else None
    return section.report(FIND_UNUSED_PARAMETERS, setting, {}, fix=fix, confidence=Confidence.MEDIUM)
