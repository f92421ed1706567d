"""Verdicts against truths: small programs of common kinds are watched, and no verdict may contradict what they do.

The programs stand in ``tests/probed/studied``. What is true of each was written into it before it was
watched, as comments at (or, on a line of their own, above) the lines that it is true of: ``# holds: RULE, RULE if WORD
unless WORD; open: RULE``, where the words are those that the program is started with. ``holds`` says that the rule's claim is true there, ``open`` that it has to be measured, and
``on-cuda`` that a CPU cannot tell. Whatever is not written is not true: a *verified* there is wrong.

``python tests/study.py`` runs all of it and prints the table of docs/evidence (minutes); names of programs restrict it,
and ``--by-command`` has each run started by ``ldlm-lint probe run``.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import warm

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Judgement, Verdict
from ldlm_lint.evidence.verdicts import assess

PROBED = Path(__file__).parent / "probed"
PROGRAMS = PROBED / "studied"
LIMIT_S = 240
TO_THE_END = 1000
FEWEST_COMPARISONS = 200
BY_COMMAND = "--by-command"
_MARK = re.compile(r"# ((?:holds|open|on-cuda): .*)$")
_CLAUSE = re.compile(r"(?:(?P<kind>holds|open|on-cuda): )?(?P<rules>[\w-]+(?:, [\w-]+)*)(?: if (?P<if>[\w -]+?))?(?: unless (?P<unless>[\w -]+))?")  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One watched run: a program, its words, and how many optimizer steps of it are watched.

    ``before`` is the number of watched steps of an earlier run into the same folder (0: there was none), ``never`` the
    rules whose claim does not hold although the program says so, since the run is too short for it.
    """

    program: str
    words: tuple[str, ...] = ()
    steps: int = TO_THE_END
    ranks: int = 1
    code: int = 0
    before: int = 0
    never: frozenset[str] = field(default_factory=frozenset)
    slow: bool = False

    def __str__(self) -> str:
        told = " ".join((self.program, *self.words))
        again = f", after a run of {self.before} steps" if self.before else ""
        return f"{told}, {self.steps} steps{again}" if self.steps < TO_THE_END else f"{told}{again}"


def of(program: str, *texts: str, steps: int = TO_THE_END, **others) -> list[Setting]:
    """Settings of a program that differ in their words."""
    return [Setting(program, tuple(text.split()), steps, **others) for text in texts]


