"""`gradient-accumulation-fixed` in settings that Python passes to DeepSpeed's engine: a dictionary, or the plugin of
Accelerate."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import entry_of
from ldlm_lint.frameworks.sections import vocabulary
from ldlm_lint.model import Claim, Finding, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.mappings import Keys
from ldlm_lint.program.queries import State
from ldlm_lint.rules.batch_size import GRADIENT_ACCUMULATION_FIXED, is_global_batch_size
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.wording import quoted

RULE = GRADIENT_ACCUMULATION_FIXED
WORDS: tuple[bytes, ...] = (b"gradient_accumulation_steps",)
_STEPS, _WHOLE_BATCH = "gradient_accumulation_steps", "train_batch_size"
_PLUGINS = frozenset(f"accelerate.{module}DeepSpeedPlugin" for module in ("", "utils.", "utils.dataclasses."))
_STRATEGIES = frozenset(f"{package}.strategies.DeepSpeedStrategy" for package in ("pytorch_lightning", "lightning.pytorch"))
_DICTIONARIES = {
    "deepspeed.initialize": ("config", "config_params"),
    **dict.fromkeys(_PLUGINS, ("hf_ds_config",)),
    **dict.fromkeys(_STRATEGIES, ("config",)),
    **dict.fromkeys(TRAINING_ARGUMENTS, ("deepspeed",)),
}
"""What takes such a dictionary, and as which keywords."""


def find(view: View) -> Iterator[Finding]:
    """Constant steps above 1, of engines that do not get the batch size over all GPUs."""
    seen: set[Span] = set()
    for call, name in view.ask.calls_of(_DICTIONARIES):
        found = [_in_dictionary(view, call, keyword) for keyword in _DICTIONARIES[name]]
        found += [_of_plugin(view, call)] if name in _PLUGINS else []
        for one in found:
            if one is not None and one.span not in seen:
                seen.add(one.span)
                yield one


def _in_dictionary(view: View, call: int, keyword: str) -> Finding | None:
    given = view.ask.argument(call, keyword)
    if given.state is not State.GIVEN or len(given.sources) != 1:
        return None
    keys = view.ask.mappings.keys_at(given.sources[0], call)
    if keys.is_open or not vocabulary("deepspeed").recognises(keys.entries, 1):
        return None
    steps = _number(view, *keys.entries.get(_STEPS, ()))
    if steps <= 1 or _has_whole_batch(view, keys):
        return None
    return _finding(view, _span(view, keys.put_by[_STEPS][0]), steps)


def _has_whole_batch(view: View, keys: Keys) -> bool:
    """Whether the batch over all GPUs is set as a number, from which the engine computes the steps, or checks them."""
    others = any(is_global_batch_size(name) for name in keys.entries if name != _WHOLE_BATCH)
    whole = keys.entries.get(_WHOLE_BATCH, ())
    return others or (bool(whole) and "auto" not in view.ask.meaning(*whole).constants)


def _of_plugin(view: View, call: int) -> Finding | None:
    given = view.ask.argument(call, _STEPS)
    steps = _number(view, *given.sources) if given.state is State.GIVEN else 0
    return _finding(view, view.call_span(call), steps) if steps > 1 else None


def _number(view: View, *sources: int) -> int:
    """The common number of these expressions; 0 if they may be anything else."""
    value = view.ask.meaning(*sources).only if sources else ...
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _finding(view: View, span: Span, steps: int) -> Finding:
    args = {"name": quoted(_STEPS), "value": f"always {steps}"}
    return view.finding(RULE, span, args, claims=(Claim("launch-varies-processes", _STEPS),))


def _span(view: View, key: int) -> Span:
    """The entry in the dictionary literal of an expression; else the line on which it begins."""
    entry = entry_of(view, key, _STEPS) if view.program.module_of(key).nodes[key & MASK][0] == "map" else None
    return entry.whole if entry is not None else line_span(view, key)
