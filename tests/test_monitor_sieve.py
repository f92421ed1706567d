"""Lines that say nothing are passed over, and what is read is the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import monitor_samples
from collected import for_every
from monitor_event_lines import CHILD_FAILED, EVENTS, NOTHING
from monitor_heldout_events import HELD_OUT, SPOKEN_OF

from ldlm_lint.monitor.events import Event
from ldlm_lint.monitor.failures import Failures
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.records import plain
from ldlm_lint.monitor.triggers import Triggers, words_of

FILES = sorted((Path(__file__).parent / "monitor").glob("*.json"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def _samples() -> list[str]:
    held = [text for file in FILES for text in _texts(json.loads(file.read_text(encoding="utf-8")))]
    own = [one for name, one in vars(monitor_samples).items() if not name.startswith("_")]
    return [text for text in (*held, *_texts([one for one in own if isinstance(one, (list, tuple, dict, str))])) if len(text) > 12]


def filler(count: int, seed: int = 0) -> str:
    """Lines that are all different and say nothing."""
    draw = random.Random(seed)
    words = ["shard", "opened", "copy", "bucket", "reader", "tokens", "cached", "index", "upload", "from", "into", "of", "queue"]
    return "".join(
        f"{draw.randrange(10**9)} {' '.join(draw.choices(words, k=6))} {draw.getrandbits(64):x}\n" for _ in range(count)
    )


def _read(text: str, fast: bool) -> list[dict[str, object]]:
    reader = LogReader(fast=fast)
    return [plain(record) for _, records in (*reader.read(text), *reader.close()) for record in records]


def test_each_sample_between_other_lines_is_read_as_it_is_alone() -> None:
    before, after = filler(80), filler(80, 1)
    differing = []
    for sample in dict.fromkeys(_samples()):
        text = f"{before}{sample}\n{after}"
        if repr(_read(text, fast=True)) != repr(_read(text, fast=False)):
            differing.append(sample)
    assert differing == []


def _events(text: str) -> list[Event]:
    failures, reader = Failures(), LogReader()
    return [one for line, _ in (*reader.read(text), *reader.close()) if (one := failures.read(line)) is not None]


@for_every(("kind", "rank", "line"), [one[:3] for one in (*EVENTS, *HELD_OUT)])
def test_an_event_between_other_lines(kind: str, rank: int | None, line: str) -> None:
    text = f"{filler(80)}{line}\n{filler(80, 1)}"
    (found,) = _events(text)
    assert (found.kind, found.rank) == (kind, rank)


def test_look_alikes_between_other_lines_are_nothing() -> None:
    for line in (*NOTHING, *SPOKEN_OF):
        assert _events(f"{filler(80)}{line}\n{filler(80, 1)}") == [], line


def test_lines_are_passed_over_and_counted() -> None:
    reader = LogReader()
    loss = "step 5 | loss 0.25 | time 0.2\n"
    reads = [*reader.read(filler(500) + loss + filler(300, 1)), *reader.read(filler(100, 2)), *reader.close()]
    assert [(line.line, bool(records)) for line, records in reads] == [(501, True), (801, False), (901, False)]


def test_a_traceback_and_the_lines_after_it_are_read() -> None:
    traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\nValueError: no rows\n"
    (found,) = _events(f"{filler(100)}{traceback}{filler(100, 1)}")
    assert "no rows" in found.text
    cut = traceback.index("    main()")
    failures, reader, found_later = Failures(), LogReader(), []
    for chunk in (filler(100) + traceback[:cut], traceback[cut:] + filler(100, 1)):
        found_later += [one for line, _ in reader.read(chunk) if (one := failures.read(line)) is not None]
    assert [one.text for one in found_later] == [found.text]
    assert CHILD_FAILED and [one.kind for one in _events(f"{filler(100)}{CHILD_FAILED}\n{filler(100, 1)}")] == ["child-failed"]


def test_triggers_are_found_by_their_words() -> None:
    known = Triggers(["Connection reset", "an't ", "{'", "NaN"], any_case={"tps": (True, True), "time": (False, True)})
    for text, expected in (
        ("x Connection reset by peer", ["Connection reset"]),
        ("a reset of the Connection", []),
        ("can't open", ["an't "]),
        ("we want it", []),
        ("{'a': 1}", ["{'"]),
        ("loss is NaN", ["NaN"]),
        ("loss is nan", []),
        ("https://host", []),
        ("TPS 5", ["tps"]),
        ("Datetime 5", ["time"]),
        ("timeout", []),
    ):
        assert known.among(text, words_of(text)) == expected, text
