"""A training repository of any size, the same bytes each time: what `growth.py` lints.

    python benchmarks/synthetic.py FOLDER [--units N] [--library N]

A unit is one experiment as repositories have them: layers, a model that only a registry and a configuration reach, losses
that come back in a dictionary, a dataset, a training program, its configuration and its launch script. What is shared
(meters, builders, options, distributed helpers) is called by all units, the packages import every unit's modules, and
layers of a family call each other from file to file. So calls, callers, import closures and launches all grow with it.

``--library N`` writes the other shape that large repositories have: a library of N modules behind sixty scripts. Every
model is derived from one class and built by one function, which gets its options by ``**``; every script names some of
them and passes its own command line on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Template

# Units whose layers call each other from file to file.
FAMILY = 8
UNITS = 20

SHARED = {
    "zoo/__init__.py": "",
    "zoo/registry.py": '''
class Registry:
    """Classes by name."""

    def __init__(self, name):
        self.name = name
        self.entries = {}

    def register(self, entry):
        self.entries[entry.__name__] = entry
        return entry

    def build(self, settings, **defaults):
        values = dict(defaults)
        values.update(settings)
        return self.entries[values.pop("type")](**values)


MODELS = Registry("models")
DATASETS = Registry("datasets")
''',
    "zoo/meters.py": '''
import torch


class Meter:
    """A running mean."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.total += value * n
        self.count += n

    @property
    def mean(self):
        return self.total / max(self.count, 1)


class Meters:
    def __init__(self):
        self.meters = {}

    def update(self, **values):
        for name, value in values.items():
            self.meters.setdefault(name, Meter()).update(value)

    def line(self):
        return " ".join(f"{name} {meter.mean:.4f}" for name, meter in self.meters.items())
