"""The values of evidence, schema ``ldlm-evidence/1``: what a probe saw, where, and the conclusion for a rule.

One file is one process of one run (`Evidence`): raw `observations` by topic, and judgements if an experiment made them
itself. Judgements about a watched program are made from the files of all its ranks by
`ldlm_lint.evidence.verdicts.judge`, on demand, so that a better judge needs no new run.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "ldlm-evidence/1"


class EvidenceError(Exception):
    """Unusable evidence; the text names the file and the problem."""


class Verdict(enum.Enum):
    """The verdict of evidence on a static claim.

    VERIFIED: the claim was observed. REFUTED: the opposite was observed, and the linter was wrong here. INCONCLUSIVE:
    not observable, too few samples, too noisy or the wrong device. A defect that was not seen in N steps is described
    so, never as "safe".
    """

    VERIFIED = "verified"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


class Status(enum.Enum):
    """How a watched process ended."""

    STOPPED = "stopped_after_steps"
    FINISHED = "finished"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    # Of evidence that is written while the program runs, and of a process that was then ended by force.
    RUNNING = "running"
    KILLED = "killed"
    NOT_INJECTED = "not_injected"


@dataclass(frozen=True, slots=True)
class Site:
    """The place of an observation in the user's code.

    ``path`` is relative to `Run.root` with forward slashes, absolute where it is outside. Lines are 1-based and
    inclusive; ``end_line`` 0 means the same line. ``sha256`` is of the file's bytes at that time, in hex.
    """

    path: str
    line: int
    end_line: int = 0
    sha256: str = ""
    function: str = ""

    @property
    def lines(self) -> range:
        """The lines of the place, 1-based."""
        return range(self.line, max(self.end_line, self.line) + 1)


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an experiment: the quartiles of ``n`` samples in ``unit``, of ``inner`` repetitions each."""

    name: str
    median: float
    q1: float
    q3: float
    n: int
    unit: str
    inner: int = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure with the data to judge its reliability.

    ``ci95`` is the bootstrap interval of ``value``; ``threshold`` the least effect that matters in practice;
    ``noise_band`` the A/A difference in the same run; ``clock`` is ``process_time``, ``perf_counter`` or
    ``cuda_event``, empty for counts and bytes. ``detail`` are further plain values (kernel names).
    """

    metric: str
    value: float | None
    unit: str = ""
    ci95: tuple[float, float] | None = None
    n: int = 0
    threshold: float | None = None
    noise_band: float | None = None
    clock: str = ""
    arms: tuple[Arm, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a judgement: the device of the run (``cpu``, ``cuda``), the device it is about, steps and ranks."""

    device: str
    target: str = ""
    steps: int = 0
    ranks: tuple[int, ...] = ()
    world_size: int = 1

    @property
    def words(self) -> str:
        """The scope as the end of a sentence: ``in 50 steps on 2 ranks (cpu)``."""
        parts = [f"in {self.steps} step{'' if self.steps == 1 else 's'}"] if self.steps else []
        if self.ranks:
            seen = f"on {len(self.ranks)} rank{'' if len(self.ranks) == 1 else 's'}"
            parts.append(seen if len(self.ranks) >= self.world_size else f"{seen} of {self.world_size}")
        return " ".join([*parts, f"({self.device})"])


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of evidence for one rule, at one place or (without ``sites``) for this machine in general.

    ``sites`` are possible places of the finding, the likeliest first (the call, the class, the loop). ``lifts`` says
    that a verified claim makes the fix better by one level (find_unused_parameters: from display to unsafe). ``reason``
    is a sentence with the figures and the scope. ``settled_by`` says what would decide an inconclusive one
    (`ldlm_lint.evidence.settling`): ``device``, ``ranks``, ``steps``, ``quiet``; empty: nothing known.
    """

    rule: str
    claim: str
    verdict: Verdict
    reason: str
    scope: Scope
    sites: tuple[Site, ...] = ()
    measured: Measurement | None = None
    lifts: bool = False
    settled_by: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One watched or measuring process. ``root`` (absolute, forward slashes) is the base of `Site.path`.

    ``kind`` is ``watch``, ``micro`` or ``memory``; ``world_size`` is the process group's if there is one, else the
    environment's; ``exception`` the last line of a traceback; ``run_id`` is shared by the processes of one command.
    """

    kind: str
    run_id: str
    command: tuple[str, ...] = ()
    root: str = ""
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    pid: int = 0
    host: str = ""
    status: Status = Status.FINISHED
    steps: int = 0
    seconds: float = 0.0
    started: str = ""
    exception: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and its software; ``device`` is the device of the parameters: ``cpu``, ``cuda``, ``mps`` ...
    ``executable`` is the Python that ran, as started.

    ``load`` is the load average over 1, 5, 15 minutes, ``cpu_pressure`` PSI's some-avg10 in percent, ``variables``
    the NCCL_*, TORCH_*, PYTORCH_*, CUDA_*, OMP_* variables (never others: they may hold secrets).
    """

    python: str = ""
    executable: str = ""
    torch: str = ""
    device: str = "cpu"
    device_name: str = ""
    cuda: str = ""
    nccl: str = ""
    driver: str = ""
    cpu_capability: str = ""
    cpus: float = 0.0
    threads: int = 0
    load: tuple[float, ...] = ()
    cpu_pressure: float | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One evidence file.

    ``observations`` are raw facts by topic, plain JSON values (a place is a `Site` as a mapping under ``site``);
    ``unavailable`` says what could not be observed, by topic, and why; ``notes`` are for people; ``overhead_seconds``
    is the time spent in the probe's own hooks.
    """

    run: Run
    environment: Environment
    observations: Mapping[str, Any] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    overhead_seconds: float = 0.0


