"""Who saves: styles of distributed training, with a test of the rank somewhere on the way and without one."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config

LOOP = """
def fit(model, loader, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        optimizer.zero_grad()
"""
GROUP = "import torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"


def finds(tmp_path: Path, files: dict[str, str]) -> bool:
    """Whether a project of these files has a checkpoint that every rank saves."""
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    config = replace(Config.load(tmp_path), select=("checkpoint-saved-by-every-rank",))
    report = engine.run([tmp_path], config, base=tmp_path)
    assert not report.problems
    return bool(report.findings)


BAD = {
    "script": {"train.py": GROUP + LOOP + "fit(m, l, o)\ntorch.save(m.state_dict(), 'model.pt')\n"},
    "hugging-face-trainer": {
        "train.py": """
        import os
        import transformers
        def train(model, data, folder):
            ddp = int(os.environ.get("WORLD_SIZE", 1)) != 1
            trainer = transformers.Trainer(model=model, train_dataset=data)
            trainer.train()
            model.save_pretrained(folder)
        if __name__ == "__main__":
            train(None, None, "out")
        """
    },
    "fire": {
        "train.py": GROUP
        + LOOP
        + "import fire\ndef run(m, l, o):\n    fit(m, l, o)\n"
        + "    torch.save(m.state_dict(), 'model.pt')\nfire.Fire(run)\n"
    },
    "launched-by-a-library": {
        "train.py": """
        import torch
        from detectron2.engine import launch
        from torch.nn.parallel import DistributedDataParallel
        def main(args):
            model = DistributedDataParallel(args.model)
            for batch in args.loader:
                model(batch).backward()
            torch.save(model.state_dict(), args.output + "/model.pth")
        if __name__ == "__main__":
            launch(main, 8, args=(None,))
        """
    },
    "entry-point": {
        "train.py": """
        import torch
        from timm.utils import init_distributed_device
        def main():
            device = init_distributed_device(None)
            for batch in []:
                batch.backward()
            torch.save({"model": None}, "checkpoint.pt")
        """
    },
    "package": {
        "pkg/__init__.py": "",
        "pkg/trainer.py": """
        import os
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP
        class Trainer:
            def __init__(self, model, rank):
                self.rank = rank
                self.model = DDP(model, device_ids=[rank])
            def train_epoch(self, loader):
                for batch in loader:
                    self.model(batch).backward()
            def _save_checkpoint(self, epoch):
                path = os.path.join(self.folder, f"ckpt_{epoch}.pt")
                torch.save({"model": self.model.state_dict(), "epoch": epoch}, path)
            def run(self, loader):
                for epoch in range(10):
                    self.train_epoch(loader)
                    if epoch % self.every == 0:
                        self._save_checkpoint(epoch)
                    if self.rank == 0:
                        print(epoch)
        """,
        "train.py": """
        from pkg.trainer import Trainer
        def main():
            trainer = Trainer(None, 0)
            trainer.run([])
        if __name__ == "__main__":
            main()
        """,
    },
    "one-caller-of-two-tests-the-rank": {
        "train.py": GROUP
        + LOOP
        + """
def save(model, path):
    torch.save(model.state_dict(), path)

fit(m, l, o)
if dist.get_rank() == 0:
    save(m, "best.pt")
save(m, "last.pt")
"""
    },
    "data-folder-of-the-rank-but-one-checkpoint": {
        "train.py": GROUP
        + LOOP
        + "data = f'data_{dist.get_rank()}'\nfit(m, data, o)\ntorch.save(m.state_dict(), 'model.pt')\n"
    },
    "fsdp": {
        "train.py": """
        import torch
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        def train(model, loader):
            model = FSDP(model)
            for batch in loader:
                model(batch).backward()
            state = model.state_dict()
            torch.save(state, "model.pt")
        train(None, [])
        """
    },
}
GOOD = {
    "no-group": {"train.py": "import torch\n" + LOOP + "fit(m, l, o)\ntorch.save(m.state_dict(), 'model.pt')\n"},
    "no-training": {"merge.py": GROUP + "torch.save({'model': 1}, 'model.pt')\n"},
    "by-product": {"train.py": GROUP + LOOP + "fit(m, l, o)\ntorch.save(metrics, 'metrics.pt')\n"},
    "flag-set-by-the-rank": {
        "options.py": "def parse(args):\n    args.writes = args.rank == 0\n    return args\n",
        "train.py": "from options import parse\n"
        + GROUP
        + LOOP
        + "args = parse(None)\nfit(m, l, o)\nif args.writes:\n    torch.save(m.state_dict(), 'model.pt')\n",
    },
    "flag-passed-by-the-caller": {
        "train.py": GROUP
        + LOOP
        + """
def run(writes=False):
    fit(m, l, o)
    if writes:
        torch.save(m.state_dict(), "model.pt")
run(writes=dist.get_rank() == 0)
"""
    },
    "folder-of-the-rank": {
        "train.py": GROUP
        + LOOP
        + "fit(m, l, o)\nargs.folder = f'out/{dist.get_rank()}'\n"
        + "torch.save(m.state_dict(), args.folder + '/model.pt')\n"
    },
    "path-of-several-lines": {
        "train.py": GROUP
        + LOOP
        + """
def save(model, path):
    torch.save(model.state_dict(), path)
fit(m, l, o)
path = os.path.join(
    folder, f"part_{dist.get_rank()}.pt"
)
save(m, path)
"""
    },
    "path-function-with-the-rank": {
        "names.py": "def name_of(step):\n    rank = dist.get_rank()\n    return f'{step}_{rank}.pt'\n",
        "train.py": "from names import name_of\n"
        + GROUP
        + LOOP
        + "fit(m, l, o)\ntorch.save(m.state_dict(), name_of(3))\n",
    },
    "lightning": {
        "train.py": """
        import lightning as L
        import torch
        class Net(L.LightningModule):
            def training_step(self, batch, index):
                return self(batch)
            def on_train_epoch_end(self):
                torch.save(self.state_dict(), "model.pt")
        L.Trainer(devices=8).fit(Net())
        """
    },
    "trainer-of-one-process": {
        "train.py": "import transformers\ntrainer = transformers.Trainer(model=m)\n"
        "trainer.train()\nm.save_pretrained('out')\n"
    },
    "tokenizer": {
        "train.py": GROUP + LOOP + "fit(m, l, o)\ntokenizer.save_pretrained('out')\nconfig.save_pretrained('out')\n"
    },
    "dataset-cache": {
        "train.py": GROUP
        + LOOP
        + """
class Tokens(torch.utils.data.Dataset):
    def __init__(self, path):
        torch.save(self.model_inputs, path)
fit(m, Tokens("cache.pt"), o)
"""
    },
    "test": {"tests/test_train.py": GROUP + LOOP + "fit(m, l, o)\ntorch.save(m.state_dict(), 'model.pt')\n"},
    "library-that-nobody-calls": {
        "lib.py": GROUP + LOOP + "def save(m, l, o):\n    fit(m, l, o)\n    torch.save(m.state_dict(), 'model.pt')\n"
    },
    "guarded-two-callers-above": {
        "io_utils.py": "import torch\ndef write(state, path):\n    torch.save(state, path)\n"
        "def save(model):\n    write(model.state_dict(), 'model.pt')\n",
        "train.py": "from io_utils import save\n"
        + GROUP
        + LOOP
        + "fit(m, l, o)\nif dist.get_rank() == 0:\n    save(m)\n",
    },
    "spawned-for-one-rank": {
        "train.py": GROUP
        + LOOP
        + "fit(m, l, o)\nif not args.distributed:\n    torch.save(m.state_dict(), 'model.pt')\n"
    },
}


@for_every("files", BAD.values(), ids=BAD)
def test_every_rank_saves(files: dict[str, str], tmp_path: Path) -> None:
    assert finds(tmp_path, files)


@for_every("files", GOOD.values(), ids=GOOD)
def test_one_rank_saves_or_there_is_one_only(files: dict[str, str], tmp_path: Path) -> None:
    assert not finds(tmp_path, files)
