"""The value types of all parts of ldlm-lint: rules, spans, findings, fixes and reports.

All of them are frozen, picklable and free of syntax-tree nodes, so that a worker process, a cache file and pylint's
map/reduce can carry them unchanged.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from ldlm_lint.evidence.join import Joined
    from ldlm_lint.evidence.support import Support
    from ldlm_lint.project.tables import Tabled
    from ldlm_lint.reach import Standing
    from ldlm_lint.source import Source


_FIGURE = lazily(r"\d|[Mm]easured")
DEPRECATED = "deprecated"
STATUSES = ("preview", "stable", DEPRECATED)
# The name of the argument of a finding that only a probe reported: the text of the observation.
SEEN = "seen-at-run-time"


class Severity(enum.IntEnum):
    """How much a finding costs; ordered, so that a threshold is one comparison."""

    INFO = 0
    REFACTOR = 1
    WARNING = 2
    ERROR = 3

    @classmethod
    def of_code(cls, code: str) -> Severity:
        """The severity that the letter of a message id such as ``W7201`` stands for."""
        return {"I": cls.INFO, "R": cls.REFACTOR, "W": cls.WARNING, "E": cls.ERROR}[code[0]]

    @property
    def label(self) -> str:
        """The word used in configuration, JSON and text: ``error``, ``warning``, ``refactor``, ``info``."""
        return self.name.lower()


class Consequence(enum.Enum):
    """What a defect leads to, as the word that is shown first; members are in the order of reports, the worst first.

    A ``deprecated`` interface still works, ``config`` is a setting without effect or a text that cannot be checked.
    """

    HANG = "hang"
    CRASH = "crash"
    WRONG_RESULT = "wrong-result"
    DATA_LOSS = "data-loss"
    SECURITY = "security"
    SLOW = "slow"
    MEMORY = "memory"
    DISK = "disk"
    DEPRECATED = "deprecated"
    CONFIG = "config"

    @property
    def rank(self) -> int:
        """The place in the order of reports, 0 for the worst."""
        return _RANKS[self]


_RANKS = {consequence: rank for rank, consequence in enumerate(Consequence)}


class Frequency(enum.IntEnum):
    """How often in a training a defect has its consequence, ordered: reports show the more frequent first."""

    RUN = 0
    EPOCH = 1
    STEP = 2

    @property
    def label(self) -> str:
        """The word used in JSON: ``run``, ``epoch`` (also what happens at each save or evaluation), ``step``."""
        return self.name.lower()


class Confidence(enum.IntEnum):
    """How sure the analysis is: HIGH if names and literals decide, MEDIUM if a value was inferred."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @property
    def label(self) -> str:
        """The word used in JSON and text."""
        return self.name.lower()


