"""Buffers of models that each rank fills with random numbers of its own: ``register_buffer("codes", torch.randn(n, m))``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.models import Models
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through, reached

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Class, Expr

_DRAWS = lazily(r"(?:torch\.(?:random\.\w+|randn?|randint|randperm|normal|bernoulli)(?:_like)?|numpy\.random\.\w+)")
_FILLS = frozenset({"normal_", "uniform_", "random_"})
_SEEDS = ("manual_seed", "manual_seed_all", "seed_everything", "set_seed", "fix_seed", "seed_all")
_RANK = lazily(r"rank", re.I)


class RandomBuffer(NamedTuple):
    """A buffer, and the class that registers it."""

    owner: Class
    name: str


class RandomBuffers(Concept):
    """Those of the models of a program."""

    def of(self, model: Expr) -> RandomBuffer | None:
        """One of a model, or of a module inside of it."""
        owners = {one for owner in model.classes_of for one in self.code[Models].inside(owner)}
        found = (one for owner in sorted(owners, key=lambda one: one.key) for one in _registered_by(owner))
        return next(found, None)

    def are_drawn_alike(self, near: Call) -> bool:
        """Whether the programs of a call seed torch, and all ranks alike: then every rank draws the same numbers."""
        seeding = [call for call in self.code.calls_named(*_SEEDS) if near.may_run_with(call) and not _seeds_generator(call)]
        return bool(seeding) and not any(_depends_on_rank(value) for call in seeding for value in call.arguments)


def _registered_by(owner: Class) -> Iterable[RandomBuffer]:
    for function in owner.functions:
        for call in function.calls:
            names = call.argument("name", 0).values if call.called_name == "register_buffer" else []
            if names and any(map(_is_drawn, call.argument("tensor", 1).values)):
                literal = names[0].constant
                yield RandomBuffer(owner, literal if isinstance(literal, str) else names[0].text.lstrip("f").strip("\"'"))


def _is_drawn(value: Expr) -> bool:
    """Whether random numbers of the process are in a value."""
    calls = [one for one in reached([value], _made_of) if isinstance(one, Call)]
    has_generator = any(name in ("generator", "random_state") for call in calls for name, _ in call.keywords)
    draws = any(call.called_name in _FILLS or any(map(_DRAWS.fullmatch, call.callee.outside_names)) for call in calls)
    return draws and not has_generator


def _made_of(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return [*expr.arguments, *([expr.receiver] if expr.receiver is not None else [])]
    return expr.operands


def _seeds_generator(call: Call) -> bool:
    """``torch.Generator().manual_seed(0)``."""
    return call.receiver is not None and any(name.endswith("Generator") for name in call.receiver.made_by)


def _depends_on_rank(seed: Expr) -> bool:
    parts = reached([seed], lambda one: [*one.operands, *one.origins(Through.NAMES | Through.PARAMETERS)])
    return any(_RANK.search(one.name or one.last_name) for one in parts)


__all__ = ["RandomBuffer", "RandomBuffers"]
