"""What a report says about the losses that two trees print."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.bench.losses import Agreement, Losses, Special
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE


def loss_lines(losses: Losses) -> list[str]:
    """Whether the losses agree, then the steps where a tree prints NaN, inf or nothing."""
    return [_agreement(losses), *_not_finite(losses), *map(_missing, losses.missing)]


def difference(losses: Losses) -> str:
    """In which way the losses are different, in a few words."""
    by_arm = {found.arm: found for found in losses.not_finite}
    before, after = by_arm.get(BEFORE), by_arm.get(AFTER)
    if losses.parted and after and (before is None or after.first < before.first):
        return _from(after)
    if losses.parted and before:
        return _from(before)
    return f"by up to {losses.largest or 0.0:.2g}, relative, at step {losses.at_step}"


def _agreement(losses: Losses) -> str:
    if losses.agreement is Agreement.UNKNOWN:
        return "losses: the outputs have no losses at common steps, so it is unknown whether both trees train alike"
    if losses.agreement is Agreement.IDENTICAL:
        return f"losses: identical in all printed digits at {losses.steps} common steps"
    same = "runs of the same tree agree in all digits"
    if losses.same_tree is None:
        same = "runs of the same tree could not be compared"
    elif losses.same_tree:
        same = f"runs of the same tree differ by up to {losses.same_tree:.2g}"
    parted = [difference(losses)] if losses.parted else []
    if losses.largest is not None and (losses.largest or not parted):
        finite = "where both are finite, " if parted else ""
        parted.append(f"{finite}they differ by up to {losses.largest:.2g} (relative, at step {losses.at_step})")
    return f"losses: {losses.agreement.value}: {'; '.join(parted)}; {losses.steps} steps compared; {same}"


def _from(found: Special) -> str:
    return f"{found.kind} from step {found.first} in {found.arm}"


def _not_finite(losses: Losses) -> Iterator[str]:
    by_arm = {found.arm: found for found in losses.not_finite}
    before, after = by_arm.get(BEFORE), by_arm.get(AFTER)
    if before and after and not losses.parted:
        yield f"{before.kind} from step {before.first} in both trees ({_steps(before)}): the original tree also trains to it"
        return
    for found in losses.not_finite:
        if found.arm == AGAIN and before and (found.first, found.steps) == (before.first, before.steps):
            continue
        already = ": the original tree trains to it, without any change" if found.arm == BEFORE else ""
        yield f"{_from(found)} ({_steps(found)}){already}"


def _missing(found: Special) -> str:
    other = BEFORE if found.arm == AFTER else AFTER
    return f"{_steps(found)} with a loss in {other} but none in {found.arm}, the first is step {found.first}"


def _steps(found: Special) -> str:
    return f"{found.steps} step{'s' if found.steps > 1 else ''}"
