"""Programs, scripts and configurations out of small grammars: nothing escapes, nothing takes long, and fixes hold."""

from __future__ import annotations

from fuzz.properties import check_fixes, check_lint, check_program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BOUNDED = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
HEAD = """import os
import torch
from datetime import timedelta
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
"""
NAMES = st.sampled_from(["model", "loader", "loss", "opt", "args.n", "kw", "x", "self.model"])
ATOMS = NAMES | st.sampled_from(["0", "4", "1e999", "9" * 400, "True", "None", "'7200'", "f'{x}.pt'", "...", "timedelta(hours=9)"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    calls = st.sampled_from(["DDP", "DataLoader", "torch.save", "torch.load", "torch.optim.AdamW", "int", "range", "f"])
    options = st.sampled_from(["", "find_unused_parameters=True", "num_workers=4", "fused=None", "**kw", "*x", "weights_only=False"])
    return st.one_of(
        st.builds("{}({}, {})".format, calls, inner, options),
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "//", "<<", "and", "if x else"]), inner),
        st.builds("{}.{}".format, inner, st.sampled_from(["item()", "backward()", "step()", "mean()", "parameters()"])),
        st.builds("[{} for x in {}]".format, inner, inner),
        st.builds("(lambda x: {})".format, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, _grown, max_leaves=6)
SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    EXPRESSIONS,
    st.builds("os.environ['NCCL_TIMEOUT'] = {}".format, EXPRESSIONS),
    st.sampled_from(["loss.backward()", "opt.step()", "opt.zero_grad()", "continue", "pass", "x = = 1", "x = 1  # ldlm-lint: ignore[all] y"]),
)


def _block(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    heads = st.sampled_from(["for x in loader:", "def f(self, x):", "if x:", "with torch.no_grad():", "while True:", "class C(torch.nn.Module):", "try:"])
    tails = st.sampled_from([[], ["else:", "    pass"], ["finally:", "    pass"]])
    return st.builds(lambda head, parts, tail: [head, *(f"    {line}" for part in parts for line in part), *tail], heads, st.lists(inner, min_size=1, max_size=4), tails)


BLOCKS = st.recursive(SIMPLE.map(lambda line: [line]), _block, max_leaves=10)
PROGRAMS = st.lists(BLOCKS, min_size=1, max_size=4).map(lambda blocks: HEAD + "\n".join(line for block in blocks for line in block) + "\n")

WORDS = st.recursive(
    st.sampled_from(["8", "$N", "${N:-2}", "--num_workers", "0", "'a b'", "9" * 400, "\\", "{1..9}"]),
    lambda inner: st.one_of(st.builds("$({})".format, inner), st.builds('"{}"'.format, inner), st.builds("${{N:-{}}}".format, inner), st.builds("$(({}))".format, inner)),
    max_leaves=4,
)
COMMANDS = st.one_of(
    st.builds("export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={}".format, WORDS),
    st.builds("N={}".format, WORDS),
    st.builds("torchrun --nproc_per_node {} train.py {}".format, WORDS, WORDS),
    st.builds("if [ {} ]; then\nN=2\nfi".format, WORDS),
    st.builds("f() {{ torchrun train.py {}; }}\nf".format, WORDS),
    st.sampled_from(["cat <<EOF", "EOF", "'", "done", "#SBATCH --nodes=2", "set -u", "unset N", ". ./other.sh"]),
)
SCRIPTS = st.lists(COMMANDS, min_size=1, max_size=8).map("\n".join)

SCALARS = st.sampled_from(["0", "4", "~", ".inf", "1_000", "9" * 400, "${a.b}", "'x'", "*a", "!t 1", "{{ x }}", "1e-3", "[1, 2]", "{a: 1}"])
KEYS = st.sampled_from(["num_workers", "lr", "a", "&a b", "<<", "env", "NCCL_TIMEOUT", "defaults", "? x", "train_micro_batch_size_per_gpu"])


def _nested(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.builds(lambda key, parts: [f"{key}:", *(f"  {line}" for part in parts for line in part)], KEYS, st.lists(inner, min_size=1, max_size=4))


DOCUMENTS = st.recursive(st.builds("{}: {}".format, KEYS, SCALARS).map(lambda line: [line]), _nested, max_leaves=8).map("\n".join)


@BOUNDED
@given(PROGRAMS)
def test_programs(text: str) -> None:
    check_lint("train.py", text.encode())
    check_fixes("train.py", text.encode())
    check_program(text.encode())


@BOUNDED
@given(SCRIPTS)
def test_scripts(text: str) -> None:
    check_lint("run.sh", text.encode())
    check_fixes("run.sh", text.encode())


@BOUNDED
@given(DOCUMENTS)
def test_configurations(text: str) -> None:
    check_lint("train.yaml", text.encode())
    check_fixes("train.yaml", text.encode())
