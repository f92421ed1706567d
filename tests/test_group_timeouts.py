"""A timeout that a variable only promised becomes that of the process group, in both files or in none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from collected import for_every
from test_nccl_block import fixed

from ldlm_lint import engine
from ldlm_lint.autofix.apply import fix_files
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability

RULE = ["ineffective-environment-variable"]
SCRIPT = "export SEED=1\nexport NCCL_TIMEOUT=1800\ntorchrun --nproc_per_node=8 train.py\n"
WITHOUT = "export SEED=1\ntorchrun --nproc_per_node=8 train.py\n"
TRAIN = 'import torch.distributed as dist\n\ndist.init_process_group("nccl")\n'
TIMED = (
    "from datetime import timedelta\n\nimport torch.distributed as dist\n\n"
    'dist.init_process_group("nccl", timeout=timedelta(seconds=1800))\n'
)


def test_the_timeout_goes_where_it_counts(tmp_path: Path) -> None:
    assert fixed(tmp_path, {"run.sh": SCRIPT, "train.py": TRAIN}, RULE) == {"run.sh": WITHOUT, "train.py": TIMED}


def test_scripts_that_agree_share_the_timeout(tmp_path: Path) -> None:
    files = {"run.sh": SCRIPT, "other.sh": SCRIPT, "train.py": TRAIN}
    after = fixed(tmp_path, files, RULE)
    assert (after["run.sh"], after["other.sh"]) == (WITHOUT, WITHOUT)
    assert after["train.py"].count("timeout=") == 1


@for_every(
    "train",
    [
        TRAIN + 'dist.init_process_group("gloo")\n',
        'import torch.distributed as dist\nfrom datetime import timedelta\n\ndist.init_process_group("nccl", timeout=timedelta(hours=1))\n',
        'import torch.distributed as dist\n\ndist.init_process_group("nccl", **options)\n',
        TRAIN + "dist.distributed_c10d._set_pg_timeout(limit)\n",
        "import deepspeed\n" + TRAIN + "deepspeed.init_distributed()\n",
        "from transformers import TrainingArguments\n" + TRAIN,
        "def init_process_group(name):\n    return name\n\n\ninit_process_group('nccl')\n",
        "print('no group')\n",
    ],
    ids=["two", "given", "unknown", "later", "deepspeed", "trainer", "another", "none"],
)
def test_without_exactly_one_call_to_take_it_the_variable_just_goes(tmp_path: Path, train: str) -> None:
    assert fixed(tmp_path, {"run.sh": SCRIPT, "train.py": train}, RULE) == {"run.sh": WITHOUT, "train.py": train}


@for_every(
    "line",
    [
        "export NCCL_TIMEOUT=12000000",
        "export NCCL_TIMEOUT=22",
        'export NCCL_TIMEOUT="${NCCL_TIMEOUT:-1800}"',
        "export NCCL_TIMEOUT=1800s",
        "export NCCL_TIMEOUT=1800 # ms",
        "export NCCL_TIMEOUT=60  # minutes",
        "export NCCL_SOCKET_TIMEOUT=1800",
    ],
)
def test_a_number_whose_meaning_is_not_plain_just_goes(tmp_path: Path, line: str) -> None:
    files = {"run.sh": SCRIPT.replace("export NCCL_TIMEOUT=1800", line), "train.py": TRAIN}
    assert fixed(tmp_path, files, RULE) == {"run.sh": WITHOUT, "train.py": TRAIN}


def test_a_number_for_some_machines_just_goes(tmp_path: Path) -> None:
    files = {"run.sh": SCRIPT.replace("export NCCL", "[ $NODES -gt 1 ] && export NCCL"), "train.py": TRAIN}
    assert fixed(tmp_path, files, RULE)["train.py"] == TRAIN


def test_launches_that_promise_different_timeouts_get_none(tmp_path: Path) -> None:
    files = {"run.sh": SCRIPT, "long.sh": SCRIPT.replace("1800", "3600"), "train.py": TRAIN}
    assert fixed(tmp_path, files, RULE) == {"run.sh": WITHOUT, "long.sh": WITHOUT, "train.py": TRAIN}


def test_a_silenced_variable_leaves_both_files_alone(tmp_path: Path) -> None:
    files = {"run.sh": SCRIPT.replace("1800", "1800  # ldlm-lint: ignore"), "train.py": TRAIN}
    assert fixed(tmp_path, files, RULE) == files


def test_the_two_files_change_together_or_not_at_all(tmp_path: Path) -> None:
    fixed(tmp_path, {"run.sh": SCRIPT, "train.py": TRAIN}, RULE)
    config = replace(Config.load(tmp_path), select=tuple(RULE))
    script = tmp_path / "run.sh"
    result = fix_files(
        lambda overlay: engine.run([script], config, base=tmp_path, overlay=overlay).findings,
        {script.as_posix(): SCRIPT.encode()},
        Applicability.UNSAFE,
    )
    assert not result.changed
    assert [one.path for one in result.rejected] == [(tmp_path / "train.py").as_posix()]


def test_safe_fixes_wait_for_the_better_one(tmp_path: Path) -> None:
    fixed(tmp_path, {"run.sh": SCRIPT, "train.py": TRAIN}, RULE)
    report = engine.run([tmp_path], replace(Config.load(tmp_path), select=tuple(RULE)), base=tmp_path)
    assert [one.fix.applicability for one in report.findings if one.fix] == [Applicability.UNSAFE]


def test_python_without_a_call_of_its_own_loses_the_line_only(tmp_path: Path) -> None:
    code = 'import os\n\nos.environ["NCCL_TIMEOUT"] = "1800"  # half an hour\nmain()\n'
    after = fixed(tmp_path, {"train.py": code}, RULE)["train.py"]
    assert after == "import os\n\nmain()\n"


@for_every(
    "code",
    [
        'import os\n\nif fast:\n    os.environ["NCCL_TIMEOUT"] = "1800"\n',
        'import os\n\nif fast:\n    os.environ["NCCL_TIMEOUT"] = "5"\n    os.environ["GLOO_TIMEOUT"] = "5"\n',
        'import os\n\nos.environ["NCCL_TIMEOUT"] = limit()\nmain()\n',
        'import os\n\nos.environ["NCCL_TIMEOUT"] = os.environ["GLOO_TIMEOUT"] = "5"\nmain()\n',
        'import os\n\nos.environ["NCCL_TIMEOUT"] = "5"; main()\n',
        'import os\n\nos.environ.update({"NCCL_TIMEOUT": "5"})\nmain()\n',
    ],
    ids=["alone", "two-alone", "called", "two-targets", "one-line", "update"],
)
def test_python_that_is_not_a_line_of_its_own_stays(tmp_path: Path, code: str) -> None:
    assert fixed(tmp_path, {"train.py": code}, RULE)["train.py"] == code
