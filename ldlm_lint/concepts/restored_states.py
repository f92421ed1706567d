"""What happens to a loaded state: whether its tensors only go into ``load_state_dict``, which moves them itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.value_uses import How, Use

_PLAIN = lazily(r"epoch|step|iter|arg|config|cfg|version|arch|name|seed|hparams|hyper", re.I)
"""Keys of values that are not tensors."""
_TAKES = frozenset({"load_state_dict", "print", "len", "isinstance", "bool", "type"})
_GIVES = frozenset({"get", "pop", "items", "keys", "values", "copy"})
_ASKS = frozenset({"cmp", "bool", "not"})
_HANDS_ON = frozenset({"copy", "phi", "elem", "part", "dcomp"})


def is_only_restored(state: Expr) -> bool:
    """Whether a state or parts of it are passed to ``load_state_dict``, and otherwise only plain values such as the
    epoch are read."""
    todo, seen = [state], {state}
    while todo:
        at = todo.pop()
        for use in at.uses():
            parts = _parts(at, use)
            if parts is None:
                return False
            fresh = [one for one in parts if one not in seen]
            seen.update(fresh)
            todo += fresh
    return True


def _parts(state: Expr, use: Use) -> list[Expr] | None:
    """What a use hands on of a state; None of one that may need its tensors where they are."""
    user = use.by
    if user is None:
        return [] if use.how in (How.TESTED, How.OTHER) else None
    if user.kind in _ASKS or (user.part == 0 and _is_item(state)):
        return []
    if isinstance(user, Call):
        return [user] if user.called_name == "dict" else [] if user.called_name in _TAKES and user.callee != state else None
    if user.kind == "item":
        return [] if _is_plain(user.index) else [user]
    if user.kind == "attr" and user.name in _GIVES:
        return list(_given(user))
    return [user] if user.kind in _HANDS_ON else None


def _is_item(element: Expr) -> bool:
    """``for name, value in state.items()``: the name is a text."""
    return element.kind == "elem" and isinstance(element.base, Call) and element.base.called_name == "items"


def _given(method: Expr) -> Iterator[Expr]:
    """What a method gives of a state: ``state.get("model")``; nothing for a plain value."""
    for call in method.users:
        if not isinstance(call, Call) or call.callee != method or not _is_plain(call.positional[0] if call.positional else None):
            yield call


def _is_plain(key: Expr | None) -> bool:
    return key is not None and isinstance(key.constant, str) and _PLAIN.search(key.constant) is not None


__all__ = ["is_only_restored"]
