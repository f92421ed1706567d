"""What is to be said of the runs behind verdicts, whether or not they can be trusted to be ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldlm_lint.evidence.model import Evidence


def account(ranks: Sequence[Evidence]) -> Iterator[str]:
    """Sentences about one run: the exceptions it ended with, and what the probe says of itself."""
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
