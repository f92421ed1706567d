"""Refreshes ldlm_lint/tables/interfaces.json from installed wheels: signatures, defaults, first versions, variables.

    python scripts/refresh_tables.py SITE_PACKAGES... [--check]

Each argument is a directory with unpacked packages (a virtual environment's site-packages, or wheels unpacked by hand);
the table keeps its entries for missing packages. Sources are parsed, never imported. Facts from several versions are
joined so that they apply to all of them: the common beginning of positional parameters, the first version with a
keyword, every variable that any version reads. A default that changed between two versions is dropped, with a message.
``--check`` writes nothing and fails if the table would change.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "ldlm_lint" / "tables" / "interfaces.json"
NOTHING = object()
VARIABLE = re.compile(r"\bTORCH_NCCL_[A-Z0-9_]+\b")

# Public name: the file below site-packages, and the class or function in it.
SOURCES = {
    "torch.utils.data.DataLoader": ("torch/utils/data/dataloader.py", "DataLoader"),
    "torch.utils.data.DistributedSampler": ("torch/utils/data/distributed.py", "DistributedSampler"),
    "torch.nn.parallel.DistributedDataParallel": ("torch/nn/parallel/distributed.py", "DistributedDataParallel"),
    "torch.optim.Adam": ("torch/optim/adam.py", "Adam"),
    "torch.optim.AdamW": ("torch/optim/adamw.py", "AdamW"),
    "torch.optim.SGD": ("torch/optim/sgd.py", "SGD"),
    "torch.distributed.init_process_group": ("torch/distributed/distributed_c10d.py", "init_process_group"),
    "torch.distributed.new_group": ("torch/distributed/distributed_c10d.py", "new_group"),
    "torch.load": ("torch/serialization.py", "load"),
    "torch.save": ("torch/serialization.py", "save"),
    "torch.utils.checkpoint.checkpoint_sequential": ("torch/utils/checkpoint.py", "checkpoint_sequential"),
    "torch.amp.autocast": ("torch/amp/autocast_mode.py", "autocast"),
    "torch.amp.GradScaler": ("torch/amp/grad_scaler.py", "GradScaler"),
    "torch.cuda.amp.autocast": ("torch/cuda/amp/autocast_mode.py", "autocast"),
    "torch.cuda.amp.GradScaler": ("torch/cuda/amp/grad_scaler.py", "GradScaler"),
    "transformers.TrainingArguments": ("transformers/training_args.py", "TrainingArguments"),
    "lightning.callbacks.ModelCheckpoint": (
        "pytorch_lightning/callbacks/model_checkpoint.py",
        "ModelCheckpoint",
    ),
    "lightning.strategies.DDPStrategy": ("pytorch_lightning/strategies/ddp.py", "DDPStrategy"),
    "accelerate.InitProcessGroupKwargs": ("accelerate/utils/dataclasses.py", "InitProcessGroupKwargs"),
}
# Defaults that rules depend on.
DEFAULTS = {
    "torch.utils.data.DataLoader": ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers"),
    "torch.nn.parallel.DistributedDataParallel": ("find_unused_parameters", "gradient_as_bucket_view", "static_graph"),
    "transformers.TrainingArguments": ("save_total_limit", "save_strategy", "save_steps", "ddp_timeout", "dataloader_num_workers"),
    "lightning.callbacks.ModelCheckpoint": ("save_top_k", "monitor"),
}
OPTIMIZERS = ("Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam")


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", nargs="+", type=Path, help="a directory with unpacked packages")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table would change")
    given = parser.parse_args(arguments)
    before = json.loads(TABLE.read_text(encoding="utf-8"))
    after = json.loads(json.dumps(before))
    for site in given.site:
        read(site, after)
    changed = {key: value for key, value in after.items() if key != "as_of"} != {
        key: value for key, value in before.items() if key != "as_of"
    }
    if given.check:
        print("the table would change" if changed else "the table holds for these packages")
        return int(changed)
    after["as_of"] = datetime.date.today().isoformat()
    TABLE.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{TABLE.relative_to(ROOT)}: {'changed' if changed else 'dated'}")
    return 0


def read(site: Path, table: dict[str, Any]) -> None:
    """Join the facts from the packages of a directory into the table."""
    for name, (file, qualname) in SOURCES.items():
        path = site / file
        if not path.is_file():
            continue
        note_version(site, file.partition("/")[0], table)
        definition = find(ast.parse(path.read_text(encoding="utf-8")), qualname)
        join_positional(table["positional"], name, positional(definition))
        join_defaults(table["defaults"], name, defaults(definition))
    if (site / "torch").is_dir():
        join_fused(site, table["fused_since"])
        variables = set(table["nccl_variables"])
        for path in (site / "torch").rglob("*.hpp"):
            variables |= set(VARIABLE.findall(path.read_text(encoding="utf-8", errors="replace")))
        table["nccl_variables"] = sorted(variables)


def note_version(site: Path, package: str, table: dict[str, Any]) -> None:
    """Remember that a version of a package was read."""
    found = sorted(site.glob(f"{package}-*.dist-info"))
    if found:
        version = found[0].name.removesuffix(".dist-info").rpartition("-")[2].partition("+")[0]
        table["read"][package] = sorted({*table["read"].get(package, []), version}, key=order)


def order(version: str) -> list[int]:
    """A key that sorts versions by their numbers."""
    return [int(part) for part in re.findall(r"\d+", version)]


def find(module: ast.Module, name: str) -> ast.ClassDef | ast.FunctionDef:
    """The class or function with a name; raises KeyError if the source has none."""
    for node in ast.walk(module):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return node
    raise KeyError(name)


def constructor(node: ast.ClassDef | ast.FunctionDef) -> ast.FunctionDef | None:
    """The function with the arguments; None for a dataclass."""
    if isinstance(node, ast.FunctionDef):
        return node
    return next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)


def fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """The fields of a dataclass and the expressions of their defaults."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            value = one.value
            if isinstance(value, ast.Call):
                value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
            yield one.target.id, value


