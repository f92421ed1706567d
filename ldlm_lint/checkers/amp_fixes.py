"""Rewriting calls of torch.cuda.amp and torch.cpu.amp to torch.amp, and their imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.amp_uses import MOVED, Role, Use, is_only_named
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.training_entries import torch_at
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_DTYPES = {"cuda": "float16", "cpu": "bfloat16"}
_SAFE_SINCE = (2, 4)
_GAP = lazily(r"\s*[(,](?:\s|#[^\n]*\n)*")
_MAIN = lazily(rb"^if[ \t]+\(?[ \t]*__name__[ \t]*==", re.M)
_WITHOUT_TARGET = "needs torch >= 2.4; set `target-torch` to make this safe"
_BOUND_ELSEWHERE = "another file can import the names from here"
_NESTED_DTYPE = "inside another autocast the new one takes the dtype of the outer one"
_SEEN_ELSEWHERE = "other code gets the scaler and can check for the old class"
_SCRIPTED = "TorchScript recognizes autocast by its class names"
_TYPE_CHECK = "a type check for the old class in this file no longer matches"


@dataclass
class Rewriting:
    """The edits that rewrite the uses of a file, decided for all of them together."""

    source: Source
    module: nodes.Module
    uses: Sequence[Use]
    target: tuple[int, int] | None

    def fix(self, use: Use) -> Fix | None:
        """The fix of one use: for that call alone, or for all uses that depend on the same import."""
        root = root_of(use.node)
        title = f"use torch.amp.{use.moved.name}"
        if root is None:
            return None
        if qualified(root) == {"torch"}:
            edits = self._edits(use, f"{root.name}.amp.{use.moved.name}")
            return self._as_fix([use], title, edits, self._doubts([use])) if edits else None
        statement = _only_import(root)
        together = [one for one in self.uses if (name := root_of(one.node)) and _only_import(name) is statement]
        if statement is None or not self._covers(statement, together):
            return None
        renamed = _renamed_import(self.source, statement)
        parts = [self._edits(one, None) for one in together]
        if renamed is None or not all(parts):
            return None
        edits = (renamed, *(edit for part in parts for edit in part))
        doubts = [*self._doubts(together), *self._doubts_of_import(statement)]
        title = "use torch.amp" if len(together) > 1 else title
        return self._as_fix(together, title, edits, doubts, group=f"amp {self.source.path}:{statement.lineno}")

    def _as_fix(self, uses: Iterable[Use], title: str, edits: Iterable[Edit], doubts: Sequence[str], group: str = "") -> Fix:
        untold = _WITHOUT_TARGET if self.target is None or self.target < _SAFE_SINCE else ""
        level = Applicability.UNSAFE if doubts or untold else Applicability.SAFE
        needs = tuple(dict.fromkeys(one.moved.new for one in uses))
        reason = "; ".join(dict.fromkeys(doubts))
        return Fix(title, tuple(sorted(edits)), level, reason, group=group, whole=bool(group), needs=needs, untold=untold)

    def _covers(self, statement: nodes.NodeNG, together: Sequence[Use]) -> bool:
        """Whether all that the file does with the names of an import is rewritten, or only names a type."""
        known = {id(root_of(use.node)) for use in together}
        locals_ = {alias or name for name, alias in statement.names}
        for node in nodes_of(self.module, (nodes.Name, nodes.DelName)):
            if node.name not in locals_ or (isinstance(node, nodes.Name) and statement not in bindings(node)):
                continue
            if isinstance(node, nodes.DelName) or _only_import(node) is not statement:
                return False
            if id(node) not in known and not is_only_named(node):
                return False
        return True

    def _edits(self, use: Use, callee: str | None) -> tuple[Edit, ...]:
        """The edits of one use; empty if it cannot be rewritten."""
        span = span_of(self.source, use.node)
        attribute = _attribute_behind_module(use.node)
        if callee is None and attribute is not None:
            callee = attribute
        renamed = (Edit(span, callee),) if callee is not None and self.source.slice(span) != callee else ()
        more = self._with_device_keyword(use) if use.moved.name.startswith("custom_") else self._with_device_first(use)
        return (*renamed, *more) if more else ()

    def _with_device_keyword(self, use: Use) -> tuple[Edit, ...]:
        if use.role is Role.DECORATOR:
            end = span_of(self.source, use.node).end
            return (Edit(self.source.span(end, end), f'(device_type="{use.moved.device}")'),)
        if use.role is not Role.CALL:
            return ()
        edit = add_keyword(self.source, span_of(self.source, use.place), "device_type", f'"{use.moved.device}"')
        return (edit,) if edit else ()

    def _with_device_first(self, use: Use) -> tuple[Edit, ...]:
        call = use.place
        if use.role is not Role.CALL or not _is_plain(use):
            return ()
        starts = self._starts(call)
        names = _AUTOCAST if use.moved.name == "autocast" else ("",) * len(call.args)
        if starts is None or len(call.args) > len(names):
            return ()
        new = [f'"{use.moved.device}"']
        if use.moved.name == "autocast" and self._lacks_dtype(use) and (torch := torch_at(use.node)):
            new.append(f"dtype={torch}.{_DTYPES[use.moved.device]}")
        place, separator = starts[0]
        first = separator.join(new) + (separator if call.args or call.keywords else "")
        texts = [f"{name}=" if name else "" for name in names[: len(call.args)]] or [""]
        texts[0] = first + texts[0]
        places = [place, *(one for one, _ in starts[1:])]
        return tuple(Edit(self.source.span(at, at), text) for at, text in zip(places, texts, strict=True) if text)

    def _starts(self, call: nodes.Call) -> list[tuple[int, str]] | None:
        """Where each positional argument begins (else the first keyword, else the inside of the parentheses).

        With each the text that would separate it from a new argument before it; None for a layout too unusual to edit.
        """
        data, end = self.source.data, span_of(self.source, call.func).end
        if not call.args and not call.keywords:
            opening = data.find(b"(", end)
            return [(opening + 1, ", ")] if not data[end:opening].strip() else None
        found = []
        for node in call.args or call.keywords[:1]:
            span = span_of(self.source, node)
            gap = data[end : span.start].decode(self.source.encoding, "replace")
            if not _GAP.fullmatch(gap):
                return None
            indent = gap.rpartition("\n")[2]
            found.append((span.start, f",{self.source.newline}{indent}" if "\n" in gap else ", "))
            end = span.end
        return found

    def _lacks_dtype(self, use: Use) -> bool:
        arguments = Arguments(use.place, _AUTOCAST)
        return arguments["dtype"].absent and not arguments["enabled"].is_only(False)

    def _doubts(self, uses: Iterable[Use]) -> list[str]:
        """Why a rewrite may change the behaviour of the file."""
        found = [_SCRIPTED] if b"jit.script" in self.source.data or b"ScriptModule" in self.source.data else []
        for use in uses:
            if use.moved.name == "autocast":
                arguments = Arguments(use.place, _AUTOCAST)
                if (arguments["dtype"].node is None and arguments["dtype"].may_be_passed()) or (
                    self._lacks_dtype(use) and torch_at(use.node) is None
                ):
                    found.append(_NESTED_DTYPE)
            if use.moved.name == "GradScaler" and b"isinstance" in self.source.data and self._checks_type(use):
                found.append(_TYPE_CHECK)
            if use.moved.name == "GradScaler" and not _stays_here(use.place):
                found.append(_SEEN_ELSEWHERE)
        return found

    def _checks_type(self, use: Use) -> bool:
        """Whether the file compares with the old class through a name that the fix leaves alone."""
        return any(
            is_only_named(node) and qualified(node) == {use.moved.old} and isinstance(node.parent, nodes.Call)
            for node in nodes_of(self.module, nodes.Attribute)
        )

    def _doubts_of_import(self, statement: nodes.NodeNG) -> list[str]:
        script = _MAIN.search(self.source.data) is not None and not self.source.path.endswith("/__init__.py")
        exported = "__all__" in self.module.locals
        inside = isinstance(statement.scope(), nodes.FunctionDef)
        return [] if inside or (script and not exported) else [_BOUND_ELSEWHERE]


def _stays_here(made: nodes.NodeNG) -> bool:
    """Whether an object is stored in one variable, of which the file only calls methods and reads attributes."""
    statement = made.parent
    targets = statement.targets if isinstance(statement, nodes.Assign) else []
    if len(targets) != 1 or not isinstance(targets[0], nodes.AssignName) or statement.value is not made:
        return False
    uses = (one for one in nodes_of(targets[0].scope(), nodes.Name) if one.name == targets[0].name)
    return all(isinstance(one.parent, nodes.Attribute) for one in uses)


def root_of(node: nodes.NodeNG) -> nodes.Name | None:
    """The name at the beginning of a dotted expression."""
    while isinstance(node, nodes.Attribute):
        node = node.expr
    return node if isinstance(node, nodes.Name) else None


def _attribute_behind_module(node: nodes.NodeNG) -> str | None:
    """``amp.autocast_mode.autocast`` as ``amp.autocast``: the module itself is renamed by its import."""
    root = root_of(node)
    return f"{root.name}.{node.attrname}" if isinstance(node, nodes.Attribute) and root is not None else None


def _only_import(name: nodes.Name) -> nodes.NodeNG | None:
    """The one import statement that binds a name, None if there are other bindings."""
    found = bindings(name)
    return found[0] if len(found) == 1 and isinstance(found[0], (nodes.Import, nodes.ImportFrom)) else None


def _renamed_import(source: Source, statement: nodes.NodeNG) -> Edit | None:
    """The edit that imports from ``torch.amp`` instead of an old module."""
    span = span_of(source, statement)
    text = source.slice(span)
    if isinstance(statement, nodes.ImportFrom):
        if re.fullmatch(r"torch\.(cuda|cpu)\.amp(\.\w+)?", statement.modname):
            if not all(name in MOVED for name, _ in statement.names):
                return None
            old, new = statement.modname, "torch.amp"
        elif statement.modname in ("torch.cuda", "torch.cpu") and [name for name, _ in statement.names] == ["amp"]:
            old, new = statement.modname, "torch"
        else:
            return None
    elif len(statement.names) == 1 and re.fullmatch(r"torch\.(cuda|cpu)\.amp", statement.names[0][0]):
        old, new = statement.names[0][0], "torch.amp"
    else:
        return None
    offset = text.find(old)
    start = span.start + len(text[:offset].encode(source.encoding))
    return Edit(source.span(start, start + len(old)), new) if offset >= 0 else None


def _is_plain(use: Use) -> bool:
    """Whether the arguments of a call can be moved to their new positions: no ``*args`` of ``autocast``, no device
    yet.
    """
    call = use.place
    starred = any(isinstance(one, nodes.Starred) for one in call.args)
    named = {keyword.arg for keyword in call.keywords}
    return not (starred and use.moved.name == "autocast") and named.isdisjoint({"device", "device_type"})