class Applicability(enum.IntEnum):
    """What applying a fix may do, after ruff's three levels: only SAFE ones can never change behaviour."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def label(self) -> str:
        """The word used in JSON and text."""
        return self.name.lower()


class Span(NamedTuple):
    """A half-open range of bytes ``[start, end)`` of one file.

    ``path`` is absolute with forward slashes; ``cell`` is the notebook cell it is in, None elsewhere.
    """

    path: str
    start: int
    end: int
    cell: int | None = None


class Edit(NamedTuple):
    """Replace the bytes of ``span`` by ``text``; an empty span inserts, an empty text deletes."""

    span: Span
    text: str


class Interface(NamedTuple):
    """A torch interface that a fix uses, by the name that a reader knows, and the first version that has it."""

    name: str
    since: tuple[int, int]


class Fix(NamedTuple):
    """Edits that are applied all or none.

    ``reason`` says why the fix is not safe (empty for SAFE). Fixes of one ``group`` are merged into one fix that every
    finding of the group carries; a group that is ``whole`` is withdrawn from all its findings as soon as one of them is
    suppressed or not selected, since a part of it would be dangerous (facts E7, E8). Of the fixes with the same
    non-empty ``isolation`` at most one is applied in a round: fixes that indent the same function again, or whose texts
    depend on each other's lines, name it (a path and the function's place, say), and the next round computes the other
    fix again from the new text. ``trade`` is the `Rule.trade` of a rule that the user has not selected by its own name
    (`ldlm_lint.trades`): such a fix is applied only if the user agrees to it. ``needs`` are the torch interfaces that
    the new code uses: if a torch version that the project allows lacks one, the fix is only shown. ``untold`` is
    another reason about the torch version: it applies only if no allowed version is known to lack them.
    """

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    reason: str = ""
    group: str = ""
    whole: bool = False
    isolation: str = ""
    trade: str = ""
    needs: tuple[Interface, ...] = ()
    untold: str = ""

    def reaches(self, limit: Applicability) -> bool:
        """Whether a run that applies all fixes of at least ``limit`` applies this one: a trade needs the user's
        agreement."""
        return self.applicability >= limit and not self.trade

    def only_shown(self, why: str) -> Fix:
        """The same fix, never applied, for a reason that comes before its others."""
        reason = f"{why}; {self.reason}" if self.reason else why
        # The other fixes of its group remain, unless a partial fix would be dangerous.
        return self._replace(applicability=Applicability.DISPLAY, reason=reason, group=self.group if self.whole else "")


class Related(NamedTuple):
    """Another place that a finding depends on, with a note that says what is there."""

    span: Span
    message: str


class Claim(NamedTuple):
    """What must hold in the rest of the project for a finding to be reported.

    ``kind`` names the question (a key of `ldlm_lint.project.QUESTIONS`), ``subject`` what it is about.
    """

    kind: str
    subject: str = ""


class InStep(NamedTuple):
    """Where a finding is in a training step.

    ``step`` is the line that begins the step, ``order`` the place among the findings of the step in the order in which
    they run, from 1. ``per`` is what it runs once for: `PER`; ``loop`` the line of the loop that repeats it within the
    step. ``after`` is the place of an earlier finding that leaves it nothing to wait for.
    """

    step: Span
    order: int
    per: str = "step"
    loop: Span | None = None
    after: Span | None = None


PER = ("step", "layer", "parameter", "sample", "pass")


class Finding(NamedTuple):
    """One defect at one place.

    ``args`` fill the named fields of the rule's message; ``claims`` are the facts of other files that it waits for
    (empty: it depends on its own file only), ``evidence`` is a probe's judgement. ``level`` replaces the rule's severity if this case matters less; None: the rule's. ``standing``
    says why its code is of minor importance, ``in_step`` where it is in a training step, ``reason`` why it
    matters less than its rule. Findings are ordered by (path, start, code).
    """

    rule: str
    code: str
    span: Span
    args: tuple[tuple[str, object], ...] = ()
    confidence: Confidence = Confidence.HIGH
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    claims: tuple[Claim, ...] = ()
    evidence: Support | None = None
    level: Severity | None = None
    standing: Standing | None = None
    in_step: InStep | None = None
    reason: str = ""

    def lowered(self, reason: str) -> Finding:
        """The same finding at level info, for a reason that reports name."""
        return self._replace(level=Severity.INFO, reason=reason)

    @property
    def why_minor(self) -> str:
        """Why the finding is only at level info: its code, or its own reason; empty if its rule says all."""
        return self.reason if self.standing is None else self.standing.words

    @property
    def severity(self) -> Severity:
        """The finding's own level, else the severity of the rule's letter; in code of minor importance INFO."""
        if self.standing is not None:
            return Severity.INFO
        return Severity.of_code(self.code) if self.level is None else self.level

    @property
    def weight(self) -> Severity:
        """The severity for the exit code: its severity, unless evidence confirmed or refuted it."""
        return self.severity if self.evidence is None else self.evidence.weight(self.severity)

    @property
    def order(self) -> tuple[str, int, int, str]:
        """The sort key that makes output independent of the number of workers and the order of files."""
        return (self.span.path, self.span.start, self.span.end, self.code)


class Option(NamedTuple):
    """A threshold or value that a user can set by its name in ``[tool.ldlm-lint]``.

    ``kind`` is the type a value must have (int, float, str, bool or list, a list of strings). A number is between
    ``minimum`` and ``maximum``, which are allowed themselves; None: no bound. ``at_most`` and ``below`` name the option
    that the value must not exceed, or stay below: a fix would write what its rule reports.
    """

    name: str
    default: object
    help: str
    kind: type = int
    minimum: int | None = None
    maximum: int | None = None
    at_most: str = ""
    below: str = ""

    @property
    def allowed(self) -> str:
        """The range of a number as text; empty if it has no bounds."""
        if self.minimum is not None and self.maximum is not None:
            return f"from {self.minimum} to {self.maximum}"
        return f"{self.minimum} or more" if self.minimum is not None else f"{self.maximum} or less" if self.maximum is not None else ""


class Reference(NamedTuple):
    """A primary source of a rule's claim."""

    title: str
    url: str


class Probe(NamedTuple):
    """The observation of the runtime probe that confirms or refutes a rule's findings.

    ``confirms`` continues "it confirms a finding where ...". ``device_bound``: a run on a device other than the
    training device confirms nothing. ``experiment`` names the micro-experiment of `ldlm-lint probe --only` that
    measures the claim on a machine; with ``bound_experiment`` the result is valid for that device only; ``watched``
    says that watching the program itself can confirm or refute it. ``whole_run``: the observation is about a run as a
    whole (a switch, a wrapped model), so it may be reported at another place than the finding's.
    """

    metric: str
    confirms: str
    device_bound: bool = False
    experiment: str = ""
    bound_experiment: bool = False
    watched: bool = True
    whole_run: bool = False

    def command(self, launch: str = "<your launch command>") -> str:
        """The command that confirms or refutes a finding; ``launch`` is the command that trains."""
        return f"ldlm-lint probe run -- {launch}" if self.watched else f"ldlm-lint probe --only {self.experiment}"