def positional(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """The positional parameters in order, without ``self``."""
    function = constructor(node)
    if function is None:
        return [name for name, _ in fields(node)] if isinstance(node, ast.ClassDef) else []
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def defaults(node: ast.ClassDef | ast.FunctionDef) -> dict[str, object]:
    """The parameters whose defaults are written as constants."""
    function = constructor(node)
    if function is None:
        pairs = list(fields(node)) if isinstance(node, ast.ClassDef) else []
    else:
        arguments = [*function.args.posonlyargs, *function.args.args]
        pairs = [(one.arg, value) for one, value in zip(reversed(arguments), reversed(function.args.defaults), strict=False)]
        pairs += [(one.arg, value) for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)]
    return {name: value.value for name, value in pairs if isinstance(value, ast.Constant)}


def join_positional(table: dict[str, list[str]], name: str, found: list[str]) -> None:
    """Keep the beginning that all versions share."""
    known = table.get(name, found)
    shared = 0
    while shared < min(len(known), len(found)) and known[shared] == found[shared]:
        shared += 1
    table[name] = known[:shared]


def join_defaults(table: dict[str, dict[str, object]], name: str, found: dict[str, object]) -> None:
    """Keep the defaults that all versions share."""
    for parameter in DEFAULTS.get(name, ()):
        known = table.setdefault(name, {}).get(parameter, NOTHING)
        if known is not NOTHING and parameter in found and known != found[parameter]:
            print(f"{name}({parameter}=) was {known!r} and is {found[parameter]!r}: its rules must be looked at", file=sys.stderr)
            del table[name][parameter]
        elif known is NOTHING and parameter in found:
            table[name][parameter] = found[parameter]


def join_fused(site: Path, table: dict[str, str]) -> None:
    """Keep the first version in which an optimizer accepts ``fused``."""
    versions = [path.name.removesuffix(".dist-info").partition("-")[2] for path in site.glob("torch-*.dist-info")]
    for path in sorted((site / "torch" / "optim").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name in OPTIMIZERS and versions and takes_fused(node):
                found = ".".join(versions[0].split(".")[:2])
                table[node.name] = min(table.get(node.name, found), found, key=order)


def takes_fused(node: ast.ClassDef) -> bool:
    """Whether a constructor has a parameter ``fused``."""
    function = constructor(node)
    return function is not None and any(
        one.arg == "fused" for one in (*function.args.args, *function.args.kwonlyargs)
    )


if __name__ == "__main__":
    sys.exit(main())
