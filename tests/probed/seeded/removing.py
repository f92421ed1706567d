"""Removes old checkpoints for train.py."""

import os


def remove_if_there(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
