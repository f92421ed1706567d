"""The scanner against an independent parser: shfmt's syntax tree of the same scripts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ldlm_lint.checkers.scripts.lint import lint
from ldlm_lint.config import Config
from ldlm_lint.rules import ALL
from ldlm_lint.shell.detect import is_shell
from ldlm_lint.shell.launchers import launcher_of
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Form
from ldlm_lint.source import Kind, Source, UnreadableError

SHFMT = shutil.which("shfmt")
BAR = 0.995
MILLISECONDS = 25
OPTIONS = Config(options={option.name: option.default for rule in ALL for option in rule.options}).facts
# What shfmt has a node for; `env A=1` is a word and `${A:=1}` an expansion to it.
FORMS = (Form.PLAIN, Form.DECLARED, Form.PREFIX)

TRICKY = r"""#!/bin/bash
# export A=0
export A=1 B="x y" C
declare -x D=${X:-5} E='1 2'; typeset F=$(date +%s)
local_env() { local G=1 H; readonly I=3; }
NPROC=${NPROC:-$((8 / 2))} torchrun --nproc_per_node=$((N * 2)) train.py "$@" > log 2>&1
torchrun --nnodes 2 \
  --rdzv_endpoint="${HOST}:${PORT:-29500}" \
  train.py --name "it's" --glob *.yaml | tee out.log
torchrun > early.log train.py --after redirect 2>&1 --last
python -u -m torch.distributed.launch --nproc_per_node 4 t.py <<EOF
export NOT=1
torchrun not.py
EOF
cat <<'EOF' > gen.sh
export NOT=2
python not.py
EOF
if [[ -z "$A" ]]; then export J=1; else K=2 accelerate launch --config c.yaml t.py & fi
case "$A" in
  x) export L=1 ;;
  *) CUDA_VISIBLE_DEVICES=0,1 deepspeed --include localhost:0 t.py && echo "M=1" ;;
esac
for i in 1 2; do srun --ntasks=1 bash -c "export NOT=3; python not.py" || exit 1; done
ARGS=(--a 1 --b "$C" $(pwd)) EMPTY= ; LAST+=" x"
OUT=$DIR/run-$NAME.d/x torchrun t.py
X=a${B}c"d e"'f'$G/h.$I nohup python3 -m torch.distributed.run --x=$A.y t.py &
( cd sub; Z=1; mpirun -np 4 -x NCCL_DEBUG python t.py )
env -u Q R=1 torchrun t.py; echo "torchrun not.py" 'S=1'
"""


def oracle(data: bytes) -> tuple[set[tuple[int, int]], set[tuple[int, int]]] | None:
    """The spans of assignments and of launcher commands according to shfmt; None for a script it rejects."""
    done = subprocess.run([SHFMT, "-tojson", "-ln", "bash"], input=data, capture_output=True, check=False)
    if done.returncode:
        return None
    assignments, launchers = set(), set()
    nodes = list(_nodes(json.loads(done.stdout)))
    # To shfmt `time` is a clause of its own around the command, to the scanner one of the wrappers in front of it.
    timed = {
        node["Stmt"]["Pos"]["Offset"]: node["Pos"]["Offset"] for node in nodes if node.get("Type") == "TimeClause" and node.get("Stmt")
    }
    for node in nodes:
        named = [*node.get("Assigns", ()), *(node.get("Args", ()) if node.get("Type") == "DeclClause" else ())]
        assignments |= {
            _span(one) for one in named if one.get("Name") and not one.get("Naked") and not one.get("Index")
        }
        arguments = node.get("Args", ()) if node.get("Type") == "CallExpr" else ()
        if arguments and launcher_of([_text(word, data) for word in arguments]):
            start = node["Pos"]["Offset"]
            launchers.add((timed.get(start, start), arguments[-1]["End"]["Offset"]))
    return assignments, launchers


def _nodes(tree: object) -> Iterator[dict]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def _span(node: dict) -> tuple[int, int]:
    return node["Pos"]["Offset"], node["End"]["Offset"]


def _text(word: dict, data: bytes) -> str:
    parts = word["Parts"]
    if len(parts) == 1 and parts[0]["Type"] == "Lit":
        return parts[0]["Value"]
    return data[slice(*_span(word))].decode(errors="replace").strip("\"'")


def ours(source: Source) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The same according to the scanner."""
    script = scan(source)
    assignments = {(one.span.start, one.span.end) for one in script.assignments if one.form in FORMS}
    return assignments, {(one.span.start, one.span.end) for one in script.launches}


