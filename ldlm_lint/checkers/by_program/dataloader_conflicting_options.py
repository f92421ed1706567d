"""`dataloader-conflicting-options`: loaders of every make, datasets and samplers of any file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import without_keywords
from ldlm_lint.model import Applicability, Confidence, Finding, Fix
from ldlm_lint.program.atoms import FIRST, Value
from ldlm_lint.program.queries import Meaning, State
from ldlm_lint.rules.data import CONFLICTING_OPTIONS
from ldlm_lint.vocabulary.loaders import TORCH
from ldlm_lint.wording import enumerated, listed

RULE = CONFLICTING_OPTIONS
WORDS: tuple[bytes, ...] = (b"Loader",)
_STREAMS = frozenset({"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"})


class _Conflict(NamedTuple):
    """The option ``left`` excludes the options ``taken``; ``is_clear``: only these can be unintended."""

    left: str
    taken: tuple[str, ...]
    is_clear: bool = True


def find(view: View) -> Iterator[Finding]:
    """All loaders of torch whose options surely exclude each other."""
    for one in view.loaders.all:
        found = _conflict(view, one) if one.loader.name in TORCH else None
        if found is not None and found.taken:
            yield _finding(view, one, found)


def _finding(view: View, one: LoaderCall, found: _Conflict) -> Finding:
    shown = [_shown(view, one, name) for name in found.taken]
    args = {"left": found.left, "right": listed(shown)}
    edits = without_keywords(view, one.call, found.taken) if found.is_clear else ()
    reason = f"{found.left} then decides instead of {listed(shown)}"
    fix = Fix(f"drop {enumerated(shown)}", edits, Applicability.UNSAFE, reason) if edits else None
    return view.finding(RULE, view.call_span(one.call), args, fix=fix, confidence=Confidence.HIGH)


def _conflict(view: View, one: LoaderCall) -> _Conflict | None:
    shuffled = ("shuffle",) if _only(view, one, "shuffle") is True else ()
    if _is_sampler(view, one, "batch_sampler") and not _is_stream(view, one):
        taken = tuple(_clashes_with_batch_sampler(view, one))
        # Only the author knows which of two samplers was meant.
        return _Conflict("`batch_sampler`", taken, "sampler" not in taken)
    if _is_stream(view, one):
        # A stream has its own order: torch accepts no other.
        given = tuple(name for name in ("sampler", "batch_sampler") if _is_sampler(view, one, name))
        return _Conflict("an `IterableDataset`", given + shuffled)
    if _is_sampler(view, one, "sampler") and shuffled:
        return _Conflict("`sampler`", shuffled)
    is_unbatched = _only(view, one, "batch_size") is None and _only(view, one, "drop_last") is True
    return _Conflict("`batch_size=None`", ("drop_last",)) if is_unbatched else None


def _clashes_with_batch_sampler(view: View, one: LoaderCall) -> Iterator[str]:
    sizes = _meaning(view, one, "batch_size")
    if sizes is not None and sizes.is_complete and len(sizes.constants) == len(sizes.value) and 1 not in sizes.constants:
        yield "batch_size"
    if _only(view, one, "shuffle") is True:
        yield "shuffle"
    if _is_sampler(view, one, "sampler"):
        yield "sampler"
    if _only(view, one, "drop_last") is True:
        yield "drop_last"


def _meaning(view: View, one: LoaderCall, name: str) -> Meaning | None:
    given = view.loaders.option(one, name)
    return view.ask.meaning(*given.sources) if given.state is State.GIVEN and given.sources else None


def _only(view: View, one: LoaderCall, name: str) -> object:
    """The one constant that an option certainly is; `Ellipsis` if there is none."""
    meaning = _meaning(view, one, name)
    return meaning.only if meaning is not None else ...


def _shown(view: View, one: LoaderCall, name: str) -> str:
    only = _only(view, one, name)
    return name if only is ... else f"{name}={only}"


def _value(view: View, one: LoaderCall, name: str) -> Value:
    """What an option certainly is one of; empty if there may be other values."""
    meaning = _meaning(view, one, name)
    return meaning.value if meaning is not None and meaning.is_complete else frozenset()


def _is_sampler(view: View, one: LoaderCall, name: str) -> bool:
    atoms = view.program.atoms
    found = [atoms.of[each] if each >= FIRST else ("",) for each in _value(view, one, name)]
    return bool(found) and all(fields[0] == "o" and _is_of_torch(str(fields[1])) for fields in found)


def _is_stream(view: View, one: LoaderCall) -> bool:
    atoms = view.program.atoms
    found = [atoms.of[each] if each >= FIRST else ("",) for each in _value(view, one, "dataset")]
    return bool(found) and all(fields[0] == "i" and _STREAMS & view.program.outside_of(fields[1]) for fields in found)


def _is_of_torch(name: str) -> bool:
    """Whether a class is one of torch's samplers, which are never None; the results of other packages are unknown."""
    return name.startswith("torch.") and name.endswith("Sampler")
