"""Builds the packages twice, compares them byte for byte, and runs the tests against the wheel in clean environments.

    python scripts/check_packages.py                                   # builds and compares
    python scripts/check_packages.py --python 3.10 --python 3.13       # and tests the wheel on these
    python scripts/check_packages.py --python 3.11 --lowest            # with the oldest dependencies that it declares

It works on a clean clone of the last commit, needs `uv <https://docs.astral.sh/uv/>`_ and a network, and prints a line
for each step. A build must not depend on when, where or under which umask it was made
(https://reproducible-builds.org). The source distribution must contain what git tracks, and the wheel every file of the
package, the rules' examples and no test.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "ldlm_lint/"
# Added by hatch_build.py.
EXAMPLES = f"{PACKAGE}_examples/"
# These read or build the sources of the package, which a wheel does not contain.
OF_CHECKOUT = ("tests/test_packages.py", "tests/test_new_rule.py", "tests/test_vocabularies.py")
OF_CHECKOUT += ("tests/test_install.py", "tests/test_release.py")


class CheckError(Exception):
    """A step that failed; the text says which."""


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command to its end; raises CheckError if it is missing or fails."""
    if shutil.which(command[0]) is None:
        raise CheckError(f"{command[0]} is not installed")
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, check=False)
    if done.returncode:
        raise CheckError(f"{command[0]} {command[1]} ended with {done.returncode}")


def built(source: Path, target: Path, *, umask: int, zone: str) -> dict[str, str]:
    """The SHA-256 of each package built from a copy of the sources, by file name."""
    previous = os.umask(umask)
    try:
        run("git", "clone", "--quiet", source, target / "checkout", cwd=target)
        # The time of the last commit, as for every builder: https://reproducible-builds.org/specs/source-date-epoch/
        stamp = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=source, capture_output=True, text=True, check=True
        ).stdout.strip()
        environment = os.environ | {"TZ": zone, "SOURCE_DATE_EPOCH": stamp, "PYTHONHASHSEED": zone[-1]}
        run("uv", "build", "--quiet", "--out-dir", target / "dist", cwd=target / "checkout", environment=environment)
    finally:
        os.umask(previous)
    files = [path for path in sorted((target / "dist").iterdir()) if path.suffix in (".whl", ".gz")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def complaints(tracked: set[str], sources: set[str], wheel: set[str]) -> list[str]:
    """The errors of the packages: one line for each missing or superfluous file.

    Parameters
    ----------
    tracked
        The files that git tracks, relative to the repository.
    sources
        The files of the source distribution, without its folder.
    wheel
        The files of the wheel.
    """
    of_package = {name for name in tracked if name.startswith(PACKAGE)}
    own = {name for name in wheel if not name.startswith(EXAMPLES) and ".dist-info/" not in name}
    found = [f"the source distribution lacks {name}" for name in sorted(tracked - sources)]
    found += [f"the source distribution holds {name}, which git does not track" for name in sorted(sources - tracked - {"PKG-INFO"})]
    found += [f"the wheel lacks {name}" for name in sorted(of_package - own)]
    found += [f"the wheel holds {name}" for name in sorted(own - of_package)]
    return found if any(name.startswith(EXAMPLES) for name in wheel) else [*found, f"the wheel lacks {EXAMPLES}"]


def inspected(checkout: Path, packages: Path) -> None:
    """Compare the content of both packages with what git tracks; raises CheckError, which names every difference."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    ((sources,), (wheel,)) = (list(packages.glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    with tarfile.open(sources) as archive:
        files = {member.name.partition("/")[2] for member in archive if not member.isdir()}
    with zipfile.ZipFile(wheel) as contents:
        wrong = complaints(set(listing.split("\0")) - {""}, files, set(contents.namelist()))
    if wrong:
        raise CheckError("\n  ".join(["the packages are not complete:", *wrong]))


def tested(wheel: Path, checkout: Path, python: str, *, lowest: bool, extra: Sequence[str], scratch: Path) -> None:
    """Install the wheel with its test dependencies into a new environment and run the tests there."""
    home = scratch / f"python-{python}"
    run("uv", "venv", "--quiet", "--python", python, home, cwd=scratch)
    interpreter = home / "bin" / "python"
    resolution = ["--resolution", "lowest-direct"] if lowest else []
    run("uv", "pip", "install", "--quiet", "--python", interpreter, *resolution, f"{wheel}[test]", cwd=scratch)
    run("uv", "pip", "list", "--quiet", "--python", interpreter, cwd=scratch)
    beside = scratch / f"beside-{python}"
    # Without the checkout's own package, so that the tests import the installed one.
    shutil.copytree(checkout, beside, ignore=lambda folder, _: [".git", PACKAGE.rstrip("/")] if Path(folder) == checkout else [])
    skipped = [f"--ignore={name}" for name in OF_CHECKOUT]
    environment = os.environ | {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    run(interpreter, "-m", "pytest", "-q", *skipped, *extra, cwd=beside, environment=environment)


def main() -> int:
    """Print what was built and tested; the exit code is 0, or 1 if a step failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", default=[], metavar="VERSION", help="test on this; may be repeated")
    parser.add_argument("--lowest", action="store_true", help="with the oldest versions that pyproject.toml allows")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the packages there when all steps have passed")
    parser.add_argument("--pytest", default="-n auto --dist loadgroup", metavar="ARGUMENTS", help="arguments of pytest")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        try:
            for name in ("first", "second"):
                (scratch / name).mkdir()
            packages = built(ROOT, scratch / "first", umask=0o022, zone="UTC0")
            again = built(ROOT, scratch / "second", umask=0o077, zone="EST5")
            if packages != again:
                raise CheckError(f"two builds differ: {sorted(set(packages.items()) ^ set(again.items()))}")
            for name, digest in packages.items():
                print(f"{digest}  {name}  (twice the same)", flush=True)
            inspected(scratch / "first" / "checkout", scratch / "first" / "dist")
            (wheel,) = (scratch / "first" / "dist").glob("*.whl")
            for python in arguments.python:
                checkout = scratch / "first" / "checkout"
                tested(wheel, checkout, python, lowest=arguments.lowest, extra=arguments.pytest.split(), scratch=scratch)
                print(f"the wheel passes its tests on Python {python}", flush=True)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                for name in packages:
                    shutil.copy2(scratch / "first" / "dist" / name, arguments.keep)
        except CheckError as error:
            print(f"check_packages.py: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
