"""Prepares a release: everything but the upload.

    python scripts/release.py 0.2.0           # rehearses it in a temporary clone: nothing changes here
    python scripts/release.py 0.2.0 --write   # the same, then commits it here and leaves the files in dist/0.2.0

It checks the working tree and the version, writes the version and CHANGELOG, compares the promises in docs/versions.md
with the last release, checks the generated pages, style, types and tests, builds and installs the packages, and packs
the VS Code extension. Nothing is tagged, pushed or uploaded: the commands for that are printed at the end. It needs uv,
git, a network, and the extras dev, release and test; Node.js for the extension. It stops at the first step that fails.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import release_edits as edits
import release_promises as promises
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release_edits import ReleaseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dev", "release", "test")
PROGRAMS = ("git", "uv")
GENERATED = ("gen_docs.py", "gen_cli_docs.py", "screenshots.py", "trophies.py")
EXAMPLE = "examples/latent-captions"
EXTENSION = "editors/vscode"
TESTS = ("-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup")


@dataclass
class Release:
    """A release in preparation.

    ``root`` is the repository that is released from ``branch``. All work is done in a clone in the temporary folder
    ``scratch``; ``target`` gets the files to upload.
    """

    version: str
    branch: str
    root: Path
    scratch: Path
    target: Path
    skip_tests: bool = False

    @property
    def checkout(self) -> Path:
        """The clone."""
        return self.scratch / "checkout"

    @property
    def files(self) -> Path:
        """The folder of what is uploaded, until all steps have passed."""
        return self.scratch / "files"

    @property
    def log(self) -> Path:
        """The output of all commands."""
        return self.scratch / "log.txt"

    def text(self, name: str) -> str:
        """A file of the clone."""
        return (self.checkout / name).read_text(encoding="utf-8")

    def packages(self, pattern: str) -> Path:
        """The one file to upload with such a name."""
        (found,) = self.files.glob(pattern)
        return found


def run(release: Release, *command: str | Path, cwd: Path | None = None, ends_with: int = 0) -> str:
    """Run a command and return what it prints on stdout; all output goes to the log.

    Without ``cwd`` it runs in the clone, with the clone's package; elsewhere without a package of ours on its path.
    Raises ReleaseError if the command is missing or exits with an unexpected code.
    """
    words = [str(word) for word in command]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SOURCE_DATE_EPOCH")}
    environment |= {"PYTHONPATH": str(release.checkout)} if cwd is None else {}
    try:
        done = subprocess.run(
            words, cwd=cwd or release.checkout, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except FileNotFoundError:
        raise ReleaseError(f"{words[0]} is not installed") from None
    with release.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(words)}\n{done.stdout}{done.stderr}\n")
    if done.returncode != ends_with:
        name = shlex.join([Path(words[0]).name, *words[1:]])
        raise ReleaseError(f"`{name}` ended with {done.returncode} instead of {ends_with}; its output is the last in {release.log}")
    return done.stdout


def git(release: Release, *arguments: str | Path) -> str:
    """Run git in the repository of the release."""
    return run(release, "git", *arguments, cwd=release.root).strip()


def check_tools(release: Release) -> str:
    """Whether everything is installed that the steps use."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    project = tomllib.loads((release.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    missing += unmet([*project["dependencies"], *(line for name in EXTRAS for line in project["optional-dependencies"][name])])
    if missing:
        raise ReleaseError(f'not installed: {", ".join(missing)}; python -m pip install uv ".[{",".join(EXTRAS)}]"')
    return f"Python {platform.python_version()}"


def unmet(requirements: Iterable[str]) -> list[str]:
    """The requirements that the packages of this Python do not meet."""
    installed = {canonicalize_name(each.name): each.version for each in importlib.metadata.distributions() if each.name}
    needed = [each for each in map(Requirement, requirements) if each.marker is None or each.marker.evaluate()]
    found = [(each, installed.get(canonicalize_name(each.name))) for each in needed]
    return [str(each) for each, version in found if version is None or not each.specifier.contains(version, prereleases=True)]


def check_tree(release: Release) -> str:
    """Whether the working tree is clean and on the branch of releases, and the version is free."""
    edits.numbers(release.version)
    changed = git(release, "status", "--porcelain")
    if changed:
        raise ReleaseError(f"the working tree is not clean ({len(changed.splitlines())} files, such as {changed.split()[-1]}): commit first")
    branch = git(release, "branch", "--show-current")
    if branch != release.branch:
        raise ReleaseError(f"this is branch {branch or '(none)'}, releases are made from {release.branch}")
    if release.version in git(release, "tag", "--list").splitlines():
        raise ReleaseError(f"the tag {release.version} exists")
    if release.target.exists():
        raise ReleaseError(f"{release.target} exists: remove it first")
    return f"clean, on {branch}"


