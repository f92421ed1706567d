"""Fixed scripts are run: the same exit status and launches, another environment only where the fixed rule says so.

Scripts are built from the contexts in which variables are set, fixed by the engine that users have, and run under bash
before and after. In the place of launchers stand stubs that record their arguments and their environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ldlm_lint import engine
from ldlm_lint.autofix.apply import fix_files
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability
from ldlm_lint.rules import environment_names
from ldlm_lint.rules.environment_decisions import is_relevant

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None or os.name == "nt", reason="bash is not installed")

STUB = """#!/bin/sh
{ printf '%s\\0' "==" "${0##*/}" "$@" "--"; env -0; } >> "$TRACE"
"""
# What starts other programs hands them the variables of its options.
STARTER = """#!/bin/bash
while [[ $1 == -* ]]; do
  case $1 in
    --export=*) IFS=, read -ra items <<< "${1#*=}"; for item in "${items[@]}"; do [[ $item != *=* ]] || export "$item"; done ;;
    -x) export "$2"; shift ;;
    *) shift ;;
  esac
  shift
done
exec "$@"
"""
LAUNCHERS = dict.fromkeys(("torchrun", "python", "accelerate", "deepspeed"), STUB) | dict.fromkeys(("srun", "mpirun"), STARTER)
# It shards and makes a group, so that rules which ask the project for it speak.
TRAINING = """import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("nccl")
model = FullyShardedDataParallel(model)
for batch in loader:
    model(batch).backward()
