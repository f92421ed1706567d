"""The two losses of a caption: its masked words, and the latent that it should lead back to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from captions.data import MASK_TOKEN, PAD_TOKEN


def mask_words(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Mask a random share of each caption's words; return the masked captions and where the masks are."""
    share = torch.rand(len(tokens), 1, device=tokens.device).clamp(min=0.15)
    masked = (torch.rand(tokens.shape, device=tokens.device) < share) & (tokens != PAD_TOKEN)
    return tokens.masked_fill(masked, MASK_TOKEN), masked


def word_loss(logits: Tensor, tokens: Tensor, masked: Tensor) -> Tensor:
    """The mean cross-entropy over the masked words of a batch."""
    losses = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten(), reduction="none")
    weights = masked.flatten().float()
    return (losses * weights).sum() / weights.sum().clamp(min=1.0)


def latent_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """How far the direction of the predicted latent is from that of the image's latent."""
    predicted = F.normalize(predicted.float(), dim=-1)
    target = F.normalize(target.float(), dim=-1)
    loss = F.mse_loss(predicted, target)
    return torch.clamp(loss, min=0.0, max=10.0)
