"""Fine-tune a tiny GPT-2 on counting sequences: ``python train.py --config config.yaml``."""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments


class Counting(Dataset):
    """Sequences that count upwards from a start, modulo the vocabulary."""

    def __init__(self, size, length, vocabulary):
        self.size = size
        self.length = length
        self.vocabulary = vocabulary

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        tokens = (7 * index + torch.arange(self.length)) % self.vocabulary
        return {"input_ids": tokens, "labels": tokens}


class ExactTrainer(Trainer):
    """Prints the loss of each step with all of its bits."""

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        if self.is_world_process_zero():
            print(f"step {self.state.global_step + 1} loss {loss.item().hex()}", flush=True)
        return loss

    def compute_loss(self, *args, **kwargs):
        with torch.cuda.amp.autocast(enabled=False):
            return super().compute_loss(*args, **kwargs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    (settings,) = HfArgumentParser(TrainingArguments).parse_yaml_file(args.config)
    torch.manual_seed(settings.seed)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=4, n_head=2))
    trainer = ExactTrainer(model=model, args=settings, train_dataset=Counting(64, 32, 64))
    trainer.train(resume_from_checkpoint=args.resume)
    print(f"fused = {int(bool(trainer.optimizer.param_groups[0]['fused']))}")


if __name__ == "__main__":
    main()