class Rule(NamedTuple):
    """A defect, declared once: the only place where its texts, thresholds and levels are written.

    ``code`` is a pylint message id whose letter is the severity and whose first two digits are the family;
    ``consequence`` is the worst thing that the defect usually leads to, ``frequency`` how often it then happens;
    ``message`` is a %-template with named fields, filled from `Finding.args`; ``applicability`` is the best level its
    fix may have (None: no fix); ``triggers`` are byte strings of which a file must contain at least one to have the
    defect (an empty one: the file alone cannot show it), one of each group in ``requires``, and none of ``silencers``;
    a script or configuration file must contain one of ``setting_triggers`` instead, if there are any; ``reads`` are the
    artefacts it looks at: ``py``, ``sh``, ``cfg``. ``trade`` is what its fix gives up for what it saves, as ``speed for
    memory`` (empty: nothing): a trade is not part of a run over all rules. ``overrides`` says why its fix may reverse a
    value that the author wrote out (`ldlm_lint.autofix.choices`; empty: it is only shown then). ``status`` is one of
    `STATUSES` (docs/versions.md); ``successor`` names the rule that replaced a deprecated one. ``needs`` names what the
    defect or the advice depends on (a key of ``since`` in `ldlm_lint.tables`): code whose torch is older is not reported.
    """

    code: str
    symbol: str
    consequence: Consequence
    message: str
    summary: str
    rationale: str
    cost: str
    exceptions: str
    versions: str
    verification: str
    references: tuple[Reference, ...]
    reads: tuple[str, ...]
    triggers: tuple[bytes, ...]
    requires: tuple[tuple[bytes, ...], ...] = ()
    silencers: tuple[bytes, ...] = ()
    setting_triggers: tuple[bytes, ...] = ()
    confidence: Confidence = Confidence.HIGH
    default: bool = True
    frequency: Frequency = Frequency.RUN
    applicability: Applicability | None = None
    fix_safety: str = ""
    overrides: str = ""
    trade: str = ""
    options: tuple[Option, ...] = ()
    probe: Probe | None = None
    since: str = "0.1.0"
    status: str = "preview"
    successor: str = ""
    old_names: tuple[str, ...] = ()
    needs: str = ""

    @property
    def cost_text(self) -> str:
        """What the defect costs; if the text has no figure, it says that none was measured."""
        return self.cost if _FIGURE.search(self.cost) else f"{self.cost} Not measured."

    @property
    def family(self) -> str:
        """The two digits that a family of rules shares, such as ``72``."""
        return self.code[1:3]

    @property
    def severity(self) -> Severity:
        """The severity of the code's letter."""
        return Severity.of_code(self.code)

    def is_called(self, name: str) -> bool:
        """Whether a name means this rule alone: its own, an old one, its code in any case, or the code's number."""
        return name in (self.symbol, *self.old_names) or name.upper() in (self.code, self.code[1:])

    def text(self, args: tuple[tuple[str, object], ...]) -> str:
        """The message with its named fields filled; for a finding that only a probe reported, the observation."""
        fields = dict(args)
        if SEEN in fields:
            return f"seen at run time: {fields[SEEN]}"
        return self.message % fields if args else self.message


class Problem(NamedTuple):
    """Something that kept a file or a path from being checked; it makes the run end with exit code 3.

    A configuration error is marked ``usage``: the run ends with exit code 2, and the line is shown.
    """

    path: str
    line: int
    message: str
    usage: bool = False


class FileResult(NamedTuple):
    """The result of one file; a pure function of its bytes, the version and the configuration.

    ``unseen`` are the lines of a script that the parsers could not read; ``table`` has the file's facts for the linked
    program, if requested.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    unseen: tuple[int, ...] = ()
    table: Tabled | None = None


class Identity(NamedTuple):
    """Identifies a finding even if the lines around it move.

    ``path`` is relative to the project, ``symbol`` the dotted name of the function or class around it, in a
    configuration its dotted key (empty: top level), ``code`` the code of its span without comments and layout.
    """

    path: str
    rule: str
    symbol: str
    code: str


class KnownLaunch(NamedTuple):
    """The only script that launches a file, and what it takes to start its program as one process.

    ``processes`` are those that the script starts on a machine, 0 if that is not known; ``launcher`` starts one,
    ``entry`` is the program, and ``arguments`` are its own, or a placeholder for them.
    """

    script: str
    processes: int
    launcher: str
    entry: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Report:
    """What every formatter receives: decided, selected and sorted findings, and the counts of the summary.

    ``root`` is the directory that identities are relative to. ``baselined`` counts the findings that the baseline
    knows, ``unchanged`` those on lines that did not change, ``unsure`` those below the wanted confidence; ``unseen``
    are the files and lines that were not understood; ``stale`` are the baseline's defects that are gone, with how many
    of each. ``evidence`` says how the judgements of probes were used, None if none were given. ``launches`` are
    those that are known to run a file, by its path. ``warnings`` are probable mistakes in the configurations of
    the checked files.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    files: int = 0
    suppressed: int = 0
    unseen: tuple[tuple[str, int], ...] = ()
    excluded: int = 0
    requested: int = 0
    sources: Mapping[str, Source] = field(default_factory=dict)
    root: str = ""
    baselined: int = 0
    unchanged: int = 0
    unsure: int = 0
    stale: tuple[tuple[Identity, int], ...] = ()
    evidence: Joined | None = None
    launches: Mapping[str, KnownLaunch] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
