"""mse-on-unit-vectors: mean squared errors of two vectors of length one, in a loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.losses import Losses
from ldlm_lint.concepts.unit_vectors import UnitVectors
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.edits.written_parts import parts_of
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Frequency, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7809",
    symbol="mse-on-unit-vectors",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="the mean squared error of the unit vectors %(left)s and %(right)s is 2 (1 - cos) / D: its value and its "
    "gradient shrink with the width D; multiply it by D / 2, or use 1 - cosine similarity",
    summary="A mean squared error between two vectors that were both normalized to length one.",
    rationale="For unit vectors of D elements the mean over the squared differences is (2 - 2 cos) / D: the cosine "
    "distance, divided by half the width. Its value never exceeds 4 / D, and its gradients have the same factor. Next "
    "to other terms such a loss has almost no effect, its weight silently depends on the width, and the lengths "
    "of the vectors, which a diffusion target needs, are not learned.",
    cost="A factor of 2 / D on this term and its gradients: 1/16 at D = 32, 1/512 at D = 1024 (checked to 8 digits). "
    "No time.",
    exceptions="A term whose weight was tuned with this factor in it: it has the same information as the cosine "
    "distance. Replacing it with `1 - cos` multiplies the term by D / 2, so divide its weight by the same factor.",
    versions="All versions of torch: it follows from arithmetic.",
    verification="Print `loss * D / 2` next to `(1 - F.cosine_similarity(a, b)).mean()`: they are equal. Then compare "
    "the gradient norm of this term with that of the others.",
    references=(
        Reference(
            "torch.nn.functional.normalize",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html",
        ),
        Reference(
            "torch.nn.functional.mse_loss",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.mse_loss.html",
        ),
        Reference(
            "torch.nn.CosineSimilarity", "https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineSimilarity.html"
        ),
    ),
    reads=("py",),
    triggers=(b"normalize", b"norm("),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: multiplied by D / 2 the term is the mean of 1 - cos, and counts that much more next to "
    "the other terms.",
)

_MSE = frozenset({"torch.nn.functional.mse_loss"})
_CLASSES = frozenset({"torch.nn.MSELoss", "torch.nn.modules.loss.MSELoss"})
_SHAPES = frozenset({"shape", "size", "numel"})
_WIDTH = lazily(r"(^|_)(dims?|width|channels|hidden|embed|features|d)($|_)", re.I)
_NO_FACTOR = lazily(r"(\*\*|[/\w(\[,.:])$")


class _Error(NamedTuple):
    """A mean squared error: its call, and the two values with their codes."""

    call: Call
    values: tuple[Expr, ...]
    texts: tuple[str, ...]


def find(code: ProjectCode) -> Iterator[Finding]:
    """The mean squared errors of unit vectors that are run backward."""
    units = code[UnitVectors]
    for one in (*_errors(code), *_means_of_squares(code)):
        if len(one.values) == len(one.texts) == 2 and all(map(units.is_one, one.values)) and not _makes_up_for_width(one.call) and _trains(code, one.call):
            args = {"left": quoted(one.texts[0]), "right": quoted(one.texts[1])}
            yield code.finding(RULE, one.call.span, args, fix=_fix(code, one), confidence=RULE.confidence)


def _errors(code: ProjectCode) -> Iterator[_Error]:
    """``F.mse_loss(a, b)``, and calls of what ``nn.MSELoss()`` made, or of the method of a class derived from it."""
    functions = {call: call for call in code.calls(_MSE)}
    made = set(code.calls(_CLASSES))
    run = code.calls_named("()MSELoss", *sorted({name for one in made for name in one.names}))
    objects = {call: maker for call in run for maker in (call.callee, *call.callee.ways, *call.callee.set_to) if isinstance(maker, Call) and maker in made}
    derived = {call: call for call in code.calls_named("forward") if _is_of_base(call)}
    for call, options in {**functions, **objects, **derived}.items():
        if _averages(call, options, 2 if options is call else 0):
            given = [value for place, name in enumerate(("input", "target")) for value in call.argument(name, place).values[:1]]
            yield _Error(call, tuple(given), tuple(part.text for part in parts_of(call)[:2]))


def _is_of_base(call: Call) -> bool:
    """Whether a call is ``super().forward(…)`` in a class that derives from ``nn.MSELoss``."""
    owner = call.function.owner
    return call.receiver is not None and call.receiver.last_name == "()super" and owner is not None and bool(owner.outside_bases & _CLASSES)


def _averages(call: Call, options: Call, place: int) -> bool:
    """Whether an error is the mean over all elements: by its options, or because that is taken of it."""
    if not options.argument("size_average", place).is_absent or not options.argument("reduce", place + 1).is_absent:
        return False
    reduction = options.argument("reduction", place + 2)
    given = [one.may_be().only for one in reduction.values]
    return reduction.is_absent or given == ["mean"] or (given == ["none"] and any(_takes_mean(one) for one in call.users))


def _takes_mean(user: Expr) -> bool:
    return user.name == "mean" or (isinstance(user, Call) and "torch.mean" in user.callee.outside_names)


def _means_of_squares(code: ProjectCode) -> Iterator[_Error]:
    """``((a - b) ** 2).mean()``, ``torch.mean((a - b).pow(2))`` and ``(a - b).square().mean()``."""
    for call in code.calls_named("mean"):
        of_torch = "torch.mean" in call.callee.outside_names
        squared = next(iter(call.positional), None) if of_torch else call.receiver
        difference = _squared(squared) if squared is not None else None
        if difference is not None and difference.operator == "Sub":
            left, right = difference.operands
            inside = difference.span
            written = [one.text if one.place and inside.start <= one.span.start and one.span.end <= inside.end else "" for one in (left, right)]
            first, last = re.match(r"\w*", difference.text), re.search(r"\w*$", difference.text)
            yield _Error(call, (left, right), (written[0] or (first[0] if first else ""), written[1] or (last[0] if last else "")))


def _squared(value: Expr) -> Expr | None:
    """The base of a squared expression."""
    if value.operator == "Pow":
        return value.operands[0] if value.operands[1].may_be().only == 2 else None
    if not isinstance(value, Call) or value.called_name not in ("square", "pow"):
        return None
    of_torch = any(name.startswith("torch.") for name in value.callee.outside_names)
    given = value.positional if of_torch or value.receiver is None else [value.receiver, *value.positional]
    return given[0] if given and (value.called_name == "square" or (len(given) == 2 and given[1].may_be().only == 2)) else None


def _makes_up_for_width(error: Expr) -> bool:
    """Whether the result is multiplied by the vectors' width, which undoes the mean over their elements."""
    for user in error.users:
        if user.operator in ("Mult", "Div"):
            others = [part for one in user.operands if one != error for part in one.within]
            if any(one.name in _SHAPES or _WIDTH.search(one.name) for one in others) or _makes_up_for_width(user):
                return True
    return False


