"""The options of the model."""

from dataclasses import dataclass


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 64
    n_layer: int = 6
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.1
    bias: bool = False  # True: bias in Linears and LayerNorms, like GPT-2
