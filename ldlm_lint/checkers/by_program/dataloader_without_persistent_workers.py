"""`dataloader-without-persistent-workers` for loaders of every make: subclasses, other packages' loaders, options by dictionary."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_fixes import persistent_fix, switched_on
from ldlm_lint.checkers.by_program.loader_places import AGAIN, described, related_to
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import value_as_written
from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.loader_passes import LoaderPasses, Pass
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.program.handles import Expr
from ldlm_lint.rules.data import PERSISTENT_WORKERS

RULE = PERSISTENT_WORKERS
WORDS: tuple[bytes, ...] = (b"Loader",)
_OPTION = "persistent_workers"
_NAMES = {"option": _OPTION, "setting": f"{_OPTION}=True"}


def find(code: View) -> Iterator[Finding]:
    """All loaders with workers over which a loop iterates repeatedly, and that start them again each time."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        may_be_there = workers.may_be_there(loader)
        how = _how_off(code, loader) if may_be_there or workers.are_configured(loader) else ""
        again = code[LoaderPasses].repeated(loader) if how or may_be_there else None
        if again is None or code[Datasets].change_between_passes(loader):
            continue
        if how:
            args = {"where": described(code, loader, again), "how": how, **_NAMES}
            fix = persistent_fix(code, loader) if how == "not set" else None
            confidence = Confidence.HIGH if workers.are_known(loader) else Confidence.MEDIUM
            yield code.finding(RULE, loader.call.span, args, related_to(loader, again, AGAIN), fix=fix, confidence=confidence)
        else:
            yield from _switched_off(code, loader, again)


def _how_off(code: View, loader: Loader) -> str:
    """Why workers do not persist: the option is missing, or a parameter's default is never replaced; empty for a
    choice."""
    given = code[Loaders].option(loader, _OPTION)
    if code[Loaders].lacks(loader, _OPTION):
        return "not set"
    is_default = given.is_given and bool(given.values) and all(_is_left_off(value) for value in given.values)
    return "off by default" if is_default else ""


def _is_left_off(value: Expr) -> bool:
    """Whether a parameter is False by its default, and all known callers leave it there, or forward another such
    parameter."""
    todo, seen = [value.plain], set[Expr]()
    while todo:
        at = todo.pop()
        callers = at.function.callers if at.kind == "param" else ()
        given = [call.argument_for(at.function.parameters[at.name]) for call in callers]
        default = at.function.default(at.name) if callers else None
        if not callers or not all(one.is_given or (one.is_absent and default is not None and default.constant is False) for one in given):
            return False
        seen.add(at)
        todo += [one.plain for argument in given for one in argument.values if one.plain not in seen]
    return True


def _switched_off(code: View, loader: Loader, again: Pass) -> Iterator[Finding]:
    """Workers whose persistence the author switched off: information, at that value."""
    given = code[Loaders].option(loader, _OPTION)
    if not given.is_given or len(given.values) != 1 or given.values[0].may_be().only is not False:
        return
    found = value_as_written(code, given.values[0].key, given.givers[0].key, _OPTION) if given.givers else None
    if found is None:
        return
    home, written = found
    is_elsewhere = home is not loader.call.module or code.source(home).position(written.span.start)[0] != loader.call.line
    taker = (Related(loader.call.spot.line_span, "this DataLoader takes the value"),) if is_elsewhere else ()
    args = {"where": described(code, loader, again), "how": "off", **_NAMES}
    related = (*taker, *related_to(loader, again, AGAIN))
    yield code.finding(RULE, written.span, args, related, fix=switched_on(code, loader, written)).lowered("switched off on purpose")