"""
# What the shell changes by itself from one command to the next.
OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TRACE"})
# Where NCCL does by itself what the safe fix writes, or only logs less.
EQUIVALENT = frozenset({"NCCL_DEBUG", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"})


@dataclass(frozen=True)
class Ran:
    """What a script did: how it ended, what it printed, and the commands it launched, each with its environment."""

    status: int
    output: str
    commands: tuple[tuple[str, ...], ...]
    environments: tuple[dict[str, str], ...]


class Bench:
    """A folder with stub launchers and a project in which scripts are fixed and run."""

    def __init__(self, folder: Path) -> None:
        self.stubs, self.project = folder / "stubs", folder / "project"
        self.stubs.mkdir()
        self.project.mkdir()
        self.trace = folder / "trace"
        for name, text in LAUNCHERS.items():
            stub = self.stubs / name
            stub.write_text(text)
            stub.chmod(0o755)
        (self.project / "train.py").write_text(TRAINING)
        (self.project / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
        self.config = replace(Config.load(self.project), select=("ALL",))

    def fixed(self, script: str, limit: Applicability) -> str:
        """The script after all fixes of at least a level; they must come to an end, and none may break it."""
        path = self.project / "run.sh"
        path.write_text(script)

        def lint(overlay: engine.Overlay) -> Sequence[object]:
            return engine.run([self.project], self.config, base=self.project, overlay=overlay).findings

        files = {one.as_posix(): one.read_bytes() for one in (path, self.project / "train.py")}
        result = fix_files(lint, files, limit)
        assert result.converged, (result.unsettled, script)
        assert not result.rejected, (result.rejected, script)
        return result.changed.get(path.as_posix(), script.encode()).decode()

    def run(self, script: str, inherited: dict[str, str]) -> Ran:
        """Run a script below the project with the stubs in front of everything else."""
        self.trace.write_bytes(b"")
        done = subprocess.run(
            [BASH or "bash", "-c", script],
            cwd=self.project,
            env={"PATH": f"{self.stubs}:/usr/bin:/bin", "TRACE": str(self.trace), "HOME": str(self.project), **inherited},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        commands, environments = [], []
        for part in self.trace.read_text().split("==\0")[1:]:
            command, _, environment = part.partition("\0--\0")
            commands.append(tuple(command.split("\0")))
            pairs = (one.partition("=") for one in environment.split("\0") if one)
            environments.append({name: value for name, _, value in pairs if name not in OWN})
        return Ran(done.returncode, done.stdout, tuple(commands), tuple(environments))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(Path(folder))


def changed_names(before: Ran, after: Ran) -> set[str]:
    """The variables that some launch sees differently."""
    names: set[str] = set()
    for old, new in zip(before.environments, after.environments, strict=True):
        names |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return names


def check(bench: Bench, script: str, limit: Applicability) -> str:
    """Fix a script up to a level, and compare what both do, in a bare environment and in one that has values already."""
    fixed = bench.fixed(script, limit)
    if fixed == script:
        return fixed
    syntax = subprocess.run([BASH or "bash", "-n"], input=fixed, capture_output=True, text=True, check=False)
    assert syntax.returncode == 0 and not syntax.stderr, f"{syntax.stderr}\n{fixed}"
    assert bench.fixed(fixed, limit) == fixed
    for inherited in ({}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "NCCL_TIMEOUT": "77", "NCCL_SOCKET_NTHREADS": "2"}):
        before, after = bench.run(script, inherited), bench.run(fixed, inherited)
        told = f"{script}\n-----\n{fixed}\n-----\n{inherited}"
        assert after.status == before.status, told
        assert after.commands == before.commands, told
        names = changed_names(before, after)
        if limit is Applicability.SAFE:
            assert after.output == before.output, told
            allowed = {name for name in names if environment_names.why_ineffective(name)} | EQUIVALENT
            assert names <= allowed, told
        else:
            assert all(is_relevant(name) for name in names), told
    return fixed


# Scripts

SETTINGS = st.sampled_from(
    [
        "NCCL_TIMEOUT=1800",
        "NCCL_TIMEOUT=12000000",
        'GLOO_TIMEOUT="30"',
        "TORCH_NCCL_BLOCKING_WAIT=1",
        "NCCL_BLOCKING_WAIT=1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600",
        "TORCH_NCCL_ENABLE_MONITORING=0",
        "NCCL_ASYNC_ERROR_HANDLING=1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=0",
        "NCCL_DEBUG=INFO",
        "CUDA_LAUNCH_BLOCKING=1",
        "TORCH_DISTRIBUTED_DEBUG='DETAIL'",
        "NCCL_SOCKET_NTHREADS=32",
        "NCCL_NSOCKS_PERTHREAD=16",
        "NCCL_IB_DISABLE=1",
        "NCCL_IB_TIMEOUT=90",
        "NCCL_ALGO=Ring",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128",
        "CUDA_DEVICE_MAX_CONNECTIONS=1",
        "NCCL_TIMEOUT=$((60 * 30))",
        "NCCL_TIMEOUT=$(echo 5)",
        "OMP_NUM_THREADS=8",
        "SEED=1",
    ]
)


def name_of(setting: str) -> str:
    return setting.partition("=")[0]


def statement(form: str, first: str, second: str, third: str) -> str:
    """A form with three settings, their names and their values."""
    one, two = name_of(first), name_of(second)
    value = first.partition("=")[2].strip("\"'")
    return form.format(first, second, third, n=one, m=two, v=value)


FORMS = st.sampled_from(
    [
        "export {0}",
        "export {0} {1}",
        "export {0} {1} {2}",
        "export {0}  # why it is set",
        "export {0} \\\n    {1} \\\n    {2}",
        "declare -x {0} {1}",
        "typeset -x {0}",
        "{0}; export {n}",
        "{0} {1}\nexport {n} {m}",
        "export {n}\n{0}",
        "readonly {n}_LIMIT=5\nexport {0}",
        "{0} torchrun --nproc_per_node=8 train.py",
        "{0} {1} {2} torchrun --nproc_per_node 8 train.py --lr 1e-4",
        "{0} \\\n  {1} \\\n  torchrun train.py \\\n  --steps 5",
        "{0} {1} \\\n  torchrun train.py",
        "env {0} {1} torchrun train.py",
        "{0} env {1} {2} python train.py",
        "env -u SEED {0} python train.py",
        "srun --export=ALL,{0},{1} python train.py",
        "srun --export={0} python train.py",
        "mpirun -np 2 -x {0} -x {1} python train.py",
        "{0} time -p true 2>/dev/null",
        ': "${{{n}:={v}}}"\nexport {n}',
        'export {n}="${{{n}:-{v}}}"',
        "V={v}; export {n}=$V",
        "ENVS=({0} {1})\nenv \"${{ENVS[@]}}\" torchrun train.py",
        "cat <<EOF\nexport {0}\n${{{n}:-none}}\nEOF",
        "cat > /dev/null <<'EOF'; export {0}\ntext\nEOF",
        'echo "{n} is ${n}"',
        'echo "${{{n}:-unset}}"',
        'echo "${{{n}-unset}}" ${{{n}+set}}',
        '[ -n "${{{n}:-}}" ] && echo it is set',
        "env | grep -c NCCL",
        "env | grep NCCL | sort",
        "printenv {n}",
        'for name in ${{!NCCL_*}}; do echo "$name"; done',
        "export -p | grep -c NCCL",
        "echo $?",
        "unset {n}",
        "set -o allexport; {0}; set +o allexport",
        "torchrun --nproc_per_node=8 train.py",
        "python train.py | cat",
        "accelerate launch train.py || exit 3",
        "false",
        "eval \"export {0}\"",
        "bash -c '{0} torchrun train.py'",
        "local_env() {{ local -x {0}; torchrun train.py; }}; local_env",
        "launch() {{ export {0} {1}; }}\nlaunch; torchrun train.py",
        "export {0} > /dev/null",
        "export {0} & wait",
        "! export {0}",
        "X=$(export {0}; torchrun train.py)",
    ]
)
STATEMENTS = st.builds(statement, FORMS, SETTINGS, SETTINGS, SETTINGS)


def braced(form: str, *parts: str) -> str:
    """A form with parts, each of which ends where its last line ends (a here-document may stand there)."""
    return form.format(*(f"{part}\n" for part in parts))


COMPOUND = (
    "if true; then\n{0}fi",
    "if false; then\n{0}else\n{1}fi",
    "if [ -z \"${{SEED:-}}\" ]; then\n{0}elif true; then\n{1}fi",
    "for i in 1 2; do\n{0}done",
    "case \"${{SEED:-x}}\" in\n  x)\n{0};;\n  *)\n{1};;\nesac",
    "(\n{0})",
    "{{\n{0}}}",
    "f() {{\n{0}}}\nf",
    "f() {{\n{0}}}\nf && torchrun train.py",
    "while true; do\n{0}break\ndone",
)
SIMPLE_JOINS = ("{0} && {1}", "{0} || {1}", "{0}; {1}", "{0} && \\\n  {1}")


def joined(form: str, left: str, right: str) -> str:
    """Two statements of one line each in one list."""
    plain = "\n" not in left and "#" not in left and not left.endswith("wait")
    return form.format(left, right) if plain else f"{left}\n{right}"


PARTS = st.recursive(
    STATEMENTS,
    lambda inner: st.one_of(
        st.builds("{}\n{}".format, inner, inner),
        st.builds(joined, st.sampled_from(SIMPLE_JOINS), STATEMENTS, inner),
        st.builds(braced, st.sampled_from(COMPOUND), inner, inner),
    ),
    max_leaves=7,
)
HEADS = st.sampled_from(["", "set -e\n", "set -u\n", "set -euo pipefail\n", "set -o nounset\n", "set -a\n", "#!/bin/bash\n# a job\n"])
SCRIPTS = st.builds("{}{}\n{}\n".format, HEADS, PARTS, st.sampled_from(["torchrun --nproc_per_node=8 train.py", "python train.py", "exit"]))


@settings(max_examples=int(os.environ.get("SCRIPTS", "60")), deadline=None, suppress_health_check=list(HealthCheck))
@given(script=SCRIPTS, limit=st.sampled_from([Applicability.SAFE, Applicability.UNSAFE]))
def test_a_fixed_script_does_what_it_did(bench: Bench, script: str, limit: Applicability) -> None:
    syntax = subprocess.run([BASH or "bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assume(syntax.returncode == 0 and not syntax.stderr)
    check(bench, script, limit)
