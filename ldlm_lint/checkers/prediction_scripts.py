"""Scripts that use the Trainer of transformers only to predict or to evaluate."""

from __future__ import annotations

_TRAINS = (b".train(", b"hyperparameter_search", b"train_model", b"run_train")
_PREDICTS = (b".predict(", b".evaluate(", b".prediction_loop(", b".evaluation_loop(")


def only_predicts(data: bytes) -> bool:
    """Whether a file creates a Trainer that only predicts or evaluates: training settings do not matter there."""
    return b"Trainer(" in data and any(one in data for one in _PREDICTS) and not any(one in data for one in _TRAINS)


__all__ = ["only_predicts"]
