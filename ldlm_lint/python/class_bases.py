"""The bases of the classes of a file, from its text."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.patterns import lazily

# The bases are a look-ahead, so that the next class is found anywhere; a class with more text is skipped.
_CLASS = lazily(rb"class(?<!\Sclass)[ \t]+(\w+)[ \t]*\((?=([^)]{0,2000})\))")
_BASE = lazily(rb"\w+\b(?![ \t]*=)")


def class_bases(data: bytes) -> Iterator[tuple[str, frozenset[str]]]:
    """The names of the classes of a text in order, including nested ones, each with the words in the names of its
    bases.

    ``class Net(nn.Module)`` has the bases ``nn`` and ``Module``. The name of a keyword is not a base, its value is.
    """
    for name, bases in _CLASS.findall(data):
        yield name.decode(), frozenset(map(bytes.decode, _BASE.findall(bases)))
