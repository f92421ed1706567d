"""A program with a defect of every rule that has a safe fix: fixed, it computes and writes the same, bit for bit.

Each of these fixes is also done wrong, in the way that it could be: what is compared here must notice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import proof
import pytest
from proof import Run

from ldlm_lint.model import Applicability
from ldlm_lint.rules import ALL

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform == "win32", reason="the launch script needs bash"),
]

# What the fixes may change of the launcher's environment.
VARIABLES = {
    "NCCL_TREE_THRESHOLD": ("0", None),
    "NCCL_DEBUG": ("INFO", "WARN"),
    "NCCL_SOCKET_NTHREADS": ("32", "16"),
}
# Each copy has its own folder, and stubs of its own.
OF_THE_COPY = {"PATH", "PWD", "OLDPWD", "_"}

# What a fix writes, and what a careless one would have written.
WRONG_PROGRAM = {
    "dataloader-worker-count-may-be-zero": (
        "data.py",
        "persistent_workers=num_workers > 0",
        "persistent_workers=False",
    ),
    "dataloader-worker-options-without-workers": ("data.py", "num_workers=0,\n", "num_workers=0, prefetch_factor=4,\n"),
    "deprecated-amp-api": ("train.py", 'autocast("cpu", dtype=', 'autocast("cuda", dtype='),
    "loss-graph-accumulation": ("train.py", "total += loss.detach()", "total += loss.detach().bfloat16()"),
    "unsynchronized-copy-to-host": ("train.py", '.to("cpu", torch.bfloat16)', '.to("cpu")'),
}
WRONG_LAUNCH = {
    "debug-environment-left-on": ("export NCCL_DEBUG=WARN\n", ""),
    "ineffective-environment-variable": ("export TOKENIZERS_PARALLELISM=false\n", ""),
    "nccl-socket-threads-clamped": ("NCCL_SOCKET_NTHREADS=16", "NCCL_SOCKET_NTHREADS=8"),
}


def launch(folder: Path, *, dry: bool = False) -> Run:
    """Train on two ranks, as the program's own script does it."""
    environment = {"NPROC_PER_NODE": "2", "OUTPUT": "pair"}
    return proof.run_script(folder, "launch.sh", environment=environment, dry=dry)


def variables(first: Run, second: Run) -> Mapping[str, tuple[str | None, str | None]]:
    """How the environments differ that two runs of the script gave the launcher."""
    was, now = first.launch.environment, second.launch.environment
    names = (was.keys() | now.keys()) - OF_THE_COPY
    return {name: (was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)}


def alone(folder: Path) -> Run:
    """Train in one process."""
    return proof.run(folder, "--output", "alone", "--num-workers", "2")


def same(first: Run, second: Run, output: str) -> bool:
    """Whether two runs computed and wrote the same."""
    return first.losses == second.losses and first.files(output) == second.files(output)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as it is."""
    pytest.importorskip("torch")
    return proof.copy_of("safe", tmp_path_factory.mktemp("safe"))


@pytest.fixture(scope="module")
def after(before: Path) -> Path:
    """The program with its safe fixes; it must have a defect of every rule that declares such a fix."""
    copy = proof.copy_of("safe", before.parent, "after")
    outcome = proof.fix(copy, select=["ALL"])
    # What only rewrites comments trains nothing: tests/test_fix_levels.py names the tests that hold for it.
    declared = {rule.symbol for rule in ALL if rule.applicability is Applicability.SAFE} - {"unused-suppression"}
    assert set(outcome.by_rule) == declared == {*WRONG_PROGRAM, *WRONG_LAUNCH}
    return copy


@pytest.fixture(scope="module")
def reference(before: Path) -> Run:
    """The program's run as it is, without its script."""
    return alone(before)


def test_safe_fixes_change_no_bit_of_twenty_steps(reference, after):
    second = alone(after)
    assert len(reference.losses) == 20
    assert same(reference, second, "alone")
    assert set(second.files("alone")) == {"last.pt", "metrics-0.json"}


def test_safe_fixes_change_no_bit_of_two_ranks_and_their_launch(before, after):
    first, second = launch(before), launch(after)
    assert len(first.losses) == 20
    assert same(first, second, "pair")
    assert set(first.files("pair")) == {"last.pt", "metrics-0.json", "metrics-1.json"}
    assert first.launch.words == second.launch.words
    assert variables(first, second) == VARIABLES


@pytest.mark.parametrize("arguments", [("--num-workers", "0"), ("--num-workers", "0", "--validate")], ids=len)
def test_loaders_that_raised_work(arguments, before, after):
    broken = proof.run(before, "--steps", "2", *arguments, succeeds=False)
    assert re.search("ValueError: .*(prefetch_factor|persistent_workers|timeout)", broken.output)
    assert len(proof.run(after, "--steps", "2", *arguments).losses) == 2


@pytest.mark.parametrize("rule", WRONG_PROGRAM)
def test_a_wrong_fix_of_the_program_is_noticed(rule, after, reference, tmp_path):
    name, right, wrong = WRONG_PROGRAM[rule]
    folder = proof.copy_of(after, tmp_path, "wrong")
    replace_once(folder / name, right, wrong)
    if rule == "dataloader-worker-options-without-workers":
        proof.run(folder, "--steps", "2", "--validate", succeeds=False)
        return
    assert not same(reference, alone(folder), "alone")


@pytest.mark.parametrize("rule", WRONG_LAUNCH)
def test_a_wrong_fix_of_the_launch_is_noticed(rule, before, after, tmp_path):
    folder = proof.copy_of(after, tmp_path, "wrong")
    replace_once(folder / "launch.sh", *WRONG_LAUNCH[rule])
    first, second = (launch(one, dry=True) for one in (before, folder))
    assert variables(first, second) != VARIABLES


def replace_once(path: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file exactly once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old)
    path.write_text(text.replace(old, new), encoding="utf-8")
