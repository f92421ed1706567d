"""Finetunes a tiny language model of transformers, which is made here first."""

import torch
from saved import SavedBytes
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def make(folder: str) -> None:
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=96, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=4
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def main() -> None:
    torch.manual_seed(0)
    make("tiny")
    model = AutoModelForCausalLM.from_pretrained("tiny")
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 5):
        tokens = torch.randint(64, (8, 32))
        saved = SavedBytes()
        with saved:
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        print(f"step {step} loss {loss.item().hex()}")
        print(f"saved {saved.peak}")
        print("gradients", *(parameter.grad.double().norm().item().hex() for parameter in model.parameters()))
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
