"""optimizer-not-fused: every call that may create one of torch's optimizers, for any origin of the class and its
options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.checkers.by_program import calls
from ldlm_lint.checkers.by_program.fused_fix import fused_fix
from ldlm_lint.checkers.by_program.mm_optimizers import mm_optimizers
from ldlm_lint.checkers.by_program.named_optimizers import Named, named_optimizers
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import Way, Ways
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.built_classes import Runs
from ldlm_lint.concepts.host_models import HostModels
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.requirements import TorchRange
from ldlm_lint.rules.optimizer import OPTIMIZER_NOT_FUSED, pass_fused
from ldlm_lint.wording import any_of

RULE = OPTIMIZER_NOT_FUSED
WORDS = (b"optim", b"(")
_NAMES = ("Adam", "AdamW", "SGD")
FUSABLE = {f"torch.optim.{module}{name}": name for name in _NAMES for module in ("", f"{name.lower()}.")}
IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")


class _Made(NamedTuple):
    """A call that creates an optimizer: its possible fusable classes (atom and name), and whether other classes are
    possible."""

    call: int
    classes: tuple[tuple[int, str], ...]
    is_only: bool


def find(view: View) -> Iterator[Finding]:
    """All calls that may create a torch optimizer without choosing an implementation."""
    ways = Ways(view)
    named = list(named_optimizers(view, frozenset(FUSABLE), frozenset(IMPLEMENTATIONS)))
    told = {FUSABLE[one.name] for one in named}
    made = [_made(view, ways, call) for call in dict.fromkeys(call for call, _ in view.ask.calls_of(FUSABLE))]
    chosen = {view.program.function_of(one.call) for one in made if any(_may_choose(view, one.call))}
    for one in made:
        module = view.program.module_of(one.call)
        if told.issuperset(name for _, name in one.classes) and module.last_name(module.nodes[one.call & MASK][1]) == "()getattr":
            # The arguments are next to the name.
            continue
        known = tuple(pair for pair in one.classes if _has_fused(view.torch_of(module), pair[1]))
        if known and view.program.function_of(one.call) not in chosen and not _matters_little(view, one.call):
            yield _finding(view, ways, one._replace(classes=known, is_only=one.is_only and known == one.classes))
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


def _made(view: View, ways: Ways, call: int) -> _Made:
    module = view.program.module_of(call)
    function = module.base | module.nodes[call & MASK][1]
    value = view.program.ask(function)
    known = ((atom, name) for atom in sorted(value) for name in sorted(_names_of(view, atom)))
    # A fallback for a missing apex is not a deliberate choice.
    classes = tuple(pair for pair in known if any(not ways.is_fallback(way.key) for way in ways.to(function, pair[0])))
    return _Made(call, classes, len(classes) == len(value) and view.ask.is_complete(function))


def _names_of(view: View, atom: int) -> set[str]:
    """The fusable classes that an atom stands for; one of the project only if it uses torch's unchanged."""
    fields = view.program.atoms.of[atom] if atom >= FIRST else ("",)
    if fields[0] == "c" and not calls.is_plain_subclass(view, fields[1]):
        return set()
    return {FUSABLE[name] for name in view.ask.names_of(frozenset([atom])) & FUSABLE.keys()}


def _may_choose(view: View, call: int) -> Iterator[bool]:
    for name in IMPLEMENTATIONS:
        argument = view.ask.argument(call, name)
        yield argument.state is not State.ABSENT and not argument.flags and not (argument.state is State.OPEN and _is_left_to_user(view, call))


def _is_left_to_user(view: View, call: int) -> bool:
    """Whether only a configuration file can choose, and none of the project's files does."""
    return view[ReadSettings].may_be_added(call) and not view.is_named_in_configurations(*IMPLEMENTATIONS)


def _has_fused(torch: TorchRange, name: str) -> bool:
    """Whether some torch that the project runs on has the fused implementation."""
    newest = torch.newest
    since = tables.fused_since(name)
    return since is not None and (newest is None or newest >= since)


