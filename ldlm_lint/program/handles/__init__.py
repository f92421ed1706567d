"""What rules and concepts hold in their hands: calls, expressions, functions and classes of a codebase.

A handle is small and frozen; two of one place are equal. Numbers of expressions, rows and masks stay behind it, see
``docs/core.md``. The handles lead to one another, so that each module here names the others by this package.
"""

from ldlm_lint.program.handles.base import Handle
from ldlm_lint.program.handles.calls import Alternative, Argument, Call, Filled, Option, Passed, with_cases
from ldlm_lint.program.handles.expressions import Expr, expression
from ldlm_lint.program.handles.functions import Class, Function, class_at, leading_to
from ldlm_lint.program.handles.places import Guard, Loop, Try, event_of, guards_at, loops_at, spot_at
from ldlm_lint.program.handles.signatures import Signature

__all__ = [
    "Alternative", "Argument", "Call", "Class", "Expr", "Filled", "Function", "Guard", "Handle", "Loop", "Option", "Passed", "Signature", "Try",
    "class_at", "event_of", "expression", "guards_at", "leading_to", "loops_at", "spot_at", "with_cases",
]
