"""What the rules about checkpointed segments share: the choice of the implementation as an edit, and their references."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.written_parts import keyword_of, parts_of
from ldlm_lint.model import Edit, Reference
from ldlm_lint.program.handles import Call

DOCUMENTATION = Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html")
TECHNIQUES = Reference("Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/")
IMPORTS = (b"utils.checkpoint", b"from torch.utils import")


def function_of(call: Call) -> str:
    """The function that a call runs, as it is written."""
    parts = parts_of(call)
    return parts[0].text if parts else "the function"


def choice_of_implementation(call: Call) -> Edit | None:
    """``use_reentrant=False`` in a call; None where something else than a keyword chooses."""
    written = keyword_of(call, "use_reentrant")
    if written is not None:
        return Edit(written.span, "False")
    is_given = not call.argument("use_reentrant").is_absent
    return None if is_given else add_keyword(call.code.source(call.module), call.span, "use_reentrant", "False")


def may_still_raise(function: str, keywords: Sequence[str]) -> str:
    """Why the other implementation may not fix the error."""
    names = ", ".join(keywords) or "the keywords in `**`"
    return f"the line still raises if {function} does not take {names}, and its signature is not known"
