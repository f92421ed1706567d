"""Findings about settings of Lightning and of torch objects created by a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.frameworks.sections import Section, Setting, integer, unsafe
from ldlm_lint.model import Applicability, Claim, Confidence, Finding, Fix
from ldlm_lint.rules.collectives import COLLECTIVE_LIMIT, EXCESSIVE_COLLECTIVE_TIMEOUT, compared
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.ddp_graph import STATIC_GRAPH_WITH_NO_SYNC

_ACCUMULATE = "accumulate_grad_batches"
_RAISES = "if a parameter gets no gradient, the second step raises"
_SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "weeks": 604800}


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


def strategy(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the arguments of DDPStrategy or FSDPStrategy."""
    if section.flag("find_unused_parameters") is True and not section.on("static_graph"):
        yield _find_unused(section, section.settings["find_unused_parameters"], False)
    seconds, limit = _timeout(section), integer(options, COLLECTIVE_LIMIT)
    if seconds is not None and seconds > limit:
        yield section.report(
            EXCESSIVE_COLLECTIVE_TIMEOUT,
            section.settings["timeout"],
            compared(seconds, limit),
            claims=(Claim("timeout-may-be-lowered"),),
        )


def _timeout(section: Section) -> float | None:
    """The length of ``timeout: {_target_: datetime.timedelta, hours: 10}`` in seconds; None if it is not literal."""
    made = section.text("timeout._target_") or section.text("timeout.class_path")
    if made != "datetime.timedelta":
        return None
    parts = {unit: section.number(name) for unit in _SECONDS if (name := _part(section, unit)) in section.settings}
    if not parts or any(value is None for value in parts.values()):
        return None
    return sum((value or 0) * _SECONDS[unit] for unit, value in parts.items())


def _part(section: Section, unit: str) -> str:
    inner = f"timeout.init_args.{unit}"
    return inner if inner in section.settings else f"timeout.{unit}"


def _find_unused(section: Section, setting: Setting, plain: str | bool) -> Finding:
    edits = section.editor.replace(setting, plain)
    title = f"set {setting.name} to {str(plain).lower()}"
    fix = Fix(title, edits, Applicability.DISPLAY, _RAISES) if edits else None
    return section.report(FIND_UNUSED_PARAMETERS, setting, {}, fix=fix, confidence=Confidence.MEDIUM)
