"""optimizer-not-fused: every call that may create one of torch's optimizers, for any origin of the class and its
options."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint import tables
from ldlm_lint.checkers.by_program import calls
from ldlm_lint.checkers.by_program.fused_fix import fused_fix
from ldlm_lint.checkers.by_program.mm_optimizers import mm_optimizers
from ldlm_lint.checkers.by_program.named_optimizers import Named, named_optimizers
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.built_classes import Runs
from ldlm_lint.concepts.host_models import HostModels
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Alternative, Argument, Call
from ldlm_lint.requirements import TorchRange
from ldlm_lint.rules.optimizer import OPTIMIZER_NOT_FUSED, pass_fused
from ldlm_lint.wording import any_of

RULE = OPTIMIZER_NOT_FUSED
WORDS = (b"optim", b"(")
_NAMES = ("Adam", "AdamW", "SGD")
FUSABLE = {f"torch.optim.{module}{name}": name for name in _NAMES for module in ("", f"{name.lower()}.")}
IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")


def find(view: View) -> Iterator[Finding]:
    """All calls that may create a torch optimizer without choosing an implementation."""
    named = list(named_optimizers(view, frozenset(FUSABLE), frozenset(IMPLEMENTATIONS)))
    told = {FUSABLE[one.name] for one in named}
    made = list(view.calls(FUSABLE))
    choosing = {call.function for call in made if any(_may_choose(view, call))}
    for call in made:
        alternatives = [one for one in call.callee.alternatives(FUSABLE) if _is_plain(one) and not one.is_fallback]
        if told.issuperset(FUSABLE[one.name] for one in alternatives) and call.callee.last_name == "()getattr":
            # The arguments are next to the name.
            continue
        fusable = [one for one in alternatives if _has_fused(view.torch_of(call.module), FUSABLE[one.name])]
        if fusable and call.function not in choosing and not _matters_little(view, call):
            yield _finding(view, call, fusable, len(fusable) == call.callee.count_of_values and call.callee.is_known_whole)
    for text in named:
        if _has_fused(view.torch_of(view.program.module_of(text.key)), FUSABLE[text.name]):
            yield _named_finding(view, text)
    for settings in mm_optimizers(view, frozenset(_NAMES), frozenset(IMPLEMENTATIONS)):
        torch = view.torch_on(settings.path)
        if _has_fused(torch, settings.name):
            yield view.finding(RULE, settings.span, {"optimizer": settings.name, "advice": pass_fused([settings.name], torch.oldest)})


def _named_finding(view: View, named: Named) -> Finding:
    """A class by its name: the options that are written next to it lack the implementation."""
    module, name = view.program.module_of(named.key), FUSABLE[named.name]
    place = module.table.places[named.key & MASK]
    span = view.expression_span(named.key)
    claims = [Claim("optimizer-trains-on-cuda", f"{name} {line_of(place)}:{column_of(place)}")]
    args = {"optimizer": name, "advice": pass_fused([name], view.torch_of(module).oldest)}
    return view.finding(RULE, span, args, claims=claims)


def _is_plain(one: Alternative) -> bool:
    """Whether a class is torch's own, or one of the project that changes neither its arguments nor its step."""
    return one.owner is None or not one.owner.changes("__init__", "__new__", "step", "__call__")


def _may_choose(view: View, call: Call) -> Iterator[bool]:
    for name in IMPLEMENTATIONS:
        given = call.argument(name)
        yield not (given.is_absent or given.options or (given.is_open and _is_left_to_user(view, call)))


def _is_left_to_user(view: View, call: Call) -> bool:
    """Whether only a configuration file can choose, and none of the project's files does."""
    return view[ReadSettings].may_be_added(call.key) and not view.is_named_in_configurations(*IMPLEMENTATIONS)


def _has_fused(torch: TorchRange, name: str) -> bool:
    """Whether some torch that the project runs on has the fused implementation."""
    newest = torch.newest
    since = tables.fused_since(name)
    return since is not None and (newest is None or newest >= since)


def _matters_little(view: View, call: Call) -> bool:
    """A handful of tensors, a compiled step, a model on the CPU, code that never runs, the outer optimizer of local SGD, a
    test, or one created only to be loaded."""
    params = call.argument("params", 0)
    return (
        _few_tensors(view, params)
        or view[OptimizerSteps].are_compiled(call.key)
        or view[HostModels].are_all(params.found.sources)
        or not view[Runs].may_run(call.function.key)
        or view[LeftOff].is_left_off(call.key)
        or any("outer" in name for name in call.names)
        or any(one.name.startswith("test_") for one in call.function.around)
        or calls.is_only_loaded(view, call.key)
    )


def _few_tensors(view: View, params: Argument) -> bool:
    """A literal list of tensors, or a model with hardly more: a handful of kernels, nothing to fuse."""
    if params.is_absent or any(calls.lists_tensors(view, one.key) for one in params.values):
        return True
    return view[OptimizerSteps].has_few_tensors(params.found.sources)


def _finding(view: View, call: Call, fusable: list[Alternative], is_only: bool) -> Finding:
    names = sorted({FUSABLE[one.name] for one in fusable})
    claims = [Claim("optimizer-trains-on-cuda", f"{' or '.join(names)} {call.position}")]
    if calls.configures_lightning(view, call.key):
        claims.append(Claim("lightning-clips-nowhere"))
    options = call.argument("fused").options
    may_be_given = not options and view[ReadSettings].may_be_added(call.key)
    unless = f" (unless you give it in {any_of(options)})" if options else " (unless your configuration gives it)" if may_be_given else ""
    args = {"optimizer": _described(fusable, len(fusable) > 1 or not is_only), "advice": pass_fused(names, view.torch_of(call.module).oldest) + unless}
    chosen = [(FUSABLE[one.name], origin) for one in fusable for origin in one.origins if origin.is_away_from(call)]
    fixable = is_only and not may_be_given and not calls.is_named_by_file(view, call.callee.key)
    return view.finding(
        RULE,
        view.call_span(call.key),
        args,
        [Related(origin.line, f"{name} is chosen here") for name, origin in chosen],
        claims=claims,
        fix=fused_fix(view, call.key, names) if fixable else None,
        confidence=calls.confidence_of(view, RULE, call.key),
    )


def _described(fusable: list[Alternative], several: bool) -> str:
    """The classes with their cases: "AdamW (with `--optimizer adamw`) or SGD"."""
    cases: dict[str, list[str]] = {}
    for one in fusable:
        cases.setdefault(FUSABLE[one.name], []).extend(origin.case for origin in one.origins)
    return " or ".join(_with_case(name, cases[name] if several else []) for name in sorted(cases))


def _with_case(name: str, cases: list[str]) -> str:
    return f"{name} ({' or '.join(dict.fromkeys(cases))})" if cases and all(cases) else name
