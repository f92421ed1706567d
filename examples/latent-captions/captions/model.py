"""The caption transformer: a bidirectional denoiser of masked captions, conditioned on an image latent."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from captions.config import DataConfig, ModelConfig


class AttentionBlock(nn.Module):
    """A pre-norm transformer block with full attention."""

    def __init__(self, hidden_dim: int, num_heads: int, mlp_ratio: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(hidden_dim)
        self.qkv = nn.Linear(hidden_dim, 3 * hidden_dim)
        self.attention_out = nn.Linear(hidden_dim, hidden_dim)
        self.mlp_norm = nn.LayerNorm(hidden_dim)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_dim, mlp_ratio * hidden_dim),
            nn.GELU(),
            nn.Linear(mlp_ratio * hidden_dim, hidden_dim),
        )

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """Map ``(batch, length, hidden)`` to the same shape; False in the mask hides a key."""
        batch, length, width = hidden.shape
        qkv = self.qkv(self.attention_norm(hidden))
        query, key, value = qkv.view(batch, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask)
        hidden = hidden + self.attention_out(attended.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.mlp(self.mlp_norm(hidden))


class CaptionTransformer(nn.Module):
    """Predicts the words behind the masks of a caption, and the latent that the caption belongs to."""

    def __init__(self, model: ModelConfig, data: DataConfig) -> None:
        super().__init__()
        self.latent_dropout = model.latent_dropout
        self.token_embedding = nn.Embedding(data.vocab_size, model.hidden_dim)
        self.position_embedding = nn.Parameter(0.02 * torch.randn(data.caption_length + 1, model.hidden_dim))
        self.latent_in = nn.Linear(data.latent_dim, model.hidden_dim)
        self.null_latent = nn.Parameter(torch.zeros(data.latent_dim))
        self.blocks = nn.ModuleList(
            [AttentionBlock(model.hidden_dim, model.num_heads, model.mlp_ratio) for _ in range(model.num_layers)]
        )
        self.norm = nn.LayerNorm(model.hidden_dim)
        self.token_head = nn.Linear(model.hidden_dim, data.vocab_size)
        self.latent_head = nn.Linear(model.hidden_dim, data.latent_dim)

    def drop_latents(self, latents: Tensor) -> Tensor:
        """Replace some latents by the learned null latent, so that sampling can use classifier-free guidance."""
        if not self.training:
            return latents
        dropped = torch.rand(len(latents), 1, device=latents.device) < self.latent_dropout
        return torch.where(dropped, self.null_latent, latents)

    def forward(self, tokens: Tensor, latents: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(batch, length, vocab)`` and predicted latents ``(batch, latent_dim)``.

        ``word_mask`` is True at words and False at padding.
        """
        prefix = self.latent_in(self.drop_latents(latents)).unsqueeze(1)
        hidden = torch.cat([prefix, self.token_embedding(tokens)], dim=1) + self.position_embedding
        visible = F.pad(word_mask, (1, 0), value=True)
        attention_mask = visible[:, None, None, :]
        for block in self.blocks:
            hidden = block(hidden, attention_mask)
        hidden = self.norm(hidden)
        words = hidden[:, 1:]
        weights = word_mask.unsqueeze(-1) / word_mask.sum(dim=1).view(-1, 1, 1)
        return self.token_head(words), self.latent_head((words * weights).sum(dim=1))
