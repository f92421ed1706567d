"""Fixes of calls that make loaders, by their places in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.data_fixes import PERSISTENT_REASON, PIN_REASON, PREFETCH_REASON, WORKERS_REASON
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import State
from ldlm_lint.vocabulary.loaders import GRAPHS

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_PLAIN = frozenset({"free", "param", "attr"})


def persistent_fix(view: View, one: LoaderCall) -> Fix | None:
    """Add ``persistent_workers``, where there surely are workers or the call says how many."""
    fix = _keyword_fix(view, one, "persistent_workers", ("True", "{} > 0"), PERSISTENT_REASON)
    return fix._replace(needs=(tables.interface("DataLoader(persistent_workers=)"),)) if fix else None


def prefetch_fix(view: View, one: LoaderCall, factor: int) -> Fix | None:
    """Add ``prefetch_factor``, likewise."""
    fix = _keyword_fix(view, one, "prefetch_factor", (str(factor), f"{factor} if {{}} > 0 else None"), PREFETCH_REASON)
    guarded = fix is not None and "None" in fix.title
    return fix._replace(needs=(tables.interface("DataLoader(prefetch_factor=None)"),)) if fix is not None and guarded else fix


def pin_fix(view: View, one: LoaderCall) -> Fix | None:
    """Add ``pin_memory=True``."""
    return _added(view, one, "pin_memory", "True", PIN_REASON)


def workers_fix(view: View, one: LoaderCall, count: int) -> Fix | None:
    """Add workers where the call gives none, or raise a 0 that stands in it."""
    if one.workers.state is State.ABSENT:
        fix = _added(view, one, "num_workers", str(count), WORKERS_REASON)
        return fix._replace(group="") if fix is not None else None
    nodes = one.module.nodes
    for name, value in nodes[one.call & MASK][3]:
        if name == "num_workers" and nodes[value] == ("const", 0):
            return _raised(view, one, value, count)
    return None


def _raised(view: View, one: LoaderCall, value: int, count: int) -> Fix | None:
    place = one.module.table.places[value]
    if not place:
        return None
    edit = Edit(view.span(one.module, place), str(count))
    return Fix(f"set num_workers={count}", (edit,), Applicability.UNSAFE, WORKERS_REASON)


def _keyword_fix(view: View, one: LoaderCall, name: str, values: tuple[str, str], reason: str) -> Fix | None:
    plain, guarded = values
    if one.workers.state is State.GIVEN and one.ways and all(way.number and not way.default for way in one.ways):
        return _added(view, one, name, plain, reason)
    row = one.module.nodes[one.call & MASK]
    written = dict((keyword, value) for keyword, value in row[3] if keyword)
    if "num_workers" not in written or any(keyword is None for keyword, _ in row[3]):
        return None
    if one.module.plain(written["num_workers"])[0] not in _PLAIN:
        return None
    text = _text_of_keyword(view, one, "num_workers")
    return _added(view, one, name, guarded.format(text), reason) if text else None


def _text_of_keyword(view: View, one: LoaderCall, name: str) -> str:
    """The text of a keyword's value, where it is a name or an attribute."""
    import ast

    call = ast.parse(f"({view.call_text(one.call)})", mode="eval").body
    found = next((keyword.value for keyword in getattr(call, "keywords", ()) if keyword.arg == name), None)
    return ast.unparse(found) if isinstance(found, (ast.Name, ast.Attribute)) else ""


def _added(view: View, one: LoaderCall, name: str, value: str, reason: str) -> Fix | None:
    if not _takes_keywords(view, one):
        return None
    edit = add_keyword(view.source(one.module), view.call_span(one.call), name, value)
    group = f"{view.path(one.module)}:{one.position}:workers"
    return Fix(f"set {name}={value}", (edit,), Applicability.UNSAFE, reason, group=group) if edit else None


def _takes_keywords(view: View, one: LoaderCall) -> bool:
    """Whether the loader's class hands on keywords that it does not know, and no partial stands between."""
    if one.loader.name in GRAPHS and "Sampler" in one.loader.name:
        return False
    program = view.program
    init = next(iter(program.methods(one.loader.owner, "__init__")), 0) if one.loader.owner else 0
    return not init or bool(program.module_of(init).scopes[init & MASK].kwarg)
