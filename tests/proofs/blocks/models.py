"""Models of other shapes: constructor options and keyword-only arguments, halves of a layer, a Sequential, a base class."""

import torch
from torch import nn


class DiTBlock(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.attn = nn.MultiheadAttention(hidden_size, num_heads, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(hidden_size, 4 * hidden_size), nn.SiLU(), nn.Linear(4 * hidden_size, hidden_size))
        self.modulate = nn.Linear(hidden_size, 2 * hidden_size)

    def forward(self, x, *, c, mask=None):
        shift, scale = self.modulate(c).unsqueeze(1).chunk(2, dim=-1)
        h = self.norm(x) * (1 + scale) + shift
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


class DiT(nn.Module):
    """Diffusion model with a Transformer backbone."""

    def __init__(
        self,
        hidden_size=32,
        depth=6,
        num_heads=4,  # of 8
        **kwargs,
    ):
        super().__init__()
        self.hidden_size = hidden_size
        self.blocks = nn.ModuleList([DiTBlock(hidden_size, num_heads) for _ in range(depth)])
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, x, c, mask=None):
        for block in self.blocks:
            x = block(x, c=c, mask=mask)                      # (N, T, D)
        return self.out(x)


class SmallDiT(DiT):
    def __init__(self, hidden_size=32):
        nn.Module.__init__(self)
        self.blocks = nn.ModuleList([DiTBlock(hidden_size, 4) for _ in range(4)])
        self.out = nn.Linear(hidden_size, hidden_size)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, 4, dropout=0.1, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class Halves(nn.Module):
    def __init__(self, width=32, depth=6):
        super().__init__()
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([Attention(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))]))

    def forward(self, x, c, mask=None):
        x = x + c.unsqueeze(1)
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return x


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = Attention(width)
        self.ff = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(self.ff(x + self.attn(x)))


class Stacked(nn.Module):
    def __init__(self, width=32, depth=6):
        super().__init__()
        self.layers = nn.Sequential(*[Layer(width) for _ in range(depth)])

    def forward(self, x, c, mask=None):
        return self.layers(x + c.unsqueeze(1))
