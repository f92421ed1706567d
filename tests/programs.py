"""Generated training programs: the parts that rules look at, in layouts that people write, for the property tests."""

from __future__ import annotations

from hypothesis import strategies as st

INDENTS = ("    ", "  ", "\t")
NEWLINES = ("\n", "\n", "\r\n")
COMMENTS = ("", "", "  # as in the paper", "  # \u00e4", " #")
HEADS = ("", '"""Trains it."""\n', "#!/usr/bin/env python\n# coding: utf-8\n", "from __future__ import annotations\n")
IMPORTS = (
    ("import os", "import time", "import torch", "import torch.distributed as dist", "from torch import nn"),
    ("import torch, os", "import torch.distributed as dist", "import torch.nn as nn"),
    ("import os", "import torch", "from torch import distributed as dist, nn", "from contextlib import suppress"),
)
CALLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "loader": (
        "torch.utils.data.DataLoader",
        (
            "dataset",
            "batch_size=8",
            "num_workers=workers",
            "shuffle=True",
            "pin_memory=True",
            "num_workers=4",
            "persistent_workers=False",
        ),
    ),
    "optimizer": (
        "torch.optim.AdamW",
        ("model.parameters()", "lr=1e-3", "betas=(0.9, 0.95)", "weight_decay=0.1", "fused=False"),
    ),
    "model": (
        "nn.parallel.DistributedDataParallel",
        ("model", "device_ids=[rank]", "find_unused_parameters=True", "broadcast_buffers=False"),
    ),
    "group": ("dist.init_process_group", ('"nccl"', "rank=rank", "world_size=2")),
    "scaler": ("torch.cuda.amp.GradScaler", ("enabled=True",)),
}
SAVES = (
    'torch.save(model.state_dict(), f"step_{step}.pt")',
    'torch.save({"model": model.state_dict(), "step": step}, "last.pt")',
    'if rank == 0:\n>torch.save(model.state_dict(), os.path.join("out", f"{epoch}.pt"))',
    'torch.save(\n>model.state_dict(),\n>f"step_{step}.pt",  # one each time\n)',
)
LOSSES = (
    "loss = model(batch.cuda()).mean()",
    "with torch.cuda.amp.autocast():\n>loss = model(batch).mean() / accumulate",
    'loss = model(\n>batch.to("cuda"),\n).mean()  # no average over ranks',
)
EXTRAS = (
    "torch.cuda.synchronize()",
    "torch.cuda.empty_cache()",
    "total += loss",
    "print(loss.item())",
    'text = """a\n  b\n"""',
    "torch.autograd.set_detect_anomaly(True)",
)


@st.composite
def calls(draw: st.DrawFn, name: str) -> str:
    """A call with some of its arguments, on one line or on several; ``>`` stands for a level of indentation."""
    function, arguments = CALLS[name]
    required = 1 if arguments and "=" not in arguments[0] else 0
    more = draw(st.lists(st.sampled_from(arguments[required:]), unique_by=lambda one: one.split("=")[0], max_size=4))
    chosen = [*arguments[:required], *more]
    if not draw(st.booleans()) or not chosen:
        return f"{function}({', '.join(chosen)}{draw(st.sampled_from(['', ',', ' '])) if chosen else ''})"
    comma = draw(st.sampled_from(["", ","]))
    comment = draw(st.sampled_from(COMMENTS))
    lines = ",\n>".join(chosen)
    return f"{function}(\n>{lines}{comma}{comment}\n)"


def nested(text: str) -> str:
    """The lines of a text one level deeper; what stands in a long string stays."""
    if '"""' in text:
        first, rest = text.split("\n", 1)
        return f">{first}\n{rest}"
    return "\n".join(f">{line}" if line else line for line in text.split("\n"))


@st.composite
def steps(draw: st.DrawFn) -> list[str]:
    """The statements of a training step, with or without accumulation."""
    step = [draw(st.sampled_from(LOSSES))]
    if draw(st.booleans()):
        step.append("loss = loss / accumulate")
    step.append(draw(st.sampled_from(["loss.backward()", "scaler.scale(loss).backward()"])))
    update = [
        "optimizer.step()",
        draw(st.sampled_from(["optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)"])),
    ]
    if draw(st.booleans()):
        update = ["if (step + 1) % accumulate == 0:", *(nested(one) for one in update)]
    step += update
    for extra in draw(st.lists(st.sampled_from(EXTRAS), max_size=2, unique=True)):
        step.insert(draw(st.integers(1, 2)), extra)
    if draw(st.booleans()):
        save = draw(st.sampled_from(SAVES))
        step.append(f"if step % 100 == 0:\n{nested(save)}" if draw(st.booleans()) else save)
    return step


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    """A small training program: loader, model, DDP, optimizer, loop, saves, in some layout."""
    setup = [
        f"loader = {draw(calls('loader'))}",
        "model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2) for _ in range(12)])",
        *([f"model = {draw(calls('model'))}"] if draw(st.booleans()) else []),
        f"optimizer = {draw(calls('optimizer'))}",
        *([f"scaler = {draw(calls('scaler'))}"] if draw(st.booleans()) else []),
    ]
    if draw(st.booleans()):
        setup.insert(0, draw(calls("group")))
    comment = draw(st.sampled_from(COMMENTS))
    loop = [
        "total = 0",
        "for epoch in range(10):" + comment,
        *(nested(one) for one in ["for step, batch in enumerate(loader):", *map(nested, draw(steps()))]),
    ]
    gap = draw(st.sampled_from(["", "", "\n"]))
    body = f"\n{gap}".join(nested(one) for one in [*setup, *loop])
    imports = "\n".join(draw(st.sampled_from(IMPORTS)))
    tail = draw(st.sampled_from(["\n", "\n", ""]))
    text = f"{draw(st.sampled_from(HEADS))}{imports}\n\n\ndef train(dataset, rank, workers, accumulate):\n{body}{tail}"
    newline, indent = draw(st.sampled_from(NEWLINES)), draw(st.sampled_from(INDENTS))
    mark = "\ufeff" if draw(st.integers(0, 5)) == 0 and not text.startswith("#!") else ""
    return (mark + text.replace(">", indent).replace("\n", newline)).encode()