@pytest.mark.skipif(SHFMT is None, reason="shfmt is not installed")
def test_tricky_script_agrees_with_shfmt() -> None:
    data = TRICKY.encode()
    expected = oracle(data)
    assert expected is not None
    assert ours(Source.from_bytes("tricky.sh", data, Kind.SHELL)) == expected
    assert (len(expected[0]), len(expected[1])) == (18, 11)


@pytest.mark.corpus
@pytest.mark.skipif(SHFMT is None, reason="shfmt is not installed")
def test_corpus_agrees_with_shfmt(capsys: pytest.CaptureFixture[str]) -> None:
    """At least 99.5 % of the assignments and launcher commands of real scripts, with their exact span, in time.

    The corpus is the folder ``LDLM_CORPUS``; a script is what the linter takes for one. Folders in
    ``LDLM_CORPUS_APART`` (separated by colons) are counted by themselves, since one large family of scripts would
    decide the shares of all.
    """
    root = os.environ.get("LDLM_CORPUS")
    if not root:
        pytest.skip("LDLM_CORPUS is not set")
    apart = [one for one in os.environ.get("LDLM_CORPUS_APART", "").split(":") if one]
    counts: dict[str, Count] = {}
    for path in sorted(Path(root).rglob("*")):
        source = _script(path)
        if source is not None:
            name = next((one for one in apart if Path(one) in path.parents), "rest")
            counts.setdefault(name, Count()).add(path, source)
    with capsys.disabled():
        for name, count in counts.items():
            print(f"\n{name}: {count}")
    assert counts
    for count in counts.values():
        assert min(count.shares) >= BAR, count.wrong[:20]
        assert count.mean <= MILLISECONDS


def _script(path: Path) -> Source | None:
    """A file that the linter reads as a script; what a link names is counted where it is."""
    if path.is_symlink() or not path.is_file() or ".git" in path.parts:
        return None
    try:
        with path.open("rb") as file:
            head = file.read(200)
        return Source.read(path, Kind.SHELL) if is_shell(path, head) else None
    except (UnreadableError, OSError):
        return None


@dataclass
class Count:
    """What the scripts of a folder came to."""

    scripts: int = 0
    rejected: int = 0
    seen: list[int] = field(default_factory=lambda: [0, 0])
    exact: list[int] = field(default_factory=lambda: [0, 0])
    wrong: list[str] = field(default_factory=list)
    times: list[tuple[float, str]] = field(default_factory=list)

    def add(self, path: Path, source: Source) -> None:
        """Lint one script, and compare what is seen in it."""
        start = time.process_time()
        lint(source, OPTIONS)
        self.times.append((1000 * (time.process_time() - start), str(path)))
        self.scripts += 1
        expected = oracle(source.data)
        self.rejected += expected is None
        for kind, (theirs, mine) in enumerate(zip(expected or (), ours(source), strict=False)):
            self.seen[kind] += len(theirs)
            self.exact[kind] += len(theirs & mine)
            self.wrong += [f"{path}:{source.position(start)[0]}" for start, _ in sorted(theirs ^ mine)]

    @property
    def shares(self) -> tuple[float, ...]:
        """The parts of the assignments and of the launcher commands that are seen with their exact span."""
        return tuple(good / total for good, total in zip(self.exact, self.seen, strict=True) if total)

    @property
    def mean(self) -> float:
        """Milliseconds of CPU for linting a script."""
        return sum(one for one, _ in self.times) / len(self.times)

    def __str__(self) -> str:
        slowest = ", ".join(f"{one:.0f} ms {path}" for one, path in sorted(self.times, reverse=True)[:3])
        shares = ", ".join(f"{share:.2%} of {total}" for share, total in zip(self.shares, self.seen, strict=False))
        return f"{self.scripts} scripts ({self.rejected} rejected by shfmt), {shares}, {self.mean:.1f} ms each; slowest: {slowest}"