def _matters_little(view: View, call: int) -> bool:
    """A handful of tensors, a compiled step, a model on the CPU, code that never runs, the outer optimizer of local SGD, a
    test, or one created only to be loaded."""
    params = view.ask.argument(call, "params", 0)
    names = view.program.names_of(call)
    return (
        _few_tensors(view, params)
        or view[OptimizerSteps].are_compiled(call)
        or view[HostModels].are_all(params.sources)
        or not view[Runs].may_run(view.program.function_of(call))
        or view[LeftOff].is_left_off(call)
        or any("outer" in name for name in names)
        or calls.stands_in_test(view, call)
        or calls.is_only_loaded(view, call)
    )


def _few_tensors(view: View, params: Argument) -> bool:
    """A literal list of tensors, or a model with hardly more: a handful of kernels, nothing to fuse."""
    if params.state is State.ABSENT or any(calls.lists_tensors(view, one) for one in params.sources):
        return True
    return view[OptimizerSteps].has_few_tensors(params.sources)


def _finding(view: View, ways: Ways, made: _Made) -> Finding:
    program, call = view.program, made.call
    module = program.module_of(call)
    site = module.table.sites[call & MASK]
    names = sorted({name for _, name in made.classes})
    place = f"{line_of(site.place)}:{column_of(site.place)}"
    claims = [Claim("optimizer-trains-on-cuda", f"{' or '.join(names)} {place}")]
    if calls.configures_lightning(view, call):
        claims.append(Claim("lightning-clips-nowhere"))
    found = _ways_to(ways, module.base | module.nodes[call & MASK][1], made)
    flags = view.ask.argument(call, "fused").flags
    unless = f" (unless you give it in {any_of(view.ask.flag(one).name for one in flags)})" if flags else ""
    may_be_given = not flags and view[ReadSettings].may_be_added(call)
    if may_be_given:
        unless = " (unless your configuration gives it)"
    args = {"optimizer": _described(found, made), "advice": pass_fused(names, view.torch_of(module).oldest) + unless}
    related = [Related(calls.place_span(view, way.home, way.place), f"{name} is chosen here") for name, way in found if _is_elsewhere(view, way, call)]
    return view.finding(
        RULE,
        view.call_span(call),
        args,
        related,
        claims=claims,
        fix=fused_fix(view, call, names) if made.is_only and not may_be_given and not calls.is_named_by_file(view, _function_of(view, call)) else None,
        confidence=calls.confidence_of(view, RULE, call),
    )


def _function_of(view: View, call: int) -> int:
    module = view.program.module_of(call)
    return module.base | module.nodes[call & MASK][1]


def _ways_to(ways: Ways, function: int, made: _Made) -> list[tuple[str, Way]]:
    return [(name, way) for atom, name in made.classes for way in ways.to(function, atom)]


def _described(found: list[tuple[str, Way]], made: _Made) -> str:
    """The classes with their cases: "AdamW (with `--optimizer adamw`) or SGD"."""
    cases: dict[str, list[str]] = {}
    for name, way in found:
        cases.setdefault(name, []).append(way.case)
    several = len(made.classes) > 1 or not made.is_only
    words = [_with_case(name, cases.get(name, []), several) for name in sorted({name for _, name in made.classes})]
    return " or ".join(words)


def _with_case(name: str, cases: list[str], several: bool) -> str:
    if not several or not cases or not all(cases):
        return name
    return f"{name} ({' or '.join(dict.fromkeys(cases))})"


def _is_elsewhere(view: View, way: Way, call: int) -> bool:
    own = view.program.module_of(call)
    if way.home is own and own.nodes[way.key & MASK][0] == "impf":
        # The import at the top of the file is not a choice.
        return False
    return bool(way.place) and (way.home is not own or line_of(way.place) != line_of(own.table.sites[call & MASK].place))
