"""What a light tree says of the names of a file is what Python's own tree says of them."""

from __future__ import annotations

import sys

import pytest

from ldlm_lint.edits.imports import Names, ensure_import
from ldlm_lint.python.ast_walks import nodes_below
from ldlm_lint.python.bound_names import BoundNames
from ldlm_lint.python.syntax import required
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Kind, Source

PROGRAM = """
import os, torch.nn as nn, torch.utils.data
from . import common
from ..pkg import thing as other
from .many import *
try:
    import fast as os
except ImportError as error:
    fast = None
def made(given, /, plain: hint = default, *rest, only=1, **named):
    global shared
    nonlocal_ = [item for item, (deep, *tail) in pairs if (kept := item)]
    def inner():
        nonlocal plain
        import math
        del removed
        with opened() as (first, handle.attribute): pass
    for place[index] in rows: place.value += 1
    return lambda x, *y: x + seen
async def later():
    async for one in many: counted += one
class Local(base, metaclass=meta):
    field: kind = 1
    torch = 2
"""
MATCH = """
match value:
    case {"a": found, **others}: pass
    case [head, *_tail] | Point(x=left) as whole: pass
"""
GENERIC = """
type Alias[T, *Ts, **P] = list[T]
def generic[U: bound](x: U): pass
class Box[V]: pass
"""
PROGRAMS = [PROGRAM, MATCH, *([GENERIC] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("text", PROGRAMS, ids=("program", "match", "generic")[: len(PROGRAMS)])
def test_both_trees_agree(text):
    source = Source.from_bytes("/x/file.py", text.encode(), Kind.PYTHON)
    expected, found = Names.of(nodes_below(required(source))), BoundNames(parse(source, "file").module)
    words = {*expected.imports, *expected.others, *expected.read, "unknown"}
    asked = [(word, target) for word in words for target in {word, f"x.{word}", *expected.imports.get(word, ())}]
    assert len(asked) > 12
    assert [found.only(*one) for one in asked] == [expected.only(*one) for one in asked]
    assert [found.free(*one) for one in asked] == [expected.free(*one) for one in asked]


def test_names_of_a_class_are_no_import():
    source = Source.from_bytes("/x/file.py", PROGRAM.encode(), Kind.PYTHON)
    assert ensure_import(source, "torch.utils.data", "DataLoader")[0] is not None