SETTINGS: tuple[Setting, ...] = (
    *of("gpt", "", "by-hand retain eval-grad checkpoint", steps=30),
    *of("gpt", "fused atomic", "checkpoint fused", "eval-grad atomic", slow=True),
    *of("gpt", "resume", steps=4, before=12, never=frozenset({"non-atomic-checkpoint"})),
    *of("gpt", "", steps=7, before=12, never=frozenset({"non-atomic-checkpoint"}), slow=True),
    *of("gpt", "atomic", steps=20, before=20, slow=True),
    *of("digits", "workers save", "zeros kept eval-grad schedule-first save-last"),
    *of("digits", "", "listed save-each", "detached adadelta", "persistent save-last", "zeros workers", "workers slow-rows", "workers slow-start", slow=True),
    *of("digits", "save-last", before=TO_THE_END, slow=True),
    *of("words", "eval-grad"),
    *of("words", "", slow=True),
    *of("words", "", steps=15, slow=True),
    *of("rotation", "keep-last-folders", "best-and-last", "one-folder", "kept-all"),
    *of("rotation", "keep-last", "aside", "removed-first", "kept-all-folders", "once-each", "moved-away", slow=True),
    *of("rotation", "keep-last-folders", steps=3),
    *of("rotation", "keep-last", steps=3, slow=True),
    *of("rotation", "keep-last", "keep-last-folders", "one-folder", "once-each", before=TO_THE_END, slow=True),
    *of("closures", "lbfgs reads", "reads", "kept outside"),
    *of("closures", "lbfgs kept", "lbfgs outside", "outside", slow=True),
    *of("corners", "saliency average recent", "skipped", "resumed", "features predictions"),
    *of("corners", "attack experts", "labels prototypes", "window", "twice", "gradient-again", "penalty", "teacher", slow=True),
    *of("corners", "two-schedules jacobian", "functional", "inferred", slow=True),
    *of("corners", "six", steps=6),
    *of("corners", "six", slow=True),
    *of("adversarial", "fused", "turns"),
    *of("adversarial", "", "frozen", slow=True),
    *of("mixed", "float16 clip-scaled", "float16 clip-scaled norm-only", "scaler micro schedule-micro"),
    *of("mixed", "float16 micro fused", "micro anomaly", "fused", "float16", slow=True),
    *of("ending", "exit", code=1),
    *of("ending", "raise", code=1, slow=True),
    *of("ending", "hard", code=3, slow=True),
    *of("ending", "", steps=5, slow=True),
    *of("ranks", "", "no-sync set-epoch aside", ranks=2),
    *of("ranks", "find every-rank long", "unused both-shuffled set-epoch", "find no-sync", "wrong-sampler", ranks=2, slow=True),
    *of("ranks", "exit", ranks=2, code=1, slow=True),
    *of("accelerated", "micro bf16", "unlimited fused", slow=True),
    *of("accelerated", "micro", steps=6, slow=True),
    *of("trainer", "limited", steps=12),
    *of("trainer", "limited", steps=25, slow=True),
    *of("trainer", "limited evaluate", "limited micro bf16", "unlimited", "limited best evaluate", steps=60, slow=True),
    *of("trainer", "limited", steps=25, before=25, slow=True),
    *of("trainer", "checkpointing fused", "evaluate fused", steps=15, slow=True),
    *of("lit", "reads kept validate best", steps=20),
    *of("lit", "all detached", "manual reads kept", "manual best", "fused micro reads", "best adam", "two", steps=20, slow=True),
    *of("lit", "best", steps=8, before=8, slow=True),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One verdict beside the truth: ``holds``, ``open``, ``on-cuda``, or nothing where nothing is written."""

    setting: Setting
    judgement: Judgement
    truth: str

    @property
    def wrong(self) -> str:
        """How the verdict contradicts the truth; empty where it does not."""
        verdict = self.judgement.verdict
        if verdict is Verdict.VERIFIED and self.truth not in ("holds", "open"):
            return "wrong verified"
        return "wrong refuted" if verdict is Verdict.REFUTED and self.truth in ("holds", "on-cuda") else ""

    def __str__(self) -> str:
        one = self.judgement
        place = f"{one.sites[0].path}:{one.sites[0].line}" if one.sites else "no place"
        return f"{one.verdict.value:<12} {self.truth or 'not':<8} {one.rule} at {place}: {one.reason}"


def truths(setting: Setting) -> dict[int, dict[str, str]]:
    """What is true of a program with these words, by line and rule."""
    found: dict[int, dict[str, str]] = {}
    for number, line in enumerate(lines(setting.program), 1):
        mark = _MARK.search(line)
        if mark:
            at = number + line.lstrip().startswith("#")
            found[at] = dict(_told(mark.group(1), setting))
    return found


def lines(program: str) -> list[str]:
    """The lines of a program."""
    return (PROGRAMS / f"{program}.py").read_text(encoding="utf-8").splitlines()


def _told(mark: str, setting: Setting) -> Iterator[tuple[str, str]]:
    kind = ""
    for text in mark.split("; "):
        clause = _CLAUSE.fullmatch(text)
        assert clause, text
        kind = clause["kind"] or kind
        wanted, unwanted = (set((clause[name] or "").split()) for name in ("if", "unless"))
        if (not wanted or wanted & set(setting.words)) and not unwanted & set(setting.words):
            yield from ((rule, kind) for rule in clause["rules"].split(", ") if rule not in setting.never)


def compared(setting: Setting, evidence: Sequence[Evidence], target: str = "cpu") -> list[Comparison]:
    """The verdicts about a watched run, each beside the truth at one of its places."""
    assessed = assess(evidence, target)
    assert not assessed.notes, assessed.notes
    written = truths(setting)
    return [Comparison(setting, one, _truth_at(one, written)) for one in assessed.judgements]


def _truth_at(judgement: Judgement, written: dict[int, dict[str, str]]) -> str:
    lines = {line for site in judgement.sites if PROGRAMS.name not in site.path for line in site.lines}
    told = {rules[judgement.rule] for line, rules in written.items() if line in lines and judgement.rule in rules}
    return next((kind for kind in ("holds", "on-cuda", "open") if kind in told), "")


CRASHES = frozenset((-signal.SIGABRT, -signal.SIGSEGV))
"""Exit codes of a process that its own native code ended."""


def watched(setting: Setting, folder: Path, by_command: bool = False) -> list[Evidence]:
    """The evidence of a run in a folder of its own, where an earlier run may have left its files.

    ``by_command`` starts it with ``probe run``, as users do; else in a process that has torch already, which is faster.
    """
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    run = _command if by_command else _run
    if setting.before:
        run(setting, work, folder / "before", setting.before, 0)
    run(setting, work, folder / "seen", setting.steps, setting.code)
    return files.read(folder / "seen")


def _run(setting: Setting, work: Path, out: Path, steps: int, code: int) -> None:
    program = PROGRAMS / f"{setting.program}.py"
    words = [str(PROBED / "watched.py"), str(out), str(steps), str(program), *setting.words]
    ended, _, err = warm.run(words, work, {}, LIMIT_S, ranks=setting.ranks)
    if ended in CRASHES:
        # A process forked from one that has torch is now and then ended by its allocator while torch profiles two ranks
        # (on a busy machine 8 of 132 runs, none of 19 in processes of their own). Such a run is repeated in new processes.
        shutil.rmtree(out, ignore_errors=True)
        ended, _, err = warm.cold(words, work, {}, LIMIT_S, ranks=setting.ranks)
    assert ended == code, err


def _command(setting: Setting, work: Path, out: Path, steps: int, code: int) -> None:
    shutil.copy(PROGRAMS / f"{setting.program}.py", work)
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={setting.ranks}"]
    program = [sys.executable, *(launcher if setting.ranks > 1 else ()), f"{setting.program}.py", *setting.words]
    probe = [sys.executable, "-m", "ldlm_lint", "probe", "run", "--yes", "--steps", str(steps), "--out", str(out), "--"]
    environment = {**os.environ, **warm.SURROUNDINGS}
    done = subprocess.run(
        [*probe, *program], cwd=work, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    # 0 and 1: nothing verified, something verified; 3: the program failed.
    assert (done.returncode == 3) is bool(code), done.stdout + done.stderr


def studied(setting: Setting, by_command: bool = False) -> list[Comparison]:
    """One setting, watched in a folder that is removed."""
    folder = Path(tempfile.mkdtemp())
    try:
        return compared(setting, watched(setting, folder, by_command))
    finally:
        shutil.rmtree(folder)


def findings(setting: Setting, folder: Path) -> list[dict[str, Any]]:
    """What ``check --evidence`` reports of a program that ``probe run`` has watched, as its JSON has it."""
    watched(setting, folder, by_command=True)
    check = [sys.executable, "-m", "ldlm_lint", "check", "--evidence", str(folder / "seen"), "--format", "json", "."]
    done = subprocess.run(check, cwd=folder / "work", capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["findings"]


def written(program: str) -> set[tuple[str, int]]:
    """Each rule and line at which something is written, whatever the words."""
    every = re.findall(r"\bif ([\w -]+?)(?: unless|;|$)", "\n".join(lines(program)), re.MULTILINE)
    settings = [Setting(program, tuple(words)) for words in ((), *(one.split() for one in every))]
    return {(rule, line) for one in settings for line, rules in truths(one).items() for rule in rules}


def row(name: str, found: Sequence[Comparison]) -> str:
    """A line of the table."""
    counts = Counter(one.judgement.verdict for one in found)
    wrong = Counter(one.wrong for one in found)
    figures = (len(found), *(counts[one] for one in Verdict), wrong["wrong verified"], wrong["wrong refuted"])
    return f"| {name} | {' | '.join(map(str, figures))} |"


def main(words: Sequence[str]) -> int:
    """Print the table and what is wrong; 1 where something is, or where there are too few comparisons."""
    names = [one for one in words if one != BY_COMMAND]
    study = functools.partial(studied, by_command=BY_COMMAND in words)
    settings = [one for one in SETTINGS if not names or one.program in names]
    print("| program | comparisons | verified | refuted | inconclusive | wrong verified | wrong refuted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    every: list[Comparison] = []
    with ProcessPoolExecutor(2) as pool:
        for setting, found in zip(settings, pool.map(study, settings), strict=True):
            print(row(str(setting), found), flush=True)
            every += found
    print(row("all", every))
    wrong = [one for one in every if one.wrong]
    for one in wrong:
        print(f"{one.wrong} in {one.setting}: {one}")
    return int(bool(wrong) or (not names and len(every) < FEWEST_COMPARISONS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
