"""Applies every fix to copies of real repositories, and checks that nothing breaks and everything can be undone.

    python scripts/fix_corpus.py CHECKOUT... --output FOLDER [--select NAMES] [--safe-only]

The tracked files of each checkout are copied into a separate git repository, so that the checkout is never changed.
There the users' command runs, and must guarantee:

- the patch of ``--diff`` passes ``git apply --check``, and applying it gives the same bytes as ``--fix``;
- each changed file parses if it did before: Python, scripts by ``bash -n``, YAML, JSON and TOML;
- a second ``--fix`` changes nothing, and no fix is left out or prevents convergence;
- ``ldlm-lint undo`` restores every byte and mode, and leaves git with nothing to report.

It prints a Markdown table, writes ``<name>.diff`` for reading to FOLDER, and exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from ldlm_lint.config import Config
from ldlm_lint.fixing import Outcome, apply_fixes
from ldlm_lint.model import Applicability
from ldlm_lint.rules import ALL

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
# The highest of git's layers of attributes: no conversion of line ends or encodings, so that bytes can be compared.
AS_IT_IS = "* -text -eol -ident -filter -working-tree-encoding\n"
Checksums = Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """The result for one repository; ``failures`` are the broken guarantees."""

    name: str
    files: int = 0
    fixes: Mapping[str, int] = field(default_factory=dict)
    rounds: int = 0
    rejected: Sequence[str] = ()
    seconds: float = 0.0
    failures: Sequence[str] = ()

    def cells(self) -> list[str]:
        """The row's cells in the order of `HEAD`."""
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(self.fixes.items(), key=lambda one: -one[1]))
        verdict = "; ".join(self.failures).replace("|", "\\|") or "holds"
        counts = [self.files, sum(self.fixes.values()), self.rounds, len(self.rejected)]
        return [self.name, *map(str, counts), f"{self.seconds:.0f}", rules or "none", verdict]


HEAD = ["repository", "files", "fixes", "rounds", "rejected", "seconds", "fixes by rule", "verdict"]


def git(folder: Path, *arguments: str) -> bytes:
    """The output of a git command in a folder, free of the user's settings; raises RuntimeError if it fails."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", os.fspath(folder), *arguments], capture_output=True, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout


def copy_of(checkout: Path, into: Path) -> Path:
    """A git repository with the tracked files of a checkout (all files of a folder without git) as its one commit."""
    folder = into / checkout.name
    folder.mkdir(parents=True)
    for name in _tracked(checkout):
        source, target = checkout / name, folder / name
        # A checkout may lack tracked files, and a submodule is a folder.
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    git(folder, "init", "--quiet")
    (folder / ".git" / "info" / "attributes").write_text(AS_IT_IS, encoding="utf-8")
    for key, value in (("core.autocrlf", "false"), ("user.name", "corpus"), ("user.email", "corpus@localhost")):
        git(folder, "config", key, value)
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--no-verify", "--message", checkout.name)
    return folder


def _tracked(checkout: Path) -> list[str]:
    if (checkout / ".git").exists():
        return [os.fsdecode(name) for name in git(checkout, "ls-files", "-z").split(b"\0") if name]
    return [path.relative_to(checkout).as_posix() for path in sorted(checkout.rglob("*")) if path.is_file()]


def commit_of(checkout: Path) -> str:
    """The short name of the commit that is checked out, empty for a folder without git."""
    return git(checkout, "rev-parse", "--short=10", "HEAD").decode().strip() if (checkout / ".git").exists() else ""


def checksums(folder: Path) -> Checksums:
    """The mode and the SHA-256 of each tracked file; of a link, where it leads."""
    return {name: _checksum(folder / name) for name in _tracked(folder)}


def _checksum(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    return f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}" if path.exists() else "missing"


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command on a copy, as a user would in it."""
    return subprocess.run([sys.executable, "-m", "ldlm_lint", *arguments], cwd=folder, capture_output=True, check=False)


def parses(name: str, data: bytes) -> bool | None:
    """Whether a file parses as its kind, with other tools than the linter; None if unknown."""
    reader = _reader(name, data)
    if reader is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reader(data)
    except (SyntaxError, ValueError, yaml.YAMLError, RecursionError):
        return False


def _reader(name: str, data: bytes) -> Callable[[bytes], bool] | None:
    suffix = Path(name).suffix.lower()
    shebang = data.split(b"\n", 1)[0] if data.startswith(b"#!") else b""
    if suffix in SCRIPTS or b"bash" in shebang or shebang.endswith(b"/sh"):
        return lambda text: subprocess.run(["bash", "-n"], input=text, capture_output=True, check=False).returncode == 0
    readers: dict[str, Callable[[bytes], object]] = {
        ".py": lambda text: compile(ast.parse(text), "<fixed>", "exec", dont_inherit=True),
        ".yaml": lambda text: list(yaml.compose_all(text)),
        ".yml": lambda text: list(yaml.compose_all(text)),
        ".json": json.loads,
        ".toml": lambda text: tomllib.loads(text.decode()),
    }
    read = readers.get(suffix)
    return None if read is None else lambda text: read(text) is not NotImplemented


