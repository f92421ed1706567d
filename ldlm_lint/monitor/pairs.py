"""Keys and values in any text: which words name which number, and its unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ldlm_lint.monitor.names import EPOCH, PACES, RATES, REMEMBERED, STEP, UNITS, Meaning, Unit, in_unit, meaning, plain
from ldlm_lint.monitor.plans import Item


class Pair(NamedTuple):
    """A number with its name.

    ``unit`` is as printed, lower case; `UNKNOWN` if an unknown unit is attached to the number. ``strong``: the key is
    connected to it by a sign, not only by a blank. ``of``: the number is the part of a total. ``mean``: it is in
    brackets after the value that it is the mean of.
    """

    index: int  # type: ignore[assignment]  # nobody asks a pair for the index of a value
    key: str
    unit: str = ""
    strong: bool = False
    of: bool = False
    mean: bool = False


UNKNOWN = "?"
# `22.8K`: as nanotron prints numbers. For bytes it could also mean powers of 1024, and for a step it is not exact.
_COUNTS = {"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_COUNTED = frozenset(("", "tokens", "samples", "tokens_per_s", "samples_per_s", "step_time_s"))
_BYTES = re.compile(r"mem|byte|_gb|_mb|_tb|disk|cache|size")

_UNIT = re.compile(
    r" ?(%|/s(?:ec)?(?:/\w+)?\b|[a-zA-Zµ]+(?: ?/ ?[a-zA-Z]+)*(?: per sec(?:ond)?)?(?:/[a-zA-Z]+)?)(?![\w])"
)
_GLUED = re.compile(r"[a-zA-Zµ]\w*(?:/\w+)*")
_ENDED = re.compile(r"\s*(?:[,;|)\]}'\"(·•]|$)|\s{2}|\s-\s|\.(?:\s|$)|\s(?=[\w/ ]+[:=])")
_DAYS = re.compile(r" ?days?\b")
_OPENERS = re.compile(r"(?:\b(?:np|numpy)\.\w+\(|\b(?:torch\.)?tensor\(|\bArray\(|[\[('\"$~≈]|\s)+$")
_LONGEST_KEY = 200
_SIGN = re.compile(r"\s*(:=|=>|->|→|[:=\uff1a])\s*$")
_HINT = re.compile(r"\s*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\bin (s|ms|seconds|sec))$")
_DELIMITERS = re.compile(r"[,;|\t{}()\[\]<>!?\"'•·—\u2013→*`=~:\uff0c\uff1b\uff1a]|\s-+\s|^\s*-+\s|\s{2,}|\.\s")
_KEY = re.compile(r"[^\W\d_][\w /.\-@#%+^∇&]*$")
_FILLERS = re.compile(r"^(?:info|warning|debug|and|with|current|the|n/a|none|null|--)\s+(?=\S)", re.IGNORECASE)
_SUFFIX = re.compile(r"^(.+?)_(ms|s|sec|seconds|gib|mib|gb|mb)$")
# `improved from 0.5`, `loss after 100 steps`: words that end so do not name the number.
_OPEN = re.compile(r"(?i)\b(?:after|from|to|at|of|in|than|by|for|with|is|was|the|until|on|over|every|per|and|or)$")
# `metric_logger.py:181` is a place in a program.
_SOURCE = re.compile(r"\.(?:py|cc|cpp|cu|h)$")
# `loss at step 100: 0.5` names the second number in front of the first one.
_COUNTER = r"(?:step|iter|iteration|epoch|batch|update)"
_AT = re.compile(rf"(?i)(\w[\w ]*?) (?:at|after|for|in|on) (?:the )?({_COUNTER})s?$")
_COUNTS_UP = re.compile(rf"(?i)\b{_COUNTER}s?[ #:]*$")
_FACTOR, _FACTORED = re.compile(r"(?<!tensor)(?<!Array)(?<!float32)(?<!float64)\w\($"), re.compile(r"\)\s?[:=]")
_LAST = re.compile(r"(?:^|.*\s)(\S+)$")


def pairs(
    texts: Sequence[str], taken: frozenset[int] = frozenset(), units: Mapping[str, Unit] | None = None
) -> list[Pair]:
    """The numbers of a line that have a name or a unit, from the texts between them; ``taken`` ones are left out."""
    known = {**(units or {})}
    skipped = _clocks(texts) | taken
    found: list[Pair] = []
    cut = 0
    last: Pair | None = None
    for index in range(len(texts) - 1):
        before = texts[index][cut:] if index else texts[0]
        unit, cut = _unit(texts[index + 1], known, index + 2 == len(texts))
        if index in skipped:
            last = None
            continue
        if found and last and index and _SIGN.fullmatch(before) and (spoken := _AT.match(last.key)):
            found[-1] = last._replace(key=spoken[2])
            last = Pair(index, spoken[1], unit, True)
            found.append(last)
            continue
        pair = None if _is_factor(index, texts) else _pair(index, before, unit, texts, last)
        last = pair or (last if before.strip() == "/" else None)
        if pair:
            found.append(pair)
    return found


def _pair(index: int, before: str, unit: str, texts: Sequence[str], last: Pair | None) -> Pair | None:
    bare = before.strip()
    if index and bare == "/":
        return None
    if bare == "(" and unit == "%" and last and last.of and meaning(last.key).key == "accuracy":
        return Pair(index, last.key, unit, last.strong)  # 9857/10000 (99%)
    if bare == "(" and unit in UNITS and UNITS[unit].base == "s" and last and last.key and not _is_time(last):
        return Pair(index, "time", unit, False)  # loss 2.31 (0.203s)
    if bare == "(" and last and last.key and not last.mean and unit not in RATES and unit not in PACES:
        return Pair(index, last.key, unit or last.unit, last.strong, mean=True) if unit != "%" else None
    key, strong, hint = _key(before[-_LONGEST_KEY:])
    if not key and not unit and not _is_part(index, texts):
        return None
    followed = index + 2 < len(texts) and not texts[index + 1]
    if followed and not strong and not unit and meaning(key).key not in (STEP, EPOCH):
        return None  # `Train loss 64998 0.3027`: ambiguous
    return Pair(index, key, unit or hint, strong, _is_part(index, texts))


def _is_time(pair: Pair) -> bool:
    return (pair.unit in UNITS and UNITS[pair.unit].base == "s") or "time" in pair.key.lower()


def _is_factor(index: int, texts: Sequence[str]) -> bool:
    """Whether a number is in the brackets of a name, ``lr(1e-4): 0.01``, and so not the value."""
    return bool(_FACTOR.search(texts[index]) and _FACTORED.match(texts[index + 1]))


def _is_part(index: int, texts: Sequence[str]) -> bool:
    return index + 2 < len(texts) and texts[index + 1].strip() == "/"


def _clocks(texts: Sequence[str]) -> frozenset[int]:
    """The numbers that are dates and times of day: `2025-05-27`, `0:12:33`, `1 day, 2:03:04`."""
    found: set[int] = set()
    for index in range(1, len(texts) - 1):
        text = texts[index]
        if text == "/" and texts[index + 1 : index + 3] == ["", ":"]:  # 12/13 08:03:57
            found |= {index - 1, index}
        following = texts[index + 1] if index + 2 < len(texts) else ""
        if (text == ":" and not texts[index + 1].startswith("%") and not _COUNTS_UP.search(texts[index - 1])) or (
            text in ("-", "/") and (following == text or (index > 1 and texts[index - 1] == text))
        ):
            found |= {index - 1, index}
        if _DAYS.match(texts[index]):
            found.add(index - 1)
    return frozenset(found)


def _unit(after: str, known: Mapping[str, Unit], last: bool) -> tuple[str, int]:
    """The unit at the beginning of the text after a number, and how long it is; ``last``: no number follows."""
    found = _UNIT.match(after)
    if found:
        text = found[1].lower().replace(" /", "/").replace("/ ", "/")
        if found[0][0] != " ":
            end = found.end()
            if found[1] in _COUNTS and text not in known:
                return found[1], end
            if text in known or text in UNITS or text in RATES or text in PACES or text.startswith("/s"):
                return text, end
        elif _stands_behind(after, found.end(), last) and (
            text in RATES or text in PACES or (text in UNITS and _ENDED.match(after, found.end()))
        ):
            return text, found.end()
    glued = _GLUED.match(after)
    return (UNKNOWN, glued.end()) if glued else ("", 0)


def _stands_behind(after: str, end: int, last: bool) -> bool:
    """Whether a unit after a blank is that of the number before it: `13 tok/s |`, and not `gnorm 13 tok/s=4`."""
    rest = after[end:].lstrip()
    return rest[:1] not in ("=", ":") if rest else last


@lru_cache(REMEMBERED)
def _key(before: str) -> tuple[str, bool, str]:
    """The key at the end of a text, whether a sign joins it, and the unit that it names itself."""
    head = _OPENERS.sub("", before)
    sign = _SIGN.search(head)
    if sign:
        head = head[: sign.start()]
    head = head.rstrip(" '\"*`")
    hint = ""
    named = _HINT.search(head)
    if named and named.start():
        said = (named[1] or named[2] or named[3] or "").strip().lower().removeprefix("in ")
        if said in UNITS or said in RATES or said in PACES:
            head, hint = head[: named.start()], said
    if named and named.start() and not hint:
        # A qualifier in brackets, `grad norm (max)`, is part of the name.
        outer = _DELIMITERS.split(head[: named.start()])[-1].strip()
        return (f"{outer} {head[named.start() :].strip()}" if outer else "", bool(sign), "")
    segment = _DELIMITERS.split(head)[-1].strip(" -")
    segment = _FILLERS.sub("", segment)
    if (
        (not sign and _OPEN.search(segment))
        or not _KEY.match(segment)
        or segment.count(" ") > 7
        or _SOURCE.search(segment)
    ):
        return "", False, hint
    return segment, bool(sign), hint


def item(pair: Pair, names: Mapping[str, str] | None = None, units: Mapping[str, Unit] | None = None) -> Item | None:
    """The meaning of a pair; None for a value with an ambiguous unit.

    ``names`` are a format's own: the canonical key of a normalised name, empty for one that has none here although the
    common table has it. ``units`` are the format's own units: by unit as printed, or by canonical key for values that
    are printed without.
    """
    names, units = names or {}, units or {}
    name = plain(pair.key)
    if pair.unit in _COUNTS:
        made = item(pair._replace(unit=""), names, units)
        if made is None or made.key not in _COUNTED or _BYTES.search(name):
            return None
        return made._replace(scale=made.scale * _COUNTS[pair.unit])
    if pair.mean:
        if meaning(pair.key).key in (STEP, EPOCH):
            return None
        return Item(pair.index, "", f"{pair.key} (avg)", *_kept(pair.unit, units)) if pair.unit != UNKNOWN else None
    means = Meaning(names[name], meaning(pair.key).split) if name in names else meaning(pair.key)
    unit = pair.unit
    if means.key == "step_time_s" and not unit and name.endswith("time/batch"):
        return None  # Composer counts batches with this name
    if not means.key and (suffixed := _SUFFIX.match(name)) and meaning(suffixed[1]).key and not unit:
        means, unit = meaning(suffixed[1]), suffixed[2]
    if unit == UNKNOWN and unit not in units:
        return None
    if means.key == "accuracy" and pair.of:  # 9857 of 10000
        return None
    if means.key in (STEP, EPOCH):
        return Item(pair.index, means.key, pair.key, split=means.split) if not unit or unit not in UNITS else None
    rate = _rate(pair, means, unit, name)
    if rate:
        return rate
    if not means.key and _FLOPS.search(name) and unit in UNITS and UNITS[unit].base == "TFLOP/s":
        return Item(pair.index, "tflops", pair.key, "TFLOP/s", UNITS[unit].scale, means.split)
    scale = units.get(unit) or (units.get(means.key) if not unit else None)
    if means.key:
        scale = scale or in_unit(means.key, unit)
        if scale:
            return Item(pair.index, means.key, pair.key, scale.base, scale.scale, means.split)
    if not pair.key:
        return None
    base, factor = _kept(unit, units)
    return Item(pair.index, "", pair.key, base, factor, means.split)


def _kept(unit: str, units: Mapping[str, Unit]) -> tuple[str, float]:
    """The unit of a value that keeps its own name: seconds and bytes are converted, others stay."""
    if unit in RATES:
        return "1/s", RATES[unit][1]
    if unit in PACES:
        return "s", PACES[unit]
    known = units.get(unit) or UNITS.get(unit)
    return (known.base, known.scale) if known else (unit, 1.0)


# The achieved figure, not the device's peak or the work of a step.
_FLOPS = re.compile(
    r"^(?:approx_|achieved_|model_)?(?:flops(?:_per_gpu)?|(?:gpu_)?utilization|throughput(?:_per_gpu)?)$"
)
_SPEEDS = frozenset(
    ("", "throughput", "speed", "rate", "train_speed", "training_speed", "training_throughput", "perf", "time", "ips")
)


def _rate(pair: Pair, means: Meaning, unit: str, name: str) -> Item | None:
    """A quantity that its unit names, `14.19it/s`, or whose name is a unit, `ms/batch 5.9`."""
    if unit in RATES and (name in _SPEEDS or means.key == RATES[unit][0]):
        key, scale = RATES[unit]
        return Item(pair.index, key, pair.key or unit, "1/s", scale, means.split)
    if unit in PACES and (name in _SPEEDS or means.key == "step_time_s"):
        return Item(pair.index, "step_time_s", pair.key or unit, "s", PACES[unit], means.split)
    spoken = pair.key.lower().strip()
    if not unit and spoken in PACES:
        return Item(pair.index, "step_time_s", pair.key, "s", PACES[spoken])
    if not unit and not means.key and spoken in RATES:
        return Item(pair.index, RATES[spoken][0], pair.key, "1/s", RATES[spoken][1])
    return None


def counter(pair: Pair) -> str:
    """`STEP` or `EPOCH` for a key by its last word, `Saving at step 100`; empty otherwise."""
    last = _LAST.match(pair.key)
    known = meaning(last[1]).key if last and last[1].lower() in _COUNTERS else ""
    return known if known in (STEP, EPOCH) else ""


_COUNTERS = frozenset(("step", "iter", "iteration", "epoch"))
