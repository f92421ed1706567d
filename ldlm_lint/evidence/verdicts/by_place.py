"""Groups the observations of all ranks by place, with shared helpers for their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Site, Verdict, site_of

Record = Mapping[str, Any]


def by_site(
    records: Iterable[tuple[Evidence, Record]], key: str = "site"
) -> Iterator[tuple[Site, list[tuple[Evidence, Record]]]]:
    """The records that name a place of the project, place by place in order of appearance, with their processes."""
    groups: dict[tuple[str, int], list[tuple[Evidence, Record]]] = {}
    places: dict[tuple[str, int], Site] = {}
    for evidence, record in records:
        site = site_of(record.get(key))
        if site is not None:
            places.setdefault((site.path, site.line), site)
            groups.setdefault((site.path, site.line), []).append((evidence, record))
    for at, site in places.items():
        yield site, groups[at]


def ranks_of(group: Iterable[tuple[Evidence, Record]]) -> set[int]:
    """The ranks that the records come from."""
    return {evidence.run.rank for evidence, _ in group}


def agreed(verdicts: Sequence[Verdict]) -> Verdict:
    """The common verdict of all ranks; INCONCLUSIVE if they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else Verdict.INCONCLUSIVE


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "step"), counted(3, "process", "processes")
    ('1 step', '3 processes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def unit(number: float, noun: str) -> str:
    """The unit of a count.

    >>> unit(1, "pass"), unit(3, "pass")
    ('pass', 'passes')
    """
    return noun if number == 1 else noun + ("es" if noun.endswith("s") else "s")


def listed(names: Iterable[str], total: int | None = None, most: int = 4) -> str:
    """Names as text.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c, d and 1 more'
    """
    known = list(names)
    shown, count = known[:most], total if total is not None else len(known)
    rest = count - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def distinct(sites: Iterable[Mapping[str, Any] | Site | None]) -> tuple[Site, ...]:
    """Places without repetitions and gaps, in order."""
    found = (one if isinstance(one, Site) else site_of(one) for one in sites)
    return tuple(dict.fromkeys(one for one in found if one is not None))