def promises(folder: Path, outcome: Outcome, options: Sequence[str]) -> Iterator[str]:
    """Apply the patch, then the fixes, then undo them; yield each promise that does not hold."""
    before = checksums(folder)
    patched = yield from _patch(folder, outcome.diff)
    done = lint(folder, "--fix", *options)
    if done.returncode not in (0, 1):
        yield f"--fix ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
    fixed = checksums(folder)
    if patched is not None and patched != fixed:
        yield f"--diff and --fix differ in {_differing(patched, fixed)}"
    for name in sorted(name for name in fixed if fixed[name] != before[name]):
        old, new = git(folder, "show", f"HEAD:{name}"), (folder / name).read_bytes()
        if parses(name, old) and not parses(name, new):
            yield f"{name} no longer parses"
    lint(folder, "--fix", *options)
    if checksums(folder) != fixed:
        yield f"a second run changes {_differing(fixed, checksums(folder))}"
        return
    if fixed == before:
        return
    undone = lint(folder, "undo")
    if checksums(folder) != before:
        last = (undone.stderr or undone.stdout).decode(errors="replace").strip()[-200:]
        yield f"undo leaves {_differing(before, checksums(folder))} changed ({last})"
    elif git(folder, "status", "--porcelain"):
        yield f"undo leaves files behind: {git(folder, 'status', '--porcelain').decode(errors='replace')[:200]}"


def _patch(folder: Path, diff: bytes) -> Iterator[str]:
    """Apply a patch and take it back; the generator's value are the checksums in between, None if git refuses."""
    if not diff:
        return checksums(folder)
    patch = folder.parent / "fixes.diff"
    patch.write_bytes(diff)
    try:
        git(folder, "apply", "--check", os.fspath(patch))
        git(folder, "apply", "--whitespace=nowarn", os.fspath(patch))
    except RuntimeError as error:
        yield str(error)
        return None
    patched = checksums(folder)
    git(folder, "checkout", "--quiet", "--", ".")
    return patched


def _differing(first: Checksums, second: Checksums) -> str:
    names = sorted(name for name in first if first[name] != second.get(name))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def examine(checkout: Path, output: Path, select: Sequence[str], limit: Applicability) -> Row:
    """Fix a copy of one checkout and report the result."""
    unsafe = ["--unsafe-fixes"] if limit is Applicability.UNSAFE else []
    options = ["--isolated", "--select", ",".join(select), *unsafe, "--exit-zero", "--quiet"]
    commit = commit_of(checkout)
    name = f"{checkout.name}@{commit}" if commit else checkout.name
    with tempfile.TemporaryDirectory(prefix="ldlm-lint-corpus-") as temporary:
        folder = copy_of(checkout, Path(temporary).resolve())
        started = time.monotonic()
        config = replace(Config.load(folder, isolated=True), select=tuple(select))
        outcome = apply_fixes([folder], config, folder, limit, write=False)
        seconds = time.monotonic() - started
        (output / f"{checkout.name}.diff").write_bytes(outcome.diff)
        left_out = [f"{Path(note.path).name}: {note.message}" for note in outcome.notes]
        failures = [*left_out, *promises(folder, outcome, options)]
    return Row(name, len(outcome.files), outcome.by_rule, outcome.rounds, left_out, seconds, failures)


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, with their sum."""
    total: collections.Counter[str] = collections.Counter()
    for row in rows:
        total.update(row.fixes)
    held = sum(not row.failures for row in rows)
    sums = [sum(row.files for row in rows), total.total(), max((row.rounds for row in rows), default=0)]
    rejected, seconds = sum(len(row.rejected) for row in rows), sum(row.seconds for row in rows)
    last = [
        "**all**",
        *map(str, sums),
        str(rejected),
        f"{seconds:.0f}",
        f"{len(total)} rules",
        f"{held} of {len(rows)}",
    ]
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows), last]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--output", type=Path, required=True, help="folder of the diffs and of table.md")
    # Fixes that trade one thing for another are applied only for rules selected by their own names.
    every = ",".join(["ALL", *(rule.symbol for rule in ALL if rule.trade)])
    parser.add_argument("--select", default=every, help="names, codes or families of rules, with commas")
    parser.add_argument("--safe-only", action="store_true", help="apply safe fixes only")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    limit = Applicability.SAFE if given.safe_only else Applicability.UNSAFE
    rows = []
    for checkout in given.checkouts:
        rows.append(examine(checkout.resolve(), given.output.resolve(), given.select.split(","), limit))
        print(f"{rows[-1].name}: {'; '.join(rows[-1].failures) or 'holds'}", file=sys.stderr, flush=True)
    text = table(rows)
    (given.output / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return int(any(row.failures for row in rows))


if __name__ == "__main__":
    sys.exit(main())
