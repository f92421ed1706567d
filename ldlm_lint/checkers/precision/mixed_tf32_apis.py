"""mixed-tf32-apis: TF32 that one program chooses through the newer and the older interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.process_settings import ProcessSettings
from ldlm_lint.concepts.version_tests import VersionTests
from ldlm_lint.edits.assignments import statement_at
from ldlm_lint.model import Consequence, Finding, Probe, Reference, Related, Rule
from ldlm_lint.program.handles import Call
from ldlm_lint.wording import located

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.process_settings import ProcessSetting
    from ldlm_lint.program.handles import Expr
    from ldlm_lint.program.spots import Spot

RULE = Rule(
    code="E7804",
    symbol="mixed-tf32-apis",
    consequence=Consequence.CRASH,
    message="`%(new)s` and `%(old)s` (%(where)s) set TF32 through two interfaces, which torch does not support "
    "together: reading the older one raises RuntimeError if they disagree; use one of them",
    summary="TF32 chosen through `fp32_precision` and through `allow_tf32` or `set_float32_matmul_precision` as well.",
    rationale="torch 2.9 replaced the `allow_tf32` flags with `fp32_precision` and does not support mixing the two. "
    'The older interface checks its value when it is read: after `torch.backends.cuda.matmul.fp32_precision = "tf32"` '
    "alone, `torch.backends.cuda.matmul.allow_tf32` and `torch.get_float32_matmul_precision()` raise RuntimeError. "
    "Other code reads them too, including `torch.compile`, so the error appears far from its cause.",
    cost="A RuntimeError in the middle of a run, or a precision that is not the one you set.",
    exceptions="Code that chooses the interface by the version of torch (`hasattr`, a version check, an except "
    "clause) is not reported.",
    versions="torch 2.9 to 2.13; `fp32_precision` does not exist in older versions.",
    verification="Run on a CPU: set `torch.backends.cuda.matmul.fp32_precision`, then read `allow_tf32`.",
    references=(
        Reference("CUDA semantics: TensorFloat-32", "https://docs.pytorch.org/docs/stable/notes/cuda.html"),
        Reference("torch.backends", "https://docs.pytorch.org/docs/stable/backends.html"),
    ),
    reads=("py",),
    needs="torch.backends.fp32_precision",
    triggers=(),
    probe=Probe(
        "matmul-precision",
        "both interfaces were set, and reading one of them raised",
        experiment="precision",
        whole_run=True,
    ),
)

_PRODUCTS, _CONVOLUTIONS = "products", "convolutions"
_NEW = {
    "torch.backends.fp32_precision": _PRODUCTS,
    "torch.backends.cuda.fp32_precision": _PRODUCTS,
    "torch.backends.cuda.matmul.fp32_precision": _PRODUCTS,
    "torch.backends.cudnn.fp32_precision": _CONVOLUTIONS,
    "torch.backends.cudnn.conv.fp32_precision": _CONVOLUTIONS,
    "torch.backends.cudnn.rnn.fp32_precision": _CONVOLUTIONS,
}
"""The newer settings, with what they choose for."""
_FLAG = "allow_tf32"
_OLD = {f"torch.backends.cuda.matmul.{_FLAG}": _PRODUCTS, f"torch.backends.cudnn.{_FLAG}": _CONVOLUTIONS}
_FUNCTIONS = frozenset({"torch.set_float32_matmul_precision", "torch.get_float32_matmul_precision"})


class _Use(NamedTuple):
    """A place that sets or reads the older interface, what that is called, and what it chooses for."""

    spot: Spot
    name: str
    kind: str


def find(code: ProjectCode) -> Iterator[Finding]:
    """The first place of each file that sets the newer interface in a program that uses the older one."""
    by_version = code[VersionTests]
    new = [one for one in code[ProcessSettings].made(_NEW) if not by_version.decide(one.spot)]
    old = [one for one in _old_uses(code) if not by_version.decide(one.spot)] if new else []
    seen = set()
    for setting in new:
        if setting.module not in seen and (uses := _used_with(setting, old)):
            # One edit, taking one interface for all, mends every place of the file.
            seen.add(setting.module)
            yield _finding(code, setting, uses)


def _old_uses(code: ProjectCode) -> list[_Use]:
    """The places that set or read the flags of the older interface, or call its functions, in order."""
    found = [_Use(one.spot, one.name, _OLD[one.name]) for one in code[ProcessSettings].made(_OLD)]
    for call in code.calls(_FUNCTIONS):
        found += [_Use(call.spot, f"{name}()", _PRODUCTS) for name in call.callee.outside_names if call.callee.count_of_values == 1]
    for read in (one for module in code.modules for one in code.reads_in(module, _FLAG)):
        names = {f"{owner}.{_FLAG}" for owner in read.base.outside_names} if read.base is not None else set()
        found += [_Use(spot, name, _OLD[name]) for name in names & _OLD.keys() for spot in list(_spots(read))[:1] if len(names) == 1]
    return sorted(found, key=lambda one: (one.spot.function.module.path, one.spot.place))


def _spots(read: Expr) -> Iterator[Spot]:
    """Where a value that is read is bound, tested, returned or passed."""
    yield from (event.spot for event in read.events)
    yield from (user.spot for user in read.users if isinstance(user, Call))


def _used_with(setting: ProcessSetting, old: list[_Use]) -> list[_Use]:
    """The uses of the older interface for the same, in its own file, else the first in one program with it."""
    function = setting.spot.function
    alike = [one for one in old if one.kind == _NEW[setting.name]]
    own = [one for one in alike if one.spot.function.module is setting.module]
    if own:
        return [one for one in own if not one.spot.excludes(setting.spot)]
    return [one for one in alike if function.may_run_with(one.spot.function)][:1]


def _finding(code: ProjectCode, setting: ProcessSetting, uses: list[_Use]) -> Finding:
    first, own = uses[0], code.path(setting.module)
    where = located(code.path(first.spot.function.module), first.spot.line, own)
    related = [Related(one.spot.line_span, "this is the older interface") for one in uses]
    span = statement_at(code.source(setting.module), code.offset(setting.module, setting.spot.place))
    return code.finding(RULE, span, {"new": setting.name, "old": first.name, "where": where}, related, confidence=RULE.confidence)
