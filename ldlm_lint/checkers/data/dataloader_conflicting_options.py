"""dataloader-conflicting-options: loaders of every make, datasets and samplers of any file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.checkers.data.common import DATALOADER, SOURCE
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.edits.written_parts import without_keywords
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Rule
from ldlm_lint.program.handles import Class
from ldlm_lint.vocabulary.loaders import ITERABLE_DATASETS, TORCH
from ldlm_lint.wording import enumerated, listed

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="E7108",
    symbol="dataloader-conflicting-options",
    consequence=Consequence.CRASH,
    message="this DataLoader raises ValueError because %(left)s excludes %(right)s: drop %(right)s",
    summary="DataLoader options that exclude each other: `shuffle=True` with a sampler, a batch sampler with "
    "`batch_size`, and similar pairs.",
    rationale="A sampler decides the order, so `shuffle=True` with a sampler is an error. A batch sampler decides "
    "order and size, so `batch_size`, `shuffle`, `sampler` and `drop_last` with it are errors. An `IterableDataset` "
    "has its own order and accepts neither `shuffle=True` nor a sampler. With `batch_size=None` there are no batches, "
    "so `drop_last` has none to drop.",
    cost="The program ends when the loader is created.",
    exceptions="None. `shuffle=(sampler is None)` and `shuffle=False` with a sampler are correct and are not reported.",
    versions="All versions.",
    verification="Create the loader once.",
    references=(DATALOADER, SOURCE),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it removes the option that the other one replaces, but only you know which of the two was "
    "meant.",
    overrides="the constructor raises with it",
)



class _Conflict(NamedTuple):
    """The option ``left`` excludes the options ``taken``; ``is_clear``: only these can be unintended."""

    left: str
    taken: tuple[str, ...]
    is_clear: bool = True


def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders of torch whose options surely exclude each other."""
    for loader in code[Loaders].shown:
        found = _conflict(_Options(code, loader)) if loader.interface in TORCH else None
        if found is not None and found.taken:
            yield _finding(code, loader, found)


def _finding(code: ProjectCode, loader: Loader, found: _Conflict) -> Finding:
    options = _Options(code, loader)
    shown = [name if options.only(name) is ... else f"{name}={options.only(name)}" for name in found.taken]
    edits = without_keywords(loader.call, found.taken) if found.is_clear else ()
    reason = f"{found.left} then decides instead of {listed(shown)}"
    fix = Fix(f"drop {enumerated(shown)}", edits, Applicability.UNSAFE, reason) if edits else None
    return code.finding(RULE, loader.call.span, {"left": found.left, "right": listed(shown)}, fix=fix, confidence=Confidence.HIGH)


class _Options(NamedTuple):
    """The options of a loader as far as they are certain."""

    code: ProjectCode
    loader: Loader

    def only(self, name: str) -> object:
        """The one constant that an option certainly is; `Ellipsis` if there is none."""
        given = self.code[Loaders].option(self.loader, name)
        return given.may_be().only if given.is_given and given.values else ...

    def objects(self, name: str) -> list[Class | str]:
        """The classes that an option is certainly an object of."""
        given = self.code[Loaders].option(self.loader, name)
        objects = [one.objects for one in given.values] if given.is_given else []
        return [one for several in objects for one in several] if all(objects) else []

    def is_sampler(self, name: str) -> bool:
        """Whether an option is one of torch's samplers, which are never None; the results of other packages are unknown."""
        found = self.objects(name)
        return bool(found) and all(isinstance(one, str) and one.startswith("torch.") and one.endswith("Sampler") for one in found)

    @property
    def is_stream(self) -> bool:
        """Whether the dataset is a stream."""
        found = self.objects("dataset")
        return bool(found) and all(isinstance(one, Class) and ITERABLE_DATASETS & one.outside_bases for one in found)


def _conflict(options: _Options) -> _Conflict | None:
    shuffled = ("shuffle",) if options.only("shuffle") is True else ()
    if options.is_stream:
        # A stream has its own order: torch accepts no other.
        given = tuple(name for name in ("sampler", "batch_sampler") if options.is_sampler(name))
        return _Conflict("an `IterableDataset`", given + shuffled)
    if options.is_sampler("batch_sampler"):
        taken = tuple(_clashes_with_batch_sampler(options))
        # Only the author knows which of two samplers was meant.
        return _Conflict("`batch_sampler`", taken, "sampler" not in taken)
    if options.is_sampler("sampler") and shuffled:
        return _Conflict("`sampler`", shuffled)
    is_unbatched = options.only("batch_size") is None and options.only("drop_last") is True
    return _Conflict("`batch_size=None`", ("drop_last",)) if is_unbatched else None


def _clashes_with_batch_sampler(options: _Options) -> Iterator[str]:
    given = options.code[Loaders].option(options.loader, "batch_size")
    sizes = given.may_be() if given.is_given and given.values else None
    if sizes is not None and sizes.is_complete and len(sizes.constants) == len(sizes.value) and 1 not in sizes.constants:
        yield "batch_size"
    if options.only("shuffle") is True:
        yield "shuffle"
    if options.is_sampler("sampler"):
        yield "sampler"
    if options.only("drop_last") is True:
        yield "drop_last"