def to_json(evidence: Evidence) -> dict[str, Any]:
    """The evidence as plain JSON values, with the schema's name first."""
    return {"schema": SCHEMA, **plain(evidence)}


def plain(value: Any) -> Any:
    """A value of this module, or a container of such, as plain JSON values."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    return value


def site_of(values: Mapping[str, Any] | None) -> Site | None:
    """The site in an observation's ``site`` mapping; None if it has none."""
    return _made(Site, values) if values else None


def from_json(values: Any) -> Evidence:
    """The evidence in plain values; raises EvidenceError if they are of another schema or shape."""
    if not isinstance(values, Mapping) or values.get("schema") != SCHEMA:
        found = values.get("schema") if isinstance(values, Mapping) else type(values).__name__
        raise EvidenceError(f"not evidence of schema {SCHEMA} (found {found!r})")
    try:
        for key, kind in (
            ("unavailable", Mapping[str, str]),
            ("notes", tuple[str, ...]),
            ("observations", Mapping[str, Any]),
        ):
            if not _fits(values[key], kind):
                raise TypeError(f"{key} cannot be {str(values[key])[:40]!r}")
        run = _made(Run, values["run"])
        environment = _made(Environment, values["environment"])
        return Evidence(
            dataclasses.replace(run, command=tuple(run.command), status=Status(run.status)),
            dataclasses.replace(environment, load=tuple(environment.load)),
            dict(values["observations"]),
            tuple(judgement_of(one) for one in values["judgements"]),
            dict(values["unavailable"]),
            tuple(values["notes"]),
            float(values["overhead_seconds"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise EvidenceError(f"not evidence of schema {SCHEMA} ({type(error).__name__}: {error})") from error


def judgement_of(values: Mapping[str, Any]) -> Judgement:
    """The judgement in plain values; raises KeyError, TypeError or ValueError for another shape."""
    judgement = _made(Judgement, values)
    measured = _made(Measurement, values["measured"]) if values.get("measured") else None
    if measured is not None:
        interval = tuple(measured.ci95) if measured.ci95 is not None else None
        arms = tuple(_made(Arm, one) for one in measured.arms)
        measured = dataclasses.replace(measured, ci95=interval, arms=arms)
    scope = _made(Scope, values["scope"])
    return dataclasses.replace(
        judgement,
        verdict=Verdict(judgement.verdict),
        scope=dataclasses.replace(scope, ranks=tuple(scope.ranks)),
        sites=tuple(_made(Site, one) for one in values["sites"]),
        measured=measured,
    )


def _made(kind: type, values: Mapping[str, Any]) -> Any:
    """A dataclass from a mapping; unknown keys belong to a later minor version and are ignored.

    Raises TypeError for a value of another type than the field's: evidence is untrusted.
    """
    hints = _hints(kind)
    known = {key: value for key, value in values.items() if key in hints}
    for key, value in known.items():
        if not _fits(value, hints[key]):
            raise TypeError(f"{kind.__name__}.{key} cannot be {str(value)[:40]!r}")
    return kind(**known)


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is valid for a field; nested values of this module are checked when they are created."""
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        several = arguments[-1] is ...
        each = arguments[:1] * len(value) if several and isinstance(value, (list, tuple)) else arguments
        listed = isinstance(value, (list, tuple)) and len(value) == len(each)
        return listed and all(_fits(one, part) for one, part in zip(value, each, strict=True))
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(one, arguments[1]) for one in value.values())
    if isinstance(value, bool):
        return hint in (bool, Any)
    return hint not in _PLAIN or isinstance(value, _PLAIN[hint])


_PLAIN: dict[Any, type | tuple[type, ...]] = {str: str, int: int, float: (int, float), bool: bool, type(None): type(None)}
