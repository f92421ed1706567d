"""Models for `ldlm-lint probe memory`, small enough that a CPU can train them for real."""

import os
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (one.view(rows, length, 4, width // 4).transpose(1, 2) for one in self.qkv(self.norm1(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, words: int = 500, width: int = 64, depth: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(depth))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, targets=None):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.norm(self.first(x)))))


class ReadsValues(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.sum().item() > 0:
            y = 2 * y
        return y.mean()


def tokens(rows: int = 4, length: int = 128):
    return torch.randint(0, 500, (rows, length))


def gpt():
    return Gpt(), (tokens(), tokens())


def gpt_with_dropout():
    return Gpt(dropout=0.1), (tokens(), tokens())


def gpt_without_batch():
    return Gpt()


def gpt_without_loss():
    return Gpt(), tokens()


def gpt_named():
    return Gpt(), {"tokens": tokens(), "targets": tokens()}


def gpt_on_cuda():
    model = Gpt(dropout=0.1).to("cuda").cuda()
    given = torch.zeros(4, 128, dtype=torch.long, device="cuda")
    return model, (given, given.to(torch.device("cuda", 0), non_blocking=True))


def gpt_large():
    """29 GB of parameters, and far more at the peak of a step: no machine of ours could hold it."""
    return Gpt(50304, 8192, 8), (tokens(8, 2048), tokens(8, 2048))


def convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        *(Residual(32) for _ in range(4)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return model, torch.randn(8, 3, 64, 64), lambda out, _: F.cross_entropy(out, torch.zeros(len(out), dtype=torch.long))


def tiny_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = dict(n_layer=3, n_embd=64, n_head=4, vocab_size=500, n_positions=128, bos_token_id=0, eos_token_id=0)
    given = tokens()
    return GPT2LMHeadModel(GPT2Config(**sizes)), {"input_ids": given, "labels": given}


def reads_values():
    return ReadsValues(), torch.randn(3, 4)


def checkpoints_already():
    model = Gpt()
    for block in model.blocks:
        block.forward = checkpointed(block.forward)
    return model, (tokens(), tokens())


def checkpointed(forward):
    from torch.utils.checkpoint import checkpoint

    return lambda x: checkpoint(forward, x, use_reentrant=False)


def gpt_of_read_depth():
    """Values of constants are read while the model is built, as stochastic depth does it."""
    rates = [one.item() for one in torch.linspace(0, 0.3, 2)]
    positions = torch.arange(2)
    model = Gpt(depth=int(positions[-1]) + 1, dropout=rates[0])
    nn.init.trunc_normal_(model.head.weight, std=0.02)
    model.register_buffer("rates", torch.linspace(0, 1, 8), persistent=False)
    return model, (tokens(), tokens())


def frozen():
    model = nn.Linear(3, 3).requires_grad_(False)
    return model, torch.randn(2, 3)


def no_module():
    return {"model": Gpt()}


def raises():
    raise ValueError("no configuration given")


def crashes():
    os.abort()


def exits():
    os._exit(0)


def hangs():
    time.sleep(600)


def speaks():
    print("this line is not for stdout")
    return Gpt(), (tokens(), tokens())


ready_made = Gpt()