def previous(release: Release) -> str | None:
    """The version of the last release; None before the first."""
    return edits.latest(git(release, "tag", "--list").splitlines())


def write_version(release: Release) -> str:
    """Clone, write version and CHANGELOG, commit."""
    run(release, "git", "clone", "--quiet", "--branch", release.branch, release.root, release.checkout, cwd=release.scratch)
    current = run(release, sys.executable, "-c", "import ldlm_lint; print(ldlm_lint.__version__)").strip()
    kind = edits.kind(previous(release), current, release.version)
    changes = {name: edits.with_version(name, release.text(name), release.version) for name in edits.PLACES if exists(release, name)}
    today = datetime.datetime.now(datetime.timezone.utc).date()
    changes["CHANGELOG.md"] = edits.with_release(release.text("CHANGELOG.md"), release.version, today)
    for name, text in changes.items():
        (release.checkout / name).write_text(text, encoding="utf-8", newline="\n")
    identity = [f"user.{key}={git(release, 'config', f'user.{key}')}" for key in ("name", "email")]
    options = [word for setting in identity for word in ("-c", setting)]
    run(release, "git", *options, "commit", "--quiet", "--all", "--message", f"Release {release.version}")
    return f"{kind} release, {', '.join(changes)}"


def exists(release: Release, name: str) -> bool:
    """Whether the clone has such a file."""
    return (release.checkout / name).is_file()


def check_promises(release: Release) -> str:
    """Whether rules and schemas change no more than such a release may."""
    last = previous(release)
    kind = edits.kind(last, "0.0.0", release.version)
    old = release.scratch / "previous"
    if last is not None:
        run(release, "git", "clone", "--quiet", "--branch", last, release.root, old, cwd=release.scratch)
        kind = promises.allowed(kind, last)
    broken = promises.broken_by_rules(rules(release, old) if last else [], rules(release, release.checkout), kind, release.version)
    broken += promises.broken_by_schemas(schemas(old), schemas(release.checkout), kind)
    if broken:
        raise ReleaseError("\n  ".join(["docs/versions.md promises otherwise:", *broken]))
    return f"compared with {last}" if last else "nothing was released before"


def rules(release: Release, checkout: Path) -> list[dict[str, Any]]:
    """The rules of a checkout, as its own command describes them."""
    return json.loads(run(release, sys.executable, "-m", "ldlm_lint", "rules", "--format", "json", cwd=checkout))["rules"]


def schemas(checkout: Path) -> dict[str, Any]:
    """The schemas that a checkout publishes, by name."""
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(checkout.glob("docs/*.schema.json"))}


def check_pages(release: Release) -> str:
    """Whether the generated pages are up to date."""
    for name in GENERATED:
        run(release, sys.executable, f"scripts/{name}", "--check")
    return ", ".join(GENERATED)


def check_code(release: Release) -> str:
    """Style and types."""
    run(release, sys.executable, "-m", "ruff", "check", ".")
    run(release, sys.executable, "-m", "mypy")
    return "ruff, mypy"


def check_tests(release: Release) -> str:
    """The tests, unless they are skipped."""
    if release.skip_tests:
        return "SKIPPED (--skip-tests)"
    return run(release, sys.executable, *TESTS).strip().splitlines()[-1]


def build(release: Release) -> str:
    """Wheel and source distribution, built twice, and what PyPI would reject in them."""
    run(release, sys.executable, "scripts/check_packages.py", "--keep", release.files)
    wheel, sources = release.packages("*.whl"), release.packages("*.tar.gz")
    run(release, sys.executable, "-m", "twine", "check", "--strict", wheel, sources)
    run(release, sys.executable, "-m", "check_wheel_contents", wheel)
    return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in (wheel, sources))


def install(release: Release) -> str:
    """The wheel in a fresh environment: its version, and what it finds in the example."""
    home = release.scratch / "environment"
    run(release, "uv", "venv", "--quiet", "--python", sys.executable, home, cwd=release.scratch)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    wheel = release.packages("*.whl")
    run(release, "uv", "pip", "install", "--quiet", "--python", programs / "python", wheel, cwd=release.scratch)
    said = run(release, programs / "ldlm-lint", "--version", cwd=release.scratch).strip()
    if said != f"ldlm-lint {release.version}":
        raise ReleaseError(f"the wheel calls itself {said!r}")
    # The example has mistakes on purpose. An HTML page also needs the templates, which are not Python.
    check = (programs / "ldlm-lint", "--no-cache", release.checkout / EXAMPLE)
    found = run(release, *check, cwd=release.scratch, ends_with=1)
    run(release, *check, "--format", "html", "--output", release.scratch / "report.html", cwd=release.scratch, ends_with=1)
    return next(line for line in found.splitlines() if line.startswith("Found "))


