"""Where ranks wait for the long work of one of them, and where they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability

PROGRAM = """import datetime
import os

import torch
import torch.distributed as dist
from accelerate import Accelerator
from datasets import load_dataset
from huggingface_hub import snapshot_download
from torch.nn.parallel import DistributedDataParallel

accelerator = Accelerator()


def fetch():
    snapshot_download("model")


def read(paths):
    for path in paths:
        open(path).read()


def main(rank, model, paths, raw):
    dist.init_process_group("nccl", timeout=datetime.timedelta(days=10))
{body}


if __name__ == "__main__":
    main(int(os.environ["RANK"]), None, [], None)
"""


def level(root: Path, body: str) -> tuple[Applicability, str]:
    """The level and the reason of the only fix of excessive-collective-timeout."""
    (root / "pyproject.toml").write_text("")
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    (root / "train.py").write_text(PROGRAM.format(body=lines.rstrip("\n")))
    report = engine.run([root], Config.load(root), base=root)
    (found,) = [one for one in report.findings if one.rule == "excessive-collective-timeout"]
    assert found.fix is not None
    return found.fix.applicability, found.fix.reason


@for_every(
    "body",
    [
        pytest.param('if rank == 0:\n    snapshot_download("model")\ndist.barrier()', id="download"),
        pytest.param("if rank == 0:\n    fetch()\ndist.barrier()", id="in-a-function"),
        pytest.param("if rank == 0:\n    read(paths)\ndist.all_reduce(torch.zeros(1))", id="any-collective"),
        pytest.param("if rank == 0:\n    fetch()\nmodel = DistributedDataParallel(model)", id="wrapping-the-model"),
        pytest.param("if rank != 0:\n    dist.barrier()\nfetch()\nif rank == 0:\n    dist.barrier()", id="the-others-first"),
        pytest.param("with accelerator.main_process_first():\n    raw.map(len)", id="main-process-first"),
        pytest.param("if accelerator.is_main_process:\n    fetch()\naccelerator.wait_for_everyone()", id="accelerate"),
        pytest.param('if rank == 0:\n    for path in paths:\n        open(path).read()\ndist.barrier()', id="a-loop-over-files"),
    ],
)
def test_a_timeout_is_not_lowered_below_a_wait(tmp_path: Path, body: str) -> None:
    found, reason = level(tmp_path, body)
    assert found is Applicability.DISPLAY
    assert "a timeout that is shorter than this work would end the job there" in reason


@for_every(
    "body",
    [
        pytest.param("fetch()\ndist.barrier()", id="every-rank-works"),
        pytest.param("dist.barrier()\nif rank == 0:\n    fetch()", id="nobody-waits-behind"),
        pytest.param('if rank == 0:\n    print("begins")\ndist.barrier()', id="a-moment"),
        pytest.param('if rank == 0:\n    torch.save(model.state_dict(), "m.pt")\ndist.barrier()', id="a-checkpoint"),
        pytest.param("if rank == 0:\n    for one in model.parameters():\n        print(one.shape)\ndist.barrier()", id="a-short-loop"),
        pytest.param("if rank == 0:\n    fetch()\n    dist.barrier()", id="nobody-else-comes-to-the-collective"),
        pytest.param("if rank == 0:\n    with accelerator.main_process_first():\n        raw.map(len)", id="nobody-else-enters"),
        pytest.param("if rank == 0:\n    dist.barrier()\nfetch()\nif rank != 0:\n    dist.barrier()", id="the-first-one-waits-and-all-work"),
    ],
)
def test_a_timeout_that_nothing_long_waits_for_is_lowered(tmp_path: Path, body: str) -> None:
    assert level(tmp_path, body)[0] is Applicability.UNSAFE


def test_the_others_wait_where_they_come_to(tmp_path: Path) -> None:
    reason = level(tmp_path, "if rank == 0:\n    fetch()\n    dist.all_reduce(torch.zeros(1))\ndist.barrier()")[1]
    lines = (tmp_path / "train.py").read_text().splitlines()
    assert f"the others wait for it in line {lines.index('    dist.barrier()') + 1}:" in reason


RANKS = """import datetime
import os

import torch
import torch.distributed as dist


def is_first():
    return int(os.environ["RANK"]) == 0


def start():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=datetime.timedelta(days=10))
"""
TRAIN = """from ranks import start
from torch.nn.parallel import DistributedDataParallel


def main(model, loader):
    start()
    model = DistributedDataParallel(model.cuda())
    for batch in loader:
        model(batch.cuda()).mean().backward()


if __name__ == "__main__":
    main(None, [])
"""
FETCH = """import os

import torch.distributed as dist
from huggingface_hub import snapshot_download
from ranks import is_first{other}


def main():
    {begin}()
    if is_first() and int(os.environ["LOCAL_RANK"]) == 0:
        snapshot_download("model")
    dist.barrier()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("other", "begin", "named"), [(", start", "start", True), ("", "dist.init_process_group", False)])
def test_ranks_of_another_group_do_not_wait(other: str, begin: str, named: bool, tmp_path: Path) -> None:
    texts = {"pyproject.toml": "", "ranks.py": RANKS, "train.py": TRAIN, "fetch.py": FETCH.format(other=other, begin=begin)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    (found,) = [one for one in report.findings if one.rule == "excessive-collective-timeout"]
    assert any(one.message == "the other ranks wait here" for one in found.related) is named


CONFIGURED = """import datetime
import os

import torch.distributed as dist
import yaml
from huggingface_hub import snapshot_download


def main():
    with open("conf.yaml") as file:
        config = yaml.safe_load(file)
    dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=config["group"]["timeout"]))
    if int(os.environ["RANK"]) == 0:
        snapshot_download("model")
    dist.barrier()


if __name__ == "__main__":
    main()
"""


def test_a_timeout_of_a_configuration_names_the_wait(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(CONFIGURED)
    (tmp_path / "conf.yaml").write_text("group:\n  timeout: 6000\n")
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    (found,) = [one for one in report.findings if one.rule == "excessive-collective-timeout"]
    assert found.fix is None
    assert [one.message for one in found.related][-2:] == ["the other ranks wait here", "while one rank runs snapshot_download"]
