"""Looks for texts in which twice as much takes far more than twice the time.

    python tests/fuzz/growth.py --kind sh --minutes 10

A piece of a fixture, or a token that parsers look for, is repeated at a random place of a fixture until it fills some bytes. What
takes long, and took less than a third of that at half the size, is printed with what gives it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
FIXTURES = HERE.parent / "fixtures"
LARGEST = 20_000
"""Bytes of a fixture that is taken: of a larger one a run takes its time before anything is repeated."""
LONG, STEEP = 1.5, 2.8
"""Processor seconds that are looked at more closely, and the factor for twice the text that is told."""
TOKENS = {
    "py": [
        *["(", ")", "[", "{", "{a: ", "f(", "a.", "a.b()", "x, ", "'", '"', '"""', "\\", "not ", "lambda: ", "x if y else ", "{x}", "%s"],
        *["#", "# a b\n", " ", "\n", "\\\n", "\r", "\f", "a", "0", "_", "é", "@a\n", "if x:\n", "try: x()\nexcept E: y()\n", "x = 1\n"],
        *["x = x + 1\n", "self.x = self.x\n", "args.x = 1\n", "x.item()\n", "loss.backward()\n", "model.eval()\n", "torch.save(x, y)\n"],
        *["from a import b\n", "def f(): pass\n", "class A: pass\n", "with a: pass\n", "if step % 10 == 0: x()\n", "# ldlm-lint: ignore\n"],
    ],
    "sh": [
        *["'", '"', "`", "$(", "${", "${a:-", "$((", "(", ")", "{ ", "}; ", "[[ ", "]]", "<(", "$'a'", "$a", "$1", "\\", "\\\n", " ", "\t"],
        *["a\n", "#", "# x\n", "a=b ", "export A=b\n", "A=$A:b\n", "a+=(b)\n", "a|", "a&&", "a;", ">a ", "2>&1 ", "<<E\n", "é", "\r\n"],
        *["if a; then\n", "fi\n", "for i in a; do\n", "done\n", "case x in\n", "esac\n", "f() { a; }\n", "source a.sh\n", "set -e\n"],
        *["--a=b ", "--a b \\\n", "torchrun a.py \\\n", "sbatch a\n", "#SBATCH --a=b\n", 'eval "a"\n'],
    ],
    "yaml": [
        *["a: b\n", "- a\n", "- ", "[", "]", "{", "}", "{a: ", "? ", "&a ", "*a ", "&a b\n", "!!x ", "|\n", ">\n", "#", "'", '"', "\\", " "],
        *["\n", "\t", "---\n", "...\n", "<<: *a\n", "${a}", "{{ a }}", "a:b,", ", ", "é", "0", "a\n  b\n", "a: {b: c}\n"],
    ],
    "json": ["[", "{", '{"a":', '"a": 1,', "1,", '"', "\\", "\\u0000", " ", "\n", "//a\n", "/*", "a", "0", "-", '"a":{"b":1},', "é", ","],
    "toml": ["a = 1\n", "[a]\n", "[[a]]\n", "[", "a.", "a.b = 1\n", "#", "'", '"', '"""', "'''", "\\", " ", "\n", "{a=", ",", "0", "é"],
}


@dataclass(frozen=True)
class Case:
    """A text with a piece of it repeated."""

    name: str
    before: str
    piece: str
    behind: str
    times: int = 1

    @property
    def text(self) -> str:
        """All of it."""
        return self.before + self.piece * self.times + self.behind

    def seconds(self) -> float:
        """Processor seconds of a run over a project of nothing else."""
        from ldlm_lint import engine
        from ldlm_lint.config import Config

        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "pyproject.toml").touch()
            (root / Path(self.name).name).write_text(self.text, encoding="utf-8", newline="")
            config = Config.load(root)
            began = time.process_time()
            engine.run([root], config, base=root)
            return time.process_time() - began


def cases(kind: str, size: int, random: Random) -> Iterator[Case]:
    """Texts of about so many bytes, without end."""
    paths = sorted(one for one in FIXTURES.rglob(f"*.{kind}") if one.stat().st_size < LARGEST)
    while True:
        path = random.choice(paths)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        first, last = sorted((random.randrange(len(lines) + 1), random.randrange(len(lines) + 1)))
        before, piece, behind = ("".join(part) for part in (lines[:first], lines[first:last], lines[last:]))
        if not piece or random.random() < 0.6:
            column = random.randrange(len(piece) + 1)
            before, piece, behind = before + piece[:column], random.choice(TOKENS[kind]), piece[column:] + behind
        yield Case(str(path.relative_to(FIXTURES)), before, piece, behind, max(2, size // len(piece.encode())))


def main() -> None:
    """Read the arguments and search."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=sorted(TOKENS), required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--size", type=int, default=60_000, help="bytes that the repeated piece fills")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    end, tried = time.monotonic() + chosen.minutes * 60, 0
    for case in cases(chosen.kind, chosen.size, Random(chosen.seed)):
        if time.monotonic() > end:
            break
        tried += 1
        seconds = case.seconds()
        if seconds < LONG:
            continue
        half = replace(case, times=case.times // 2).seconds()
        if seconds > STEEP * half:
            print(f"{seconds:.1f} s, half of it {half:.1f} s: {case.name}: {case.piece[:60]!r} behind {case.before[-40:]!r}", flush=True)
    print(f"{tried} texts")


if __name__ == "__main__":
    main()