def pack_extension(release: Release) -> str:
    """The VS Code extension, if its sources and Node.js are available."""
    folder = release.checkout / EXTENSION
    if not (folder / "package.json").is_file():
        return f"SKIPPED (no {EXTENSION})"
    npm = shutil.which("npm")
    if npm is None:
        return "SKIPPED (Node.js is not installed)"
    run(release, npm, "ci", "--no-audit", "--no-fund", cwd=folder)
    run(release, npm, "run", "package", "--", "--out", release.files / f"ldlm-lint-{release.version}.vsix", cwd=folder)
    return release.packages("*.vsix").name


def write_texts(release: Release) -> str:
    """The recipe for conda-forge, the notes of the release, and the checksums of all files."""
    recipe = edits.for_conda_forge(release.text("packaging/conda/recipe.yaml"), edits.digest(release.packages("*.tar.gz")))
    texts = {"recipe.yaml": recipe, "notes.md": edits.notes(release.text("CHANGELOG.md"), release.version)}
    for name, text in texts.items():
        (release.files / name).write_text(text, encoding="utf-8", newline="\n")
    sums = edits.checksums(release.files.iterdir())
    (release.files / "SHA256SUMS").write_text(sums, encoding="utf-8", newline="\n")
    return ", ".join([*texts, "SHA256SUMS"])


STEPS: Sequence[tuple[str, Callable[[Release], str]]] = (
    ("tools", check_tools),
    ("working tree", check_tree),
    ("version and changes", write_version),
    ("promises", check_promises),
    ("generated pages", check_pages),
    ("style and types", check_code),
    ("tests", check_tests),
    ("packages", build),
    ("installation", install),
    ("extension", pack_extension),
    ("texts", write_texts),
)


def made(release: Release, steps: Sequence[tuple[str, Callable[[Release], str]]] = STEPS) -> bool:
    """Take the steps, one line each; False after the first that fails."""
    for name, step in steps:
        start = time.monotonic()
        try:
            said = step(release)
        except ReleaseError as error:
            print(f"FAILED  {name}: {error}", flush=True)
            return False
        print(f"ok      {name}{said and f': {said}'}  [{time.monotonic() - start:.0f} s]", flush=True)
    return True


def take_over(release: Release) -> str:
    """Take the commit of the clone into this repository, and copy the files."""
    git(release, "fetch", "--quiet", release.checkout, release.branch)
    git(release, "merge", "--quiet", "--ff-only", "FETCH_HEAD")
    shutil.copytree(release.files, release.target)
    return f"committed on {release.branch}, files in {release.target}"


def remaining(release: Release) -> str:
    """The commands that publish the release, for a person to run in the repository."""
    version, names = release.version, sorted(path.name for path in release.files.iterdir())
    shown = shlex.quote(f"{os.path.relpath(release.target, release.root)}/".replace(os.sep, "/"))
    lines = [
        "# Tag it. The workflow release.yml then builds it again and publishes it on PyPI with attestations;",
        f"# its hashes must be those of {shown}SHA256SUMS.",
        f'git tag --sign {version} --message "ldlm-lint {version}"',
        f"git push origin {release.branch} {version}",
        "# Only without that workflow:",
        f"python -m twine upload {shown}*.whl {shown}*.tar.gz",
        "# The release's page, with the files:",
        f"gh release create {version} --verify-tag --notes-file {shown}notes.md {' '.join(shown + name for name in names)}",
    ]
    if any(name.endswith(".vsix") for name in names):
        lines += ["# The extension:", f"npx @vscode/vsce publish --packagePath {shown}ldlm-lint-{version}.vsix"]
        lines += [f"npx ovsx publish {shown}ldlm-lint-{version}.vsix"]
    image = f"ghcr.io/ldlm-lint/ldlm-lint:{version}"
    lines += ["# The image:", f"podman build --tag {image} .", f"podman push {image}"]
    lines += [f"# conda-forge: {shown}recipe.yaml is the recipe of this version; open a pull request with it."]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the steps and what remains; the exit code is 0, or 1 if a step failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", metavar="VERSION", help="MAJOR.MINOR.PATCH")
    parser.add_argument("--write", action="store_true", help="commit the release on this branch and write the files")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where --write puts the files (default: dist/VERSION)")
    parser.add_argument("--branch", default="main", help="the branch that is released (default: main)")
    parser.add_argument("--skip-tests", action="store_true", help="do not run the tests")
    options = parser.parse_args(arguments)
    scratch = Path(tempfile.mkdtemp(prefix="ldlm-lint-release-"))
    target = (options.output or root / "dist" / options.version).absolute()
    release = Release(options.version, options.branch, root, scratch, target, options.skip_tests)
    if not made(release, [*STEPS, ("commit", take_over)] if options.write else STEPS):
        print(f"Nothing was changed here. What was done so far is in {scratch}.")
        return 1
    title = "What remains:" if options.write else "A rehearsal: nothing was changed here. After --write these remain:"
    print(f"\n{title}\n\n{remaining(release)}")
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
