"""Conditions of findings about checkpoints on the text of a file: a superset of `ldlm_lint.shapes.checkpoints`.

A library function appears in a text by its name: imported, after a possible library name, or as a string.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.checkpoint_words import SMALL
from ldlm_lint.shapes.draft import NAMELESS, Draft
from ldlm_lint.shapes.outline import GAP

_SAVES = (b"save", b"save_file", b"save_model")
_PACKAGES = (b"torch", b"safetensors")
_TAKES = lazily(GAP + rb"\([ \t]*(?!\))")
_LOOKUPS = (b"getattr", b"attrgetter", b"methodcaller")
_BRINGS_ALL = lazily(rb"import[ \t\\(]*\*")


def may_save(draft: Draft) -> bool:
    """Whether a state may be saved: by torch or safetensors, or by a Hugging Face model."""
    return _BRINGS_ALL.search(draft.data) is not None or any(True for _ in _saves(draft))


def _saves(draft: Draft) -> Iterator[int]:
    """Where a state may be saved, or a save function may be named."""
    yield from (at for word in _SAVES for at in draft.words(word) if _may_be_of_library(draft, at))
    yield from (at for at in draft.words(b"save_pretrained") if _saves_itself(draft, at))


def _saves_itself(draft: Draft, at: int) -> bool:
    owner = draft.before(at)
    if not owner or _TAKES.match(draft.data, at + len(b"save_pretrained")) is None:
        return owner is None
    return owner == NAMELESS or not SMALL.search(owner.decode(errors="replace").split(".")[-2])


def _may_be_of_library(draft: Draft, at: int) -> bool:
    """Whether a word may mean a function of torch or safetensors."""
    owner = draft.before(at)
    if owner:
        return owner == NAMELESS or _may_be_library(draft, owner.partition(b".")[0])
    if owner is None or _is_imported(draft, at):
        return True
    quoted = draft.data[at - 1 : at] in (b"'", b'"')
    return quoted and (draft.data[at - 2 : at - 1] == b"[" or any(one in draft.data for one in _LOOKUPS))


def _may_be_library(draft: Draft, name: bytes) -> bool:
    """Whether a name may mean a library that saves: by an import, an assignment or a class."""
    if name in _PACKAGES:
        return True
    return any(
        _is_imported(draft, at) or draft.is_bound(at, name) or draft.is_defined(at)
        for at in draft.words(name)
        if not draft.before(at)
    )


def _is_imported(draft: Draft, at: int) -> bool:
    """Whether a place may be in an import from a library that saves."""
    text = draft.imported_from(at)
    return text is not None and any(one in text for one in _PACKAGES)
