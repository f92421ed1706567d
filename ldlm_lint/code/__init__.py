"""The facts of a Python file as plain tuples: one pass over its syntax tree builds a `Table`, independent of libraries
and rules."""

from ldlm_lint.code.build import table_of
from ldlm_lint.code.packing import packed, plain, restored, unpacked
from ldlm_lint.code.table import Guard, Loop, Scope, Table

__all__ = ["Guard", "Loop", "Scope", "Table", "packed", "plain", "restored", "table_of", "unpacked"]
