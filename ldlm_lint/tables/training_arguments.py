"""Classes based on ``transformers.TrainingArguments``: all accept its settings, with its defaults for what checkpoints
and groups need."""

from __future__ import annotations

# As of trl 1.10 (f2cd577, July 2026), which derives its configurations from TrainingArguments and does not set these
# again; those of its experimental trainers were next to the others until trl 0.26.
_OF_TRL = tuple(f"{one}Config" for one in ("SFT", "DPO", "GRPO", "KTO", "Reward", "RLOO", "ORPO", "CPO", "BCO"))
_OF_TRANSFORMERS = ("TrainingArguments", "Seq2SeqTrainingArguments")
_OF_SENTENCES = "SentenceTransformerTrainingArguments"

TRAINING_ARGUMENTS = frozenset(
    {
        *(f"transformers.{one}" for one in _OF_TRANSFORMERS),
        *(f"trl.{one}" for one in _OF_TRL),
        f"sentence_transformers.{_OF_SENTENCES}",
        f"sentence_transformers.training_args.{_OF_SENTENCES}",
    }
)
"""The qualified names of the classes."""
NAMES = frozenset({*_OF_TRANSFORMERS, *_OF_TRL, _OF_SENTENCES})
"""Their last names."""
PACKAGES = ("transformers", "trl", "sentence_transformers")
WORDS = (b"TrainingArguments", *(one.encode() for one in _OF_TRL))
"""A program that uses one of them writes one of these."""
