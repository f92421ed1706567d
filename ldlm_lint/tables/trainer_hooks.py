"""The methods that Trainers call in every training step, for a project to override, besides those that every Trainer
has."""

from __future__ import annotations

# As of trl 1.10 (July 2026) and its older releases: methods of DPO-, KTO-, ORPO-, CPO- and BCOTrainer, each run once or more per step.
OF_TRL = (
    *("get_batch_loss_metrics", "concatenated_forward", "get_batch_logps", "store_metrics"),
    *("dpo_loss", "kto_loss", "odds_ratio_loss", "cpo_loss", "bco_loss"),
)
"""What trl's trainers of preferences run in every step."""
