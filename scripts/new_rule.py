"""Writes the skeleton of a rule: its file or Rule object, its fixtures and a line in CHANGELOG.md.

    python scripts/new_rule.py NAME CODE [FILE] [--reads py|sh|cfg] [--fix safe|unsafe|display] [--opt-in]

A rule about Python gets a file of its own, ``ldlm_lint/checkers/<family>/<rule>.py``; one about scripts or configurations
is declared in FILE, a file of ``ldlm_lint/rules``.

The placeholder texts say what to write, in a form that tests/test_rule_texts.py rejects, and the fixtures expect a
finding that is not reported yet: the tests fail until the rule is complete.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ldlm_lint import rules  # noqa: E402
from ldlm_lint.families import UMBRELLAS  # noqa: E402
from ldlm_lint.model import Applicability  # noqa: E402

WIDTH = 120
CODE = re.compile(r"[IRWE]\d{4}")
NAME = re.compile(r"[a-z]+(-[a-z0-9]+)+")
ARTEFACTS = {"py": "Python", "sh": "Launch scripts", "cfg": "Configuration files"}
SUFFIXES = {"py": "py", "sh": "sh", "cfg": "yaml"}
HOMES = {"py": "`find()` in the same file", "sh": "ldlm_lint/shell/ (launch scripts)", "cfg": "ldlm_lint/configs/ (configuration files)"}
FOLDERS = {digits: name.removeprefix("ldlm-") for digits, name in UMBRELLAS.items()}
LISTED = ROOT / "ldlm_lint" / "checkers" / "rule_files.py"
RULE_FILE = '''"""{name}: write: what is found, for any origin of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

{imports}
if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding

{declaration}

def find(code: ProjectCode) -> Iterator[Finding]:
    """Write: the calls or expressions that have the defect."""
    yield from ()
