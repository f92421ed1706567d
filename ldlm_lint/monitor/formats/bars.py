"""Progress bars: tqdm's, rich's as Lightning draws it, Keras'. Their subject precedes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.monitor.formats.base import SECONDS
from ldlm_lint.monitor.names import EPOCH, PACES, RATES, STEP
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import item, pairs
from ldlm_lint.monitor.plans import NOWHERE, Item, Part, assemble

_N = MARK
_CLOCK = rf"(?:{_N}(?:(?::| days?,?){_N})*|\?)"
# `Epoch 0:  6%|...| 86/1563 [00:06<01:44, 14.19it/s, v_num=0, loss=1.8]`; a bar without total: `1it [00:04, 4.36s/it]`.
_BAR = (
    rf"(?:{_N}%\|\||\| +\|)? ?(?P<step>{_N})(?:/(?:(?P<total>{_N})|(?P<endless>\?)))?(?P<it>it)? "
    rf"\[{_CLOCK}(?:\<{_CLOCK})?(?:, ?(?:(?P<rate>{_N}) ?(?P<unit>[\w.]+/[\w.]+)|\?[^,\]]*))?(?P<rest>,[^\]]*|[^\]]*)?"
)
_TQDM = re.compile(rf"(?P<what>(?:[^|\r]*?[:)] ?:? ?)?){_BAR}")
_NAMELESS = re.compile(rf"(?P<what>){_BAR}")
_PARTS = re.compile(r"[|\r]")
_RICH = re.compile(
    rf"^(?P<what>Epoch(?P<epoch>{_N})/(?:{_N}|-\d) +|[A-Z]\w+(?: \w+)* +)━ ?(?P<step>{_N})/(?:(?P<total>{_N})|-?-) ?"
    rf"(?:{_CLOCK}|-) •(?: ?(?:{_CLOCK}|-:--:--))?(?: ?(?P<rate>{_N})(?P<unit>it/s))?"
)
_POSITION = re.compile(rf"{_N}/{_N}(?: ?\[{_CLOCK}\<{_CLOCK},)?{_N}(?P<unit>it/s|s/it)")
_EPOCH = re.compile(rf"\b[Ee]poch(?:s)?[ :#\[]*(?P<epoch>{_N})")
_TRAINS = re.compile(r"(?i)\b(?:epochs?|train(?:ing)?|steps?|iter(?:ation)?s?|fit|finetun\w*|optimi[sz]\w*)\b")
_CHECKS = re.compile(r"(?i)\b(?:val(?:id(?:ation|ating)?)?|eval(?:uat\w+)?|test(?:ing)?)\b")
_SIGNS = ("it/s", "/it", "%||", "━", "/?")
_NAMES = {
    "train_step_timing": "step_time_s",
    "consumed_samples": "samples",
    "throughput": "",
    "v_num": "",
    "progress": "",
}


def read(text: str, texts: Sequence[str]) -> list[Part] | None:
    """The records of a progress bar of a training or a validation; None if the line is not one."""
    if not any(sign in text for sign in _SIGNS):
        return None
    found, name = (_RICH.match(text), "rich") if "━" in text else (_tqdm(text), "tqdm")
    if not found or not (name == "rich" or "%||" in text or found["it"] or found["endless"]):
        return None
    what = found["what"].replace(MARK, "#").strip(" :#%|\t")
    first, last = (
        text.count(MARK, 0, at) for at in (found.end("what"), found.end("rate") if found["rate"] else _bar_end(found))
    )
    taken = set(range(first, last))
    items = _own(text, found)
    named = [
        made
        for pair in pairs(texts, frozenset(taken))
        if pair.key != "v_num" and (made := item(pair, _NAMES, {"step_time_s": SECONDS}))
    ]
    useful = any(one.key or "loss" in one.raw.lower() for one in named)
    checks = bool(_CHECKS.search(what))
    if not useful and (checks or not (_TRAINS.search(what) or not what) or not found["rate"]):
        return None
    # A line's own counters are better than the bar's, which restarts each epoch.
    if any(one.key == STEP for one in named):
        items = [one for one in items if one.key != STEP]
    if any(one.key == EPOCH for one in named):
        items = [one for one in items if one.key != EPOCH]
    parts = assemble(name, items + named, "val" if checks else "train" if _TRAINS.search(what) else "", shape=what)
    return of_total(parts, *_total(text, found))


def _tqdm(text: str) -> re.Match[str] | None:
    """The first bar of tqdm in a text: what `_TQDM.search` finds, which would look for the end of a name from every character.

    A name ends at ``|`` and at a carriage return, so it is enough to look once from the beginning of each part.
    """
    nameless = _NAMELESS.search(text)
    if nameless is None:
        return None
    starts = (0, *(one.end() for one in _PARTS.finditer(text, 0, nameless.start())))
    return next((found for start in starts if (found := _TQDM.match(text, start))), nameless)


class Before(NamedTuple):
    """A bar before other text: its step and its pace, its total, and where it begins."""

    items: list[Item]
    at: int
    total: int = NOWHERE
    varies: bool = False


def before(text: str) -> Before:
    """The bar in a text; one without items at the end of the text if there is none."""
    found = _tqdm(text) if "%||" in text or "/?" in text else None
    if not found:
        return Before([], len(text))
    return Before(_own(text, found)[: 1 + bool(found["rate"])], found.end("what"), *_total(text, found))


def of_total(parts: list[Part], total: int, varies: bool) -> list[Part]:
    """The records of a bar, distinguished by its total from a bar of the same form."""
    return [part._replace(total=total, varies=varies) for part in parts]


def _total(text: str, found: re.Match[str]) -> tuple[int, bool]:
    """The index of a bar's total, and whether it may differ from one time to the next: that of an epoch."""
    if not found["total"]:
        return NOWHERE, False
    return text.count(MARK, 0, found.start("total")), bool(_EPOCH.search(found["what"]))


def position(text: str, first: int) -> list[Item]:
    """The step and the rate of a bar without name, ``3/147 4.0s/it``, from the number ``first`` on."""
    start = _at(text, first)
    found = _POSITION.match(text, start) if start >= 0 else None
    if not found:
        return []
    items = [Item(first, STEP, "step")]
    index, unit = text.count(_N, 0, found.end()) - 1, found["unit"].lower()
    if unit in RATES:
        items.append(Item(index, RATES[unit][0], unit, "1/s", RATES[unit][1]))
    elif unit in PACES:
        items.append(Item(index, "step_time_s", unit, "s", PACES[unit]))
    return items


def _at(text: str, index: int) -> int:
    start = -1
    for _ in range(index + 1):
        start = text.find(_N, start + 1)
        if start < 0:
            return -1
    return start


def _bar_end(found: re.Match[str]) -> int:
    return found.start("rest") if "rest" in found.re.groupindex and found["rest"] is not None else found.end()


def _own(text: str, found: re.Match[str]) -> list[Item]:
    def index(position: int) -> int:
        return text.count(MARK, 0, position)

    items = [Item(index(found.start("step")), STEP, "step")]
    epoch = _EPOCH.search(text, 0, found.end("what"))
    if epoch:
        items.append(Item(index(epoch.start("epoch")), EPOCH, "epoch"))
    unit = (found["unit"] or "").lower()
    if unit in RATES and RATES[unit][0] in ("iterations_per_s", "tokens_per_s"):
        items.append(Item(index(found.start("rate")), RATES[unit][0], unit, "1/s", RATES[unit][1]))
    elif unit in PACES:
        items.append(Item(index(found.start("rate")), "step_time_s", unit, "s", PACES[unit]))
    return items
