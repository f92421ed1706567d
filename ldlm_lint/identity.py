"""Identifies a finding even if the lines around it move: for the baseline's entries and the JSON fingerprints."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath

from ldlm_lint.config import relative_to
from ldlm_lint.model import Finding, Identity
from ldlm_lint.patterns import lazily
from ldlm_lint.scopes import Scope, scopes, symbol_at
from ldlm_lint.source import Kind, Source
from ldlm_lint.sources import Sources

LONGEST = 160
# Written by hand, since Python's own tokens of an f-string differ between its versions and a baseline must not.
_PYTHON = lazily(
    r"""(?P<string>\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*')"""
    r"""|(?P<gap>(?:\s|\#[^\r\n]*|\\\r?\n)+)|(?P<word>\w+)|(?P<sign>[\s\S])"""
)
_SHELL = lazily(
    r"""(?P<string>"(?:\\[\s\S]|[^"\\])*"|'[^']*')|(?P<gap>(?:\s|\\\r?\n|(?:(?<=[\s;&|()])|\A)\#[^\r\n]*)+)"""
    r"""|(?P<word>\\[\s\S]|[^\s"'\\])"""
)


class Identifier:
    """Computes the identities of findings; each file's scopes are read once, for its first finding."""

    def __init__(self, sources: Mapping[str, object], root: str) -> None:
        self._sources = sources
        self._root = root
        self._scopes: dict[str, tuple[Scope, ...]] = {}

    def of(self, finding: Finding) -> Identity:
        """The identity of a finding; two equal defects in one function have the same."""
        path = finding.span.path
        # On Windows a path may be on another drive than the project, so only its name remains.
        relative = relative_to(path, self._root) or PurePath(path).name
        source = self._sources.get(path)
        if not isinstance(source, Source):
            return Identity(relative, finding.rule, "", "")
        if path not in self._scopes:
            self._scopes[path] = self._sources.scopes(path) if isinstance(self._sources, Sources) else scopes(source)
        symbol = symbol_at(self._scopes[path], finding.span.start)
        return Identity(relative, finding.rule, symbol, shortened(folded(source.slice(finding.span), source.kind)))


def fingerprint(identity: Identity) -> str:
    """A hash of an identity, the same on every machine and with every version of Python."""
    fields = (identity.path, identity.rule, identity.symbol, identity.code)
    return hashlib.sha256("\0".join(fields).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Fingerprints:
    """Fingerprints that differ for equal defects too, for systems that take the second one for a copy of the first."""

    def __init__(self, identifier: Identifier) -> None:
        self._identifier = identifier
        self._seen: Counter[str] = Counter()

    def unique(self, finding: Finding) -> str:
        """The fingerprint of a finding; calls are in the order of the report; equal findings after the first get a
        number."""
        found = fingerprint(self._identifier.of(finding))
        self._seen[found] += 1
        number = self._seen[found]
        return found if number == 1 else hashlib.sha256(f"{found}\0{number}".encode()).hexdigest()[:32]


def folded(code: str, kind: Kind) -> str:
    """Code without comments and layout, so that a formatter's changes do not count.

    In Python blanks stay only between words, the comma before a closing bracket goes and simple strings get double
    quotes; in shell and configurations blanks separate words and become one.
    """
    return _folded_python(code) if kind is Kind.PYTHON else _folded_shell(code)


def _folded_python(code: str) -> str:
    pieces: list[str] = []
    gap = False
    for match in _PYTHON.finditer(code):
        piece = match.group()
        if match.lastgroup == "gap":
            gap = True
            continue
        if match.lastgroup == "word" and gap and pieces and re.match(r"\w", pieces[-1][-1]):
            pieces.append(" ")
        elif piece in (")", "]", "}") and pieces and pieces[-1] == ",":
            pieces.pop()
        elif match.lastgroup == "string" and piece[0] == "'" and not {'"', "\\"} & set(piece):
            quote = '"""' if piece.startswith("'''") else '"'
            piece = quote + piece[len(quote) : -len(quote)] + quote
        pieces.append(piece)
        gap = False
    return "".join(pieces)


def _folded_shell(code: str) -> str:
    return "".join(" " if match.lastgroup == "gap" else match.group() for match in _SHELL.finditer(code)).strip()


def shortened(code: str) -> str:
    """Long code as its beginning and a hash of all of it."""
    if len(code) <= LONGEST:
        return code
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{code[:LONGEST]}... sha256:{digest}"
