"""What is to be said of the runs behind verdicts, whether or not they can be trusted to be ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldlm_lint.evidence.model import Evidence

MOST_MISSING = 8


def account(ranks: Sequence[Evidence]) -> Iterator[str]:
    """Sentences about one run: the ranks that left no evidence, its exception, what the probe says of itself."""
    yield from _missing(ranks)
    by_text: dict[str, list[int]] = {}
    for one in ranks:
        if one.run.exception:
            by_text.setdefault(f"{one.run.status.value.replace('_', ' ')} with {one.run.exception}", []).append(
                one.run.rank
            )
    for text, which in by_text.items():
        yield f"rank {', '.join(map(str, sorted(which)))}: {text}" if len(ranks) > 1 else f"the program {text}"
    if ranks[0].run.kind != "watch":
        yield from dict.fromkeys(note for one in ranks for note in one.notes)
        topics = {topic: reason for one in ranks for topic, reason in one.unavailable.items()}
        yield from (
            f"could not be seen: {topic.replace('_', ' ')}: {reason}" for topic, reason in sorted(topics.items())
        )
        return
    from ldlm_lint.probe.account import notes_of

    try:
        yield from notes_of(ranks)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        yield f"what the probe says of itself cannot be read ({type(error).__name__}: {error})"


def _missing(ranks: Sequence[Evidence]) -> Iterator[str]:
    world = max(one.run.world_size for one in ranks)
    seen = {one.run.rank for one in ranks if 0 <= one.run.rank < world}
    if ranks[0].run.kind != "watch" or len(seen) >= world:
        return
    missing = []
    rank = 0
    while len(missing) < MOST_MISSING and rank < world:
        missing += [str(rank)] if rank not in seen else []
        rank += 1
    more = "" if world - len(seen) <= len(missing) else " and others"
    yield f"{len(seen)} of {world} ranks left evidence; none from rank {', '.join(missing)}{more}"