'''
WRITTEN = (Applicability.SAFE.label, Applicability.UNSAFE.label)
SENTENCES = {
    "summary": "what the rule finds, in one sentence",
    "rationale": "the mechanism: why it costs, slow, large or dangerous",
    "cost": "the measured effect with its source, or that it was not measured",
    "exceptions": "when not to follow it",
    "versions": "the torch versions it holds for",
    "verification": "how to see it at run time",
}
LINTER = "68"
"""The family of the linter's own rules, which have no query."""
CHANGES, NEW_CHECKS = "## Unreleased\n", "### New check\n"
FIXTURES = {
    "bad.py": '"""Write here: short, real-looking training code with the defect."""\n\ndefect = None  # expect: {name}\n',
    "bad.fixed.py": '"""Write here: what the fix makes of bad.py."""\n',
    "good.py": '"""Write this first: each case that looks like the defect and is not."""\n',
    "bad.sh": "#!/usr/bin/env bash\n# Write here: a short, real-looking launch script with the defect.\n:  # expect: {name}\n",
    "bad.fixed.sh": "#!/usr/bin/env bash\n# Write here: what the fix makes of bad.sh.\n:\n",
    "bad.yaml": "# Write here: a short, real-looking configuration with the defect.\nname: train  # expect: {name}\n",
    "bad.fixed.yaml": "# Write here: what the fix makes of bad.yaml.\nname: train\n",
    "good.yaml": "# Write this first: each case that looks like the defect and is not.\nname: train\n",
    "good.sh": "#!/usr/bin/env bash\n# Write this first: each case that looks like the defect and is not.\n:\n",
    "bad_short.py": "# Write here: the defect in at most twelve lines.\ndefect = None  # expect: {name}\n",
    "bad_short.fixed.py": "# Write here: what the fix makes of bad_short.py.\n",
    "good_short.py": "# Write here: bad_short.py without the defect.\n",
    "bad_short.sh": "# Write here: the defect in at most twelve lines.\n:  # expect: {name}\n",
    "bad_short.fixed.sh": "# Write here: what the fix makes of bad_short.sh.\n:\n",
    "good_short.sh": "# Write here: bad_short.sh without the defect.\n:\n",
    "bad_short.yaml": "# Write here: the defect in at most twelve lines.\nname: train  # expect: {name}\n",
    "bad_short.fixed.yaml": "# Write here: what the fix makes of bad_short.yaml.\nname: train\n",
    "good_short.yaml": "# Write here: bad_short.yaml without the defect.\nname: train\n",
}
STEPS = """\
{name} ({code}) is declared. What remains, in this order:

1. {fixtures}/good.{suffix}: what must stay silent, with the words that tempt the rule.
2. {fixtures}/bad.{suffix}: the defect; `# expect: {name}` at the end of each line where a finding starts{fixed}.
3. {fixtures}/bad_short.{suffix} and {better}.{suffix}: the defect and its repair in at most twelve lines each, for `explain`.
4. {module}: the consequence, every text that begins with "write:", the references (https, primary sources), the triggers.
5. The detection: {home}; docs/core.md is its language. Bind, return early, report; unknown is silent.
6. python -m pytest tests/test_rule_texts.py tests/test_rules.py tests/test_explain.py --rule {name}
   (with --update, it writes {fixtures}/expected.out: read it)
7. python scripts/gen_docs.py, and read CHANGELOG.md.
8. Run it over real repositories and read every finding.
"""


class RefusedError(Exception):
    """The requested rule is invalid; the text says why."""


@dataclass(frozen=True)
class Skeleton:
    """A rule that is to be written."""

    name: str
    code: str
    module: Path
    """The file that it is declared in; only those about Python have one of their own."""
    reads: str
    fix: str | None
    default: bool

    @property
    def constant(self) -> str:
        """The name of the Rule object."""
        return "RULE" if self.has_own_file else self.name.upper().replace("-", "_")

    @property
    def has_own_file(self) -> bool:
        """Whether it is a rule about Python, with a file of its own."""
        return self.reads == "py"

    @property
    def imported(self) -> list[str]:
        """What its declaration needs of `ldlm_lint.model`."""
        return ["Consequence", "Reference", "Rule", *(["Applicability"] if self.fix else [])]

    @property
    def fixtures(self) -> Path:
        """The folder of its fixtures."""
        return ROOT / "tests" / "fixtures" / self.name

    def declaration(self) -> str:
        """The source of the Rule object."""
        fields = [f'code="{self.code}"', f'symbol="{self.name}"', "consequence=Consequence.CONFIG", 'message="write: what is wrong at this place."']
        fields += [f'{field}="write: {text}"' for field, text in SENTENCES.items()]
        fields += ['references=(Reference("write: a primary source", "http://"),)', f'reads=("{self.reads}",)']
        fields += ["triggers=()"]
        fields += [] if self.default else ["default=False"]
        if self.fix:
            fields += [f"applicability=Applicability.{self.fix.upper()}", 'fix_safety="write: what the fix may change"']
        return f"{self.constant} = Rule(\n" + "".join(f"    {field},\n" for field in fields) + ")\n"

    def steps(self) -> str:
        """The remaining steps."""
        return STEPS.format(
            name=self.name,
            code=self.code,
            fixtures=self.fixtures.relative_to(ROOT).as_posix(),
            module=self.module.relative_to(ROOT).as_posix(),
            suffix=SUFFIXES[self.reads],
            fixed=f"; bad.fixed.{SUFFIXES[self.reads]}: what the fix makes of it" if self.fix in WRITTEN else "",
            better="bad_short.fixed" if self.fix in WRITTEN else "good_short",
            home=HOMES[self.reads],
        )


def refuse_what_exists(skeleton: Skeleton) -> None:
    """Raise RefusedError for a name, code or file that a new rule cannot have."""
    if not NAME.fullmatch(skeleton.name):
        raise RefusedError(f"{skeleton.name} is no name of a rule: words of lower-case letters, joined by hyphens")
    if not CODE.fullmatch(skeleton.code):
        raise RefusedError(f"{skeleton.code} is no code: a letter of I, R, W, E and four digits")
    for rule in rules.ALL:
        if skeleton.name in (rule.symbol, *rule.old_names):
            raise RefusedError(f"{skeleton.name} is the name, or an old name, of {rule.symbol} ({rule.code})")
        if skeleton.code[1:] == rule.code[1:]:
            raise RefusedError(f"{skeleton.code} is taken: {rule.symbol} has {rule.code}")
    if skeleton.fixtures.exists():
        raise RefusedError(f"{skeleton.fixtures.relative_to(ROOT).as_posix()} is there already")
    if skeleton.has_own_file:
        if skeleton.code[1:3] not in FOLDERS or skeleton.code[1:3] == LINTER:
            raise RefusedError(f"{skeleton.code} is of family {skeleton.code[1:3]}, which has no folder; there are {', '.join(FOLDERS.values())}")
        return
    if not skeleton.module.is_file():
        raise RefusedError(f"there is no {skeleton.module.relative_to(ROOT).as_posix()}: it takes {', '.join(families())}")
    expected = families().get(skeleton.module.stem)
    if expected is None or skeleton.code[1:3] not in expected:
        fitting = [name for name, known in families().items() if skeleton.code[1:3] in known]
        raise RefusedError(
            f"{skeleton.code} is of family {skeleton.code[1:3]}, {skeleton.module.name} is not; "
            + (f"its files are {', '.join(fitting)}" if fitting else "no file has that family")
        )


def families() -> dict[str, set[str]]:
    """The families of the rules in each file, by the file's name without its suffix."""
    found = {}
    for path in sorted((ROOT / "ldlm_lint" / "rules").glob("*.py")):
        if declared := getattr(getattr(rules, path.stem, None), "RULES", ()):
            found[path.stem] = {rule.family for rule in declared}
    return found


def with_rule(source: str, skeleton: Skeleton) -> str:
    """The source of a file of rules with one more of them, before its RULES and in it."""
    needed = set(skeleton.imported)
    lines = source.splitlines(keepends=True)
    replaced: list[tuple[ast.stmt, str]] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module == "ldlm_lint.model":
            names = sorted(needed | {alias.name for alias in node.names}, key=str.lower)
            replaced.append((node, _listed("from ldlm_lint.model import ", names)))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RULES" and isinstance(node.value, ast.Tuple):
            names = [*(ast.unparse(name) for name in node.value.elts), skeleton.constant]
            replaced.append((node, f"{skeleton.declaration()}\n{_listed('RULES = ', names)}"))
    if len(replaced) != 2:
        raise RefusedError(f"{skeleton.module.name} has no import from ldlm_lint.model, or no tuple RULES")
    for node, text in reversed(replaced):
        lines[node.lineno - 1 : node.end_lineno] = [text]
    return "".join(lines)


def own_file(skeleton: Skeleton) -> str:
    """The source of a rule's own file."""
    imports = _listed("from ldlm_lint.model import ", sorted(skeleton.imported, key=str.lower))
    return RULE_FILE.format(name=skeleton.name, imports=imports, declaration=skeleton.declaration())


def with_file(source: str, skeleton: Skeleton) -> str:
    """The list of the rules' files with one more."""
    entry = f'    "{skeleton.module.parent.name}.{skeleton.module.stem}",\n'
    opening, brackets, rest = source.partition("_FILES: tuple[str, ...] = (\n")
    inside, closing, after = rest.partition(")\n")
    return opening + brackets + "".join(sorted([*inside.splitlines(keepends=True), entry])) + closing + after


def _listed(opening: str, names: list[str]) -> str:
    """A tuple, or the names of an import, on one line where they fit."""
    bare = f"{opening}{', '.join(names)}" if opening.endswith("import ") else f"{opening}({', '.join(names)})"
    return f"{bare}\n" if len(bare) <= WIDTH else f"{opening}(\n" + "".join(f"    {name},\n" for name in names) + ")\n"


def with_change(text: str, skeleton: Skeleton) -> str:
    """CHANGELOG.md with a line for the rule below its new checks."""
    before, unreleased, after = text.partition(CHANGES)
    if not unreleased:
        raise RefusedError(f"CHANGELOG.md has no line {CHANGES.strip()!r}")
    body, separator, older = after.partition("\n## ")
    if NEW_CHECKS not in body:
        body = f"\n{NEW_CHECKS}{body}"
    opening, _, rest = body.partition(NEW_CHECKS)
    checks, heading, others = rest.partition("\n### ")
    line = f"- {ARTEFACTS[skeleton.reads]}: `{skeleton.name}`.\n"
    checks = f"\n{checks.strip()}\n{line}" if checks.strip() else f"\n{line}"
    return f"{before}{unreleased}{opening}{NEW_CHECKS}{checks}{heading}{others}{separator}{older}"


def write(skeleton: Skeleton) -> None:
    """Write all parts; nothing is written if one of them cannot be."""
    changelog = ROOT / "CHANGELOG.md"
    texts = {changelog: with_change(changelog.read_text(encoding="utf-8"), skeleton)}
    if skeleton.has_own_file:
        texts[skeleton.module] = own_file(skeleton)
        texts[LISTED] = with_file(LISTED.read_text(encoding="utf-8"), skeleton)
    else:
        texts[skeleton.module] = with_rule(skeleton.module.read_text(encoding="utf-8"), skeleton)
    fixed = ("bad.fixed", "bad_short.fixed") if skeleton.fix in WRITTEN else ("good_short",)
    for kind in ("bad", "good", "bad_short", *fixed):
        name = f"{kind}.{SUFFIXES[skeleton.reads]}"
        texts[skeleton.fixtures / name] = FIXTURES[name].replace("{name}", skeleton.name)
    skeleton.fixtures.mkdir(parents=True)
    if skeleton.has_own_file and not skeleton.module.parent.is_dir():
        skeleton.module.parent.mkdir()
        (skeleton.module.parent / "__init__.py").write_text(f'"""Rules of family {skeleton.code[1:3]}."""\n', encoding="utf-8")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Write the skeleton and print what remains; returns 2 if it is refused."""
    parser = argparse.ArgumentParser(description="Write the skeleton of a rule.")
    parser.add_argument("name", metavar="NAME", help="the defect in words, such as unbounded-checkpoints")
    parser.add_argument("code", metavar="CODE", help="severity letter, family and number, such as W7601")
    parser.add_argument("file", metavar="FILE", nargs="?", default="", help="for scripts and configurations, the file of ldlm_lint/rules that it goes to")
    parser.add_argument("--reads", choices=sorted(ARTEFACTS), default="py", help="what it looks at first (default: py)")
    parser.add_argument("--fix", choices=[one.label for one in Applicability], help="the best fix that it may have")
    parser.add_argument("--opt-in", action="store_true", help="off unless it is selected")
    given = parser.parse_args(arguments)
    if bool(given.file) == (given.reads == "py"):
        parser.error("a rule about Python has a file of its own" if given.file else "name the file of ldlm_lint/rules that it goes to")
    module = ROOT / "ldlm_lint" / "rules" / f"{given.file.removesuffix('.py')}.py"
    if given.reads == "py":
        module = ROOT / "ldlm_lint" / "checkers" / FOLDERS.get(given.code[1:3], "unknown") / f"{given.name.replace('-', '_')}.py"
    skeleton = Skeleton(given.name, given.code, module, given.reads, given.fix, not given.opt_in)
    try:
        refuse_what_exists(skeleton)
        write(skeleton)
    except RefusedError as error:
        print(f"new_rule.py: {error}", file=sys.stderr)
        return 2
    print(skeleton.steps(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
