"""The copyright holder of a file: from its first comment, or the text of a licence.

Two holders are the same if they share a distinctive word: "The HuggingFace Inc. team" and "HuggingFace Inc." are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from ldlm_lint.patterns import lazily

# A holder of a smaller share of the files is one of many.
_OWN_SHARE = 1 / 3
_OWN_PLACES = 3
_MOST_BYTES = 4096
_MOST_LINES = 60
_LONGEST = 80
_QUOTES = ('"""', "'''")
_CLAIM = lazily(r"\bcopyright\b(?P<rest>.*)", re.I)
_OFFERED = lazily(r"\(c\)|©|\b(?:19|20)\d\d\b|\bby\b", re.I)
_DATES = lazily(r"\(c\)|©|\b(?:19|20)\d\d(?:\s*[-\u2013]\s*(?:(?:19|20)?\d\d|present|now))?\b|\bcopyright\b|\bby\b", re.I)
_ENDS = lazily(r"\ball rights? reserved\b|\blicensed under\b|<|https?:|\band (?:/ ?or )?its affiliates\b|(?<=\w)\. |,? (?:inc|llc|ltd|corp)\b", re.I)
_GENERATED = lazily(r"\bgenerated from src/(\w+)/[\w/]+\.py\b")
_WORD = lazily(r"[a-z][a-z0-9]+")
# Words that many holders share, and words of licence sentences at the place of a holder.
_COMMON = frozenset(
    (
        "the", "inc", "team", "authors", "author", "corporation", "corp", "llc", "ltd", "limited", "co", "company",
        "and", "or", "affiliates", "its", "of", "for", "all", "rights", "reserved", "present", "now", "contributors",
        "project", "group", "labs", "lab", "ai", "research", "university", "institute", "com", "org", "www", "http",
        "https", "face", "below", "notice", "holder", "holders", "license", "licensed", "this", "see", "under", "above",
    )
)
# One house under two names, and a spelling that hundreds of files copied from each other.
_SAME = {"facebook": "meta", "hugging": "huggingface", "hugginface": "huggingface", "deepmind": "google"}


class Holders:
    """The copyright holders of a project: ``words`` returns them by file, ``licensed`` are those in its licence."""

    def __init__(self, root: str, words: Mapping[str, frozenset[str]], licensed: frozenset[str]) -> None:
        self._root = root
        self.words = words
        self._licensed = licensed
        self._counts: dict[str, Counter[str]] = {}
        for path, found in words.items():
            for word in found:
                self._counts.setdefault(word, Counter())[self._top_of(path)] += 1

    def _top_of(self, path: str) -> str:
        return path[len(self._root) + 1 :].partition("/")[0]

    @cached_property
    def main(self) -> frozenset[str]:
        """The holders of the licence, and those that a large part of the files name."""
        least = _OWN_SHARE * len(self.words)
        return self._licensed.union(word for word, places in self._counts.items() if places.total() >= least)

    @cached_property
    def own(self) -> frozenset[str]:
        """The project's holders: copied code is in one place, so a holder named in many places is one of them."""
        return self.main.union(word for word, places in self._counts.items() if len(places) >= _OWN_PLACES)

    def beside(self, files: Collection[str]) -> frozenset[str]:
        """The holders of the project from its other files."""
        inside: dict[str, Counter[str]] = {}
        for path in files:
            for word in self.words[path]:
                inside.setdefault(word, Counter())[self._top_of(path)] += 1
        least = max(_OWN_SHARE * (len(self.words) - len(files)), 1)
        found = set(self._licensed)
        for word, places in self._counts.items():
            left = places - inside[word] if word in inside else places
            if left.total() >= least or len(left) >= _OWN_PLACES:
                found.add(word)
        return frozenset(found)


def head_of(data: bytes) -> tuple[tuple[str, ...], str]:
    """The holders that the comments and the docstring at the head of a Python file name, as written.

    Also the package from which a tool generated the file; empty if none is named.
    """
    lines = list(_head(data))
    found = _GENERATED.search(" ".join(lines))
    return tuple(dict.fromkeys(_claimed("\n".join(lines)))), found[1] if found else ""


def holders_of_licence(text: bytes) -> tuple[str, ...]:
    """The holders that the beginning of a licence names."""
    return tuple(dict.fromkeys(_claimed(text[:_MOST_BYTES].decode(errors="replace"))))


def words_of(holder: str) -> frozenset[str]:
    """The distinctive words of a holder.

    >>> sorted(words_of("Facebook, Inc. and its affiliates"))
    ['meta']
    """
    return frozenset(_SAME.get(word, word) for word in _WORD.findall(holder.lower())) - _COMMON


def _head(data: bytes) -> Iterator[str]:
    """The comments and the docstring at the beginning of a file."""
    quote = ""
    for line in data[:_MOST_BYTES].decode(errors="replace").splitlines()[:_MOST_LINES]:
        text = line.strip()
        if quote:
            yield text
            quote = "" if quote in text else quote
            continue
        opened = next((one for one in _QUOTES if text.lstrip("rRuU").startswith(one)), "")
        if opened:
            yield text
            quote = "" if text.count(opened) > 1 else opened
        elif text.startswith("#") or not text:
            yield text
        else:
            return


def _claimed(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = _CLAIM.search(line)
        if found is not None and _OFFERED.search(line):
            name = _DATES.sub(" ", found["rest"])
            name = " ".join(_ENDS.split(name, maxsplit=1)[0].split()).strip(" .,:;#*-\"'()")
            # ``Pan Qiwei (William)`` ends with the sign that closes what it opened.
            name += ")" * (name.count("(") - name.count(")"))
            if words_of(name):
                yield name[:_LONGEST]
