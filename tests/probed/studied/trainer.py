"""A small GPT-2 with the Trainer of transformers: checkpoints with a limit or without, evaluation in between.

Its attention has a dropout, and on a CPU torch then computes the matrix of scores.
"""

from __future__ import annotations

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

WORDS = set(sys.argv[1:])


def main() -> None:
    set_seed(0)
    rows = torch.randint(0, 100, (64, 16))
    data = [{"input_ids": one, "labels": one} for one in rows]
    sizes = {
        "n_layer": 2,
        "n_embd": 16,
        "n_head": 2,
        "vocab_size": 100,
        "n_positions": 16,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    model = GPT2LMHeadModel(GPT2Config(**sizes))  # holds: missing-activation-checkpointing unless checkpointing
    evaluated = {"eval_strategy": "steps", "eval_steps": 5} if "evaluate" in WORDS else {}
    arguments = TrainingArguments(
        "out",
        use_cpu=True,
        max_steps=70,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2 if "micro" in WORDS else 1,
        gradient_checkpointing="checkpointing" in WORDS,
        bf16="bf16" in WORDS,
        logging_steps=5,
        save_strategy="steps" if WORDS & {"limited", "unlimited", "best"} else "no",
        save_steps=10,
        save_total_limit=None if "unlimited" in WORDS else 2,
        load_best_model_at_end="best" in WORDS,
        report_to=[],
        disable_tqdm=True,
        optim="adamw_torch_fused" if "fused" in WORDS else "adamw_torch",
        **evaluated,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:8])
    trainer.train()  # holds: unfused-attention; optimizer-not-fused unless fused; unbounded-checkpoints if unlimited; open: dataloader-in-main-process


main()
