"""dataloader-worker-count-may-be-zero: loaders of every make, and numbers that other functions and files decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.common import DATALOADER, SOURCE
from ldlm_lint.checkers.data.worker_options import error_of, guard_fix, worker_options_of
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.concepts.workers import ROUNDED_DOWN, Way, Workers
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Reference, Related, Rule
from ldlm_lint.wording import listed, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7105",
    symbol="dataloader-worker-count-may-be-zero",
    consequence=Consequence.CRASH,
    message="`num_workers` can be 0 (%(why)s): with %(options)s set, this DataLoader then raises %(error)s; set "
    "%(options)s only if there are workers",
    summary="A number of workers that can be 0, with options that raise without workers.",
    rationale="A floor division such as `os.cpu_count() // world_size` is 0 as soon as there are more ranks than "
    "CPUs. A debugging switch or a default of 0 is 0 on purpose. `prefetch_factor` and `persistent_workers=True` then "
    "raise ValueError.",
    cost="The program ends when the loader is created, on a machine or with a flag that was never tested.",
    exceptions="A number that other code keeps above 0.",
    versions="torch >= 2.0, in which the default `prefetch_factor=None` means 2 with workers and nothing without.",
    verification="Create the loader with `num_workers=0`.",
    references=(
        DATALOADER,
        SOURCE,
        Reference("os.cpu_count", "https://docs.python.org/3/library/os.html#os.cpu_count"),
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.SAFE,
    fix_safety="Safe on torch >= 2.0: with workers the guarded values do not change, and without workers the call "
    "raised. The constructor itself compares the number with 0, so the comparison raises nothing new. No fix is "
    "offered if the number comes from a call that must not run twice. Unsafe if code around the loader catches the "
    "error.",
    overrides="the constructor raises with it",
)



def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders with options that need workers, which they do not have on one of the ways that the program shows."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        zero = next((way for way in workers.ways(loader) if way.number == 0), None)
        if zero is None or not workers.given(loader).is_given or workers.are_surely_none(loader):
            continue
        options = worker_options_of(code, loader)
        if options and not workers.are_tested(loader):
            args = {"options": listed(options), "error": error_of(options), "why": _why(zero)}
            related = (Related(zero.giver.span, "this decides it"),) if zero.giver is not None else ()
            yield code.finding(RULE, loader.call.span, args, related, fix=guard_fix(code, loader, options))


def _why(zero: Way) -> str:
    if not zero.default:
        return "the code sets it to 0"
    if zero.default == ROUNDED_DOWN:
        return "the floor division gives 0 if the divisor is larger"
    return "its default is 0" if zero.default == "parameter" else f"the default of {quoted(zero.default)} is 0"