def _trains(code: ProjectCode, call: Call) -> bool:
    """Whether a call is of a training, and gradients go back from it."""
    records = not code[Untrained].records_nothing(call) and not code[Evaluation].is_named_so(call.function)
    return records and code.trainings.belong_to(code.path(call.module)) and code[Losses].may_run_backward(call)


def _fix(code: ProjectCode, one: _Error) -> Fix:
    """Multiply by half the width, which makes it the mean of 1 - cos; with edits if the width is known to be the last
    dimension."""
    why = "the term then has D / 2 times its weight: divide a tuned weight by D / 2, or leave the term as it is"
    source, span = code.source(one.call.module), one.call.span
    lines = source.slice(span._replace(start=source.offset(one.call.line, 0))), source.lines[one.call.line - 1]
    before, after = lines[0].removesuffix(one.call.text).rstrip(), lines[1].partition(one.call.text)[2].strip()
    is_factor = not _NO_FACTOR.search(before.removesuffix("return").rstrip()) and not after.startswith(("**", ".", "[", ")", ","))
    normalizing = [way for way in one.values[0].ways or [one.values[0]] if way in code[UnitVectors].normalizing]
    last = bool(normalizing) and all(argument.values and argument.values[0].may_be().only == -1 for argument in (way.argument("dim", 2) for way in normalizing if isinstance(way, Call)))
    edits = (Edit(source.span(span.end, span.end), f" * ({one.texts[0]}.shape[-1] / 2)"),) if is_factor and last and one.texts[0].isidentifier() else ()
    return Fix("multiply the error by D / 2, which makes it the mean of 1 - cos", edits, Applicability.DISPLAY, why)
