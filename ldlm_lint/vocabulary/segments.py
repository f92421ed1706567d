"""Words about the two implementations of torch's activation checkpointing, in fixes and tables."""

from __future__ import annotations

FLAG = "checkpoint(use_reentrant=)"
"""The name of the argument in the tables of interfaces."""
NON_REENTRANT = "another implementation computes the backward pass, and gradients that were silently missing appear"
"""Why a fix that chooses the other implementation is not safe."""