''',
    "zoo/ranks.py": """
import os

import torch
import torch.distributed as dist


def start():
    local = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    return torch.device("cuda", local)


def is_first():
    return not dist.is_initialized() or dist.get_rank() == 0


def save(state, path):
    if is_first():
        torch.save(state, path)
""",
    "zoo/options.py": """
import argparse
import importlib

import torch
import yaml


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", default="out")
    return parser.parse_args()


def load(path):
    with open(path) as file:
        return yaml.safe_load(file)


def optimizer_of(model, args):
    options = dict(lr=args.lr)
    if args.optimizer == "adamw":
        kind = torch.optim.AdamW
        options["weight_decay"] = 0.01
    else:
        kind = torch.optim.SGD
        options.update(momentum=0.9)
    return kind(model.parameters(), **options)


def augmentations(name):
    return importlib.import_module(f"zoo.data.set_{name}").augment
""",
    "zoo/loaders.py": """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def loader_of(dataset, args, **others):
    sampler = DistributedSampler(dataset)
    options = dict(batch_size=args.batch_size, num_workers=args.workers, sampler=sampler)
    options.update(others)
    return DataLoader(dataset, **options), sampler
""",
}

UNIT = {
    "zoo/layers/layer_$k.py": """
import torch
from torch import nn
from torch.nn import functional as F
$before


def normalized_$k(x, scale):
    spread = x.std(dim=-1, keepdim=True)
    return $inner(x / (spread + 1e-6)) * scale


class Attention$k(nn.Module):
    def __init__(self, width, heads=$heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = self.qkv(normalized_$k(x, self.scale)).chunk(3, dim=-1)
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(h.transpose(1, 2).reshape(b, n, c))


class Block$k(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention$k(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, lengths=None):
        x = x + self.attention(x)
        if lengths is not None:
            x = x[:, : lengths.max().item()]
        return x + self.mlp(x)
""",
    "zoo/models/model_$k.py": """
import torch
from torch import nn

from zoo.layers.layer_$k import Block$k
from zoo.registry import MODELS


@MODELS.register
class Model$k(nn.Module):
    def __init__(self, width=256, depth=4, classes=10):
        super().__init__()
        self.stem = nn.Linear(64, width)
        self.blocks = nn.ModuleList([Block$k(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def encode(self, x, lengths=None):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h, lengths)
        return h

    def forward(self, x, lengths=None):
        h = self.encode(x, lengths)
        if torch.isnan(h).any():
            h = torch.nan_to_num(h)
        return self.head(h.mean(dim=1))
""",
    "zoo/losses/loss_$k.py": """
import torch
from torch.nn import functional as F


def smooth_$k(logits, target, eps=0.1):
    log_p = F.log_softmax(logits, dim=-1)
    return (1 - eps) * F.nll_loss(log_p, target) - eps * log_p.mean()


def terms_$k(logits, target, weight=0.5):
    main = smooth_$k(logits, target)
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    correct = (logits.argmax(-1) == target).float().mean()
    return {"main": main, "entropy": entropy, "total": main + weight * entropy, "accuracy": correct}
""",
    "zoo/data/set_$k.py": """
import os

import numpy as np
import torch
from torch.utils.data import Dataset

from zoo.registry import DATASETS


def augment(x, strength=0.1):
    return x + strength * torch.randn_like(x)


@DATASETS.register
class Set$k(Dataset):
    def __init__(self, root, length=64):
        self.files = sorted(os.listdir(root))
        self.root, self.length = root, length

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        data = np.load(os.path.join(self.root, self.files[index]))
        x = torch.from_numpy(data["x"][: self.length]).float()
        return augment(x), int(data["y"]), len(x)
""",
    "tools/train_$k.py": """
import os

import torch
from torch.nn.parallel import DistributedDataParallel

import zoo.data
import zoo.models
from zoo.loaders import loader_of
from zoo.losses.loss_$k import terms_$k
from zoo.meters import Meters
from zoo.options import augmentations, load, optimizer_of, parse
from zoo.ranks import is_first, save, start
from zoo.registry import DATASETS, MODELS


def evaluate(model, loader, device):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for x, y, lengths in loader:
            logits = model(x.to(device))
            right += (logits.argmax(-1).cpu() == y).sum().item()
            count += len(y)
    return right / max(count, 1)


def train_epoch(model, loader, optimizer, device, args, epoch):
    model.train()
    meters = Meters()
    for step, (x, y, lengths) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        logits = model(x, lengths.to(device))
        losses = terms_$k(logits, y)
        (losses["total"] / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        meters.update(**losses)
        if step % 50 == 0 and is_first():
            print(epoch, step, meters.line(), float(losses["main"]))


def main():
    args = parse()
    config = load(args.config)
    device = start()
    model = MODELS.build(config["model"], classes=10).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index])
    optimizer = optimizer_of(model, args)
    train, sampler = loader_of(DATASETS.build(config["data"]), args, drop_last=True)
    test, _ = loader_of(DATASETS.build(config["test"]), args)
    augmentations("$k")
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_epoch(model, train, optimizer, device, args, epoch)
        print(evaluate(model, test, device))
        save({"model": model.module.state_dict(), "epoch": epoch}, os.path.join(args.out, f"epoch_{epoch}.pt"))


if __name__ == "__main__":
    main()
""",
    "configs/exp_$k.yaml": """
model: {type: Model$k, width: $width, depth: 6}
data: {type: Set$k, root: data/train_$k}
test: {type: Set$k, root: data/test_$k}
trainer:
  num_workers: 4
  gradient_accumulation_steps: $heads
""",
    "scripts/run_$k.sh": """
#!/bin/bash
export NCCL_DEBUG=INFO
torchrun --nproc_per_node=8 tools/train_$k.py \\
    --config configs/exp_$k.yaml --batch-size 64 --accumulate 2 \\
    --optimizer adamw --out out/exp_$k
""",
}

SCRIPTS = 60
LIBRARY = {
    "library/__init__.py": "",
    "library/base.py": """
from dataclasses import dataclass

import torch
from torch import nn

ENTRIES = {}


@dataclass
class Output:
    logits: torch.Tensor
    hidden: torch.Tensor = None


class Model(nn.Module):
    def __init__(self, width=256, classes=10, drop=0.0, **options):
        super().__init__()
        self.width, self.options = width, options
        self.head = nn.Linear(width, classes)
        self.drop = nn.Dropout(drop)

    def features(self, x, mask=None):
        raise NotImplementedError

    def forward(self, x, mask=None, **options):
        hidden = self.drop(self.features(x, mask=mask))
        return Output(self.head(hidden), hidden)


def register(function):
    ENTRIES[function.__name__] = function
    return function


def build(kind, name, pretrained=False, **options):
    model = kind(name=name, **options)
    if pretrained:
        model.load_state_dict(torch.load(name))
    return model


def create(name, **options):
    return ENTRIES[name](**options)
""",
}
OF_LIBRARY = """
import torch
from torch import nn

from library.base import Model, build, register
$before


class Stage$k(nn.Module):
    def __init__(self, width, depth=2, act=nn.GELU, **options):
        super().__init__()
        self.inner = $inner(width)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), act()) for _ in range(depth)])
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x, mask=None):
        h = self.blocks(self.inner(x)) * self.scale
        if mask is not None:
            h = h.masked_fill(mask, 0)
        return x + h


class Model$k(Model):
    def __init__(self, width=$width, depths=(2, 2), **options):
        super().__init__(width=width, **options)
        self.stages = nn.ModuleList([Stage$k(width, depth=depth, **options) for depth in depths])

    def features(self, x, mask=None):
        kept = []
        for stage in self.stages:
            x = stage(x, mask)
            kept.append(x)
        return torch.stack(kept).mean(0)


@register
def model_$k(pretrained=False, **options):
    return build(Model$k, "model_$k", pretrained, **dict(dict(depths=(2, 6)), **options))
"""
SCRIPT = """
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from library.base import create
$imports


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="model_$first")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=1e-4)
    return parser.parse_args()


def train(model, loader, optimizer, args):
    for x, y in loader:
        out = model(x.cuda(), mask=None)
        loss = torch.nn.functional.cross_entropy(out.logits, y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())


def main(data):
    args = parse()
    models = [$models]
    models.append(create(args.model, width=args.width, drop=args.drop))
    for model in models:
        model = DistributedDataParallel(model.cuda())
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        train(model, DataLoader(data, batch_size=8), optimizer, args)
"""


def library(modules: int) -> Iterator[tuple[str, str]]:
    """The files of a library of so many modules and of the scripts that use it: path and text."""
    yield from LIBRARY.items()
    for k in range(modules):
        chained = k % FAMILY != 0
        before = f"from library.model_{k - 1} import Stage{k - 1}" if chained else ""
        values = {"k": k, "before": before, "inner": f"Stage{k - 1}" if chained else "nn.LayerNorm", "width": 128 * (1 + k % 5)}
        yield f"library/model_{k}.py", Template(OF_LIBRARY).substitute(values)
    for script in range(SCRIPTS):
        own = range(script, modules, SCRIPTS)
        imports = "\n".join(f"from library.model_{k} import model_{k}" for k in own)
        models = ", ".join(f"model_{k}(width=args.width)" for k in own)
        yield f"train_{script}.py", Template(SCRIPT).substitute(imports=imports, models=models, first=script)


def files(units: int) -> Iterator[tuple[str, str]]:
    """The files of a repository with so many units: path and text."""
    yield from SHARED.items()
    for kind, name in (("layers", "layer"), ("models", "model"), ("losses", "loss"), ("data", "set")):
        imports = [f"from zoo.{kind} import {name}_{k}\n" for k in range(units)]
        # Losses and layers are imported where they are used.
        yield f"zoo/{kind}/__init__.py", "".join(imports) if kind in ("models", "data") else ""
    for k in range(units):
        yield from unit(k)


def unit(k: int) -> Iterator[tuple[str, str]]:
    """The files of one unit."""
    chained = k % FAMILY != 0
    values = {
        "k": k,
        "heads": 2 ** (k % 4),
        "width": 128 * (1 + k % 5),
        "before": f"\nfrom zoo.layers.layer_{k - 1} import normalized_{k - 1}" if chained else "",
        "inner": f"(lambda h: normalized_{k - 1}(h, scale))" if chained else "torch.tanh",
    }
    for path, text in UNIT.items():
        yield Template(path).substitute(values), Template(text).substitute(values)


def write(folder: Path, units: int) -> int:
    """Write a repository of so many units; return how many files it has."""
    return write_files(folder, files(units))


def write_files(folder: Path, written: Iterable[tuple[str, str]]) -> int:
    """Write files by path and text; return how many."""
    count = 0
    for name, text in written:
        count += 1
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8", newline="\n")
    return count


def main() -> None:
    """Write a repository to look at or to profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--units", type=int, default=UNITS, help=f"experiments in it (default: {UNITS})")
    parser.add_argument("--library", type=int, default=0, metavar="N", help="write a library of N modules behind scripts instead")
    arguments = parser.parse_args()
    written = library(arguments.library) if arguments.library else files(arguments.units)
    print(f"{write_files(arguments.folder, written)} files in {arguments.folder}")


if __name__ == "__main__":
    main()
