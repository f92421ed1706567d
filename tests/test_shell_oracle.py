"""The scanner against an independent parser: shfmt's syntax tree of the same scripts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldlm_lint.shell.launchers import launcher_of
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Form
from ldlm_lint.source import Kind, Source, UnreadableError

SHFMT = shutil.which("shfmt")
BAR = 0.995
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
    for node in _nodes(json.loads(done.stdout)):
        named = [*node.get("Assigns", ()), *(node.get("Args", ()) if node.get("Type") == "DeclClause" else ())]
        assignments |= {
            _span(one) for one in named if one.get("Name") and not one.get("Naked") and not one.get("Index")
        }
        arguments = node.get("Args", ()) if node.get("Type") == "CallExpr" else ()
        if arguments and launcher_of([_text(word, data) for word in arguments]):
            launchers.add((node["Pos"]["Offset"], arguments[-1]["End"]["Offset"]))
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
def test_corpus_agrees_with_shfmt() -> None:
    """At least 99.5 % of the assignments and launcher commands of real scripts, with their exact span."""
    root = os.environ.get("LDLM_CORPUS")
    if not root:
        pytest.skip("LDLM_CORPUS is not set")
    seen, exact, wrong = [0, 0], [0, 0], []
    for path in sorted(Path(root).rglob("*.sh")):
        try:
            source = Source.read(path, Kind.SHELL)
        except UnreadableError:
            continue
        expected = oracle(source.data)
        for kind, (theirs, mine) in enumerate(zip(expected or (), ours(source), strict=False)):
            seen[kind] += len(theirs)
            exact[kind] += len(theirs & mine)
            wrong += [f"{path}:{source.position(start)[0]}" for start, _ in sorted(theirs ^ mine)]
    assert min(seen) > 0
    shares = [good / total for good, total in zip(exact, seen, strict=True)]
    assert min(shares) >= BAR, f"{shares} of {seen}; first differences: {wrong[:20]}"
