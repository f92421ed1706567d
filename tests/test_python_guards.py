"""The conditions that may choose one process for a call."""

from __future__ import annotations

import textwrap

import pytest
from collected import for_every
from snippets import call

from ldlm_lint.python.guards import RANK, guards_of

ONE_PROCESS = {
    "equal": "if rank == 0:\n    target()",
    "else": "if rank != 0:\n    pass\nelse:\n    target()",
    "attribute": "if args.local_rank in [-1, 0]:\n    target()",
    "key": "if cfg['rank'] == 0:\n    target()",
    "function": "if is_main_process():\n    target()",
    "accelerate": "if accelerator.is_main_process:\n    target()",
    "either": "if not args.distributed or args.rank == 0:\n    target()",
    "gpu": "if args.gpu == 0:\n    target()",
    "not-gpu": "if not gpu:\n    target()",
    "outer": "if master_process:\n    for x in y:\n        if x:\n            target()",
    "variable": "main = dist.get_rank() == 0\nif main:\n    target()",
    "through-a-writer": "writer = Writer() if rank == 0 else None\nif writer is not None:\n    target()",
    "bound-under-it": "writer = None\nif rank == 0:\n    writer = Writer()\nif writer:\n    target()",
    "early-return": "def f():\n    if dist.get_rank() != 0:\n        return\n    target()",
    "continue": "for x in y:\n    if rank:\n        continue\n    target()",
    "exit": "if rank != 0:\n    sys.exit()\ntarget()",
    "assertion": "assert rank == 0\ntarget()",
    "short-circuit": "rank == 0 and target()",
    "expression": "x = target() if rank == 0 else None",
    "decorator": "@rank_zero_only\ndef f():\n    target()",
    "decorated-method": "class A:\n    @on_main_process\n    def f(self):\n        target()",
    "nested-function": "if rank == 0:\n    def f():\n        target()",
    "not-distributed": "if not args.distributed:\n    target()",
    "one-process": "if world_size == 1:\n    target()",
    "few-processes": "if world_size > 1:\n    pass\nelse:\n    target()",
    "no-group": "if not dist.is_initialized():\n    target()",
}
ALL_PROCESSES = {
    "nothing": "target()",
    "interval": "if step % 100 == 0:\n    target()",
    "best": "if loss < best:\n    target()",
    "distributed": "if args.distributed:\n    target()",
    "many": "if world_size > 1:\n    target()",
    "behind": "if rank == 0:\n    print()\ntarget()",
    "number-of-ranks": "if num_ranks:\n    target()",
    "test-of-main-module": "if __name__ == '__main__':\n    target()",
    "device-named": "if device == 'cuda':\n    target()",
    "hydra": "@hydra.main()\ndef f(cfg):\n    target()",
    "first-operand": "target() and rank == 0",
    "condition": "if target() and rank == 0:\n    pass",
    "other-loop": "for x in y:\n    if rank:\n        continue\ntarget()",
    "ranking": "if ranking:\n    target()",
    "no-multiprocessing": "if not args.multiprocessing_distributed or args.gpu is None:\n    target()",
}


@for_every("code", ONE_PROCESS.values(), ids=ONE_PROCESS)
def test_a_condition_that_chooses_one_process(code: str) -> None:
    assert RANK in guards_of(call(textwrap.dedent(code)))


@for_every("code", ALL_PROCESSES.values(), ids=ALL_PROCESSES)
def test_what_every_process_runs(code: str) -> None:
    assert RANK not in guards_of(call(textwrap.dedent(code)))


@pytest.mark.parametrize(
    "code, names",
    [
        pytest.param("if self.saves and not dry:\n    target()", ("dry", "saves"), id="truth"),
        pytest.param("if writer is not None:\n    target()", ("writer",), id="none"),
        pytest.param("if chosen():\n    target()", ("chosen",), id="function"),
        pytest.param("if step > 3:\n    target()", (), id="number"),
        pytest.param("@once\ndef f():\n    target()", ("once",), id="decorator"),
    ],
)
def test_names_that_the_project_may_explain(code: str, names: tuple[str, ...]) -> None:
    assert guards_of(call(code)) == names
