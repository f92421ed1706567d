"""checkpoint-load-unspecified: `torch.load`, under any name, that leaves the allowed contents of the file to the version of
torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.load_defaults import LoadDefaults
from ldlm_lint.concepts.load_origins import LoadOrigins, Origin
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Reference, Related, Rule
from ldlm_lint.program.origins import VERSIONS
from ldlm_lint.wording import listed, located, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="W7604",
    symbol="checkpoint-load-unspecified",
    consequence=Consequence.SECURITY,
    message="`torch.load()` without `weights_only`%(source)s: %(stakes)s; %(advice)s",
    summary="`torch.load` that does not say whether the file can hold arbitrary objects.",
    rationale="A checkpoint is a pickle, and unpickling runs whatever code its author put into it. "
    "`weights_only=True` allows only tensors and plain containers. The default was False up to torch 2.5 (2.4 and 2.5 "
    "warn) and is True since 2.6. So the same line runs the code in a hostile file on one version, and fails on a "
    "harmless file with an argparse.Namespace or a dataclass on the next.",
    cost="With the old default, arbitrary code execution from a downloaded file. With the new one, a resume that ends "
    "in UnpicklingError.",
    exceptions="Not reported: tests, a call that passes `pickle_module`, keyword arguments that a function passes on "
    "unless all its calls are known to omit `weights_only`, and code that chooses the argument by the version of "
    "torch. Reported at level info if the project wrote the file itself (it saves to the same name or folder, or the "
    "load restores an optimizer to resume a run), or if the path begins in the folder of the code: the file contains no code of others, and the version only decides "
    "whether it loads; if it only contains tensors and plain values, every version loads it.",
    versions="`weights_only` exists since torch 1.13; the default is False before 2.6 and True since. Not reported if "
    "`target-torch` is 2.6 or later, because the default is then True.",
    verification="Run once with `weights_only=True`. If it raises UnpicklingError, save plain values instead, allow "
    "the types with `torch.serialization.safe_globals`, or write `weights_only=False` if the file is your own. The "
    "test suite contains a program whose resume ends in UnpicklingError, on torch 2.6 and later.",
    references=(
        Reference("torch.load", "https://docs.pytorch.org/docs/stable/generated/torch.load.html"),
        Reference(
            "Serialization semantics: weights_only",
            "https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only",
        ),
    ),
    reads=("py",),
    needs="torch.load(weights_only=)",
    triggers=(b"",),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `weights_only=True` breaks a resume whose file contains other objects, "
    "`weights_only=False` lets the file run code. Which one is right depends on the origin of the file.",
)

_LOADS = frozenset({"torch.load", "torch.serialization.load"})
_STRICT_BY_DEFAULT = (2, 6)
"""The first torch whose ``torch.load`` takes nothing but tensors and plain containers unless it is told."""
_STRICT = "`weights_only=True`"
_STRICT_FIX = "`weights_only=True` fails on checkpoints with other objects"
_FROM_ANYWHERE = {
    "source": "",
    "stakes": "before torch 2.6 the file can run any code, since 2.6 loading fails on anything but tensors and plain containers",
    "advice": f"pass {_STRICT}",
}
"""The fields of the message if the origin of the file is unknown."""
_ITS_OWN, _ITS_OWN_TENSORS, _RESUMES = "the project writes the file itself", "the project writes the file itself, with tensors only", "a checkpoint to resume from"
_BESIDE_CODE = "the file is in the folder of the code"
"""Why a load is only information."""


def find(code: ProjectCode) -> Iterator[Finding]:
    """All calls that may call `torch.load` and leave the decision to the version of torch."""
    for load in code.calls(_LOADS):
        oldest = code.torch_of(load.module).oldest
        if (oldest is None or oldest < _STRICT_BY_DEFAULT) and _is_left_open(code, load):
            yield _finding(code, load)


def _is_left_open(code: ProjectCode, load: Call) -> bool:
    """Whether neither a call, nor what applies to all calls, nor a test of the torch version decides."""
    if not (load.argument("weights_only").is_absent and load.argument("pickle_module", 2).is_absent) or _asks_for_version(load):
        return False
    return (_is_one(load) or _is_chosen(load)) and not code[LoadDefaults].decide_for(load)


def _is_one(load: Call) -> bool:
    """Whether a call can only be one of `torch.load`."""
    callee = load.callee
    return callee.count_of_values == 1 and callee.interfaces <= _LOADS and bool(callee.outside_names)


def _is_chosen(load: Call) -> bool:
    """Whether a condition other than a test of the torch version chooses `torch.load`."""
    found = [origin for one in load.callee.alternatives(_LOADS) for origin in one.origins]
    return bool(found) and not any(origin.is_guarded_by(VERSIONS) for origin in found)


def _asks_for_version(load: Call) -> bool:
    """Whether the function passes ``weights_only`` in another branch, and chooses the branch by torch's support for
    it."""
    passing = [one for one in load.function.calls if "weights_only" in dict(one.keywords)]
    tests = [guard.test for one in (*passing, load) for guard in one.guards if guard.kind in ("if", "rest", "except")] if passing else []
    words = {word for test in tests for one in test.within for word in (one.name, one.constant) if isinstance(word, str)}
    return any(VERSIONS.search(word) or word == "TypeError" for word in words)


def _finding(code: ProjectCode, load: Call) -> Finding:
    """The finding of a call: information for a file of the project itself; the source is named for a file from
    outside."""
    origin = code[LoadOrigins].of(load)
    call = origin.written or origin.alike
    where, related = "", []
    if call is not None:
        label = "the project writes such entries here" if origin.alike is not None else "the project writes the file here"
        where = f"{quoted(_name(call))} in {located(code.path(call.module), call.line, code.path(load.module))}"
        related = [Related(call.spot.line_span, label)]
    args, reason = _said_of(origin, where)
    fix = None if origin.objects and origin.fetched is None else _fix(code, load)
    confidence = RULE.confidence if _is_one(load) else Confidence.MEDIUM
    finding = code.finding(RULE, load.span, args, related if origin.fetched is None else (), fix=fix, confidence=confidence)
    return finding.lowered(reason) if reason else finding


def _name(call: Call) -> str:
    return call.text.partition("(")[0].strip()


def _said_of(origin: Origin, where: str) -> tuple[dict[str, object], str]:
    """The fields of the message for a file, and why it is only information, if it is; ``where`` names the call that writes it."""
    if origin.fetched is not None:
        return _from_outside(origin.fetched if isinstance(origin.fetched, str) else _name(origin.fetched)), ""
    if origin.shipped and origin.written is None:
        return _of_the_project("") | {"source": " reads a file in the folder of the code"}, _BESIDE_CODE
    if origin.written is None and not origin.resumes:
        return _of_files_like(where, origin.objects) if origin.alike is not None else dict(_FROM_ANYWHERE), ""
    if origin.only_tensors:
        return _of_tensors(where), _ITS_OWN_TENSORS if where else _RESUMES
    return _of_the_project(where, origin.objects, is_inferred=origin.alike is not None), _ITS_OWN if where else _RESUMES


def _fix(code: ProjectCode, load: Call) -> Fix | None:
    """Shown only: in another branch the function may be one that rejects the keyword."""
    edit = add_keyword(code.source(load.module), load.span, "weights_only", "True") if _is_one(load) else None
    return Fix("set weights_only=True", (edit,), Applicability.DISPLAY, _STRICT_FIX) if edit else None


def _from_outside(fetched: str) -> dict[str, object]:
    """Those of a file that a call, or an address, brings onto the machine."""
    stakes = "before torch 2.6 the author of the file can run any code on this machine"
    return {"source": f" reads a file from outside ({quoted(fetched)})", "stakes": stakes, "advice": f"pass {_STRICT}"}


def _of_tensors(where: str) -> dict[str, object]:
    """The arguments for a file that the project writes with tensors and plain values only, ``where`` names the call."""
    source = f" reads a file of tensors and plain values only, which {where} writes"
    return {"source": source, "stakes": "every version of torch loads it, and it holds no code of others", "advice": f"pass {_STRICT} to say so"}


def _of_files_like(where: str, objects: Iterable[str]) -> dict[str, object]:
    """Those of a file of unknown origin, if the project writes files with the same entries, ``objects`` among them."""
    stakes = f"before torch 2.6 the file can run any code, since 2.6 loading fails on objects such as {listed(objects)}, which {where} writes beside the entries read here"
    return {"source": "", "stakes": stakes, "advice": f"write plain values instead, and pass {_STRICT}"}


def _of_the_project(where: str, objects: Iterable[str] = (), *, is_inferred: bool = False) -> dict[str, object]:
    """The arguments for a file of the project itself: ``where`` it is written, empty for a checkpoint to resume
    from, with ``objects`` in it that only ``weights_only=False`` reads. ``is_inferred``: not the path says so, but the
    entries that are read.
    """
    written = f" reads entries that {where} writes" if is_inferred else f" reads a file that {where} writes"
    source = written if where else " reads a checkpoint to resume from"
    if objects:
        stakes = f"since torch 2.6 loading fails, because the file also has {listed(objects)}, and not only tensors and plain containers"
        return {"source": source, "stakes": stakes, "advice": "write plain values instead, or pass `weights_only=False`"}
    stakes = "since torch 2.6 this fails if the file holds anything but tensors and plain containers"
    return {"source": source, "stakes": stakes, "advice": f"pass {_STRICT}, or `weights_only=False` if the file holds other objects"}
