"""Looks for inputs that break a property, for as long as it is told to, guided by the code that they reach.

    python tests/fuzz/run.py --target python --minutes 30 --output /tmp/finds

An input that reaches a line of the linter which none before it reached joins those that further ones are made of. Every
find is written to ``--output`` once, by the property and the place, and the search goes on. It needs nothing beyond the
tests: lines are counted by ``sys.monitoring`` (Python 3.12) or ``sys.settrace``. With ``--engine atheris`` (``python -m
pip install atheris``) libFuzzer counts edges instead, which is some ten times faster on older Pythons.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import CodeType, FrameType

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
PACKAGE = str(HERE.parent.parent / "ldlm_lint")
ROOMS = tuple(f"ldlm_lint.{room}" for room in ["autofix", "checkers", "code", "concepts", "configs", "edits", "files", "frameworks", "notebooks", "program", "project", "python", "report", "rules", "shell"])
TARGETS = ("python", "shell", "config", "notebook", "fixes")


class Search:
    """Inputs that were found to matter, and what broke."""

    def __init__(self, target: str, output: Path, seed: int) -> None:
        from fuzz.mutations import seeds

        self.target = target
        self.output = output
        self.random = Random(seed)
        self.corpus = list(seeds(target))
        self.seeded = len(self.corpus)
        self.finds: dict[str, int] = {}
        self.executions = 0

    def pick(self) -> tuple[str, bytes]:
        """A new input; half of them come from those that reached something new last."""
        from fuzz.mutations import mutated

        recent = self.corpus[-200:] if self.random.random() < 0.5 else self.corpus
        name, data = self.random.choice(recent)
        return name, mutated(data, self.target, self.random)

    def execute(self, name: str, data: bytes) -> None:
        """Try the properties on one input, and keep it if one does not hold."""
        from fuzz.properties import check_fixes, check_lint, check_program

        self.executions += 1
        try:
            (check_fixes if self.target == "fixes" else check_lint)(name, data)
            if self.target == "python":
                check_program(data)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            self._keep(f"{type(error).__name__} {frame.name}: {error}", name, data)

    def _keep(self, signature: str, name: str, data: bytes) -> None:
        known = signature.split("0x")[0][:160]
        self.finds[known] = self.finds.get(known, 0) + 1
        if self.finds[known] == 1:
            key = hashlib.sha256(known.encode(errors="replace")).hexdigest()[:12]
            self.output.mkdir(parents=True, exist_ok=True)
            (self.output / f"{key}-{name}").write_bytes(data)
            print(f"FOUND {key}-{name}: {known}", flush=True)


class Lines:
    """Which lines of the linter have run so far."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.new = False

    def start(self) -> None:
        """Count from here on."""
        if sys.version_info >= (3, 12):
            tool = sys.monitoring.COVERAGE_ID
            sys.monitoring.use_tool_id(tool, "ldlm-lint-fuzz")
            sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, self._line)
            sys.monitoring.set_events(tool, sys.monitoring.events.LINE)
        else:
            sys.settrace(self._trace)

    def _line(self, code: CodeType, line: int) -> object:
        if code.co_filename.startswith(PACKAGE):
            self._add(code.co_filename, line)
        return sys.monitoring.DISABLE

    def _trace(self, frame: FrameType, event: str, _argument: object) -> object:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        self._add(frame.f_code.co_filename, frame.f_lineno)
        return self._trace

    def _add(self, path: str, line: int) -> None:
        if (path, line) not in self.seen:
            self.seen.add((path, line))
            self.new = True


def search_by_lines(search: Search, seconds: float, report: Callable[[str], None]) -> None:
    """Search with nothing but the interpreter."""
    lines = Lines()
    lines.start()
    deadline, told = time.monotonic() + seconds, time.monotonic()
    while time.monotonic() < deadline:
        lines.new = False
        name, data = search.pick()
        search.execute(name, data)
        if lines.new:
            search.corpus.append((name, data))
        if time.monotonic() - told > 60:
            told = time.monotonic()
            report(f"{len(lines.seen)} lines reached")
    report(f"{len(lines.seen)} lines reached")


def _import_all(room: str) -> None:
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, f"{room}."):
        importlib.import_module(module.name)


def search_by_edges(search: Search, seconds: float, report: Callable[[str], None], corpus: Path | None = None) -> None:
    """Search with atheris, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["ldlm_lint"]):
        # What is imported later is not counted, so that all that reads inputs has to be here before them.
        import fuzz.properties  # noqa: F401

        for room in ROOMS:
            _import_all(room)
    from fuzz.mutations import mutated

    told = time.monotonic()
    names = sorted({name for name, _ in search.corpus})

    def one(data: bytes) -> None:
        nonlocal told
        if data:
            search.execute(names[data[0] % len(names)], data[1:])
        if time.monotonic() - told > 60:
            told = time.monotonic()
            report("under way")

    def mutator(data: bytes, _most: int, seed: int) -> bytes:
        random = Random(seed)
        if len(data) < 2 or random.random() < 0.1:
            name, seed_data = random.choice(search.corpus)
            data = bytes([names.index(name) % 256]) + seed_data
        return data[:1] + mutated(data[1:], search.target, random)

    # Inputs that reached something stay for the next search.
    kept = [] if corpus is None else [str(corpus)]
    arguments = [sys.argv[0], *kept, f"-max_total_time={int(seconds)}", f"-seed={search.random.randrange(1, 1 << 30)}", "-max_len=6001"]
    atheris.Setup([*arguments, "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=4096"], one, custom_mutator=mutator)
    atheris.Fuzz()


def main() -> int:
    """Search, tell what was found, and return 1 if something was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("fuzz-finds"))
    parser.add_argument("--engine", choices=("lines", "atheris"), default="lines")
    parser.add_argument("--corpus", type=Path, help="where --engine atheris keeps inputs for its next search")
    arguments = parser.parse_args()
    search = Search(arguments.target, arguments.output, arguments.seed)
    began = time.monotonic()

    def report(coverage: str) -> None:
        minutes = (time.monotonic() - began) / 60
        told = f"{search.target}: {minutes:.1f} min, {search.executions} executions, {coverage}"
        print(f"{told}, {len(search.corpus) - search.seeded} inputs joined, {len(search.finds)} finds", flush=True)

    if arguments.engine == "atheris":
        if arguments.corpus is not None:
            arguments.corpus.mkdir(parents=True, exist_ok=True)
        search_by_edges(search, arguments.minutes * 60, report, arguments.corpus)
    else:
        search_by_lines(search, arguments.minutes * 60, report)
    return 1 if search.finds else 0


if __name__ == "__main__":
    sys.exit(main())
