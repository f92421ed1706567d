"""`dataloader-conflicting-options` for loaders of every make, and for datasets and samplers of other files."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Claim, Confidence, Finding
from ldlm_lint.program.atoms import FIRST, Value
from ldlm_lint.program.queries import State
from ldlm_lint.rules.data import CONFLICTING_OPTIONS
from ldlm_lint.vocabulary.loaders import TORCH
from ldlm_lint.wording import listed

RULE = CONFLICTING_OPTIONS
WORDS: tuple[bytes, ...] = (b"Loader",)
_STREAMS = frozenset({"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"})


def find(view: View) -> Iterator[Finding]:
    """All loaders of torch whose options surely exclude each other."""
    for one in view.loaders.all:
        if one.loader.name in TORCH:
            yield from _conflict(view, one)


def _conflict(view: View, one: LoaderCall) -> Iterator[Finding]:
    shuffled = ["shuffle=True"] if _only(view, one, "shuffle") is True else []
    if _is_stream(view, one):
        # A stream has its own order: torch takes no other.
        taken = shuffled + [name for name in ("sampler", "batch_sampler") if _is_sampler(view, one, name)]
        left = "an `IterableDataset`"
    elif _is_sampler(view, one, "batch_sampler"):
        taken = [f"{name}=True" for name in ("shuffle", "drop_last") if _only(view, one, name) is True]
        left = "`batch_sampler`"
    elif _is_sampler(view, one, "sampler"):
        taken, left = shuffled, "`sampler`"
    else:
        return
    if taken:
        args = {"left": left, "right": listed(taken)}
        claims = (Claim("stands-outside-tests"),)
        yield view.finding(RULE, view.call_span(one.call), args, claims=claims, confidence=Confidence.HIGH)


def _only(view: View, one: LoaderCall, name: str) -> object:
    """The one constant that an option certainly is; `Ellipsis` for none."""
    given = view.loaders.option(one, name)
    return view.ask.meaning(*given.sources).only if given.state is State.GIVEN and given.sources else ...


def _value(view: View, one: LoaderCall, name: str) -> Value:
    """What an option certainly is one of; nothing where it may be something else."""
    given = view.loaders.option(one, name)
    meaning = view.ask.meaning(*given.sources) if given.state is State.GIVEN and given.sources else None
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
    """Whether a class is one of torch's samplers, which are never None; what another package gives nobody knows."""
    return name.startswith("torch.") and name.endswith("Sampler")
